#!/usr/bin/env python3
"""Neither the IR nor the time to make it grows with the number of layers: depth.py CONFIG WORK"""
import json
import math
import os
import resource
import sys

sys.path.append(sys.path[0] + "/..")
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
TRIES = 20
LONGER = 1.2
for layers in depths:
    json.dump(dict(model, **{key: layers}), open(f"{layers}.json", "w"))


def compare(what, **options):
    """Compiles both depths, alternating, until the least times differ by no more than a fifth. Whatever else runs on the
    machine only adds to a time, so the least of several is nearest to what the work itself takes; a compiler that needs
    longer for more layers needs it every time."""
    least = dict.fromkeys(depths, math.inf)
    for repeat in range(1, TRIES + 1):
        for layers in depths if repeat % 2 else reversed(depths):
            output = f"{layers}.{what}"
            took = seconds(lambda: compile(f"{layers}.json", output, batch=4, seq=64, **options))
            least[layers] = min(least[layers], took)
        short, long = (least[layers] for layers in depths)
        if repeat >= 3 and long <= LONGER * short:
            break
    print(f"{what}: 12 layers {short:.3f} s, 96 layers {long:.3f} s, {long / short:.3f} times as long, the least of {repeat}")
    check(long <= LONGER * short, "96 layers take more than 20% longer to compile")


compare("mlir", emit="exec")
compare("exe")
short, long = (os.path.getsize(f"{layers}.mlir") for layers in depths)
print(f"IR: {short} and {long} bytes")
check(long < 1.2 * short, "the IR of 96 layers is more than 20% longer")
