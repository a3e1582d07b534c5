#!/usr/bin/env python3
"""Trains golden models on pipelines under every schedule and policy of rematerialization, with data, tensor and sequence
parallelism and ZeRO; each run must have the losses, gradient norms and weights of the float64 run.

  pipelines.py INPUTS WORK [--all [--part I/N] | --rows MODEL:ROW...]

Alone: every third row of OFTEN, the first with MPI too. --all: each schedule with each policy, each in a third of the models, with the other
strategies in turn; every fourth row with MPI. --part: every N-th row of them from the I-th on. A row is written as for golden.py; auto stands for
the budget halfway between the plans of `none` and `full`.
"""
import json
import pathlib
import sys
import time

sys.path.append(sys.path[0] + "/..")
from golden import compare
from harness import Golden, call, check, compile, fresh, ranks_of, strategy

SCHEDULES = ("naive", "gpipe", "1f1b", "interleaved:2", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "dualpipe-v")
POLICIES = ("none", "full", "selective", "sqrt", "every:2", "every:3", "price:100", "own", "auto")
OTHERS = {
    2: ("", "data=2+zero=1", "tensor=2", "data=2,tensor=2+zero=2+sequence-parallel", "data=2+zero=3", "data=4+zero=2",
        "tensor=2+sequence-parallel", "data=2,tensor=2+zero=1", "data=2+zero=2", "data=2,tensor=2+zero=3", "tensor=4+sequence-parallel"),
    3: ("", "data=2+zero=2", "tensor=2", "data=2+zero=3", "tensor=2+sequence-parallel"),
    4: ("", "data=2+zero=1", "tensor=2", "data=2+zero=2", "tensor=2+sequence-parallel", "data=2+zero=3"),
}
OFTEN = {
    "golden-more/llama-deep": """
        pipe=4/8+schedule=zb-h1+remat=every:2 pipe=2,data=2,tensor=2/2+zero=2+sequence-parallel+remat=selective
        pipe=2,tensor=2/4+schedule=zb-v+remat=auto pipe=4,data=2/4+zero=1+schedule=interleaved:2+remat=full
        pipe=2,data=2/4+schedule=zb-h2+remat=sqrt+zero=3 pipe=4/8+schedule=v-min pipe=4/4+schedule=v-half+remat=selective""",
    "golden-more/gpt2-deep": "pipe=3/4+remat=own pipe=3,tensor=2/8+schedule=zb-h2+remat=full pipe=3/2+cuts=1,5+schedule=gpipe+remat=every:2 pipe=3,data=2/4+cuts=3,7+zero=1",
    "golden-more/qwen2-deep": "pipe=3/6+schedule=interleaved:2+remat=every:2 pipe=3,data=2/3+zero=2+remat=auto+schedule=zb-h1",
}
# For --all: a model and the lengths of its pipelines; microbatches are the batch over the data ranks.
MODELS = (("golden-more/llama-deep", 2), ("golden-more/llama-deep", 4), ("golden-more/gpt2-deep", 3), ("golden-more/gpt2-deep", 2),
          ("golden-more/qwen2-deep", 3), ("golden/llama-tiny", 4), ("golden/llama-tiny", 2), ("golden/gpt2-tiny", 2))


def least(schedule, stages):
    """The fewest microbatches, and what their number is a multiple of."""
    return {"zb-h1": stages, "zb-h2": 2 * stages - 1, "zb-v": 2 * stages - 1, "dualpipe-v": 2 * stages, "interleaved:2": stages}.get(schedule, 1), \
        stages if schedule == "interleaved:2" else 1


