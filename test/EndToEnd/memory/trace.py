#!/usr/bin/env python3
"""What `--trace` says of each rank is what the plan has it do: trace.py CONFIG CORPUS WORK"""
import collections
import json
import pathlib
import statistics
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, check_traffic, compile, fresh, train

config, corpus = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
fresh(sys.argv[3])
RUN = {"data": corpus, "tokens": "u8", "steps": 3, "lr": 1e-3}


def traced(exe, ranks, **options):
    train(f"./{exe}", ranks, trace="trace.json", **dict(RUN, **options))
    events = json.load(open("trace.json"))["traceEvents"]
    check({event["pid"] for event in events} == set(range(ranks)), f"{exe}: ranks {({event['pid'] for event in events})}")
    check(all(event["args"]["dropped_spans"] == 0 for event in events if event["name"] == "process_name"), f"{exe}: spans are dropped")
    return events


def check_nesting(name, events):
    """Two spans of a track are one in the other, or one after the other."""
    tracks = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            check(event["dur"] >= 0, f"{name}: {event}")
            # In nanoseconds, so that nothing is rounded.
            begin = round(event["ts"] * 1000)
            tracks[event["pid"], event["tid"]].append((begin, -(begin + round(event["dur"] * 1000)), event["name"]))
    for track, spans in tracks.items():
        around = []
        for begin, end, what in sorted(spans):
            while around and -around[-1][1] <= begin:
                around.pop()
            check(not around or end >= around[-1][1], f"{name}: on {track} {what} ends after {around[-1:]}, in which it begins")
            around.append((begin, end, what))
    check({pid for pid, _ in tracks} == {event["pid"] for event in events}, f"{name}: a rank has no spans")


def inside(event, step):
    return event["pid"] == step["pid"] and step["ts"] <= event["ts"] and event["ts"] + event["dur"] <= step["ts"] + step["dur"] + 0.001


def check_run(exe, ranks, **options):
    plan = json.loads(call(["meshwright", "inspect", "--json", exe]))
    events = traced(exe, ranks, **options)
    check_nesting(exe, events)
    if ranks > 1:
        check_traffic(f"./{exe}", "trace.json", RUN["steps"])
    spans = [event for event in events if event["ph"] == "X"]
    for rank in range(ranks):
        coordinates, rest = {}, rank
        for axis in reversed(plan["mesh"]):
            rest, coordinates[axis["axis"]] = divmod(rest, axis["size"])
        number, program = next((i, p) for i, p in enumerate(plan["programs"])
                               if all(coordinates[axis] in places for axis, places in p["at"].items()))
        steps = [event for event in spans if event["cat"] == "step" and event["name"] == "step" and event["pid"] == rank]
        check([step["args"]["index"] for step in steps] == list(range(RUN["steps"])), f"{exe}: steps {steps}")
        want = collections.Counter()
        for entry in plan["collectives"]:
            if entry["program"] == "step" and entry["in"] == number:
                want[entry["op"]] += entry["times"]
        for step in steps:
            own = sorted((event for event in spans if inside(event, step)), key=lambda event: event["ts"])
            tasks = [event["name"] for event in own if event["cat"] == "task"]
            check(tasks == program.get("order", []), f"{exe}: rank {rank} did {tasks}, planned is {program.get('order')}")
            have = collections.Counter(event["name"] for event in own if event["cat"] == "collective")
            check(have == want, f"{exe}: rank {rank} made the collectives {have}, planned are {want}")
            computed = [event for event in own if event["cat"] == "compute"]
            check(computed and all(event["args"]["bytes"] > 0 for event in computed), f"{exe}: rank {rank} computes {computed[:3]}")
            check({"matmul", "attention", "attention_grad"} <= {event["name"] for event in computed},
                  f"{exe}: no matrix products or attention in {collections.Counter(event['name'] for event in computed)}")
            # A span has the number of its kernel, which runs as often as the plan says.
            runs = collections.Counter(event["args"].get("index", -1) for event in computed)
            for index, kernel in enumerate(program["kernels"]):
                check(runs.pop(index, 0) == kernel["times"], f"{exe}: rank {rank} does not run {kernel} so often")
            runs.pop(-1, 0)
            check(not runs, f"{exe}: rank {rank} runs kernels that are not in the plan: {runs}")
            check(all(event["name"] == program["kernels"][event["args"]["index"]]["op"] if "index" in event["args"]
                      else event["name"] == "finish_sends" for event in computed),
                  f"{exe}: spans of rank {rank} have the numbers of other kernels, or none")
            named = [event for event in computed if event["args"].get("location")]
            check(len(named) > 0.9 * len(computed), f"{exe}: {len(computed) - len(named)} of {len(computed)} ops have no place in the IR")
    check_table(exe, plan, spans)
    return len(spans)


