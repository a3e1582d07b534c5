#!/usr/bin/env python3
"""Popular experts with copies on other devices: losses, gradients and checkpoints are those of a run without copies, on any mesh, memory is as
planned, and a run that goes on from a checkpoint has the placement that it had.

  copies.py WORK [--skewed CONFIG] GOLDEN MESH[/MICROBATCHES][+FLAG[=VALUE]]... [GOLDEN MESH..]..

The meshes have +redundant-experts=R. --skewed: of a deepseek_v3 whose routers send all tokens to two experts, which take fewer rounds with copies.
"""
import filecmp
import json
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from compare import momentum_error, read_safetensors
from harness import Golden, arena_printed, built, call, changed, check, compile, distance, flags, fresh, ranks_of, rows, strategy, train


def shapes(path):
    return {name: shape for name, (shape, _) in read_safetensors(path).items()}


def tokens(have):
    return [row["expert_tokens"] for row in have]


def check_arena(exe, ranks, run):
    """Ranks allocate what is planned."""
    planned = json.loads(call(["meshwright", "inspect", "--json", exe]))["arena_bytes"]
    said = call(["meshwright", "run", "-n", ranks, exe, *flags(run)])
    check(arena_printed(said) == planned, f"{planned} bytes are planned, ranks allocate:\n{said}")


def try_mesh(golden, name):
    options = dict(golden.size, **strategy(name))
    without = {flag: value for flag, value in options.items() if flag != "redundant-experts"}
    ranks, run = ranks_of(options["mesh"]), dict(golden.run, expert_tokens_every=1)
    exe, plain, one = built(golden.config, **options), built(golden.config, **without), built(golden.config, **golden.size)
    want = train(plain, ranks, metrics="plain.jsonl", save="plain", **run)
    steps = len(want)
    # No expert has copies; by the loads of a run before; anew after each step.
    for kind, more in (("none", {}), ("given", {"expert_loads": "plain.jsonl"}), ("moving", {"place_experts_every": 2})):
        have = train(exe, ranks, metrics=f"{kind}.jsonl", save=kind, **dict(run, **more))
        loss, norm = distance(have, want), distance(have, want, "grad_norm")
        print(f"{golden.directory.name} {name}, {kind}: loss {loss:.1e}, grad_norm {norm:.1e}", flush=True)
        check(loss <= 1e-6, f"a loss is off by {loss:.2e}")
        check(norm <= 2e-5, f"a gradient norm is off by {norm:.2e}")
        check(tokens(have) == tokens(want), "other tokens were counted")
        for file in ("model.safetensors", "optimizer.safetensors"):
            check(shapes(f"{kind}/latest/{file}") == shapes(f"plain/latest/{file}"), f"{file} has other tensors")
    if ranks_of(options["mesh"].replace("pipe=2", "")) == ranks:  # Stages have arenas of their own, each in a line.
        check_arena(exe, ranks, dict(golden.run, steps=1))
    if golden.gradients.exists():
        train(exe, ranks, save="first", **dict(golden.run, beta1=0.9, grad_clip=0, steps=1, expert_loads="plain.jsonl"))
        error, where = momentum_error("first/latest/optimizer.safetensors", golden.gradients, 0.9)
        check(error <= 2e-5, f"{name}: the gradient of {where} is off by {error:.2e}")
    # From the third step on, with the placement of the second, in the same bits; and on one rank, which has no copies.
    del run["init"]
    train(exe, ranks, save="begun", **dict(golden.run, steps=3, place_experts_every=2, lr_schedule=None))
    state = json.loads(pathlib.Path("begun/latest/state.json").read_text())
    check(state["expert_loads"] == {layer: counts for layer, counts in tokens(want)[1].items()}, f"placed by {state.get('expert_loads')}")
    resumed = train(exe, ranks, resume="begun", save="resumed", metrics="resumed.jsonl",
                    **dict(run, steps=steps, reschedule=True, place_experts_every=2))
    check(resumed == rows("moving.jsonl")[3:], f"the run that went on has {resumed}")
    for file in ("model.safetensors", "optimizer.safetensors"):
        check(filecmp.cmp(f"resumed/latest/{file}", f"moving/latest/{file}", shallow=False), f"{file} differs in a bit")
    alone = train(one, resume="begun", metrics="alone.jsonl", **dict(run, steps=steps, reschedule=True))
    check(distance(alone, want[3:]) <= 1e-6, "one rank goes on with other losses")


