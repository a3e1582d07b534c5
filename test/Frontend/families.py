#!/usr/bin/env python3
"""Random small models of every family against transformers: families.py WORK FIRST COUNT [FAMILY...]

With the environment of test/Golden/generate.py (so by hand, not by ./check), and meshwright on the PATH. For seeds FIRST ..
FIRST+COUNT-1 of each family: transformers makes a golden run in float64, and the table says how far from it are
  import      the losses and gradients of the imported module, interpreted in float64
  tensor, zero3, pipe   the losses and norms of executables on tensor=2 with sequence parallelism, on data=2 with ZeRO 3, and
              in a pipeline of two
  reload      the loss that transformers computes with what the executable saved
  cuda        whether it compiles for GPUs
WRONG is more than golden runs allow, with the reason and the configuration below. About one random model in a hundred, with
norms after its layers' parts, turns roundings to 32 bits into the fourth digit of a gradient's norm: then losses agree, and so
does the import.
"""
import contextlib
import io
import json
import pathlib
import random
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / folder) for folder in ("EndToEnd", "EndToEnd/strategies", "Golden")]
import generate
import golden
import loads
from harness import Golden, call, compile, flags, fresh
from random_configs import APART, FAMILIES, RECURRENT, random_config, task_of

STRATEGIES = {"tensor": "tensor=2+sequence-parallel", "zero3": "data=2+zero=3", "pipe": "pipe=2/2"}


def interpret(model):
    """The import interpreted in float64 against the golden run: 1e-12 of losses, 1e-6 of gradients, which are files of f32."""
    # transformers' bloom has constants of nine digits in its activation.
    tolerance = "1e-8" if json.load(open(model.config))["model_type"] == "bloom" else "1e-12"
    compile(model.config, "train.mlir", emit="train", **model.size)
    call(["meshwright-opt", "train.mlir", "--train-autodiff", "--train-accumulate", "--train-build-optimizer", "-o", "step.mlir"])
    return call(["meshwright-interpret", "step.mlir", "--expect", model.directory / "golden.json", "--tolerance", tolerance,
                 "--expect-gradients", model.gradients, "--gradients-tolerance", "1e-6", "--train", *flags(model.run)])


def parts_of(model):
    """What the table has in a row, by column."""
    def mesh(name):
        if name == "pipe" and layers_of(model) < 2:
            return "-"
        errors = golden.compare(model, STRATEGIES[name])
        return f"{errors['loss']:.0e} {errors['grad_norm']:.0e}"

    def reload():
        # transformers wants rows for longcat_flash's experts without matrices, which no release has.
        if json.load(open(model.config))["model_type"] in {*generate.remote.JUDGES, "longcat_flash"}:
            return "-"
        with contextlib.redirect_stdout(io.StringIO()) as said:
            good = loads.load(model.directory.name, pathlib.Path.cwd())
        if not good:
            sys.exit(said.getvalue())
        return said.getvalue().split()[2]

    def cuda():
        compile(model.config, "gpu", target="cuda", gpu_arch="sm_90", **model.size)
        return "yes"

    return {"import": lambda: interpret(model) and "yes", "tensor": lambda: mesh("tensor"), "zero3": lambda: mesh("zero3"),
            "pipe": lambda: mesh("pipe"), "reload": reload, "cuda": cuda}


def layers_of(model):
    config = json.load(open(model.config))
    return next(config[key] for key in ("n_layer", "n_layers", "num_layers", "num_hidden_layers") if config.get(key))


def try_seed(family, seed):
    """One row; true if all is as it must be."""
    pick = random.Random(f"{family} {seed}").choice
    name = f"{family}-{seed}"
    # With this eps AdamW does not make whole steps of gradients that are but rounding errors.
    config = random_config(pick, family)
    spec = {"config": config, "run": {"batch": 4, "seq": pick([8, 16, 33, 48]), "eps": 1e-4, **task_of(config)},
            "saved": family != "minicpm" and family not in generate.remote.JUDGES and pick([True, False])}  # As transformers writes it, with every key.
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            generate.generate(name, spec, seed)
    except Exception as error:
        print(f"{name:16} transformers refuses {json.dumps(spec)}: {error!r}", flush=True)
        return False
    model = Golden(generate.OUT / name)
    row, faults = [], []
    for column, part in parts_of(model).items():
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                row.append(part())
        except (SystemExit, Exception) as error:
            row.append("WRONG")
            faults.append(f"  {column}: {error}")
    print(f"{name:16}", *(f"{cell:12}" for cell in row), flush=True)
    if faults:
        print(f"  {json.dumps(spec)}", *faults, sep="\n", flush=True)
    return not faults


def main():
    work = pathlib.Path(sys.argv[1]).resolve()
    first, count = int(sys.argv[2]), int(sys.argv[3])
    corpus, generate.OUT = generate.OUT / "corpus.txt", fresh(work) / "golden"
    generate.OUT.mkdir()
    shutil.copy(corpus, generate.OUT)
    print(f"{'':16}", *(f"{column:12}" for column in ("import", *STRATEGIES, "reload", "cuda")))
    bad = [f"{family}-{seed}" for family in sys.argv[4:] or [*FAMILIES, *RECURRENT, *APART] for seed in range(first, first + count)
           if not try_seed(family, seed)]
    sys.exit(f"wrong: {' '.join(bad)}" if bad else 0)


if __name__ == "__main__":
    main()
