#!/usr/bin/env python3
"""What is kept on the host changes no bit: offload.py GOLDEN WORK STRATEGY...

Each strategy, which says what is kept with +offload=, and the same without: losses and gradient norms of the golden run, each
goes on from the other's checkpoint, the bytes copied are those of the plan, and the plan has on the host what
it no longer has in the arena."""
import json
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, compile, fresh, ranks_of, strategy, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])


def plan_of(exe):
    return json.loads(call(["meshwright", "inspect", "--json", exe]))


def check_copies(plan, trace, steps):
    """Every rank copies what its program's plan says, both ways; `trace` has steps alone."""
    want = {"to_device": 0, "to_host": 0}
    ranks = [event["args"]["copied_bytes"] for event in json.load(open(trace))["traceEvents"]
             if "copied_bytes" in event["args"]]
    for program in plan["programs"]:
        share = len(ranks) // len(plan["programs"])
        for way in want:
            want[way] += program.get("copied_bytes", {}).get("step", {}).get(way, 0) * share * steps
    have = {way: sum(rank[way] for rank in ranks) for way in want}
    check(have == want and min(have.values()) > 0, f"{trace}: ranks copied {have}, planned are {want}")


def bytes_of(plan, role):
    return sum(line["bytes"] for program in plan["programs"] for line in program.get("host_memory", [])
               if line["category"] == role)


for number, text in enumerate(sys.argv[3:]):
    options = dict(golden.size, **strategy(text))
    ranks = ranks_of(options["mesh"])
    plain = {key: value for key, value in options.items() if not key.startswith("offload")}
    kept = options["offload"].split(",")
    if options.get("precision") == "bf16" and {"optimizer", "parameters"} & set(kept):
        plain["masters"] = "whole"  # as they are on the host
    compile(golden.config, "without", **plain)
    compile(golden.config, "with", **options)
    run = dict(golden.run, steps=4)
    if options.get("optimizer") == "sgd":  # Which reads none of these.
        run = {key: value for key, value in run.items() if key not in ("weight_decay", "beta1", "beta2", "eps")}
    want = train("./without", ranks, save="saved-without", **run)
    have = train("./with", ranks, save="saved-with", trace="trace.json", **run)
    check(have == want, f"{text}: {have}, without {want}")
    again = {key: value for key, value in run.items() if key != "init"}
    want = train("./without", ranks, resume="saved-with", metrics=f"without-{number}.jsonl", **dict(again, steps=6))
    have = train("./with", ranks, resume="saved-without", metrics=f"with-{number}.jsonl", **dict(again, steps=6))
    check(have == want and len(have) == 2, f"{text}: goes on with {have}, without {want}")

    before, after = plan_of("without"), plan_of("with")
    check_copies(after, "trace.json", steps=4)
    check("host_bytes" not in before, f"{text}: something is on the host without --offload")
    # Parameters outside of layers stay on the device, and so do numbers of tokens, which are no states of the optimizer.
    states = [v for v in after["variables"] if v["role"] not in ("parameter", "tokens")]
    parameters = [v for v in after["variables"] if v["role"] == "parameter"]
    for what, on_host in (("optimizer", states), ("parameters", [v for v in parameters if v.get("stacked")])):
        check({bool(v.get("on_host")) for v in on_host} <= {what in kept}, f"{text}: {what} are in the wrong memory")
        check(what not in kept or on_host, f"{text}: nothing is of {what}")
    check(not any(v.get("on_host") for v in parameters if not v.get("stacked")), f"{text}: embeddings are on the host")
    if "optimizer" in kept:
        check(bytes_of(after, "optimizer") > 0, f"{text}: no states on the host")
    if "parameters" in kept:
        check(bytes_of(after, "parameter") > 0, f"{text}: no parameters on the host")
        # Those of bf16 may have the memory of their parameters.
        check(bytes_of(after, "gradient") > 0 or options.get("grad-dtype") == "bf16", f"{text}: no gradients on the host")
    if "activations" in kept:
        check(bytes_of(after, "activation") > 0, f"{text}: no activations on the host")
    print(f"{text}: equal; arena {before['arena_bytes']:,} becomes {after['arena_bytes']:,} and "
          f"{after['host_bytes']:,} on the host")
