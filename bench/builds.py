#!/usr/bin/env python3
"""Two builds of Meshwright beside each other, in alternating rounds: how long they take to compile a model to IR and to an
executable, and how long a step of their executables takes.

  builds.py BEFORE AFTER CONFIG WORK [--batch N] [--seq N] [--flags "..."]

BEFORE and AFTER are build/bin/meshwright of two checkouts. Prints medians, and AFTER's time as a multiple of BEFORE's. Times of
compiling are processor time, which other processes disturb less than time on the clock."""
import argparse
import json
import pathlib
import random
import resource
import statistics
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "test/EndToEnd"))
from harness import call, fresh, ranks_of

COMPILATIONS, ROUNDS, STEPS, WARM_UP = 15, 5, 9, 2

parser = argparse.ArgumentParser()
parser.add_argument("before", type=pathlib.Path)
parser.add_argument("after", type=pathlib.Path)
parser.add_argument("config", type=pathlib.Path)
parser.add_argument("work")
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--seq", type=int, default=128)
parser.add_argument("--flags", default="", help='of both compilations, as --flags="--mesh data=2"')
args = parser.parse_args()
builds = {"before": args.before.resolve(), "after": args.after.resolve()}
config = args.config.resolve()
fresh(args.work)
flags = args.flags.split()
ranks = ranks_of(flags[flags.index("--mesh") + 1]) if "--mesh" in flags else 1
vocabulary = min(json.load(open(config))["vocab_size"], 65536)
numbers = random.Random(1)
pathlib.Path("tokens.bin").write_bytes(b"".join(numbers.randrange(vocabulary).to_bytes(2, "little") for _ in range(200000)))


def compile(build, output, *more):
    """Processor time in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call([builds[build], "compile", config, "--batch", args.batch, "--seq", args.seq, "-o", output, *args.flags.split(), *more], timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def step(build):
    """The median of a process's steps, in milliseconds."""
    pathlib.Path("metrics.jsonl").unlink(missing_ok=True)
    call(["./" + build, "--ranks", ranks, "--data", "tokens.bin", "--steps", STEPS + WARM_UP, "--lr", "1e-4", "--metrics", "metrics.jsonl"],
         timeout=3600)
    return statistics.median([json.loads(line)["step_ms"] for line in open("metrics.jsonl")][WARM_UP:])


def beside(what, measure, rounds):
    times = {build: [] for build in builds}
    for turn in range(rounds):
        for build in builds if turn % 2 else reversed(builds):
            times[build].append(measure(build))
    middle = {build: statistics.median(times[build]) for build in builds}
    spread = {build: f"{min(times[build]):.0f} to {max(times[build]):.0f}" for build in builds}
    print(f"{what}: before {middle['before']:.0f} ms ({spread['before']}), after {middle['after']:.0f} ms ({spread['after']}): "
          f"{middle['after'] / middle['before']:.3f}", flush=True)


for build in builds:
    compile(build, build)
beside("compile to IR", lambda build: compile(build, "out.mlir", "--emit", "exec"), COMPILATIONS)
beside("compile to an executable", lambda build: compile(build, "out"), COMPILATIONS)
beside("a step", step, ROUNDS)
