#!/usr/bin/env python3
"""Bounds of `meshwright plan` are bounds, and what it prunes by them is not the best: plan_space.py CASE WORK"""
import json
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from clusters import write_cluster
from harness import INPUTS, check, fresh

LLAMA, OLMOE = INPUTS / "golden/llama-tiny/config.json", INPUTS / "golden-more/olmoe/config.json"
# Model, devices, sequence, flags, the cluster's numbers, and the share of plans that have room, or none.
CASES = {
    # 1F1B's bubble would exclude what this schedule makes the best.
    "interleaved": (LLAMA, 4, 16, "--schedule interleaved:2", {"outside": 1e7, "memory_bandwidth": 1e13}, None),
    "zero-bubble": (LLAMA, 4, 16, "--schedule zb-v --precision bf16", {"outside": 1e7}, None),
    # Products alone take time: the bound is within a few percent of what is simulated.
    "products": (LLAMA, 2, 16, "--precision bf16 --zero 0", {"memory_bandwidth": 1e18, "kernels": 1e18, "launch": 0, "latency": 0}, None),
    "context": (LLAMA, 4, 16, "--keep '--mesh context=2,pipe=1'", {}, None),
    # Experts' states are sharded along other axes than others.
    "experts": (OLMOE, 2, 4, "--precision bf16 --microbatches 2", {"target": "cpu"}, 0.3),
    # Products of experts have a rate of their own, and nothing else takes time.
    "routing": (OLMOE, 2, 16, "--precision bf16 --keep '--mesh pipe=1'", {
        "memory_bandwidth": 1e18, "kernels": 1e20, "launch": 0, "latency": 0, "outside": 1e15, "inside": 1e15, "more": "like = 'h100-sxm-measured'\nattention = {f32 = 1e11, bf16 = 1e11}"}, None),
    # States on the host are in no device's memory.
    "offload": (LLAMA, 4, 2, "--offload optimizer --keep '--mesh tensor=2'", {"target": "cpu"}, 0.1),
    "tight": (LLAMA, 2, 16, "", {"target": "cpu"}, 0.05),
}
BATCH = 8


def plan(case, *words):
    model, devices, sequence, flags, _, _ = CASES[case]
    split = flags.split("'")
    given = split[0].split() + split[1:2]
    command = ["meshwright", "plan", model, "--cluster", "c.toml", "--devices", devices, "--batch", BATCH, "--seq", sequence, "--json",
               "--seconds", 500, *given, *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    check(done.returncode == 0, f"{command}: {done.stderr}")
    found = json.loads(done.stdout)
    del found["seconds"]
    return found


def examine(case):
    numbers, share = CASES[case][4:]
    write_cluster(**numbers)
    everything = plan(case, "--exhaustive")
    if share is not None:
        # Memory for a few of the plans, which then are not as the compiler likes them best.
        sizes = sorted(one["peak_bytes"] for one in everything["all"])
        write_cluster(**{**numbers, "memory": sizes[int(share * len(sizes))] + 1})
        everything = plan(case, "--exhaustive")
    check(everything["complete"] and everything["compiled"] >= everything["layouts"], everything)
    for one in everything["all"]:
        check(0 < one["bound_s"] <= one["step_s"] * (1 + 1e-9), f"{case}: {one['flags']} takes {one['step_s']}, its bound is {one['bound_s']}")
        check(0 < one["bound_bytes"] <= one["peak_bytes"], f"{case}: {one['flags']} needs {one['peak_bytes']}, its bound is {one['bound_bytes']}")
    if case in ("products", "routing"):
        tightest = min(one["step_s"] / one["bound_s"] for one in everything["all"])
        check(tightest < 1.05, f"bounds are {tightest} times below steps")
    # The same with bounds, whatever the number of threads.
    one, two = plan(case, "--threads", 1), plan(case, "--threads", 2)
    check(one == two, f"{case}: two threads find {two}, one finds {one}")
    check(one["complete"] and one["compiled"] <= everything["compiled"], one)
    best, truth = one["best"][0], everything["best"][0]
    check(best == truth, f"{case}: plan finds {best}, but {truth} is better")
    # A search that is cut says by how much it may be wrong.
    cut = plan(case, "--threads", 1, "--layouts", 4)
    check(cut == plan(case, "--threads", 2, "--layouts", 4), f"{case}: a search that is cut differs by threads")
    check(cut["complete"] or cut["least_s"] <= truth["step_s"], f"{cut['least_s']} is no bound of {truth['step_s']}")


fresh(sys.argv[2])
examine(sys.argv[1])
