#!/usr/bin/env python3
"""Checks what a plan says of registers: of each generated kernel, for two architectures: registers.py PLAN"""
import json
import sys

rows = json.load(open(sys.argv[1]))["programs"][0]["kernels"]
for row in rows:
    generated = row["op"] not in ("matmul", "attention", "attention_grad", "copy")
    assert generated == ("assembled" in row), row
    if generated:
        assert [entry["arch"] for entry in row["assembled"]] == ["sm_80", "sm_90"], row
        assert all(8 <= entry["registers"] <= 255 and entry["spilled_bytes"] == 0 for entry in row["assembled"]), row
print("registers of all generated kernels are known")
