#!/usr/bin/env python3
"""Losses of optimizers on many ranks against the interpreter's of one in float64, and in bf16 within what its digits allow:
optimizer_meshes.py GOLDEN WORK OPTIMIZER... -- STRATEGY...

OPTIMIZER may be followed by parameter groups, as in lion+*.bias:lr=2; a strategy is written as for golden.py.
"""
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, check, compile, distance, fresh, interpreted, ranks_of, strategy, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
between = sys.argv.index("--")
optimizers, strategies = sys.argv[3:between], sys.argv[between + 1:]


for text in optimizers:
    optimizer, _, groups = text.partition("+")
    size = dict(golden.size, optimizer=optimizer, optimizer_groups=groups or None)
    # With a larger eps Adam does not make whole steps of gradients that are but rounding errors.
    of_adam = {"eps": 1e-8 if "adafactor" in optimizer else 1e-4} if optimizer.startswith(("ada", "muon", "normuon", "schedule-free")) else {}
    run = dict(golden.data, init=golden.weights, steps=4, weight_decay=None if optimizer == "sgd" else 0.1, lr=0.05 if optimizer.startswith("sgd") else 1e-3, **of_adam)
    want = interpreted(golden.config, size, run)
    for item in strategies:
        for precision, most in (("f32", 1e-5), ("bf16", 2e-2)):
            options = dict(size, **strategy(item), precision=precision)
            compile(golden.config, "exe", **options)
            have = train("./exe", ranks_of(options["mesh"]), **run)
            off = distance(have, want)
            print(f"{golden.directory.name} {text} {item} {precision}: loss {off:.1e}", flush=True)
            check(off <= most, f"a loss is off by {off:.2e}")
