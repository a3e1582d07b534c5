#!/usr/bin/env python3
"""What a run of GPT-2 124M has in memory at most is what the plan says, within 5%: resident.py CONFIG CORPUS WORK

The plan's total is the arena and what communicators allocate beside it. What is more are pages of the program and its
libraries, OpenBLAS's buffers and the data file. On one rank, and for the largest of two MPI
processes, without checkpoints and with one, which is brought together in parts."""
import json
import pathlib
import resource
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, compile, fresh

# In a process of its own, whose children are this run's alone.
if sys.argv[1] == "--measure":
    done = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(done.returncode == 0, done.stdout)
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
    sys.exit()

config, corpus = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
script = pathlib.Path(__file__).resolve()
fresh(sys.argv[3])
for name, mesh, launcher in (("one rank", "", []), ("two processes", "data=2", ["meshwright", "run", "--mpi", "-n", "2"])):
    compile(config, "exe", mesh=mesh, batch=4, seq=64, dropout=0)
    plan = json.loads(call(["meshwright", "inspect", "--json", "exe"]))
    total = plan["arena_bytes"] + sum(plan["scratch_bytes"])
    for more in ([], ["--save", "checkpoints"]):
        have = int(call([sys.executable, script, "--measure", *launcher, "./exe", "--data", corpus, "--tokens", "u8", "--steps", 2,
                         "--lr", "1e-4", *more], timeout=300).split()[-1])
        apart = 100 * (have / total - 1)
        print(f"{name} {' '.join(more)}: {have:,} bytes resident, {total:,} planned, {apart:+.2f}%", flush=True)
        check(abs(apart) <= 5, f"{name} {' '.join(more)}: {apart:+.2f}% apart")
