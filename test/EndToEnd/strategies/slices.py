#!/usr/bin/env python3
"""Weights so large that they are gathered and their gradients scattered layer by layer: slices.py GOLDEN WORK"""
import json
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, check, check_traffic, compile, distance, fresh, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
model = dict(json.load(open(golden.config)), num_hidden_layers=3, hidden_size=512, intermediate_size=5120)
json.dump(model, open("config.json", "w"))
size = {"batch": 4, "seq": 16}
run = {"steps": 2, "lr": 1e-3, **golden.data}
for precision, tolerance in (("f32", 1e-5), ("bf16", 2e-3)):
    compile("config.json", "one", precision=precision, **size)
    want = train("./one", **run)
    for mesh, zero in (("data=2", 1),) if precision == "f32" else (("data=2,tensor=2", 1), ("data=2", 2)):
        compile("config.json", "exe", mesh=mesh, zero=zero, precision=precision, report="report", **size)
        plan = json.load(open("report/report.json"))
        times = {op["op"]: op["times"] for op in plan["collectives"] if op["times"] == 3 and op["program"] == "step"}
        check("all_gather" in times and (zero == 2 or "reduce_scatter" in times), f"{precision} {mesh} --zero {zero}: slice by slice goes only {times}")
        ranks = 4 if "tensor" in mesh else 2
        have = train("./exe", ranks, trace="trace.json", **run)
        check_traffic("./exe", "trace.json", run["steps"])
        off = distance(have, want)
        print(f"{precision} {mesh} --zero {zero}: loss {off:.1e}")
        check(off <= tolerance, f"a loss is off by {off:.1e}")
