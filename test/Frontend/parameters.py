#!/usr/bin/env python3
"""Imports each model of a directory and compares its number of parameters with that of TEST's line COUNT: parameters.py DIRECTORY TEST

Each file says as transformers does, by _name_or_path, which model of the Hugging Face hub it is after. `meshwright models`
lists these, and no others, as releases that were tried.
"""
import json
import math
import pathlib
import re
import subprocess
import sys

directory, test = map(pathlib.Path, sys.argv[1:])
wanted = dict(re.findall(r"^# COUNT (\S+) (\d+)$", test.read_text(), re.M))
files = sorted(directory.glob("*.json"))
if sorted(file.name for file in files) != sorted(wanted):
    sys.exit(f"{test.name} counts {sorted(wanted)}, but {directory} has {[file.name for file in files]}")
wrong = 0
described = subprocess.run(["meshwright", "models"], check=True, capture_output=True, text=True).stdout
tried = set(re.findall(r"[\w.-]+/[\w.-]+", " ".join(line for line in described.splitlines() if line.startswith("  releases tried: "))))
sources = {json.loads(file.read_text()).get("_name_or_path") for file in files}
if tried != sources:
    sys.exit(f"'meshwright models' and {directory} differ in {sorted(tried ^ sources)}")
for file in files:
    source = json.loads(file.read_text()).get("_name_or_path", "")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", source):
        wrong += 1
        print(f"{file.name} does not say whose sizes it has: \"_name_or_path\" is \"{source}\", not OWNER/MODEL")
    task = ["--mlm", "0.15", "--mask-id", "0"] if "ForMaskedLM" in file.read_text() else []
    text = subprocess.run(["meshwright-import", file, "--batch", "1", "--seq", "8", *task], check=True, capture_output=True, text=True).stdout
    # A bias of choices is a buffer for transformers, or frozen; so are the constants of xIELU.
    shapes = re.findall(r"train\.variable @(?!\S*(?:e_score_correction_bias|expert_bias|router_bias|act_fn\.beta|act_fn\.eps) )\S+ : tensor<([0-9x]+)xf32>", text)
    count = sum(math.prod(map(int, shape.split("x"))) for shape in shapes)
    print(file.name, count)
    wrong += count != int(wanted[file.name])
    if count != int(wanted[file.name]):
        print(f"  transformers counts {wanted[file.name]}")
sys.exit(wrong > 0)