def every_row():
    turns = {schedule: 0 for schedule in SCHEDULES}
    for model, stages in MODELS:
        golden = Golden(INPUTS / model)
        config = json.load(open(golden.config))
        layers, batch, turn = config.get("n_layer") or config["num_hidden_layers"], golden.size["batch"], 0
        for schedule in SCHEDULES:
            fewest, multiple = least(schedule, stages)
            chunks = stages * (2 if schedule in ("interleaved:2", "zb-v", "v-half", "v-min", "dualpipe-v") else 1)
            if chunks > layers:
                continue
            # Every third policy, and other ones for the schedule's next model.
            first, turns[schedule] = turns[schedule] % 3, turns[schedule] + 1
            for policy in POLICIES[first::3]:
                # The next strategy that this schedule has enough microbatches for.
                for _ in OTHERS[stages]:
                    other, turn = OTHERS[stages][turn % len(OTHERS[stages])], turn + 1
                    mesh, *flags = other.split("+")
                    name = "+".join([f"pipe={stages}" + ("," + mesh if mesh else ""), *flags])
                    data = 4 if "data=4" in mesh else 2 if "data=2" in mesh else 1
                    most = batch // data
                    if batch % data == 0 and most >= fewest and most % multiple == 0:
                        head, *rest = name.split("+")
                        yield model, "+".join([f"{head}/{most}", *rest, f"schedule={schedule}", f"remat={policy}"])
                        break


def arena(golden, options):
    compile(golden.config, "exec.mlir", emit="exec", report="report", **dict(golden.size, **options))
    return json.load(open("report/report.json"))["arena_bytes"]


def resolved(golden, name):
    """The row with what `own`, a policy for each stage, and `auto` stand for."""
    options = strategy(name)
    stages = int(options["mesh"].split("pipe=")[1].split(",")[0])
    if name.endswith("remat=own"):
        return name.replace("=own", "=" + ",".join(["full", "every:2", "none", "selective"][:stages]))
    if "remat=auto" in name:
        none, full = (arena(golden, dict(options, remat=policy)) for policy in ("none", "full"))
        return name.replace("remat=auto", f"remat=auto:{(none + full) // 2}")
    return name


def share_messages(model, name):
    """The same where tensor ranks each send a part of what they all have, which the model of links would not choose here."""
    golden = Golden(INPUTS / model)
    compile(golden.config, "local.mlir", emit="local", **dict(golden.size, **strategy(name)))
    text = call(["meshwright-opt", "local.mlir", "--dist-split-stages=scatter-gather=always"])
    check("dist.all_gather" in text, "nothing is gathered")
    pathlib.Path("stages.mlir").write_text(text.replace('meshwright.phase = "local"', 'meshwright.phase = "stages"'))
    golden.config = pathlib.Path("stages.mlir").resolve()
    compare(golden, name, traffic=True)


def main(rows, often):
    begin, errors, with_mpi = time.monotonic(), {}, 0
    for i, (model, name) in enumerate(rows):
        golden, mpi = Golden(INPUTS / model), i == 0 if often else i % 4 == 0
        check(ranks_of(strategy(name)["mesh"]) <= 8, f"{name} has more than 8 ranks")
        for what, error in compare(golden, resolved(golden, name), mpi=mpi).items():
            errors[what] = max(errors.get(what, (0, "")), (error, f"{model} {name}"))
        with_mpi += mpi
    print(f"{len(rows)} executables, {with_mpi} of them with MPI too, in {time.monotonic() - begin:.0f} s; largest errors:")
    for what, (error, where) in errors.items():
        print(f"  {what} {error:.1e} ({where})")


INPUTS = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])
if "--rows" in sys.argv:
    main([row.split(":", 1) for row in sys.argv[sys.argv.index("--rows") + 1:]], False)
elif "--all" in sys.argv:
    part, parts = map(int, sys.argv[sys.argv.index("--part") + 1].split("/")) if "--part" in sys.argv else (0, 1)
    main(list(every_row())[part::parts], False)
else:
    main([(model, name) for model, names in OFTEN.items() for name in names.split()][::3], True)
    share_messages("golden-more/llama-deep", "pipe=2,tensor=2/4")
