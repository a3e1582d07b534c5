#!/usr/bin/env python3
"""Communication beside computation changes no bit: overlap.py GOLDEN WORK STRATEGY...

Each strategy with --overlap on and off: losses and gradient norms as threads, and with MPI (a strategy that ends
in +mpi); the bytes sent are those of the plan; some collectives were really only started."""
import json
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, check_traffic, compile, fresh, ranks_of, rows, strategy, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])

for text in sys.argv[3:]:
    words = text.split("+")
    options = dict(golden.size, **strategy("+".join(word for word in words if word != "mpi")))
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
    if "mpi" in words:
        check(train("./on", ranks, mpi=True, **run) == want, f"{text}: other numbers with MPI")
    print(f"{text}: equal, {waits} waits")
