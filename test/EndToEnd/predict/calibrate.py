#!/usr/bin/env python3
"""`meshwright calibrate` measures this machine, and predict reads what it writes: calibrate.py CONFIG CORPUS WORK [--quick]"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, compile, flags, fresh

config, corpus = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
fresh(sys.argv[3])

# What is refused, before anything is measured.
for words, said in {("--ranks", "2"): "-o must name the cluster file to write",
                    ("-o", "here.json"): "found 'here.json'",
                    ("-o", "here.toml", "--ranks", "3"): "--ranks must be 1, 2, 4 or 8, found '3'",
                    ("-o", "here.toml", "--ranks"): "a value is missing after '--ranks'",
                    ("-o", "here.toml", "--fast"): "unknown option '--fast'",
                    ("-o", "here.toml", "--samples", "./here.toml"): "write to the same file",
                    ("-o", "none/here.toml"): "cannot write 'none/here.toml'"}.items():
    done = subprocess.run(["meshwright", "calibrate", *words], capture_output=True, text=True, timeout=20)
    check(done.returncode == 1 and said in done.stderr, f"calibrate {words}: {done.returncode}, {done.stderr}")

print(call(["meshwright", "calibrate", "-o", "here.toml", "--ranks", 2, "--samples", "samples.json", *sys.argv[4:]], timeout=600))
runs = json.load(open("samples.json"))
calls = [call for run in runs for call in run["calls"]]
check({call["kind"] for call in calls} == set(range(6)), "each kind of call was measured")
check({call["bits"] for call in calls if call["kind"] >= 2} == {16, 32}, "products in both types")
check(all(call["seconds"] > 0 and call["runs"] > 0 for call in calls), "calls take time")
known = {collective["name"] for run in runs for collective in run["collectives"]}
check({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute"} <= known, f"collectives: {known}")
for run in runs:
    spent = sum(call["seconds"] * call["runs"] for call in run["calls"])
    check(0 < spent < 1.5 * run["step"], f"calls of {spent} s in a step of {run['step']} s")

text = open("here.toml").read()
check('description = "2 ranks of a machine' in text and "functions.exp = " in text, text)
products = [float(rate) for rate in re.findall(r", ([0-9.e+]+)\]", re.search(r"products.f32 = (.*)", text)[1])]
check(len(products) >= 4 and all(1e8 < rate < 1e13 for rate in products), f"rates of products: {products}")

# A step by this file beside one that runs: other tests share the machine, so only the order of size is checked.
options = {"batch": 8, "seq": 32, "mesh": "data=2", "cluster": "here.toml"}
compile(config, "exe", **options)
predicted = json.loads(call(["meshwright", "predict", config, "--json", *flags(options)]))
check(predicted["devices"] == 2 and predicted["breakdown"]["communication[data]"] > 0, predicted)
call(["meshwright", "run", "-n", 2, "./exe", "--data", corpus, "--tokens", "u8", "--steps", 40, "--metrics", "metrics.jsonl"])
measured = min(json.loads(line)["step_ms"] for line in open("metrics.jsonl")) / 1e3
check(1 / 8 < predicted["step_s"] / measured < 8, f"predicted {predicted['step_s']} s, measured {measured} s")
