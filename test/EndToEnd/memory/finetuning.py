#!/usr/bin/env python3
"""The table of docs/finetuning.md is what plans say: finetuning.py WORK"""
import json
import math
import re
import sys

sys.path.append(sys.path[0] + "/..")
from harness import ROOT, arena_printed, call, check, compile, fresh

fresh(sys.argv[1])
page = (ROOT / "docs/finetuning.md").read_text()
rows = re.findall(r"^\| (all weights|`--lora ([^`]+)`) \| (\d) \| ([\d.]+) GB \| ([\d.]+) GB \| ([\d.]+) GB \|$", page, re.M)
check(len(rows) == 6, f"the page has {len(rows)} rows")
for _, lora, zero, *said in rows:
    lora, _, stored = lora.partition(" --frozen-weights ")
    printed = compile(ROOT / "examples/llama3-8b.json", "exe", mesh="data=8", batch=8, seq=2048, precision="bf16", remat="full", zero=zero, lora=lora or None,
                      frozen_weights=stored or None)
    plan = json.loads(call(["meshwright", "inspect", "--json", "exe"]))
    sent = sum(entry["bytes"] * entry["times"] for entry in plan["collectives"] if entry["program"] == "step") / 8
    states = sum(math.prod(entry["local_shape"]) * int(re.search(r"\d+", entry["type"])[0]) // 8 for entry in plan["variables"] if "of" in entry and entry["role"] != "scale")
    have = [arena_printed(printed), states, sent]
    print(f"{lora or 'all weights'} {stored}, zero {zero}: arena, states and masters, sent: {have}", flush=True)
    for number, text in zip(have, said):
        check(abs(number / 1e9 - float(text)) <= 0.51 * 10 ** -len(text.partition(".")[2]), f"the page says {text} GB, the plan {number / 1e9:.3f}")
