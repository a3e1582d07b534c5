#!/usr/bin/env python3
"""How much longer 96 layers take to compile than 12, to IR and to an executable: compile_time.py CONFIG WORK

Processor time, alternating; medians of 15."""
import json
import pathlib
import resource
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "test/EndToEnd"))
from harness import compile, fresh

LAYERS = (12, 96)
ROUNDS = 15


def seconds(model, output, **options):
    """Processor time of a compilation, which other processes disturb less than time on the clock."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    compile(model, output, batch=4, seq=64, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


model = json.load(open(sys.argv[1]))
fresh(sys.argv[2])
key = "n_layer" if "n_layer" in model else "num_hidden_layers"
for layers in LAYERS:
    json.dump(dict(model, **{key: layers}), open(f"{layers}.json", "w"))
for what, options in {"IR": {"emit": "exec"}, "an executable": {}}.items():
    times = {layers: [] for layers in LAYERS}
    for turn in range(ROUNDS + 1):
        for layers in LAYERS if turn % 2 else reversed(LAYERS):
            took = seconds(f"{layers}.json", f"{layers}.out", **options)
            if turn:  # The first is a warm-up.
                times[layers].append(took)
    few, many = (statistics.median(times[layers]) for layers in LAYERS)
    print(f"to {what}: 12 layers {few:.3f} s, 96 layers {many:.3f} s, {many / few:.3f} times as long")
