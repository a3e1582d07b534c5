#!/usr/bin/env python3
"""Stages are written out task by task, so that four times the microbatches take four times the compile time and IR, and not
sixteen times: microbatches.py GOLDEN WORK [all]"""
import os
import pathlib
import resource
import sys

sys.path.append(sys.path[0] + "/..")
from harness import check, compile, fresh

GOLDEN = pathlib.Path(sys.argv[1])
FEW, MANY = 200, 800
MOST_TIME = 1.7  # times their number; pairs of tasks would take 4 times
MOST_IR = 1.05  # Numbers have another digit.


def cost(model, microbatches, schedule):
    """Processor time of a compilation, which other processes disturb less than time on the clock, and bytes of IR."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    compile(GOLDEN / model / "config.json", "exec.mlir", emit="exec", mesh="pipe=2", schedule=schedule, batch=microbatches,
            microbatches=microbatches)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, os.path.getsize("exec.mlir")


fresh(sys.argv[2])
ROWS = [("gpt2-tiny", "1f1b"), ("llama-tiny", "gpipe"), ("llama-tiny", "zb-h1")]
if len(sys.argv) > 3:
    ROWS += [("llama-tiny", name) for name in ("naive", "1f1b", "interleaved:2", "zb-h2", "zb-v", "v-half", "v-min", "dualpipe-v")]
for model, schedule in ROWS:
    (few, small), (many, large) = (cost(model, number, schedule) for number in (FEW, MANY))
    time, ir = many / few / (MANY / FEW), large / small / (MANY / FEW)
    print(f"{model}, {schedule}: {FEW} microbatches {few:.2f} s, {MANY} {many:.2f} s; a microbatch takes {time:.2f} times the time "
          f"and {ir:.2f} times the IR", flush=True)
    check(time <= MOST_TIME, f"compile time of {schedule} grows faster than its microbatches: {few:.2f} s and {many:.2f} s")
    check(ir <= MOST_IR, f"IR of {schedule} grows faster than its microbatches: {small} and {large} bytes")
