#!/usr/bin/env python3
"""Dropout depends on the seed and the step, not on meshes and microbatches: dropout.py GOLDEN WORK [--all]"""
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, check, compile, distance, fresh, ranks_of, strategy, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])


def losses(where="one", dropout="0.1", **more):
    options = strategy(where)
    compile(golden.config, "exe", dropout=dropout, **golden.size, **options)
    return train("./exe", ranks_of(options["mesh"]), **dict(golden.run, steps=10, **more))


want = losses()
meshes = ["replica=2,data=2/2", "data=2,tensor=2/2+sequence-parallel", "context=3/2+context-parallel=gather", "context=4+context-balance=striped"]
if "--all" in sys.argv:  # A part of what those divide, and other balances.
    meshes += ["data=2", "one/2", "data=2/2", "tensor=4", "context=4+context-parallel=gather+context-balance=none",
               "context=2+context-parallel=gather+context-balance=striped"]
for where in meshes:
    have = losses(where)
    far = max(distance(have, want), distance(have, want, "grad_norm") / 5)
    print(f"{where}: {far:.1e}")
    check(far <= 1e-5, f"{where} differs by {far:.2e}")
check(losses(seed=1)[0]["loss"] != want[0]["loss"], "the seed does not change dropout")
none = losses(dropout="0")
check(all(abs(a["loss"] - b["loss"]) > 1e-4 for a, b in zip(none, want)), "dropout changes nothing")
check(none == losses(dropout=None), "--dropout 0 is not what a config without dropout does")
