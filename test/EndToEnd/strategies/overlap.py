#!/usr/bin/env python3
"""Communication beside computation changes no bit: overlap.py GOLDEN WORK STRATEGY...

Each strategy with --overlap on and off: losses and gradient norms as threads, with MPI (a strategy that ends in +mpi)
and by TCP (+tcp); the bytes sent are those of the plan; some collectives were really only started."""
import json
import os
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, check_traffic, compile, flags, free_port, fresh, ranks_of, rows, strategy, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])


def train_by_tcp(exe, ranks, **options):
    environment = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    processes = [subprocess.Popen([os.path.abspath(exe), *flags(dict(options, metrics="tcp.jsonl"))],
                                  env={**os.environ, **environment, "RANK": str(rank)}, stdout=subprocess.DEVNULL)
                 for rank in range(ranks)]
    check(not any([process.wait(timeout=100) for process in processes]), "ranks that met by TCP failed")
    return rows("tcp.jsonl")


for text in sys.argv[3:]:
    words = text.split("+")
    launchers = [word for word in words if word in ("mpi", "tcp")]
    options = dict(golden.size, **strategy("+".join(word for word in words if word not in launchers)))
    ranks = ranks_of(options["mesh"])
    run = dict(golden.run, steps=4)
    compile(golden.config, "off", overlap="off", **options)
    compile(golden.config, "on", overlap="on", **options)
    want = train("./off", ranks, **run)
    have = train("./on", ranks, trace="trace.json", **run)
    check(have == want, f"{text}: {have}, without overlap {want}")
    check_traffic("on", "trace.json", steps=4)
    waits = sum(event.get("cat") == "wait" for event in json.load(open("trace.json"))["traceEvents"])
    # Of GPUs the host waits for nothing.
    check(waits >= 4 * ranks or options.get("target") == "cuda", f"{text}: only {waits} waits in 4 steps of {ranks} ranks")
    if options.get("schedule") == "dualpipe-v":
        pairs = [event for event in json.load(open("trace.json"))["traceEvents"] if event.get("cat") == "task" and "+" in event["name"]]
        check(pairs, f"{text}: no two tasks ran as one")
    if "mpi" in launchers:
        check(train("./on", ranks, mpi=True, **run) == want, f"{text}: other numbers with MPI")
    if "tcp" in launchers:
        check(train_by_tcp("./on", ranks, **run) == want, f"{text}: other numbers by TCP")
    print(f"{text}: equal, {waits} waits")
