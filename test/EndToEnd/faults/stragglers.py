#!/usr/bin/env python3
"""--stragglers names the rank that computes slower than others with the same work: stragglers.py GOLDEN WORK"""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, compile, flags, fresh, rows

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
compile(golden.config, "exe", mesh="data=3", batch=6, seq=64)
exe = os.path.abspath("exe")
RUN = dict(golden.data, steps=10**6, lr=1e-3, stragglers=3, metrics="m.jsonl")


NAMED = "straggler: the kernels of rank 1 " # Of others a loaded machine may say so too.


def ranks():
    """Processes of the executable by rank."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe") == exe:
                variables = open(f"/proc/{pid}/environ").read().split("\0")
                found[int(next(v for v in variables if v.startswith("OMPI_COMM_WORLD_RANK=")).split("=")[1])] = int(pid)
        except (OSError, StopIteration):
            pass
    return found


def slowed(pid, process, seconds):
    """Stops a process for 4 of each 5 ms of its time, until all is said."""
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline and NAMED not in open("log").read():
            check(process.poll() is None, "the run has ended: " + open("log").read())
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.004)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.001)
    finally:
        os.kill(pid, signal.SIGCONT)


# The threads of one process, and processes. Losses are those of a run that measures nothing.
words = [*map(str, flags(dict(RUN, steps=12)))]
call(["meshwright", "run", "-n", 3, exe, *words])
measured = rows("m.jsonl")
check([row["step"] for row in measured if "slowest_rank" in row] == [2, 5, 8, 11], f"measured at other steps: {measured}")
check(all(0 <= row["slowest_rank"] < 3 and row["slowest_rank_ratio"] >= 1 for row in measured if "slowest_rank" in row), str(measured))
call(["meshwright", "run", "-n", 3, exe, *map(str, flags(dict(RUN, steps=12, stragglers=0)))])
check([row["loss"] for row in rows("m.jsonl")] == [row["loss"] for row in measured], "measuring changes losses")
# A trace that is asked for has its own steps.
call(["meshwright", "run", "-n", 3, exe, *map(str, flags(dict(RUN, steps=12, trace="t.json", trace_from=2, trace_steps=1)))])
steps = {event["args"]["index"] for event in json.load(open("t.json"))["traceEvents"] if event["name"] == "step"}
check(steps == {2}, f"the trace has steps {steps}")
call(["meshwright", "run", "-n", 3, exe, *map(str, flags(dict(RUN, steps=12, metrics="m.csv")))])
check("slowest_rank_ratio" in open("m.csv").readline(), "the table has no column for the slowest rank")

process = subprocess.Popen(["meshwright", "run", "--mpi", "-n", "3", exe, *map(str, flags(RUN))], stdout=open("log", "w"), stderr=subprocess.STDOUT)
try:
    deadline = time.monotonic() + 60
    while not (os.path.exists("m.jsonl") and len(rows("m.jsonl")) > 3 and len(ranks()) == 3):
        check(time.monotonic() < deadline and process.poll() is None, "no steps: " + open("log").read())
        time.sleep(0.05)
    slowed(ranks()[1], process, 60)
    said = re.search(r"step \d+: straggler: the kernels of rank (1) on (\S+) take ([\d.]+) times as long as those of ranks with the same "
                     r"work \(([\d.]+) ms a step, theirs ([\d.]+) ms\)", open("log").read())
    check(said, "no straggler was named: " + open("log").read())
    check(said[1] == "1" and said[2] == socket.gethostname()[:63] and float(said[3]) >= 1.2, said[0])
    check(abs(float(said[4]) / float(said[5]) / float(said[3]) - 1) < 0.02, said[0])
    print(said[0])
finally:
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)
    for pid in ranks().values():
        os.kill(pid, signal.SIGKILL)
