#!/usr/bin/env python3
"""What is computed again changes memory and work, not results.

  remat.py WORK [--all]
"""
import json
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import INPUTS, ROOT, call, check, compile, distance, flags, fresh, ir, most, train

FIXED = ("none", "selective", "full", "every:2", "every:4", "sqrt", "every:4+price:inf", "price:100")
directory = fresh(sys.argv[1])


def model(family, layers):
    """A tiny model of that many layers."""
    config = json.load(open(INPUTS / f"golden/{family}-tiny/config.json"))
    config["n_layer" if family == "gpt2" else "num_hidden_layers"] = layers
    path = directory / f"{family}-{layers}.json"
    path.write_text(json.dumps(config))
    return path


def plan(config, **options):
    said = compile(config, "exec.mlir", emit="exec", report="report", **options)
    found = json.load(open("report/report.json"))
    found["policies"] = (re.findall(r"remat auto: (\S+) fits", said) or [options.get("remat")])[0]
    found["activation"] = most(found, "activation")
    return found


# The same losses, gradient norms and weights; dropout drops the same elements. Executables may differ in last digits, since a row's
# sum is added in as many parts as its kernel's other work leaves registers for, and what is computed again may be in another kernel.
# So the ops are interpreted too, one by one: from the same numbers they compute the same bits, whichever run again.
data = {"data": INPUTS / "golden/corpus.txt", "tokens": "u8", "steps": 4, "lr": 0.001}
everything = "--all" in sys.argv
for number, (family, ranks, options) in enumerate((
        ("gpt2", 1, {"dropout": 0.1, "batch": 4}),
        ("gpt2", 4, {"mesh": "data=2,tensor=2", "zero": 3, "sequence_parallel": True, "batch": 4, "microbatches": 2}),
        ("llama", 2, {"mesh": "tensor=2", "batch": 2}),
        ("llama", 2, {"mesh": "data=2", "zero": 2, "batch": 4, "precision": "bf16"}))):
    if number == 2 and not everything:  # Of what the one before it divides along two axes, it divides one.
        continue
    config, want, exact, judged = model(family, 8), None, [], None
    policies = FIXED if ranks == 1 else ("none", "full", "every:2", "price:100")
    policies = policies if everything else policies[::2]
    for policy in policies:
        compile(config, "exe", seq=32, remat=policy, **options)
        have = train("./exe", ranks, **data)
        want = want or have
        off = max(distance(have, want), distance(have, want, "grad_norm"))
        check(off <= 1e-6, f"{family} {options} --remat {policy} is off by {off:.1e}")
        exact += [policy] if have == want else []
        compile(config, "schedule.mlir", seq=32, emit="schedule", remat=policy, **options)
        row = call(["meshwright-interpret", "schedule.mlir", "--train", *flags(dict(data, steps=1))])
        judged = judged or row
        check(row == judged, f"{family} {options} --remat {policy}: in float64 {row}is not {judged}")
    print(f"{family} {options}: within 1e-6, the same bits with {' '.join(exact)}", flush=True)

# What the forward writes anyway is kept where the limit allows it, with the same results.
for family, options in (("gpt2", {}), ("llama", {"precision": "bf16"}), ("llama", {"mesh": "tensor=2"}))[0 if everything else 2:]:
    config, size = model(family, 4), {"batch": 2, "seq": 32, "dropout": 0, **options}
    plans = {what: plan(config, residuals=what, **size) for what in ("least", "written")}
    least, written = (plans[what]["device_bytes"] for what in ("least", "written"))
    print(f"{family} {options}: {least} bytes with --residuals least, {written} with written")
    check(least < written, "written residuals take no memory")
    for limit, want in ((written, "written"), (written - 1, "least")):
        found = plan(config, memory_limit=f"{limit}B", **size)
        check(found["hash"] == plans[want]["hash"], f"--memory-limit {limit}B is not --residuals {want}")
    runs = []
    for what in plans:
        compile(config, "exe", residuals=what, **size)
        runs.append(train("./exe", 2 if "mesh" in options else 1, **data))
    check(distance(*runs) <= 1e-6, f"{family} {options}: --residuals changes losses by {distance(*runs):.1e}")

# What a chain of N layers keeps grows with N, and under sqrt with its square root.
size = {"batch": 2, "seq": 64, "dropout": 0}
kept = {policy: [plan(model("gpt2", layers), remat=policy, **size)["activation"] for layers in (4, 16, 64)]
        for policy in ("none", "sqrt")}
