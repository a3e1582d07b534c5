#!/usr/bin/env python3
"""Dropout depends on the seed and the step, not on meshes and microbatches: dropout.py GOLDEN WORK"""
import sys

from harness import Golden, check, compile, distance, fresh, ranks_of, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])


def losses(mesh="", microbatches=1, dropout="0.1", **more):
    compile(golden.config, "exe", mesh=mesh, microbatches=microbatches, dropout=dropout, **golden.size)
    return train("./exe", ranks_of(mesh), **dict(golden.run, steps=10, **more))


want = losses()
for mesh, microbatches in (("data=2", 1), ("", 2), ("data=2", 2), ("replica=2,data=2", 2)):
    have = losses(mesh, microbatches)
    far = max(distance(have, want), distance(have, want, "grad_norm") / 5)
    print(f"{mesh or 'one'}/{microbatches}: {far:.1e}")
    check(far <= 1e-5, f"{mesh or 'one'}/{microbatches} differs by {far:.2e}")
check(losses(seed=1)[0]["loss"] != want[0]["loss"], "the seed does not change dropout")
none = losses(dropout="0")
check(all(abs(a["loss"] - b["loss"]) > 1e-4 for a, b in zip(none, want)), "dropout changes nothing")
check(none == losses(dropout=None), "--dropout 0 is not what a config without dropout does")
