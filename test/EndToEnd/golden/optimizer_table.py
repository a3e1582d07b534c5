#!/usr/bin/env python3
"""Prints the table of docs/optimizers.md: the largest relative error of five losses of each optimizer's golden run, in the float64 interpreter and in
executables on meshes: optimizer_table.py INPUTS WORK [OPTIMIZER...]

The first column is against the published implementation in float64; those behind it are f32 against the same run, `expert 2` of a model with experts
against the interpreter, and bf16 on one rank.
"""
import json
import pathlib
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, check, compile, distance, fresh, interpreted, ranks_of, strategy, train

MESHES = {"zero 1": "data=2+zero=1", "zero 3": "data=2+zero=3", "tensor 2": "tensor=2", "pipe 2": "pipe=2/2", "bf16": "one+precision=bf16"}
ROWS = {"adamw": "golden.json", "adam": "adam.json", "lion": "lion.json", "sgd-momentum": "sgd-momentum.json", "sgd-nesterov": "sgd-nesterov.json",
        "muon": "muon.json", "muon, keller, polar-express": "muon-keller.json",
        "normuon": "normuon.json", "adafactor": "adafactor.json", "adafactor-scaled": "adafactor-scaled.json", "schedule-free-adamw": "schedule-free-adamw.json",
        "adamw-8bit": "../../golden/llama-tiny/adamw-8bit.json"}


def executed(config, size, item, run):
    options = dict(size, **strategy(item))
    compile(config, "exe", **options)
    return train("./exe", ranks_of(options["mesh"]), **run)


inputs = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])
columns = ["error", "zero 1", "zero 3", "tensor 2", "pipe 2", "expert 2", "bf16"]
print("| optimizer | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
for row, file in ROWS.items():
    if sys.argv[3:] and row not in sys.argv[3:]:
        continue
    golden = Golden((inputs / "llama-v5" / file).resolve())
    want = [{"loss": loss} for loss in golden.answers["loss"]]
    errors = {"error": distance(interpreted(golden.config, golden.size, golden.run), want)}
    for column, item in MESHES.items():
        errors[column] = distance(executed(golden.config, golden.size, item, golden.run), want)
    experts = Golden(inputs / "mixtral-one")
    size = dict(experts.size, **{name: value for name, value in golden.size.items() if name not in ("batch", "seq")})
    run = dict({name: value for name, value in golden.run.items() if name != "eps"}, **experts.data, init=experts.weights)
    if row == "adamw-8bit":  # Experts' matrices are to be large enough for codes.
        config = pathlib.Path("experts.json").resolve()
        config.write_text(json.dumps({**json.loads(experts.config.read_text()), "hidden_size": 64, "intermediate_size": 64}))
        run["init"] = None
    else:
        config = experts.config
    if "eps" in golden.run:
        run["eps"] = 1e-8 if "adafactor" in row else 1e-4  # Steps of gradients that are but rounding errors are not whole ones.
    errors["expert 2"] = distance(executed(config, size, "expert=2", run), interpreted(config, size, run))
    print(f"| {row} | " + " | ".join(f"{errors[column]:.0e}" for column in columns) + " |", flush=True)
    check(errors.pop("error") <= 1e-12 and errors.pop("bf16") <= 2e-2 and max(errors.values()) <= 1e-5, f"{row} is off: {errors}")
