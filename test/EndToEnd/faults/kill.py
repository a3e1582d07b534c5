#!/usr/bin/env python3
"""A rank that is killed ends all of them within 10 seconds, after a SIGTERM with the last step saved: kill.py GOLDEN WORK"""
import os
import signal
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")
from harness import Golden, check, compile, flags, fresh

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
compile(golden.config, "exe", mesh="data=3", batch=6, seq=32, overlap="on")  # so that collectives are under way
arguments = [os.path.abspath("exe"), *map(str, flags(dict(golden.data, steps=10**7, metrics="m.jsonl", save="save",
                                                         save_every=20)))]


def ranks():
    """Processes of the executable."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe") == arguments[0] and open(f"/proc/{pid}/stat").read().split()[2] != "Z":
                found.append(int(pid))
        except OSError:
            pass
    return found


def end(kind, start, more, expected):
    """Starts ranks, kills one with `kind` after some steps, and checks that the others end within 10 seconds."""
    if os.path.exists("m.jsonl"):
        os.remove("m.jsonl")
    process = subprocess.Popen([*map(str, start), *arguments, *more], stdout=open("log", "w"), stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 60
        while not os.path.exists("save/latest") or not os.path.exists("m.jsonl") or os.path.getsize("m.jsonl") < 3000:
            check(time.monotonic() < deadline and process.poll() is None, "no steps: " + open("log").read())
            time.sleep(0.02)
        check(len(ranks()) == expected, f"{len(ranks())} processes, expected {expected}")
        os.kill(sorted(ranks())[-1], kind)
        began = time.monotonic()
        code = process.wait(timeout=10)
        while ranks() and time.monotonic() < began + 10:
            time.sleep(0.05)
        seconds = time.monotonic() - began
        check(not ranks(), f"ranks are left after {seconds:.1f} s")
        check(seconds < 10, f"{seconds:.1f} s, allowed are 10")
        check(code, f"exit status {code}")
        print(f"{kind.name}, {expected} processes: {seconds:.1f} s, exit status {code}")
        if kind == signal.SIGTERM:
            check(code == 128 + kind, f"exit status {code}")
            steps = len(open("m.jsonl").readlines())
            check(os.readlink("save/latest") == f"step-{steps:08}", f"not saved after {steps} steps")
    finally:
        for pid in ranks():
            os.kill(pid, signal.SIGKILL)
    # What was saved is whole and goes on.
    last = int(os.readlink("save/latest").split("-")[1])
    done = subprocess.run([arguments[0], "--ranks", "3", *map(str, flags(dict(golden.data, resume="save", steps=last + 1)))],
                          capture_output=True, text=True)
    check(done.returncode == 0, "the checkpoint that was left: " + done.stderr)


for kind in (signal.SIGKILL, signal.SIGTERM):
    end(kind, [], ["--ranks", "3"], 1)
    end(kind, ["meshwright", "run", "--mpi", "-n", 3], [], 3)
