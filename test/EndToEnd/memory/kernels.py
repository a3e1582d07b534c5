#!/usr/bin/env python3
"""Checks the plan's kernels of gpt2-tiny, 4 sequences of 16 tokens, f32: kernels.py EXE"""
import json
import subprocess
import sys

plan = json.loads(subprocess.run(["meshwright", "inspect", sys.argv[1], "--json"], check=True, capture_output=True,
                                 text=True).stdout)
rows = plan["programs"][0]["kernels"]
parameters = 0
for variable in plan["variables"]:
    size = 1
    for dim in variable["local_shape"]:
        size *= dim
    parameters += size if variable["role"] == "parameter" else 0
# AdamW reads a parameter, its gradient and two moments, and writes all but the gradient; the rest are scalars.
updates = [row for row in rows if row["op"].endswith(".all") and row["written_bytes"] > 1024]
read, written = (sum(row[key] for row in updates) for key in ("read_bytes", "written_bytes"))
assert updates and all(row["times"] == 1 for row in updates), updates
assert written == 3 * 4 * parameters, (written, parameters)
assert 0 <= read - 4 * 4 * parameters < 1024, (read, parameters)
# The squares of gradients, but for those that the kernel which makes them adds up.
norm = [row for row in rows if row["op"].endswith(".all") and row["written_bytes"] <= 1024]
assert 0.9 * 4 * parameters < sum(row["read_bytes"] for row in norm) <= 4 * parameters, (norm, parameters)
# All operations of the step are those of products and attention, and an element each of kernels.
products = sum(row["times"] * row["flops"] for row in rows)
assert 0.8 * plan["flops"] < products <= plan["flops"], (products, plan["flops"])
# Of the embedding's table as many rows are read as there are tokens, 64 of 4 bytes an element, beside positions and ids.
width, tokens = next(v["shape"][1] for v in plan["variables"] if v["name"].startswith("wte")), 64
embedding = min((row for row in rows if row["kind"] == "elementwise" and row["written_bytes"] == 4 * tokens * width
                 and row["times"] == 1), key=lambda row: row["read_bytes"])
assert embedding["read_bytes"] < 2.5 * 4 * tokens * width, embedding
print("the kernels' bytes and operations are those of the step")