def check_table(exe, plan, spans):
    """`inspect --kernels --trace` prints the mean time of each kernel, and fails if one is faster than it can be."""
    table = call(["meshwright", "inspect", exe, "--kernels", "--trace", "trace.json"])
    times = collections.defaultdict(list)
    for event in spans:
        if event["cat"] == "compute" and event["name"] == "attention_grad" and event["args"]["index"] >= 0:
            times[event["pid"]].append(event["dur"])
    mean = statistics.mean(sum(times.values(), []))
    rows = [line.split() for line in table.splitlines() if line.split()[:1] == ["attention_grad"]]
    # times, read, written, FLOPs; microseconds each, milliseconds a step, GB/s and TFLOP/s.
    check(len(rows) == len(plan["programs"]), table)
    lasting = [float(row[5]) for row in rows]
    check(min(lasting) - 0.01 <= mean <= max(lasting) + 0.01, f"{exe}: {mean} us measured, {rows} printed")
    failed = subprocess.run(["meshwright", "inspect", exe, "--kernels", "--trace", "trace.json", "--copy-rate", "1e3",
                             "--matmul-rate", "1e18"], capture_output=True, text=True)
    check(failed.returncode == 1 and "floor / measured" in failed.stdout and
          "measured more than 5% faster than the rates given allow" in failed.stderr, failed)
    call(["meshwright", "inspect", exe, "--kernels", "--trace", "trace.json", "--copy-rate", "1e18", "--matmul-rate", "1e18"])


def compiled(name, **options):
    compile(config, name, batch=4, seq=16, **options)


compiled("one")
compiled("stages", mesh="pipe=2,data=2", microbatches=2, schedule="zb-h1")
counts = [check_run("one", 1), check_run("stages", 4), check_run("stages", 4, mpi=True)]

# Some of the steps; the sums are those of all.
events = traced("one", 1, trace_from=1, trace_steps=1)
steps = [event["args"]["index"] for event in events if event["name"] == "step"]
check(steps == [1], f"asked for step 1, there are {steps}")
check(any(event.get("cat") == "compute" for event in events), "step 1 has no ops")

# The trace of another executable, and one of no step.
compiled("other", lora="r=4,alpha=8,targets=q_proj")
other = subprocess.run(["meshwright", "inspect", "other", "--kernels", "--trace", "trace.json"], capture_output=True, text=True)
check(other.returncode == 1 and "is not a trace of this executable" in other.stderr, other)
for words, why in (("--trace trace.json", "--trace belongs to --kernels"), ("--kernels --trace", "--trace needs a file"),
                   ("--kernels --trace missing", "cannot read 'missing'")):
    refused = subprocess.run(["meshwright", "inspect", "one", *words.split()], capture_output=True, text=True)
    check(refused.returncode == 1 and why in refused.stderr, refused)
pathlib.Path("none.json").write_text('{"traceEvents": []}')
refused = subprocess.run(["meshwright", "inspect", "one", "--kernels", "--trace", "none.json"], capture_output=True, text=True)
check(refused.returncode == 1 and "has no kernels of a step" in refused.stderr, refused)
print(f"{counts} spans")
