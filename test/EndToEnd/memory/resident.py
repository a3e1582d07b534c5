#!/usr/bin/env python3
"""What a run of GPT-2 124M has in memory at most is what the plan says, within 5%: resident.py CONFIG CORPUS WORK [--all]

The plan's total is the arena and what communicators allocate beside it. What is more are pages of the program and its
libraries, OpenBLAS's buffers and the data file. On one rank, and for the largest of two MPI
processes, without checkpoints and with one, which is brought together in parts, and on one rank with the optimizer's states on an SSD.
Without --all, one of the first two for each, and the last is left out."""
import json
import pathlib
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, compile, fresh, most_resident

config, corpus = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
fresh(sys.argv[3])
cases = [("one rank", "", [], {}, ([], ["--save", "checkpoints"])),
         ("two processes", "data=2", ["meshwright", "run", "--mpi", "-n", "2"], {}, (["--save", "checkpoints"], [])),
         ("one rank, states on an SSD", "", [], {"offload": "optimizer=ssd"}, (["--ssd", "."],))]
for name, mesh, launcher, offload, ways in cases if "--all" in sys.argv else cases[:2]:
    compile(config, "exe", mesh=mesh, batch=4, seq=64, dropout=0, **offload)
    plan = json.loads(call(["meshwright", "inspect", "--json", "exe"]))
    total = plan["arena_bytes"] + plan.get("host_bytes", 0) + sum(plan["scratch_bytes"])
    for more in ways if "--all" in sys.argv else ways[-1:]:
        have = most_resident([*launcher, "./exe", "--data", corpus, "--tokens", "u8", "--steps", 2,
                         "--lr", "1e-4", *more], timeout=300)
        apart = 100 * (have / total - 1)
        print(f"{name} {' '.join(more)}: {have:,} bytes resident, {total:,} planned, {apart:+.2f}%", flush=True)
        check(abs(apart) <= 5, f"{name} {' '.join(more)}: {apart:+.2f}% apart")