print("activation bytes of 4, 16, 64 layers:", kept)
a, b, c = kept["none"]
check(c - b == 4 * (b - a), "none: not proportional to the layers")
a, b, c = kept["sqrt"]
check(c - b == 2 * (b - a), "sqrt: not proportional to the root of the layers")

# Evaluation cycles through buffers that it has at any depth.
evaluated = set()
for layers in (4, 16, 64):
    compile(model("gpt2", layers), "exec.mlir", emit="exec", **size)
    program = ir("exec.mlir").split("exec.program @eval")[1].split("exec.program @")[0]
    evaluated.add(tuple(re.findall(r"exec\.buffer \S+ temporary .*: (memref<.*>)", program)))
check(len(evaluated) == 1 and evaluated != {()}, f"@eval has other buffers at another depth: {evaluated}")

# auto: what fits, and less work than any fixed policy that fits. Stages of a pipeline choose for themselves.
FIXED += ("every:3", "every:5")
own = 0
meshes = [(14, {"mesh": "pipe=4", "microbatches": 8}), (9, {"mesh": "pipe=2,tensor=2", "microbatches": 4, "schedule": "zb-h1"}),
          (16, {}), (10, {"mesh": "tensor=2", "sequence_parallel": True}),
          (12, {"mesh": "pipe=2", "microbatches": 4, "schedule": "interleaved:2"})]
for layers, mesh in meshes if everything else meshes[:1]:
    config, size = model("llama", layers), dict(mesh, batch=8, seq=64)
    plans = {policy: plan(config, remat=policy, **size) for policy in FIXED}
    arenas = sorted({found["arena_bytes"] for found in plans.values()})
    for budget in [*arenas[::3], (arenas[0] + arenas[-1]) // 2, (arenas[0] + 3 * arenas[-1]) // 4]:
        chosen = plan(config, remat=f"auto:{budget}", **size)
        check(chosen["arena_bytes"] <= budget, f"auto:{budget} needs {chosen['arena_bytes']}")
        least = min(found["recomputed_flops"] for found in plans.values() if found["arena_bytes"] <= budget)
        print(f"{layers} layers {mesh} auto:{budget}: {chosen['policies']} computes {chosen['recomputed_flops']:.3g} FLOPs again, "
              f"the best fixed policy {least:.3g}", flush=True)
        check(chosen["recomputed_flops"] <= least, f"auto:{budget} computes more again than a fixed policy that fits")
        policies = chosen["policies"].split(",")
        # The first stage of 1F1B holds four microbatches, the last one: the last computes less again.
        if layers == 14 and len(policies) > 1:
            own += policies[-1] != policies[0]
            again = plan(config, remat=chosen["policies"], **size)
            check(again["arena_bytes"] == chosen["arena_bytes"], "the policies that were found make another plan when given")
check(own, "no budget made the first and the last stage choose differently")

# How far from the best that might be is said, in terms that mean something.
said = compile(ROOT / "examples/llama3-8b.json", "exec.mlir", emit="exec", mesh="data=8", zero=3, precision="bf16", batch=32, seq=4096,
               remat="auto:30GiB")
print(said, end="")
bound = float(re.search(r"within the budget: ([\d.]+)% of this cost", said)[1])
check(50 <= bound <= 100, f"the bound is {bound}% of the cost: {said}")

# A budget that nothing fits is refused with the smallest that works, which does.
for size in ({"batch": 4, "seq": 64}, {"batch": 8, "seq": 64, "mesh": "pipe=2", "microbatches": 4}):
    config = model("llama", 6)
    failed = subprocess.run(["meshwright", "compile", config, "-o", "exe", *flags(dict(size, remat="auto:1MiB"))],
                            capture_output=True, text=True)
    found = re.search(r"nothing fits 1,048,576 bytes a rank; the smallest plan, --remat (\S+), needs ([\d,]+)", failed.stderr)
    check(failed.returncode and found, f"expected a refusal: {failed.stderr}")
    smallest = int(found[2].replace(",", ""))
    check(plan(config, remat="auto", memory_limit=smallest, **size)["arena_bytes"] <= smallest, "the smallest does not fit")
    check(plan(config, remat=found[1], **size)["arena_bytes"] == smallest, "the policy named is another")
