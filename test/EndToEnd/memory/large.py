#!/usr/bin/env python3
"""Llama 3 405B is placed on 1,024 devices in seconds: large.py CONFIG WORK

Time on the clock and the largest resident set of the compiler's process. Measured on one core: 0.05 s and 100 MiB; what is
allowed leaves room for machines that are busy and for builds with sanitizers.
"""
import os
import re
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")
from harness import check, flags, fresh, ir

config = os.path.abspath(sys.argv[1])
fresh(sys.argv[2])
SECONDS, BYTES = 10, 2 << 30


def operations(text):
    return len(re.findall(r"^ +(?:%\S+ = )?\"?(?:train|dist|func|arith)\.|^ +return", text, re.MULTILINE))


def place(**options):
    """Operations of the IR at phase local, seconds, and bytes resident at most."""
    command = ["meshwright", "compile", config, "--emit", "local", "-o", "local.mlir", *flags(dict(options, seq=8192))]
    begin = time.monotonic()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    check(process.returncode == 0, f"{command} exits with {process.returncode}")
    return operations(ir("local.mlir")), seconds, used.ru_maxrss * 1024


for strategy in ({}, {"zero": 3, "sequence_parallel": True, "precision": "bf16"}, {"zero": 1, "precision": "bf16", "microbatches": 8}):
    few, *_ = place(mesh="data=2,tensor=8", **strategy)
    many, seconds, resident = place(mesh="data=128,tensor=8", **strategy)
    print(f"{strategy}: {many} operations, {seconds:.2f} s, {resident / 2**20:.0f} MiB")
    check(few > 200, f"{few} operations are not a training step")
    check(many == few, f"{strategy}: {many} operations for data=128, {few} for data=2")
    check(seconds <= SECONDS, f"{strategy}: {seconds:.1f} s, allowed are {SECONDS}")
    check(resident <= BYTES, f"{strategy}: {resident} bytes resident, allowed are {BYTES}")
