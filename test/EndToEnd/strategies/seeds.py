#!/usr/bin/env python3
"""Parameters cut by hand train as the float64 run did, and move the bytes that are planned: seeds.py GOLDEN WORK

Collectives of parts inside rows, in the layers and in the microbatch loop.
"""
import math
import re
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, check_traffic, compile, distance, fresh, ir, train

# Name; mesh; microbatches; which dimension of which parameters is sharded along which axis.
CASES = [
    ("tensor parallel", {"data": 2, "tensor": 2}, 2,
     [(r"h\.attn\.[qkv]\.", 1, "tensor"), (r"h\.mlp\.c_fc\.", 1, "tensor")]),
    ("rows inside layers", {"data": 2, "tensor": 4}, 1,
     [(r"h\.mlp\.c_proj\.weight", 2, "tensor"), (r"h\.attn\.c_proj\.weight", 2, "tensor")]),
    ("columns of outputs", {"data": 1, "tensor": 2}, 2,
     [(r"h\.attn\.c_proj\.weight", 1, "tensor"), (r"h\.mlp\.c_proj\.weight", 1, "tensor")]),
    ("cut over data", {"data": 4}, 2, [(r"h\.(attn|mlp)\..*weight", 2, "data"), (r"wte", 1, "data")]),
    ("cut over both", {"data": 2, "tensor": 2}, 1,
     [(r"h\.mlp\.c_fc\.weight", 1, "tensor"), (r"h\.attn\.[qkv]\.weight", 2, "data"), (r"wpe", 1, "data")]),
]

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
STEPS = 5
for name, mesh, microbatches, seeds in CASES:
    sizes = dict(golden.size, microbatches=microbatches)
    compile(golden.config, "step.mlir", emit="step", **sizes)

    def seeded(match):
        for pattern, dim, axis in seeds:
            if re.match(pattern, match[1]):
                dims = ["{?}"] * len(re.findall(r"\d+x", match[0].split("tensor<")[1].split(">")[0]))
                dims[dim] = f"{{{axis}}}"
                return f"{match[0]} {{dist.seed = #dist.sharding<@mesh, [{', '.join(dims)}]>}}"
        return match[0]

    text = ir("step.mlir").replace('meshwright.phase = "step"', 'meshwright.phase = "dist"')
    text = re.sub(r"train\.variable @([\w.]+) : .*", seeded, text)
    check(text.count("dist.seed") >= len(seeds), f"{name}: a seed names no parameter")
    declared = ", ".join(f'"{axis}" = {size}' for axis, size in mesh.items())
    at = text.index("  train.variable")
    open("seeded.mlir", "w").write(f"{text[:at]}  dist.mesh @mesh [{declared}]\n{text[at:]}")
    call(["meshwright-opt", "seeded.mlir", "--dist-apply-strategy", "--dist-propagate", "-o", "dist.mlir"])
    compile("dist.mlir", "exe")
    ranks = math.prod(mesh.values())
    have = train("./exe", ranks, trace="trace.json", **dict(golden.run, steps=STEPS))
    want = [{"loss": loss, "grad_norm": norm}
            for loss, norm in zip(golden.answers["loss"][:STEPS], golden.answers["grad_norm"][:STEPS])]
    loss, norm = distance(have, want), distance(have, want, "grad_norm")
    print(f"{name}: loss {loss:.1e}, grad_norm {norm:.1e}")
    check(loss <= 1e-5 and norm <= 5e-5, f"{name}: losses differ by {loss:.2e}, gradient norms by {norm:.2e}")
    check_traffic("./exe", "trace.json", STEPS)
    if "rows" in name:
        again = train("./exe", ranks, mpi=True, **dict(golden.run, steps=STEPS))
        check(again == have, f"{name}: MPI ranks come to other bits")
