#!/usr/bin/env python3
"""Work is conserved: the products and attention that all ranks compute together are those of one rank, and what they keep for
the backward is what one rank keeps, unless the plan says why not.

  work.py INPUTS WORK [--all]

Alone: some models of INPUTS. --all: all of them, on more meshes. Nothing runs: plans say what ranks compute.
"""
import json
import math
import pathlib
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, flags, fresh, most

MESHES = ("tensor=2", "context=2", "data=2,context=2")
MORE = ("data=2", "pipe=2", "data=2,tensor=2", "tensor=2,context=2", "pipe=2,context=2", "data=2,pipe=2")
OFTEN = ("golden/llama-tiny", "golden-more/mixtral", "golden-more/deepseek-v3", "golden-more/sparse-glm4-moe", "golden-more/glm4",
         "golden-more/t5", "golden-more/granite4", "golden-more/qwen3-next")
LEAST, MOST = 0.99, 1.05


def plan_of(config, **options):
    """The report, or None where the compiler refuses the mesh."""
    command = ["meshwright", "compile", config, *flags(dict(options, cpu="x86-64", emit="exec", output="exec.mlir", report="report"))]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        check("error:" in done.stderr, f"{command} exits with {done.returncode}:\n{done.stderr}")
        return None
    padded = re.search(r"FLOPs of a step ([\d.]+)% more", done.stdout + done.stderr)
    return dict(json.load(open("report/report.json")), padded=float(padded[1]) / 100 if padded else 0)


def sizes_of(plan):
    return {axis["axis"]: axis["size"] for axis in plan["mesh"]}


def over_ranks(plan, of):
    """The sum over all ranks of what `of` says of a program, by its number, that a rank runs."""
    sizes = sizes_of(plan)
    return sum(of(number) * math.prod(size for axis, size in sizes.items() if axis not in program["at"])
               for number, program in enumerate(plan["programs"]))


def work(plan, *ops):
    """Floating-point operations of products and attention, or of `ops` alone. Those of generated kernels, one an element, do not
    count: ranks along `tensor` compute norms alike, and ranks along `data` updates."""
    return over_ranks(plan, lambda number: sum(kernel["times"] * kernel["flops"] for kernel in plan["programs"][number]["kernels"]
                                               if not ops or kernel["op"] in ops))


def named(plan, one, tokens):
    """What the plan names as more than one rank does: what is computed again, what several ranks compute alike, and products with
    padding of parameters, one in the forward and two in the backward, as well as attention of padded heads; or, where heads of
    recurrences are padded, too, what the compiler says that padding costs."""
    ranks = math.prod(size for axis, size in sizes_of(plan).items() if axis.startswith("tensor"))
    padding = sum(math.prod(v["local_shape"]) * ranks - math.prod(v["shape"]) for v in plan["variables"]
                  if ranks > 1 and v["role"] == "parameter" and len(v["shape"]) - v["stacked"] >= 2 and "copies" not in v)
    heads = work(plan, "attention", "attention_grad") - work(one, "attention", "attention_grad") if padding else 0
    repeated = sum(row["flops"] for row in plan.get("repeated", []))
    return plan["recomputed_flops"] + repeated + max(6 * tokens * padding + heads, plan["padded"] * work(one))


def kept(plan):
    return over_ranks(plan, lambda number: most(plan, "activation", program=number))


def check_inspect(config):
    """A capacity counts whole sequences, so ranks along `context` compute the same experts; inspect says so."""
    options = dict(batch=8, seq=32, aux_loss="none", cpu="x86-64", expert_capacity=1)
    one, many = work(plan_of(config, **options)), plan_of(config, mesh="context=2", **options)
    experts = sum(row["flops"] for row in many["repeated"] if "experts" in row["location"] and row["axes"] == ["context"])
    check(work(many) > 1.2 * one, "experts of whole sequences are divided")
    check(abs(work(many) - sum(row["flops"] for row in many["repeated"]) - one) < 0.05 * one, f"{work(many)} operations, {one} of one rank, {many['repeated']}")
    call(["meshwright", "compile", config, *flags(dict(options, mesh="context=2", output="exe"))])
    said = call(["meshwright", "inspect", "exe"])
    rows = [line for line in said.splitlines() if "experts" in line and " context " in line]
    check("repeated     " in said and experts > 0 and rows, f"inspect does not name experts:\n{said}")
    print("\n".join(rows))


def main(inputs, folder, everything):
    fresh(folder)
    names = sorted(f"{path.parent.parent.name}/{path.parent.name}" for group in ("golden", "golden-more")
                   for path in (inputs / group).glob("*/golden.json")) if everything else OFTEN
    compared, refused, all_ratios = 0, 0, {}
    for name in names:
        golden = Golden(inputs / name)
        config, size = golden.config, dict(golden.size, batch=8, seq=golden.size["seq"] // 4 * 4)
        one = plan_of(config, **size)
        check(one, f"{name} does not compile")
        for mesh in MESHES + MORE if everything else MESHES:
            plan = plan_of(config, mesh=mesh, **size)
            if plan is None:
                refused += 1
                continue
            compared += 1
            ratios = {"work": work(plan) / work(one)}
            # Ranks along `tensor` keep the same residual stream, and stages keep several microbatches.
            if "tensor" not in mesh and "pipe" not in mesh:
                ratios["activations"] = kept(plan) / kept(one)
            ratios["work that the plan does not name"] = ratios["work"] - named(plan, one, size["batch"] * size["seq"]) / work(one)
            for what, ratio in ratios.items():
                all_ratios.setdefault(what, []).append((ratio, f"{name} {mesh}"))
    print(f"{compared} plans, {refused} meshes refused")
    check(compared > refused, "most meshes are refused")
    for what, ratios in all_ratios.items():
        (low, first), (high, last) = min(ratios), max(ratios)
        print(f"{what}: from {low:.3f} times that of one rank ({first}) to {high:.3f} ({last})")
        check(what == "work" or high <= MOST, f"{last}: all ranks together have {high:.3f} times the {what} of one rank")
    check(min(all_ratios["work"])[0] >= LEAST, "work is missing")
    check_inspect(inputs / "golden-more/mixtral/config.json")


main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], "--all" in sys.argv[3:])
