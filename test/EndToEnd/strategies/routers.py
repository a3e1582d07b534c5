#!/usr/bin/env python3
"""What routers say of themselves: how many tokens chose each expert, which experts get none, and which router has failed.

  routers.py GOLDEN BIASED WORK MESH...

GOLDEN: of mixtral. BIASED: of deepseek_v3, whose routers have a bias of the choice.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import Golden, built, call, changed, check, compile, flags, fresh, ranks_of, rows, strategy, train

golden, biased = Golden(sys.argv[1]), Golden(sys.argv[2])
fresh(sys.argv[3])


def sizes(model):
    """Tokens of a batch times experts of each, and the layers that have some."""
    config, run = json.loads(model.config.read_text()), model.answers["run"]
    first = config.get("first_k_dense_replace", 0)
    return (run["batch"] * run["seq"] * config["num_experts_per_tok"],
            [str(i) for i in range(first, config["num_hidden_layers"])])


def run(exe, ranks, **options):
    """What a run that may fail says, and its exit code."""
    done = subprocess.run(["meshwright", "run", "-n", str(ranks), exe, *flags(options)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.stdout, done.returncode


def count(model, name):
    """Every choice is counted once, by one device as by many."""
    options = dict(model.size, **strategy(name))
    have = train(built(model.config, **options), ranks_of(options["mesh"]), expert_tokens_every=1, **dict(model.run, steps=3))
    choices, layers = sizes(model)
    for row in have:
        tokens = row["expert_tokens"]
        check(list(tokens) == layers, f"{name}: layers {list(tokens)} have counts, expected {layers}")
        for layer, counts in tokens.items():
            check(sum(counts) == choices, f"{name}: {sum(counts)} choices in layer {layer}, expected {choices}: {counts}")
    if options.get("precision"):
        return
    want = train(built(model.config, **model.size), 1, expert_tokens_every=2, **dict(model.run, steps=3))
    check("expert_tokens" not in want[0] and "expert_tokens" not in want[2], "counts were not asked for after this step")
    check(have[1]["expert_tokens"] == want[1]["expert_tokens"],
          f"{name}: {have[1]['expert_tokens']}, one rank has {want[1]['expert_tokens']}")


def fail(name):
    """A router whose logits are infinite. Its step changes nothing, and the third one in a row is the last."""
    options = dict(golden.size, **strategy(name))
    ranks, exe = ranks_of(options["mesh"]), built(golden.config, **options)
    large = 6e4 if options.get("precision") == "fp16" else 3e38  # Finite itself.
    changed(golden.weights, "broken.safetensors",
            lambda tensor, n: [large] * n if tensor == "model.layers.1.block_sparse_moe.gate.weight" else None)
    broken = dict(golden.run, init="broken.safetensors", metrics="broken.jsonl")
    if options.get("precision") == "fp16":
        broken["initial_loss_scale"] = 1
    said, code = run(exe, ranks, **dict(broken, steps=5))
    where = "the router of layer 1 (model.layers.1.block_sparse_moe.gate.weight)"
    for step in range(2):
        check(f"warning: step {step}: the logits of {where} are not finite" in said, f"{name}: nothing said of step {step}:\n{said}")
    check(code == 1 and f"error: step 2: the logits of {where} are not finite" in said, f"{name}: exited with {code}:\n{said}")
    lines = rows("broken.jsonl")
    check([(row["step"], row["skipped"], row["failed_router"]) for row in lines] ==
          [(step, True, "model.layers.1.block_sparse_moe.gate.weight") for step in range(2)], f"{name}: {lines}")

    shutil.rmtree("kept", ignore_errors=True)
    said, code = run(exe, ranks, **dict(broken, steps=2, save="kept", expert_tokens_every=1))
    check(code == 0, f"{name}: exited with {code}:\n{said}")
    before, after = read_safetensors("broken.safetensors"), read_safetensors("kept/latest/model.safetensors")
    check(before.keys() == after.keys(), "other tensors were saved")
    for tensor in before:
        check(before[tensor] == after[tensor], f"{name}: {tensor} has changed")
    for tensor, (_, values) in read_safetensors("kept/latest/optimizer.safetensors").items():
        check(not any(values), f"{name}: {tensor} is not 0")
    check(json.load(open("kept/latest/state.json"))["skipped"] == 2, "the checkpoint does not say what was skipped")
    # The router before it has chosen.
    tokens = rows("broken.jsonl")[1]["expert_tokens"]
    check(sum(tokens["0"]) == sizes(golden)[0] and set(tokens["1"]) == {None}, f"{name}: {tokens}")


def starve():
    """Experts that no token chooses are named once."""
    compile(biased.config, "exe", **dict(biased.size, router_bias_rate=None, mesh="pipe=2", microbatches=2))
    changed(biased.weights, "starved.safetensors", lambda tensor, n: [50.0 if i in (2, 3) else 0.0 for i in range(n)]
            if tensor.endswith("layers.2.mlp.gate.e_score_correction_bias") else None)
    options = dict(biased.run, init="starved.safetensors", steps=5, metrics="starved.jsonl", expert_tokens_every=2)
    said, code = run("./exe", 2, idle_expert_steps=3, **options)
    idle = re.findall(r"warning: expert (\d+) of layer 2 got no token for 3 steps", said)
    check(code == 0 and sorted(idle) == list("014567"), f"idle: {idle}\n{said}")
    check("mlp.gate.weight" in said, said)
    for steps in (0, 6):
        said, _ = run("./exe", 2, idle_expert_steps=steps, **options)
        check("of layer 2 got no token" not in said, said)

    table = call(["meshwright", "plot", "--experts", "starved.jsonl", "-o", "starved.svg"])
    lines = [line.split() for line in table.splitlines() if re.match(r" *2 +8 ", line)]
    # Two of eight experts have all tokens: four times the mean.
    check(lines == [["2", "8", step, "0.00", "4.00", "6"] for step in "13"], table)
    picture = pathlib.Path("starved.svg").read_text()
    check(len(re.findall("<title>layer 2, expert 5, step [13]: 0.00<", picture)) == 2, "expert 5 is not in the picture")
    check("<title>layer 2, expert 3, step 3: 4.00<" in picture and "layer 1" in picture, "the picture lacks a layer")


starve()
for mesh in sys.argv[4:]:
    count(golden, mesh)
    count(biased, mesh)
    fail(mesh)
    print(f"{mesh}: counts and failures")
