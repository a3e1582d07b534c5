#!/usr/bin/env python3
"""Interprets random models of all families at every floor, in float64: losses, gradient norms and gradients are those of one device.

  floors.py WORK [--all]                some cases or all
  floors.py WORK FIRST COUNT            cases FIRST .. FIRST+COUNT-1
  floors.py WORK FAMILY/STRATEGY..

Case after case has the next strategy, and the next family that can have it: all pairs come in turn. The gradients that IR of phase
step gives are written in the files' names, and read again at each floor after it.
"""
import json
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "EndToEnd"), str(ROOT / "EndToEnd/strategies")]
from harness import INPUTS, call, check, compile, distance, flags, fresh, ranks_of, strategy
from random_configs import ENCODERS, FAMILIES, experts_of, has_routers, heads_of, random_config, task_of

PHASES = ("dist", "local", "stages", "schedule")
STRATEGIES = [
    "expert=2", "data=2+zero=3", "context=2+context-parallel=gather", "tensor=2", "pipe=2/2", "expert=2/2+zero=3", "data=2/2+zero=1",
    "context=2+context-parallel=ulysses", "tensor=2+sequence-parallel", "data=2,pipe=2/2+zero=2+schedule=zb-h1", "expert=2,data=2+zero=1",
    "data=2/2", "context=2,data=2+context-parallel=ring+zero=2", "tensor=3,data=2+zero=3+sequence-parallel", "expert=2,tensor=2+zero=2",
    "replica=2,data=2+zero=3", "context=2/2+context-parallel=ring", "tensor=2x2+tensor-2d", "pipe=2,expert=2/2+zero=1",
    "data=2+data-sync=parameter-server", "context=2,expert=2+context-parallel=gather+zero=3", "data=2,tensor=2/2+zero=2", "data=3+zero=1"]


def suits(family, where):
    """Whether models of the family can be trained so."""
    if "expert=" in where:
        pick = random.Random(family).choice
        return any(has_routers(random_config(pick, family)) for _ in range(4))
    return not (family in ENCODERS and "context-parallel=" in where)


def model(family, where, seed):
    """A model of the family that the strategy can place."""
    pick = random.Random(seed).choice
    while True:
        config = random_config(pick, family, layers=pick([2, 3]))
        divides = "expert=" not in where or has_routers(config) and experts_of(config) % 2 == 0
        if divides and ("context-parallel=ulysses" not in where or heads_of(config) % 2 == 0):
            return config


def read(path):
    return [json.loads(line) for line in path.splitlines() if line.startswith("{")]


def try_case(family, where, seed):
    config = model(family, where, seed)
    json.dump(config, open("config.json", "w"))
    options = strategy(where)
    size = dict(task_of(config), batch=12, seq=random.Random(seed).choice([5, 12]), microbatches=options.pop("microbatches"))
    if "sequence-parallel" in options:
        size["seq"] = 12
    run = flags(dict(data=INPUTS / "golden/corpus.txt", tokens="u8", steps=2, lr=1e-3, eps=1e-4, seed=seed))
    name = f"{family}/{where}: seed {seed}, {json.dumps(config)} {size}"
    compile("config.json", "step.mlir", emit="step", **size)
    want = read(call(["meshwright-interpret", "step.mlir", "--gradients-out", "gradients.safetensors", "--train", *run]))
    for phase in PHASES:
        compile("config.json", "floor.mlir", emit=phase, **size, **options)
        have = read(call(["meshwright-interpret", "floor.mlir", "--expect-gradients", "gradients.safetensors", "--train", *run]))
        far = max(distance(have, want), distance(have, want, "grad_norm"))
        check(far < 1e-9, f"{name}\n{phase} is off by {far:.1e}: {have}, one device {want}")
    print(f"{family}/{where}: {want[-1]['loss']:.12g}", flush=True)


def cases():
    """Every pair of a strategy and a family, strategies in turn."""
    turns = []
    for i, where in enumerate(STRATEGIES):
        families = [family for family in FAMILIES if suits(family, where)]
        turns.append(random.Random(i).sample(families, len(families)))
    return [(families[turn], where) for turn in range(len(FAMILIES)) for families, where in zip(turns, STRATEGIES) if turn < len(families)]


def main():
    fresh(sys.argv[1])
    given = sys.argv[2:]
    if given and "/" in given[0]:
        chosen = [(seed, word.split("/", 1)) for seed, word in enumerate(given)]
    else:
        first, count = map(int, given) if len(given) == 2 else (0, None if given == ["--all"] else 12)
        chosen = list(enumerate(cases()))[first:][:count]
    for seed, (family, where) in chosen:
        try_case(family, where, seed)


if __name__ == "__main__":
    main()