def try_skewed(config):
    """All tokens go to the first two experts, which one device has: with a slot on each, the other one computes as many rows."""
    size, run = dict(batch=8, seq=16), dict(data=data, tokens="u8", lr=1e-3, expert_tokens_every=1)
    compile(config, "one", **size)
    train("./one", steps=0, save="first", **dict(run, expert_tokens_every=None))
    bias = lambda name, count: [50.0 if i < 2 else 0.0 for i in range(count)] if name.endswith("e_score_correction_bias") else None
    changed("first/latest/model.safetensors", "weights.safetensors", bias)
    plain, exe = (built(config, mesh="expert=2", **size, **more) for more in ({}, {"redundant_experts": 2}))
    want = train(plain, 2, steps=4, init="weights.safetensors", metrics="skewed.jsonl", **run)
    have = train(exe, 2, steps=4, init="weights.safetensors", expert_loads="skewed.jsonl", check_replicas=1, metrics="copied.jsonl", **run)
    rounds = [{row["expert_rounds"] for row in of} for of in (want, have)]
    check(rounds == [{2}, {1}], f"rows took {rounds} rounds, without copies and with them")
    check(distance(have, want) <= 1e-6 and tokens(have) == tokens(want), "losses or counts differ")
    table = call(["meshwright", "inspect", exe, "--expert-loads", "skewed.jsonl"])
    # 8 sequences of 16 tokens have two rows each.
    lines = [line.split() for line in table.splitlines() if line.split()[0].isdigit()]
    check(lines and all(line[3:] == ["128", "256", "128"] for line in lines) and "copies save 50.0% of the rows" in table, table)
    # A dumped step has the placement with which it was made.
    compile(config, "replayed", mesh="expert=2", redundant_experts=2, replay=True, **size)
    train("./replayed", 2, steps=3, init="weights.safetensors", place_experts_every=1, dump="dumped", dump_step=2, **run)
    call(["meshwright", "replay", "dumped"])
    print(table)
    # What one slot on each device would save is said without any, too.
    check("as --redundant-experts 2 would give it" in call(["meshwright", "inspect", plain, "--expert-loads", "skewed.jsonl"]), "not for a plain plan")


def refused(command, *words):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    check(done.returncode and all(word in done.stderr for word in words), f"{command}: {done.stderr}")


def check_refusals(config):
    size = dict(batch=8, seq=16, mesh="expert=2", redundant_experts=2)
    exe, run = built(config, **size), dict(data=data, tokens="u8", steps=1, lr=1e-3)
    loads = json.loads(pathlib.Path("skewed.jsonl").read_text().splitlines()[-1])["expert_tokens"]
    for file, line, *words in (("empty.jsonl", {"step": 0, "loss": 1}, 'no line has "expert_tokens"'),
                               ("more.jsonl", {"step": 0, "expert_tokens": {key: [*value, 1] for key, value in loads.items()}}, "loads of 9 experts", "has 8"),
                               ("bad.jsonl", {"step": 0, "expert_tokens": {key: [-1, *value[1:]] for key, value in loads.items()}}, "no list of counts"),
                               ("other.jsonl", {"step": 0, "expert_tokens": {"77": [1, 2]}}, "layer 77", "has 0")):
        pathlib.Path(file).write_text(json.dumps(line) + "\n")
        refused(["meshwright", "run", "-n", 2, exe, *flags(dict(run, expert_loads=file))], file, *words)
    # A layer whose router failed has no copies.
    first = min(loads)
    lines = ({"step": 0, "expert_tokens": loads}, {"step": 1, "expert_tokens": {**loads, first: [None] * len(loads[first])}})
    pathlib.Path("failed.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    have = {line.split()[0]: line.split()[4:] for line in call(["meshwright", "inspect", exe, "--expert-loads", "failed.jsonl"]).splitlines() if line.split()[0].isdigit()}
    check(have[first] == ["256", "256"] and all(row == ["256", "128"] for layer, row in have.items() if layer != first), f"rows {have}")
    refused(["meshwright", "inspect", "./one", "--expert-loads", "skewed.jsonl"], "the plan has no mesh axis expert")
    refused(["meshwright", "inspect", exe, "--expert-loads", "more.jsonl"], "9 experts", "do not divide")
    refused(["meshwright", "inspect", exe, "--json", "--expert-loads", "skewed.jsonl"], "give one of")


data = pathlib.Path(__file__).resolve().parents[2] / "Inputs/golden-more/corpus.txt"
words = [pathlib.Path(word).resolve() if "golden" in word else word for word in sys.argv[2:]]
fresh(sys.argv[1])
if "--skewed" in words:
    where = words.index("--skewed")
    _, skewed = words[where:where + 2]
    del words[where:where + 2]
    try_skewed(skewed)
    check_refusals(skewed)
model = None
for word in words:
    if isinstance(word, pathlib.Path):
        model = Golden(word)
    else:
        try_mesh(model, word)
