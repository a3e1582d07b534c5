#!/usr/bin/env python3
"""Averages of weights against torch's of a float64 run: their norms and losses, on meshes, over checkpoints: averages.py GOLDEN WORK STRATEGY..."""
import json
import math
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from compare import largest, read_safetensors
from harness import Golden, call, check, compile, flags, fresh, ranks_of, strategy, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
answers, half = golden.answers, golden.run["steps"] // 2
evaluation = {"eval_data": golden.data["data"], "tokens": golden.data["tokens"], "eval_only": True, "eval_batches": 2}
before = None
for item in sys.argv[3:]:
    options = dict(golden.size, **strategy(item))
    exact = options.get("precision") is None
    compile(golden.config, "exe", **options, ema=True)
    ranks = ranks_of(options["mesh"])
    # The second mesh goes on from what the first one has saved in the middle of the run.
    start = {"init": None, "resume": before} if before else {}
    train("./exe", ranks, save="averages", **dict(golden.run, **start))
    train("./exe", ranks, save="half", **dict(golden.run, steps=half))
    before = "half" if exact else None
    folder = pathlib.Path("averages/latest/ema")
    check(json.loads((folder / "config.json").read_text()) == json.loads(golden.config.read_text()), "the averages' config.json")
    weights = read_safetensors(folder / "model.safetensors")
    check(set(weights) == set(answers["ema_norm"]), "other tensors have averages")
    error = largest(abs(math.hypot(*weights[name][1]) / norm - 1) for name, norm in answers["ema_norm"].items())
    # A plain executable evaluates them.
    compile(golden.config, "plain", **options)
    have = train("./plain", ranks, **evaluation, init=folder)[-1]["eval_loss"]
    off = abs(have / answers["ema_loss"] - 1)
    print(f"{golden.directory.name} averages {item}: norms {error:.1e}, loss {off:.1e}", flush=True)
    if "offload" not in options:
        # So does one that is compiled to, from its own states or where they begin.
        compile(golden.config, "evaluating", **options, ema=True, eval_ema=True)
        for given in ({"resume": "averages"}, {"init": folder}):
            own = train("./evaluating", ranks, **evaluation, **given)[-1]["eval_loss"]
            check(abs(own / have - 1) <= 1e-6, f"{given}: --eval-ema has the loss {own}, not {have}")
        # The steps of a run that evaluates so are those of one that does not.
        if exact:
            last = train("./evaluating", ranks, **dict(golden.run, eval_data=golden.data["data"], eval_batches=2, eval_every=golden.run["steps"], **start))[-1]
            check(abs(last["eval_loss"] / have - 1) <= 1e-6, f"a run with --eval-ema has the loss {last['eval_loss']}, not {have}")
    check(error <= (2e-5 if exact else 5e-3) and off <= (1e-5 if exact else 2e-2), f"averages are off by {error:.1e}, their loss by {off:.1e}")

# Before the first update the average of the weights is the weights.
compile(golden.config, "once", **golden.size, ema=True)
call(["meshwright", "tokenizer", "train", golden.data["data"], "--vocab", 258, "-o", "tokenizer.json"])
call(["meshwright", "tokenize", golden.data["data"], "--tokenizer", "tokenizer.json", "-o", "words"])
train("./once", save="begun", data="words", steps=0, init=golden.weights)
check(all(pathlib.Path(f"begun/latest/{folder}tokenizer.json").exists() for folder in ("ema/", "")), "both models have their tokenizer")
begun = [pathlib.Path(f"begun/latest/{folder}model.safetensors").read_bytes() for folder in ("ema/", "")]
check(begun[0] == begun[1], "averages of no update are not the weights")

# What has no averages has no flag for them, and its checkpoints are none to go on with.
for exe, more, word in (("plain", {"ema_decay": 0.5}, "there is no flag --ema-decay"), ("exe", {"resume": "plain-one", "init": None}, "compile with its --freeze, --ema, --fp8-recipe and --grad-compression")):
    if exe == "plain":
        train("./plain", ranks, **dict(golden.data, steps=1, save="plain-one", init=golden.weights))
    done = subprocess.run(list(map(str, [f"./{exe}", *flags(dict(golden.data, steps=2, ranks=ranks if ranks > 1 else None, **more))])), capture_output=True, text=True, timeout=60)
    check(done.returncode == 1 and word in done.stderr, done.stderr)
