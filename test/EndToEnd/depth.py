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
depths = (12, 96)
for layers in depths:
    json.dump(dict(model, **{key: layers}), open(f"{layers}.json", "w"))


def compare(what, repeats, **options):
    """The median processor times of both depths; alternating, so that what disturbs one disturbs both."""
    times = {layers: [] for layers in depths}
    for repeat in range(repeats):
        for layers in depths if repeat % 2 else reversed(depths):
            output = f"{layers}.{what}"
            times[layers].append(seconds(lambda: compile(f"{layers}.json", output, batch=4, seq=64, **options)))
    short, long = (statistics.median(times[layers]) for layers in depths)
    print(f"{what}: 12 layers {short:.3f} s, 96 layers {long:.3f} s, {long / short:.3f} times as long")
    check(long <= 1.2 * short, "96 layers take more than 20% longer to compile")


compare("mlir", 15, emit="exec")
compare("exe", 5)
short, long = (os.path.getsize(f"{layers}.mlir") for layers in depths)
print(f"IR: {short} and {long} bytes")
check(long < 1.2 * short, "the IR of 96 layers is more than 20% longer")
