#!/usr/bin/env python3
"""Steps whose batch grows (--batch-ramp) are those of executables for these batches.

  ramp.py GOLDEN WORK steps STRATEGY...   each step against an executable of its batch alone, which goes on from the step before
  ramp.py GOLDEN WORK run                 resuming, samples, numbers, evaluation, refusals
  ramp.py GOLDEN WORK recovery            a step within the ramp that is not finite
  ramp.py GOLDEN WORK commands            verify, certify, replay, predict, plan and checks of replicas

A strategy is written as for golden.py, M of its M microbatches at the end of the ramp. +masked leaves targets out, +packed packs
documents, +near allows rounding: of sums over the batch whose factors are multiplied at run time.
"""
import filecmp
import json
import pathlib
import random
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import INPUTS, Golden, call, changed, check, compile, distance, flags, fresh, interpreted, planned, ranks_of, rows, strategy, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
mode, cases = sys.argv[3], sys.argv[4:]
run = dict({name: value for name, value in golden.run.items() if name != "steps"}, lr=1e-3, eps=1e-4, warmup=3)
sizes = {name: value for name, value in golden.size.items() if name not in ("batch", "optimizer")}


def refused(command, *words):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60)
    check(done.returncode == 1 and all(word in done.stderr for word in words), f"{' '.join(map(str, command))}: {done.stderr}, expected {words}")


def same_files(a, b):
    """Whether both checkpoints have the same weights, or adapters, and states."""
    have, want = (sorted(path.name for path in pathlib.Path(folder, "latest").glob("*.safetensors")) for folder in (a, b))
    return len(have) == 2 and have == want and all(filecmp.cmp(f"{a}/latest/{file}", f"{b}/latest/{file}", shallow=False) for file in have)


