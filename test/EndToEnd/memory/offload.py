#!/usr/bin/env python3
"""What is kept on the host changes no bit: offload.py GOLDEN WORK STRATEGY...

Each strategy, which says what is kept with +offload=, and the same without: losses and gradient norms of the golden run, each
saves the same files and goes on from the other's checkpoint, the bytes copied are those of the plan, and the plan has on the host, or on
the SSD for words with =ssd, what it no longer has in the arena."""
import json
import pathlib
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, compile, fresh, ranks_of, strategy, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
pathlib.Path("disk").mkdir()


WAYS = ("to_device", "to_host", "from_ssd", "to_ssd")
KEYS = {"host": "on_host", "ssd": "on_ssd"}


def plan_of(exe):
    return json.loads(call(["meshwright", "inspect", "--json", exe]))


def check_copies(plan, trace, steps):
    """Every rank copies what its program's plan says, both ways; `trace` has steps alone."""
    want = dict.fromkeys(WAYS, 0)
    ranks = [{way: event["args"]["copied_bytes"].get(way, 0) for way in WAYS} for event in json.load(open(trace))["traceEvents"]
             if "copied_bytes" in event["args"]]
    for program in plan["programs"]:
        share = len(ranks) // len(plan["programs"])
        for way in want:
            want[way] += program.get("copied_bytes", {}).get("step", {}).get(way, 0) * share * steps
    have = {way: sum(rank[way] for rank in ranks) for way in want}
    check(have == want, f"{trace}: ranks copied {have}, planned are {want}")
    return have


def bytes_of(plan, space, role):
    return sum(line["bytes"] for program in plan["programs"] for line in program.get(f"{space}_memory", [])
               if line["category"] == role)


def files(folder):
    """The bytes of the tensors that a run has saved."""
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).glob("latest/*.safetensors")}


for number, text in enumerate(sys.argv[3:]):
    options = dict(golden.size, **strategy(text))
    ranks = ranks_of(options["mesh"])
    plain = {key: value for key, value in options.items() if not key.startswith("offload")}
    # The space of each kind.
    kept = {what: space or "host" for what, _, space in (word.partition("=") for word in options["offload"].split(","))}
    disk = {"ssd": "disk"} if "ssd" in kept.values() else {}
    if options.get("precision") == "bf16" and {"optimizer", "parameters"} & set(kept):
        plain["masters"] = "whole"  # as they are on the host
    compile(golden.config, "without", **plain)
    compile(golden.config, "with", **options)
    run = dict(golden.run, steps=4)
    unread = {"sgd": ("weight_decay", "beta1", "beta2", "eps"), "lion": ("eps",), "adafactor": ("beta1", "beta2")}.get(options.get("optimizer"), ())
    run = {key: value for key, value in run.items() if key not in unread}
    want = train("./without", ranks, save="saved-without", **run)
    have = train("./with", ranks, save="saved-with", trace="trace.json", **run, **disk)
    check(have == want, f"{text}: {have}, without {want}")
    check(files("saved-with") == files("saved-without") != {}, f"{text}: the checkpoints differ")
    again = {key: value for key, value in run.items() if key != "init"}
    want = train("./without", ranks, resume="saved-with", metrics=f"without-{number}.jsonl", **dict(again, steps=6))
    have = train("./with", ranks, resume="saved-without", metrics=f"with-{number}.jsonl", **dict(again, steps=6), **disk)
    check(have == want and len(have) == 2, f"{text}: goes on with {have}, without {want}")

    before, after = plan_of("without"), plan_of("with")
    copied = check_copies(after, "trace.json", steps=4)
    for space in set(kept.values()):
        for way in WAYS[:2] if space == "host" else WAYS[2:]:
            check(copied[way] > 0, f"{text}: nothing is copied {way}")
    check("host_bytes" not in before and "ssd_bytes" not in before, f"{text}: something is offloaded without --offload")
    # Parameters outside of layers stay on the device, and so do numbers of tokens, which are no states of the optimizer.
    states = [v for v in after["variables"] if v["role"] not in ("parameter", "tokens")]
    parameters = [v for v in after["variables"] if v["role"] == "parameter"]
    for what, variables in (("optimizer", states), ("parameters", [v for v in parameters if v.get("stacked")])):
        for space, key in KEYS.items():
            check({bool(v.get(key)) for v in variables} <= {kept.get(what) == space}, f"{text}: {what} are in the wrong memory")
        check(what not in kept or variables, f"{text}: nothing is of {what}")
    check(not any(v.get(key) for v in parameters if not v.get("stacked") for key in KEYS.values()), f"{text}: embeddings are offloaded")
    for what, category in (("optimizer", "optimizer"), ("parameters", "parameter"), ("activations", "activation")):
        check(what not in kept or bytes_of(after, kept[what], category) > 0, f"{text}: no {what} on {kept.get(what)}")
    # Those of bf16 may have the memory of their parameters.
    check("parameters" not in kept or bytes_of(after, "host", "gradient") > 0 or options.get("grad-dtype") == "bf16",
          f"{text}: no gradients on the host")
    on = " and ".join(f"{after[f'{space}_bytes']:,} on the {name}" for space, name in (("host", "host"), ("ssd", "SSD"))
                      if f"{space}_bytes" in after)
    print(f"{text}: equal; arena {before['arena_bytes']:,} becomes {after['arena_bytes']:,} and {on}")
