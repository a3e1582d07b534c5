#!/usr/bin/env python3
"""Four times as many layers, none like its neighbour, take about four times as long to compile: distinct.py CONFIG WORK

bench/compile_time.py has the times of large models."""
import json
import resource
import sys

sys.path.append(sys.path[0] + "/..")
from harness import check, compile, fresh

model = json.load(open(sys.argv[1]))
fresh(sys.argv[2])
LAYERS = (12, 48)
ROUNDS = 3
# Four times and what noise adds. The square of the number of layers would make it up to 16.
MOST = 5


def seconds(layers):
    """Processor time that the compiler has for itself."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    compile(f"{layers}.json", f"{layers}.mlir", batch=2, seq=32, mesh="data=2", zero=3, target="cuda", precision="bf16", emit="exec")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


for layers in LAYERS:
    json.dump(dict(model, num_hidden_layers=layers), open(f"{layers}.json", "w"))
# The least of some: whatever disturbs a run makes it longer.
rounds = [[seconds(layers) for layers in LAYERS] for _ in range(ROUNDS)]
few, many = map(min, zip(*rounds))
print(f"{LAYERS[0]} layers {few:.2f} s, {LAYERS[1]} layers {many:.2f} s, {many / few:.2f} times as long")
check(many <= MOST * few, f"{LAYERS[1] // LAYERS[0]} times as many layers take {many / few:.1f} times as long to compile, over {MOST}")