def mask_of(data):
    """Every third target counts, and no target of some sequences."""
    length = data.stat().st_size
    open("mask.bin", "wb").write(bytes(at % 3 == 1 and at // golden.size["seq"] % 5 != 2 for at in range(length)))
    return "mask.bin"


def try_steps(text):
    options = strategy(text)
    parts = int(options.pop("microbatches"))
    near, masked = options.pop("near", False), options.pop("masked", False)
    ranks, pairs = ranks_of(options["mesh"]), options.get("loss") == "dpo"
    # The sequences of a microbatch: one or more of each data-parallel rank, or a pair.
    unit = max(1 if pairs else 2, ranks_of(",".join(re.findall(r"(?:data|replica|expert)=\d+", options["mesh"])))) * (2 if pairs else 1)
    size = dict(sizes, **options)
    given = dict(run, **({"loss_mask": mask_of(run["data"])} if masked else {}), **({"documents": 10} if "packed" in options else {}))
    if "adafactor" in options.get("optimizer", ""): # It has no averages with these rates.
        given.update(beta1=None, beta2=None)
    if pairs:
        files = INPUTS / "preferences"
        given.update(data=files / "pairs.bin", documents=files / "pairs.starts", loss_mask=files / "pairs.mask", reference_log_probs=files / "reference.f32")
        size["seq"] = json.loads((files / golden.directory.name / "golden.json").read_text())["run"]["seq"]
    compile(golden.config, "ramped", batch=unit * parts, microbatches=parts, batch_ramp=True, **size)
    ramp = f"{unit}+{unit}:{2 * unit * (parts - 1)}" if parts > 1 else None
    have = train("./ramped", ranks, batch_ramp=ramp, steps=parts + 1, save="have", metrics="have.jsonl", **given)
    batches = [row["batch"] // unit for row in have]
    check(batches == [1, 1, *range(2, parts + 1)], f"{text}: the batches are {batches}")
    want, goes_on = [], {}
    for step, count in enumerate(batches):
        if count not in batches[:step]:
            own = {name: value for name, value in size.items() if count > 1 or name != "aux-counting-pass"}
            compile(golden.config, f"of-{count}", batch=unit * count, microbatches=count, **own)
        want += train(f"./of-{count}", ranks, steps=step + 1, save="want", metrics=f"want-{step}.jsonl", **dict(given, **goes_on))
        goes_on = {"init": None, "resume": "want"}
    for row in have:
        del row["batch"]
    exact = have == want and same_files("have", "want")
    far = max(distance(have, want), distance(have, want, "grad_norm"))
    check(exact or (near and far < 2e-6), f"{text}: differs by {far:.1e}\n{have}\n{want}")
    # The interpreter's float64 takes the same batches.
    allowed = 2e-2 if "precision" in options else 1e-5
    computed = ("seq", "optimizer", "packed", "dropout", "lora", "freeze", "loss", "z-loss", "aux-loss", "aux-scope", "aux-counting-pass")
    options = {name: value for name, value in size.items() if name in (*sizes, *computed)}
    judge = interpreted(golden.config, dict(options, batch=unit * parts, microbatches=parts, batch_ramp=True), dict(given, steps=parts + 1, batch_ramp=ramp))
    off = distance(have, judge)
    check(off < allowed, f"{text}: the interpreter finds {judge}, not {have}")
    print(f"{golden.directory.name} {text}: {'the same bits' if exact else f'apart by {far:.1e}'}, from float64 {off:.1e}", flush=True)


def try_run():
    size = dict(sizes, batch=8, microbatches=4)
    compile(golden.config, "ramped", mesh="data=2", batch_ramp=True, **size)
    compile(golden.config, "one", batch_ramp=True, **size)
    compile(golden.config, "plain", mesh="data=2", **size)
    launch = ["meshwright", "run", "-n", 2]

    def start(exe, *more, **options):
        ranks = launch if exe != "./one" else []
        return call([*ranks, exe, *flags(dict(run, **options)), *more])

    def numbers(said):
        return re.search(r"^numbers ([0-9a-f]{16})", said, re.MULTILINE)[1]

    # Two steps of each batch, and all sequences in order.
    ramp = {"batch_ramp": "2+2:18", "shuffle": True}
    said = start("./ramped", steps=8, save="whole", save_every=2, metrics="whole.jsonl", log_samples="samples.jsonl", **ramp)
    whole = rows("whole.jsonl")
    check([row["batch"] for row in whole] == [2, 2, 2, 4, 4, 6, 8, 8], f"batches are {whole}")
    check([row["tokens"] // sizes["seq"] for row in whole] == [2, 4, 6, 10, 14, 20, 28, 36], f"tokens are {whole}")
    check("--batch-ramp 2+2:18: batches of 2 sequences, growing until 18 have been read to 8" in said, said)
    start("./plain", steps=5, log_samples="in-order.jsonl", shuffle=True)
    samples, plain = ([sample for line in open(file) for sample in json.loads(line).get("samples", [])] for file in ("samples.jsonl", "in-order.jsonl"))
    check(len(samples) == 36 and samples == plain[:36], f"samples are {samples}, in order {plain}")

    # A run that is resumed in the middle of the ramp, on its own mesh and on another.
    resumed = {"init": None, "steps": None, "shuffle": None, "resume": "whole/step-00000004"}
    again = start("./ramped", save="again", metrics="again.jsonl", **resumed)
    check(rows("again.jsonl") == whole[4:], f"resumed: {rows('again.jsonl')}, not {whole[4:]}")
    check(same_files("again", "whole"), "the resumed run's tensors differ")
    check(numbers(said) == numbers(again) and "note:" not in again, again)
    start("./one", metrics="one.jsonl", **resumed)
    check(distance(rows("one.jsonl"), whole[4:]) < 1e-5, f"on another mesh: {rows('one.jsonl')}, not {whole[4:]}")
    # It may take another ramp, or end it. What has no ramp goes on where this is over, and is refused before.
    other = start("./ramped", metrics="other.jsonl", batch_ramp="4+4:18", **resumed)
    check([row["batch"] for row in rows("other.jsonl")] == [4, 4, 8, 8] and "note: --batch-ramp 4+4:18, was 2+2:18\n" in other, other)
    ended = start("./ramped", metrics="ended.jsonl", save="ended", batch_ramp="none", **resumed)
    check(all("batch" not in row for row in rows("ended.jsonl")) and "note: --batch-ramp none, was 2+2:18\n" in ended, ended)
    start("./plain", metrics="plain.jsonl", batch_ramp="none", **resumed)
    check(rows("plain.jsonl") == rows("ended.jsonl"), "without a ramp both are the same")
    refused([*launch, "./plain", *flags(dict(run, **resumed))], "has read 10 sequences, so its batch is to grow further", "the whole batch of 8",
            "compile with --batch-ramp, or give --batch-ramp none")
    start("./plain", metrics="over.jsonl", **dict(resumed, resume="whole/step-00000006"))
    check(rows("over.jsonl") == [{name: row[name] for name in row if name != "batch"} for row in whole[6:]], "after the ramp")
    start("./ramped", steps=3, save="late")
    late = start("./ramped", **dict(resumed, steps=4, resume="late", batch_ramp="2+2:100"))
    check("note: --steps 4, was 3; --batch-ramp 2+2:100, was not given\n" in late, late)

    # What would change nothing is refused, unless it is the checkpoint's, as where a run is started again with the same flags.
    over = dict(resumed, resume="whole/step-00000006")
    for given, *words in ((dict(over, batch_ramp="4+4:20"), "has read 20 sequences, so this ramp is over: leave it out\n"), (dict(over, batch_ramp="none"), "is whole already"),
                          (dict(resumed, batch_ramp="2+2:10"), "so this ramp is over: leave it out, to continue with 2+2:18, or give --batch-ramp none"),
                          (dict(resumed, steps=4, resume="late", batch_ramp="2+2:24"), "has read 24 sequences, so this ramp is over"),
                          (dict(resumed, steps=4, resume="late", batch_ramp="none"), "is whole already")):
        refused([*launch, "./ramped", *flags(dict(run, **given))], f"--batch-ramp {given['batch_ramp']}: ", *words)
    again = start("./ramped", metrics="restarted.jsonl", **dict(over, batch_ramp="2+2:18"))
    check("--batch-ramp" not in again and rows("restarted.jsonl") == whole[6:], f"{again}\n{rows('restarted.jsonl')}")
    again = start("./ramped", **dict(resumed, resume="ended", steps=9, batch_ramp="none"))
    check("--batch-ramp" not in again, again)

    # Other ranks that a run goes on with have the same ramp.
    compile(golden.config, "single", **size)
    compile(golden.config, "coarse", batch_ramp=True, **dict(size, microbatches=2))

    def elastic(other, **options):
        return ["meshwright", "run", "-n", 2, "--restarts", 1, "--elastic", other, "./ramped", *flags(dict(run, **options))]

    ramped = {"steps": 1, "save": "elastic", "batch_ramp": "2+2:18"}
    refused(elastic("./single", **ramped), "--elastic ./single computes other numbers than ./ramped: batch-ramp is not given, not on")
    refused(elastic("./single", **dict(resumed, save="elastic")), "batch-ramp is not given, not on")
    refused(elastic("./coarse", **ramped), "./coarse: --batch-ramp 2+2:18: this executable's batch of 8 sequences has 2 microbatches of 4, so START must be 4, but is 2")
    for other, more in (("./one", ramped), ("./coarse", {"batch_ramp": "4+4:18", "save": "elastic-coarse"}), ("./single", {"batch_ramp": None, "save": "elastic-whole"})):
        call(elastic(other, **dict(ramped, **more)))

    # The ramp is one of the numbers, the executable that could have one is not. Without it every batch is whole.
    base, able = (start(exe, steps=2, metrics=f"{exe[2:]}.jsonl") for exe in ("./plain", "./ramped"))
    check(numbers(base) == numbers(able) and rows("plain.jsonl") == rows("ramped.jsonl"), f"{base}\n{able}")
    check(len({numbers(base), *(numbers(start("./ramped", steps=2, batch_ramp=text)) for text in ("2+2:18", "2+6:18", "2+2:19"))}) == 4, "hashes are the same")

    # Evaluations have whole batches, in the middle of the ramp too.
    for exe, more in (("./plain", {}), ("./ramped", {}), ("./ramped", {"batch_ramp": "2+2:100"})):
        start(exe, steps=1, eval_data=run["data"], eval_batches=3, metrics="eval.jsonl", **dict(more, lr=0))
        found = rows("eval.jsonl")[-1]["eval_loss"]
        check(found == (first := found if exe == "./plain" else first), f"{exe} {more}: an evaluation finds {found}, not {first}")

    for text, *words in (("2:18", "must be START+INCREMENT:SAMPLES"), ("3+2:18", "START must be 2, 4 or 6, but is 3"),
                         ("8+2:18", "START must be 2, 4 or 6, but is 8"), ("2+4:18", "INCREMENT must be 2 or 6 to come from 2 to 8, but is 4"),
                         ("none", "this run begins anew")):
        refused([*launch, "./ramped", *flags(dict(run, steps=1, batch_ramp=text))], "--batch-ramp", *words)
    refused([*launch, "./plain", *flags(dict(run, steps=1, batch_ramp="2+2:18"))], "--batch-ramp is for", "compile with --batch-ramp")
    refused([*launch, "./ramped", "--eval-only", *flags({"init": run["init"], "eval_data": run["data"], "tokens": run["tokens"], "batch_ramp": "2+2:18"})],
            "--batch-ramp changes nothing with --eval-only")
    refused(["meshwright", "compile", golden.config, "-o", "no", "--batch-ramp", *flags(sizes)], "--batch-ramp changes nothing", "give --microbatches M")
    refused(["meshwright", "compile", golden.config, "-o", "no", "--batch-ramp", *flags(dict(size, mesh="pipe=2"))],
            "--batch-ramp changes nothing", "without the axis `pipe`")
    print("a run with a ramp resumes, and says what it cannot do")


def try_recovery():
    """The sixth sequence, in the third step's batch of four, has a byte whose embedding is so large that its mean overflows."""
    open("untied.json", "w").write(json.dumps(dict(json.loads(golden.config.read_text()), tie_word_embeddings=False)))
    compile("untied.json", "ramped", mesh="data=2", batch_ramp=True, batch=8, microbatches=4, **sizes)
    drawn = random.Random(1)
    tokens = bytearray(drawn.choices(range(200), k=32 * sizes["seq"] + 1))
    tokens[5 * sizes["seq"] + 3] = 255
    open("data.bin", "wb").write(tokens)
    call(["meshwright", "run", "-n", 2, "./ramped", *flags(dict(run, init=None, lr=0, steps=1, save="start"))])
    changed("start/latest/model.safetensors", "poisoned.safetensors", lambda name, count: [drawn.gauss(0, 0.02) for _ in range(255 * (count // 256))] +
            [1e38] * (count // 256) if name.endswith("wte.weight") else None)
    given = dict(run, init="poisoned.safetensors", data="data.bin", steps=5, batch_ramp="2+2:8", log_samples="samples.jsonl")

    def start(**options):
        return call(["meshwright", "run", "-n", 2, "./ramped", *flags(dict(given, **options))])

    def position(folder):
        return json.load(open(f"{folder}/latest/state.json"))["position"]

    batch = "step 2: the loss is nan and the gradient norm nan; its batch has the sequences data.bin 4, data.bin 5, data.bin 6, data.bin 7: "
    refused(["meshwright", "run", "-n", 2, "./ramped", *flags(dict(given, save="stopped"))], batch, "the state after 2 steps is saved")
    check(position("stopped") == 4, f"the run stopped after {position('stopped')} sequences")
    said = start(on_nan="skip", save="skipped", metrics="skipped.jsonl")
    skipped = rows("skipped.jsonl")
    check(batch + "the step changes nothing" in said and [row["batch"] for row in skipped] == [2, 2, 4, 8, 8] and position("skipped") == 24, f"{skipped}\n{said}")
    start(init=None, steps=5, batch_ramp=None, on_nan="skip", resume="stopped", metrics="again.jsonl")
    check(str(rows("again.jsonl")) == str(skipped[2:]), f"resumed: {rows('again.jsonl')}, not {skipped[2:]}")  # A loss is not a number.
    said = start(on_nan="rollback", save="back", save_every=2, metrics="back.jsonl")
    back = rows("back.jsonl")
    first = {row["step"]: row["samples"][0][1] for row in map(json.loads, open("samples.jsonl")) if "samples" in row}
    check(batch + "going back to back/step-00000002" in said and [row["batch"] for row in back] == [2, 2, 8, 8, 8] and
          [first[step] for step in range(5)] == [0, 2, 8, 16, 24] and position("back") == 32, f"{back}\n{first}\n{said}")
    print("a step within the ramp that is not finite stops the run, is skipped, or is gone back before")


def try_commands():
    size = dict(sizes, batch=8, microbatches=4)
    ramped = flags(dict(size, mesh="data=2", batch_ramp=True, zero=1))
    said = call(["meshwright", "verify", golden.config, *ramped])
    check("quantities agree with the sequential program" in said, said)
    compile(golden.config, "ramped", mesh="data=2", batch_ramp=True, replay=True, certify=True, **size)
    given = flags(dict(run, steps=4, batch_ramp="2+2:12"))
    call(["meshwright", "run", "-n", 2, "./ramped", *given, "--dump", "dumped", "--dump-step", 2, "--check-replicas", 1])
    said = call(["meshwright", "replay", "dumped"])
    check("agree" in said, said)
    # What is foretold is a step with the whole batch.
    times = [json.loads(call(["meshwright", "predict", golden.config, "--cluster", "cpu", "--json", *flags(dict(size, mesh="data=2", batch_ramp=ramp))]))["step_s"]
             for ramp in (True, False)]
    check(abs(times[0] / times[1] - 1) < 0.01, f"a step is predicted to take {times} s")
    plans = []
    for more in ({"batch_ramp": True}, {}):
        plans.append(planned(golden.config, mesh="data=2", zero=1, **size, **more))
    for key in ("flops", "microbatches", "batch"):
        check(plans[0][key] == plans[1][key], f"{key} is {plans[0][key]}, not {plans[1][key]}")
    traffic = [[(entry["op"], entry["bytes"], entry["times"]) for entry in plan["collectives"]] for plan in plans]
    check(traffic[0] == traffic[1], f"collectives are {traffic[0]}, not {traffic[1]}")
    more = plans[0]["arena_bytes"] / plans[1]["arena_bytes"]
    check(more < 1.05, f"the arena is {more} times as large")
    print(f"commands know a ramp; the arena is {more:.4f} of that without")


if mode == "steps":
    for case in cases:
        try_steps(case)
else:
    {"run": try_run, "recovery": try_recovery, "commands": try_commands}[mode]()
