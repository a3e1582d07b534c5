#!/usr/bin/env python3
"""What passes work on does not grow with the number of layers, nor does what comes out: depth.py CONFIG WORK

bench/compile_time.py has the times."""
import json
import os
import sys

sys.path.append(sys.path[0] + "/..")
from harness import check, compile, fresh

model = json.load(open(sys.argv[1]))
fresh(sys.argv[2])
key = "n_layer" if "n_layer" in model else "num_hidden_layers"
LAYERS = (12, 96)
LONGER = 1.02  # Counts of layers have another digit.


def sizes(layers):
    """The bytes of the IR after each pass and of the executable, by what made them."""
    json.dump(dict(model, **{key: layers}), open(f"{layers}.json", "w"))
    compile(f"{layers}.json", f"{layers}.exe", batch=4, seq=64, dump_ir=f"{layers}")
    found = {name: os.path.getsize(f"{layers}/{name}") for name in sorted(os.listdir(f"{layers}"))}
    return dict(found, executable=os.path.getsize(f"{layers}.exe"))


few, many = map(sizes, LAYERS)
check(few.keys() == many.keys() and len(few) > 15, f"passes: {sorted(few)} and {sorted(many)}")
worst = max(few, key=lambda name: many[name] / few[name])
print(f"{len(few) - 2} files of IR; {sum(few.values())} and {sum(many.values())} bytes; most at {worst}: {few[worst]}, {many[worst]}")
check(many[worst] <= LONGER * few[worst], f"96 layers are more than 2% longer than 12 after {worst}")
