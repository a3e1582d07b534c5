#!/usr/bin/env python3
"""Executables on meshes that do not divide what they cut: uneven.py GOLDEN WORK [--dropout P] [--vocabulary N] [--batch B] CASE...

A CASE is a strategy as golden.py has them, or MESH:SEED[:SEED...]; a SEED is PATTERN=DIM=AXIS, a dimension (the last
is -1) of every variable or input whose name matches. The runs give the golden losses (with dropout, another vocabulary or batch those of one rank), and checkpoints know nothing of
padding: they are gone on with on one rank, and those of one rank here.
"""
import argparse
import json
import re
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import Golden, check, compile, distance, fresh, ir, ranks_of, strategy, train

parser = argparse.ArgumentParser()
parser.add_argument("golden")
parser.add_argument("work")
parser.add_argument("cases", nargs="+")
parser.add_argument("--dropout")
parser.add_argument("--vocabulary", type=int)
parser.add_argument("--batch", type=int)
args = parser.parse_args()
golden = Golden(args.golden)
fresh(args.work)
config = golden.config
if args.vocabulary:
    config = "config.json"
    json.dump(dict(json.load(open(golden.config)), vocab_size=args.vocabulary), open(config, "w"))
    del golden.run["init"]
STEPS = min(20, len(golden.answers["loss"]) // 2 * 2)
run = dict(golden.run, steps=STEPS)
resumed = {name: value for name, value in run.items() if name != "init"}
want = [{"loss": loss, "grad_norm": norm} for loss, norm in zip(golden.answers["loss"], golden.answers["grad_norm"])]
size = dict(golden.size, dropout=args.dropout, **({"batch": args.batch} if args.batch else {}))
compile(config, "step.mlir", emit="step", **size)
compile(config, "one", **size)
alone = train("./one", 1, save="alone", **run)
if args.dropout or args.vocabulary or args.batch:
    want = alone
given = read_safetensors("alone/latest/model.safetensors")
text = ir("step.mlir")


def sharding(rank, cuts):
    dims = ", ".join("{" + ", ".join(axis for dim, axis in cuts if dim % rank == d) + "}" for d in range(rank))
    return f"dist.seed = #dist.sharding<@mesh, [{dims}]>"


def seeded(seeds):
    """The program with seeds written to its variables and inputs."""
    used = set()

    def cuts_of(name):
        found = [(pattern, int(dim), axis) for pattern, dim, axis in seeds if re.fullmatch(pattern, name)]
        used.update(found)
        return [(dim, axis) for _, dim, axis in found]

    def variable(match):
        cuts = cuts_of(match["name"])
        return f"{match[0]} {{{sharding(match['shape'].count('x'), cuts)}}}" if cuts else match[0]

    def argument(match):
        cuts = cuts_of(match["name"])
        return f"{match[0]}, {sharding(match['shape'].count('x'), cuts)}" if cuts else match[0]

    out = re.sub(r'train\.variable @(?P<name>\S+) : tensor<(?P<shape>[\dx]+)f32>.*', variable, text)
    out = re.sub(r'tensor<(?P<shape>[\dx]+)i32> \{train\.input = "(?P<name>\w+)"', argument, out)
    check(len(used) == len(seeds), f"of {seeds} only {used} match something")
    return out


for case in args.cases:
    mesh, *seeds = case.split(":")
    options = strategy(mesh)
    if seeds:
        open("seeded.mlir", "w").write(seeded([tuple(seed.split("=")) for seed in seeds]))
        compile("seeded.mlir", "exe", mesh=mesh)
    else:
        compile(config, "exe", **dict(size, **options))
    ranks = ranks_of(options["mesh"])
    have = train("./exe", ranks, save="whole", **run)
    loss, norm = distance(have, want[:STEPS]), distance(have, want[:STEPS], "grad_norm")
    print(f"{golden.directory.name} {case}: loss {loss:.1e}, grad_norm {norm:.1e}", end="")
    check(loss <= 1e-5, f"{case}: a loss is off by {loss:.2e}")
    check(norm <= 5e-5, f"{case}: a gradient norm is off by {norm:.2e}")
    # Saved on this mesh, gone on with on one rank, and the other way round.
    train("./exe", ranks, save="half", save_every=STEPS // 2, **run)
    alone = train("./one", 1, resume=f"half/step-{STEPS // 2:08}", **resumed)
    train("./one", 1, save="first", save_every=STEPS // 2, **run)
    again = train("./exe", ranks, resume=f"first/step-{STEPS // 2:08}", **resumed)
    for rows in (alone, again):
        rows = rows[-STEPS // 2:]
        check(distance(rows, want[STEPS // 2:STEPS]) <= 1e-5, f"{case}: resumed on another mesh: {rows}")
    saved = read_safetensors("whole/latest/model.safetensors")
    check({k: v[0] for k, v in saved.items()} == {k: v[0] for k, v in given.items()}, "names or shapes differ")
    print(", resumed both ways")
    sys.stdout.flush()
