#!/usr/bin/env python3
"""Neither the IR nor the time to make it grows with the number of layers: depth.py CONFIG WORK"""
import json
import os
import resource
import statistics
import sys

from harness import check, compile, fresh

model = json.load(open(sys.argv[1]))
fresh(sys.argv[2])


def seconds(command):
    """Processor time, which other processes disturb less than time on the clock."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


key = "n_layer" if "n_layer" in model else "num_hidden_layers"
size, times = {}, {12: [], 96: []}
for layers in (12, 96):
    json.dump(dict(model, **{key: layers}), open(f"{layers}.json", "w"))
for repeat in range(5):
    for layers in (12, 96):
        times[layers].append(seconds(lambda: compile(f"{layers}.json", f"{layers}.mlir", batch=4, seq=64, emit="exec")))
        size[layers] = os.path.getsize(f"{layers}.mlir")
for layers in (12, 96):
    seconds_all = seconds(lambda: compile(f"{layers}.json", f"{layers}.exe", batch=4, seq=64))
    print(f"{layers} layers: {size[layers]} bytes, {statistics.median(times[layers]):.3f} s, executable {seconds_all:.2f} s")
check(size[96] < 1.2 * size[12], "the IR of 96 layers is more than 20% longer")
# Measured within a few per cent; the room is for noise.
check(statistics.median(times[96]) < 1.5 * statistics.median(times[12]), "96 layers take longer to compile")
