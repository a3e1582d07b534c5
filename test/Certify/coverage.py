#!/usr/bin/env python3
"""Prints which golden models are proved (`meshwright compile --certify`) under which strategies.

  coverage.py WORK [--every N] [--models A,B] [--strategies A,B] [--at-least N] [--at-most N] [--reasons] [-j N]

The models are those of test/Golden/models.json, and of shared/golden where that folder is beside the
repository. --every N takes each Nth model. The first table has a row for each strategy: models proved, models not
proved, and models that the compiler refuses with it, such as a mesh axis `expert` for models without experts. The
second one has a row for each reason for which programs are not proved, most frequent first, with an example.
--at-least N fails if fewer programs are proved, --at-most N if more are not. --reasons prints each program that is not proved with its reason.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRATEGIES = {
    "one rank": "",
    "data": "--mesh data=2",
    "data zero1 mb2": "--mesh data=4 --zero 1 --microbatches 2",
    "data zero2": "--mesh data=4 --zero 2",
    "data zero3": "--mesh data=4 --zero 3",
    "hybrid zero3 bf16": "--mesh replica=2,data=2 --zero 3 --precision bf16",
    "muon zero1": "--mesh data=2 --zero 1 --optimizer muon",
    "tensor": "--mesh tensor=2",
    "tensor sequence": "--mesh tensor=2 --sequence-parallel",
    "tensor 4": "--mesh tensor=4",
    "data tensor zero1": "--mesh data=2,tensor=2 --sequence-parallel --zero 1 --microbatches 2",
    "tensor 2d": "--mesh tensor=2x2 --tensor-2d",
    "tensor padded": "--mesh tensor=3",
    "loss parts": "--mesh tensor=2 --loss-parts 2",
    "dropout": "--mesh data=2,tensor=2 --sequence-parallel --dropout 0.1",
    "context ring": "--mesh data=2,context=2 --context-parallel ring",
    "context ulysses": "--mesh data=2,context=2 --context-parallel ulysses --zero 1",
    "context gather": "--mesh data=2,context=2 --context-parallel gather",
    "context striped": "--mesh context=4 --context-balance striped",
    "expert": "--mesh data=2,expert=2 --zero 1",
    "expert tensor": "--mesh expert=2,tensor=2 --sequence-parallel",
    "pipeline": "--mesh pipe=2,data=2 --microbatches 4 --zero 1",
    "pipeline tensor": "--mesh pipe=2,tensor=2 --microbatches 4 --sequence-parallel",
    "pipeline zb-h1": "--mesh pipe=2,data=2 --microbatches 4 --schedule zb-h1",
    "recomputed": "--mesh data=2 --zero 1 --remat full",
    "recomputed groups": "--mesh data=2,tensor=2 --sequence-parallel --remat every:2",
    "products in steps": "--mesh data=2,tensor=2 --sequence-parallel --zero 1 --collective-matmul on",
    "parameter server": "--mesh data=2 --data-sync parameter-server",
}


def models(work):
    """Configs by name."""
    found = {}
    for name, model in json.loads((ROOT / "test/Golden/models.json").read_text()).items():
        path = work / name / "config.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(model["config"]))
        found[name] = (path, model["run"])
    for path in sorted((ROOT.parent / "shared/golden").glob("*/config.json")):
        found.setdefault("shared/" + path.parent.name, (path, {}))
    return found


def generic(reason):
    """The reason without names and numbers."""
    reason = re.sub(r"@[\w.]+", "@NAME", reason)
    reason = re.sub(r"tensor<[^ ]*>|'[^']*'", "T", reason)
    reason = re.sub(r"\b\d+(x\d+)+\b|\?x[\dx?]+|-?\b\d+\b", "N", reason)
    return re.sub(r"\{[^{}]*\}", "{..}", reason)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--models", default="")
    parser.add_argument("--strategies", default="")
    parser.add_argument("--at-least", type=int, default=0)
    parser.add_argument("--at-most", type=int, default=None)
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("-j", type=int, default=2)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    found = models(args.work)
    names = args.models.split(",") if args.models else list(found)[:: args.every]
    strategies = args.strategies.split(",") if args.strategies else list(STRATEGIES)

    def judge(entry):
        strategy, name = entry
        path, run = found[name]
        sizes = ["--batch", "8", "--seq", str(run.get("seq", 16) // 4 * 4)]
        for flag in ("mlm", "mask_id", "aux_scope", "z_loss", "aux_loss", "aux_loss_coef", "router_bias_rate"):
            if flag in run:
                sizes += ["--" + flag.replace("_", "-"), str(run[flag])]
        flags = STRATEGIES[strategy].split()
        done = subprocess.run(["meshwright", "compile", path, *flags, *sizes, "--certify", "--emit", "schedule", "-o", "/dev/null"],
                              capture_output=True, text=True)
        if done.returncode == 0 and "proved: on mesh" in done.stdout:
            return "proved", ""
        reason = done.stderr.splitlines()[-1:] or [f"ended with {done.returncode}"]
        for line in done.stderr.splitlines():
            if "not proved: " in line:
                return "not proved", line[line.index("not proved: ") + len("not proved: ") :]
        if done.returncode not in (0, 1):
            return "failed", f"status {done.returncode}: {reason[0]}"
        return "refused", reason[0]

    entries = [(strategy, name) for strategy in strategies for name in names]
    counts = {strategy: collections.Counter() for strategy in strategies}
    reasons = collections.defaultdict(list)
    broken = 0
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        for (strategy, name), (verdict, reason) in zip(entries, pool.map(judge, entries)):
            counts[strategy][verdict] += 1
            if verdict == "not proved":
                reasons[generic(reason)].append((strategy, name))
            if verdict == "failed":
                broken += 1
                print(f"FAIL {strategy}, {name}: {reason}")
            if args.reasons and verdict != "proved":
                print(f"{verdict}: {strategy}, {name}: {reason}")
    print(f"{'strategy':20} {'proved':>7} {'not':>5} {'refused':>8}   flags")
    for strategy, count in counts.items():
        print(f"{strategy:20} {count['proved']:7} {count['not proved']:5} {count['refused']:8}   {STRATEGIES[strategy]}")
    proved, others = (sum(c[v] for c in counts.values()) for v in ("proved", "not proved"))
    print(f"{'all':20} {proved:7} {others:5} {sum(c['refused'] for c in counts.values()):8}   of {len(names)} models")
    for reason, programs in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(programs):5}  {reason[:200]}  (e.g. {programs[0][0]}, {programs[0][1]})")
    if proved < args.at_least or broken:
        sys.exit(f"FAIL {proved} programs are proved, fewer than {args.at_least}, or {broken} compiles failed")
    if args.at_most is not None and others > args.at_most:
        sys.exit(f"FAIL {others} programs are not proved, more than {args.at_most}")


if __name__ == "__main__":
    main()
