#!/usr/bin/env python3
"""Losses of frozen parameters and of adapters on many ranks against the interpreter's of one in float64, and in bf16 within
what its digits allow: finetuning_meshes.py GOLDEN WORK "freeze=PATTERNS|lora=ADAPTERS [FLAG=VALUE]"... -- STRATEGY...

A strategy is written as for golden.py. Frozen parameters end as they began, have no states, and nothing of their
gradients is communicated.
"""
import json
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import Golden, call, check, compile, distance, flags, fresh, interpreted, planned, ranks_of, strategy, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
between = sys.argv.index("--")
kinds, strategies = sys.argv[3:between], sys.argv[between + 1:]


def sent(plan):
    return sum(entry["bytes"] * entry["times"] for entry in plan["collectives"] if entry["program"] == "step")


def ranks_share(flag, value):
    """What adapters add to sums over tensor parallel devices, which are of a layer's inputs and outputs: their ranks, of the
    queries, keys and values that read one input."""
    if flag == "freeze":
        return 0
    config = json.loads(golden.config.read_text())
    return 3 * int(re.search(r"\br=(\d+)", value)[1]) / next(config[name] for name in ("hidden_size", "n_embd", "d_model") if name in config)


for kind in kinds:
    added = dict(word.split("=", 1) for word in kind.split(" "))
    flag, value = next(iter(added.items()))
    # With a larger eps Adam does not make whole steps of gradients that are but rounding errors.
    run = dict(golden.data, init=golden.weights, steps=4, lr=1e-2, eps=1e-4)
    want = interpreted(golden.config, dict(golden.size, **added), run)
    for item in strategies:
        for precision, most in (("f32", 1e-5), ("bf16", 2e-2)):
            options = dict(golden.size, **strategy(item), precision=precision)
            compile(golden.config, "exe", **options, **added)
            have = train("./exe", ranks_of(options["mesh"]), save="saved" if flag == "freeze" else None, **run)
            off = distance(have, want)
            plan, whole = json.loads(call(["meshwright", "inspect", "--json", "exe"])), planned(golden.config, **options)
            print(f"{golden.directory.name} {kind} {item} {precision}: loss {off:.1e}, "
                  f"{sent(plan)} bytes sent, all trained {sent(whole)}", flush=True)
            check(off <= most, f"a loss is off by {off:.2e}")
            check(sent(plan) <= sent(whole) * (1 + ranks_share(flag, value)), "more is sent than where all is trained")
            frozen = {entry["name"] for entry in plan["variables"] if entry.get("frozen")}
            check(frozen and not any(entry.get("of") in frozen and entry["role"] not in ("tokens", "scale") for entry in plan["variables"]),
                  "a frozen parameter has a state")
            if flag == "freeze" and precision == "f32":
                before, after = read_safetensors(golden.weights), read_safetensors("saved/latest/model.safetensors")
                same = {name for name in before if before[name][1] == after[name][1]}
                check(0 < len(same) < len(before), f"these are as before: {sorted(same)}")
                # What is trained from here on has no states to go on with.
                compile(golden.config, "whole", **options)
                go_on = ["meshwright", "run", "-n", ranks_of(options["mesh"]), "./whole", *flags(dict(golden.data, resume="saved", steps=5, reschedule=True))]
                done = subprocess.run(list(map(str, go_on)), capture_output=True, text=True, timeout=120)
                check(done.returncode == 1 and "compile with its --freeze, --ema, --fp8-recipe and --grad-compression" in done.stderr, done.stderr)
