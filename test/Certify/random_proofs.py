#!/usr/bin/env python3
"""Which random models with random strategies have a proof: programs of the ranks at phase schedule, as executables
are lowered from. EndToEnd/strategies/random_strategies.py runs the same seeds, so that what is refused here is right.

  random_proofs.py WORK FIRST COUNT [-j N] [--at-most N]

Says why the others have none, and fails if they are more than N.
"""
import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys

sys.path += [sys.path[0] + "/../EndToEnd", sys.path[0] + "/../EndToEnd/strategies"]
from harness import flags, fresh
from random_flags import draw
from random_strategies import DOCUMENTED, OF_PLANS, random_model


def certify(task):
    """A seed, and proved, or why not; none if the compiler refuses its flags."""
    seed, work = task
    os.chdir(fresh(work / f"worker-{os.getpid()}"))
    d = draw(seed, "cpu")
    json.dump(random_model(d), open("config.json", "w"))
    options = {name: value for name, value in d.items() if value is not None and name not in ("recipe", "emit", *OF_PLANS)}
    if options.get("remat", "").startswith("auto"):  # Which needs a limit, and that another compilation.
        options["remat"] = "full"
    # Programs of a parameter server are proved before they are split into stages.
    phase = "=local" if options.get("data-sync") == "parameter-server" else ""
    words = ["meshwright", "compile", "config.json", *flags(options), f"--certify{phase}"]
    done = subprocess.run([*words, "--emit", "schedule", "-o", "/dev/null"], capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode == 0:
        return seed, "proved", ""
    if reason := re.search(r"not proved: (.*)", said):
        return seed, "not proved", reason[1]
    error = re.search(r"error: (.*)", said)
    if error and any(re.search(message, error[1]) for message in DOCUMENTED.values()):
        return seed, "refused", ""
    return seed, "WRONG", f"{error[1] if error else said[-300:]} {' '.join(words)}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("-j", type=int, default=1, dest="workers")
    parser.add_argument("--at-most", type=int, default=0)
    arguments = parser.parse_args()
    work = fresh(arguments.work.resolve())
    counts, reasons = collections.Counter(), collections.defaultdict(list)
    tasks = [(seed, work) for seed in range(arguments.first, arguments.first + arguments.count)]
    with multiprocessing.Pool(arguments.workers) as pool:
        for seed, kind, reason in pool.imap_unordered(certify, tasks):
            counts[kind] += 1
            if reason:
                reasons[f"{kind}: " + re.sub(r"\d+", "N", re.sub(r"\{[^}]*\}", "{..}", reason)) if kind != "WRONG" else f"{kind}: {reason}"].append(seed)
    for reason, seeds in sorted(reasons.items(), key=lambda entry: -len(entry[1])):
        print(f"{len(seeds)} x {reason} (seeds {', '.join(map(str, sorted(seeds)[:5]))})")
    print(f"{arguments.count} seeds: {counts['proved']} proved, {counts['not proved']} not, {counts['refused']} refused by the compiler, {counts['WRONG']} wrong")
    sys.exit(counts["WRONG"] > 0 or counts["not proved"] > arguments.at_most)


if __name__ == "__main__":
    main()
