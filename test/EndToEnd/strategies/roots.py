#!/usr/bin/env python3
"""Collectives with a root, permutations and several tensors in one call, run by eight devices: roots.py GOLDEN WORK

Row p of a variable is device p's value. What each makes of it is gathered into another variable and compared with what
this program makes of the rows. Ranks are threads, then processes that use MPI.
"""
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import Golden, check, check_traffic, compile, fresh, ir, train

N, D = 8, 6
ALL = "<@mesh {data, context, tensor}>"


def row(width=D):
    return f"tensor<1x{width}xf32>"


# A device's number is 4 data + 2 context + tensor. Name, op on a device's row, result's width, and what device p then
# has given all rows; None where that is undefined.
CASES = [
    ("broadcast", f"dist.broadcast %row root 1 over <@mesh {{data}}> : ({row()}) -> {row()}", D,
     lambda x, p: x[4 + p % 4]),
    ("reduce", f"dist.reduce sum %row root 2 over <@mesh {{context, tensor}}> : ({row()}) -> {row()}", D,
     lambda x, p: [sum(column) for column in zip(*x[p // 4 * 4:p // 4 * 4 + 4])] if p % 4 == 2 else None),
    ("gather", f"dist.gather %row dim 1 root 0 over <@mesh {{tensor}}> : ({row()}) -> {row(2 * D)}", 2 * D,
     lambda x, p: x[p] + x[p + 1] if p % 2 == 0 else None),
    ("scatter", f"dist.scatter %row dim 1 root 1 over <@mesh {{context}}> : ({row()}) -> {row(D // 2)}", D // 2,
     lambda x, p: x[p | 2][D // 2 * (p >> 1 & 1):][:D // 2]),
    ("permute", f"dist.permute %row from [3, 1, 0, 2, 7, 4, 5, 6] over {ALL} : ({row()}) -> {row()}", D,
     lambda x, p: x[[3, 1, 0, 2, 7, 4, 5, 6][p]]),
    ("largest", f"dist.all_reduce max %row over <@mesh {{data, tensor}}> : ({row()}) -> {row()}", D,
     lambda x, p: [max(column) for column in zip(*(x[q] for q in range(N) if q & 2 == p & 2))]),
]
# In one call: sums over data of the row and of its double.
PAIR = f"""%twice = train.scale %row by 2.0 : ({row()}) -> {row()}
%pair:2 = dist.all_reduce sum %row, %twice over <@mesh {{data}}> : ({row()}, {row()}) -> ({row()}, {row()})"""

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
compile(golden.config, "schedule.mlir", emit="schedule", mesh="data=2", **golden.size)
text = ir("schedule.mlir")
variables = [f'train.variable @rows : tensor<{N}x{D}xf32> init <"normal", 1.0>']
ops = [f"%rows = train.get @rows : tensor<{N}x{D}xf32>",
       f"%row = dist.slice %rows dim 0 over {ALL} : (tensor<{N}x{D}xf32>) -> {row()}", PAIR]


def keep(name, value, width):
    whole = f"tensor<{N}x{width}xf32>"
    variables.append(f'train.variable @{name} : {whole} init <"constant", 0.0>')
    ops.append(f"%{name}.all = dist.all_gather {value} dim 0 over {ALL} : ({row(width)}) -> {whole}")
    ops.append(f"train.set @{name}, %{name}.all : {whole}")


for name, op, width, _ in CASES:
    ops.append(f"%{name} = {op}")
    keep(name, f"%{name}", width)
keep("first", "%pair#0", D)
keep("second", "%pair#1", D)
text = text.replace('dist.mesh @mesh ["data" = 2]',
                    'dist.mesh @mesh ["data" = 2, "context" = 2, "tensor" = 2]\n' + "\n".join(variables))
at = text.rindex("    return")
open("more.mlir", "w").write(text[:at] + "\n".join(ops) + "\n" + text[at:])
compile("more.mlir", "exe")

for mpi in (False, True):
    train("./exe", N, mpi=mpi, save="saved", steps=1, lr=0, trace="trace.json", **golden.data)
    check_traffic("./exe", "trace.json", steps=1)
    have = {name: values for name, (_, values) in read_safetensors("saved/latest/model.safetensors").items()}
    rows = [list(have["rows"][p * D:(p + 1) * D]) for p in range(N)]
    check(len({tuple(each) for each in rows}) == N, "rows are alike")
    sums = lambda x, p: [a + b for a, b in zip(x[p % 4], x[p % 4 + 4])]
    wanted = [(name, width, function) for name, _, width, function in CASES]
    wanted += [("first", D, sums), ("second", D, lambda x, p: [2 * value for value in sums(x, p)])]
    for name, width, function in wanted:
        for p in range(N):
            want, got = function(rows, p), have[name][p * width:(p + 1) * width]
            check(want is None or max(abs(a - b) for a, b in zip(want, got)) < 1e-5,
                  f"{name} on device {p}: {list(got)}, expected {want}")
print(f"{len(CASES) + 2} results on {N} devices")
