#!/usr/bin/env python3
"""Compares the bytes a rank sends to share out gradients and parameters with the formulas of the papers.

  volumes.py CONFIG WORK RANKS MICROBATCHES

Counted in the partitioned step: all_reduce sends 2 (N-1)/N of its operand, reduce_scatter (N-1)/N, all_gather N-1 times it, reduce and broadcast (N-1)/N.
"""
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "EndToEnd"))
from harness import call, check, compile, fresh, ir

config, work, ranks, microbatches = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
fresh(work)


def elements(type):
    return math.prod(int(size) for size in re.findall(r"\d+(?=x)", type))


compile(config, "step.mlir", batch=ranks * microbatches, seq=64, microbatches=microbatches, emit="step")
layers = others = 0
for line in ir("step.mlir").splitlines():
    if (found := re.match(r"  train\.variable @\S+ : tensor<(\S+)> (stacked)?", line)) and " state " not in line:
        if found[2]:
            layers += elements(found[1])
        else:
            others += elements(found[1])

n, m = ranks, microbatches
share = (n - 1) / n
# Parameters outside layers are gathered once for forward and backward, which stand in one function.
expected = {0: (2, 2), 1: (2, 2), 2: (m + 1, m + 1), 3: (3 * m, 2 * m)}
options = {f"zero={stage}": volume for stage, volume in expected.items()}
# Push and pull.
options["data-sync=parameter-server"] = (2, 2)
for option, (ofLayers, ofOthers) in options.items():
    call(["meshwright-opt", "step.mlir", f"--dist-apply-strategy=mesh=data={n} {option}", "--dist-split-reductions",
          "--dist-pad", "--dist-propagate",
          "--dist-partition", "--canonicalize", "--dist-optimize-collectives", "-o", "local.mlir"])
    sent, calls, function = {}, {}, None
    for line in open("local.mlir"):
        if found := re.match(r"  func\.func (?:private )?@([\w.]+)\(", line):
            function = found[1]
            sent[function], calls[function] = 0, []
        elif found := re.search(r"train\.repeat @(\S+) x (\d+)", line):
            calls[function].append((found[1], int(found[2])))
        elif found := re.search(r"dist\.(\w+) .* : \((.*)\) ->", line):
            cost = {"all_reduce": 2 * share, "reduce_scatter": share, "all_gather": n - 1, "slice": 0,
                    "reduce": share, "broadcast": share}[found[1]]
            # Scalars are the loss and the parts of the gradient's norm.
            operands = [type for type in re.findall(r"tensor<(\S+?)>", found[2]) if "x" in type]
            sent[function] += sum(cost * elements(type) for type in operands)

    def total(function):
        return sent[function] + sum(times * total(callee) for callee, times in calls[function])

    have, want = total("step"), share * (ofLayers * layers + ofOthers * others)
    print(f"{option}, {n} ranks, {m} microbatches: {have:.0f} elements sent, {have / (layers + others) / share:.3f} (N-1)/N a parameter")
    check(abs(have - want) <= 1e-6 * want, f"expected {want:.0f}")
