#!/usr/bin/env python3
"""Values on eight devices go from one placement to another and are still themselves: reshard.py GOLDEN WORK SEED...

Adds pairs of variables to a step: the second becomes the first, or the sum of its rows, in another placement. Random
placements need every collective along every dimension, packed or not. Ranks are threads, then processes that use MPI.
"""
import filecmp
import random
import re
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import Golden, check, check_traffic, compile, fresh, ir, train

MESH = {"data": 2, "context": 2, "tensor": 2}
COUNT = 30
SHAPES = [(8, 16, 8), (8, 8), (16, 8, 8, 3), (64,), (1, 8, 24), (8, 1, 8)]


def placement(rng, shape, free):
    """Random axes on random dimensions that they divide, as text; the axes used."""
    dims = [[] for _ in shape]
    used = []
    for axis in rng.sample(sorted(free), len(free)):
        dim = rng.randrange(len(shape))
        if rng.random() < 0.7 and shape[dim] % 2 ** (len(dims[dim]) + 1) == 0:
            dims[dim].append(axis)
            used.append(axis)
    return "[" + ", ".join("{" + ", ".join(names) + "}" for names in dims) + "]", used


def tensor(shape, dims, partial=()):
    text = f", partial = {{{', '.join(partial)}}}" if partial else ""
    return f"tensor<{'x'.join(map(str, shape))}xf32, #dist.sharding<@mesh, {dims}{text}>>"


def pairs(rng):
    """Declarations, operations, and for each pair whether it is summed."""
    variables, ops, sums = [], [], []
    for i in range(COUNT):
        shape = rng.choice(SHAPES)
        here, used = placement(rng, shape, MESH)
        there, _ = placement(rng, shape, MESH)
        # Rows cut along these axes leave a sum partial.
        partial = [axis for axis in MESH if axis not in used and rng.random() < 0.5]
        source = (8, *shape) if partial else shape
        first = tensor(source, f"[{{{', '.join(partial)}}}, {here[1:]}" if partial else here)
        last = tensor(shape, there)
        variables += [f'train.variable @from{i} : {first} init <"normal", 1.0>',
                      f'train.variable @to{i} : {last} init <"constant", 0.0>']
        ops.append(f"%from{i} = train.get @from{i} : {first}")
        value, type = f"%from{i}", first
        if partial:
            type = tensor(shape, here, partial)
            value = f"%sum{i}"
            ops.append(f"{value} = train.reduce sum %from{i} over [0] : ({first}) -> {type}")
        if type != last:
            ops.append(f"%to{i} = dist.reshard {value} : ({type}) -> {last}")
            value = f"%to{i}"
        ops.append(f"train.set @to{i}, {value} : {last}")
        sums.append(bool(partial))
    return variables, ops, sums


golden = Golden(sys.argv[1])
fresh(sys.argv[2])
seen = set()
for seed in map(int, sys.argv[3:]):
    variables, ops, sums = pairs(random.Random(seed))
    compile(golden.config, "dist.mlir", emit="dist", mesh="data=2", **golden.size)
    text = ir("dist.mlir")
    mesh = ", ".join(f'"{axis}" = {size}' for axis, size in MESH.items())
    text = text.replace('dist.mesh @mesh ["data" = 2]', f"dist.mesh @mesh [{mesh}]\n" + "\n".join(variables))
    # @step is the last function.
    at = text.rindex("    return")
    open("more.mlir", "w").write(text[:at] + "\n".join(ops) + "\n" + text[at:])
    compile("more.mlir", "exe")
    compile("more.mlir", "schedule.mlir", emit="schedule")
    seen.update(re.findall(r" = (dist\.\w+) ", ir("schedule.mlir")))
    train("./exe", 8, save="threads", steps=2, lr=0, trace="threads.json", **golden.data)
    check_traffic("./exe", "threads.json", steps=2)
    have = read_safetensors("threads/latest/model.safetensors")
    for i, summed in enumerate(sums):
        want, got = have[f"from{i}"][1], have[f"to{i}"][1]
        if summed:
            part = len(want) // 8
            want = [sum(want[k * part + j] for k in range(8)) for j in range(part)]
        worst = max(abs(a - b) for a, b in zip(want, got))
        check(len(want) == len(got) and worst <= (2e-6 if summed else 0), f"seed {seed}: pair {i} differs by {worst}")
    train("./exe", 8, mpi=True, save="mpi", steps=2, lr=0, trace="mpi.json", **golden.data)
    check_traffic("./exe", "mpi.json", steps=2)
    same = filecmp.cmp("threads/latest/model.safetensors", "mpi/latest/model.safetensors", shallow=False)
    check(same, f"seed {seed}: MPI ranks come to other bits")
wanted = {f"dist.{op}" for op in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "slice")}
check(wanted <= seen, f"no {', '.join(sorted(wanted - seen))} among the collectives: other seeds are needed")
print(f"{len(sys.argv) - 3} programs, {COUNT} placements each: {', '.join(sorted(seen))}")
