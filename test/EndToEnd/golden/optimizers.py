#!/usr/bin/env python3
"""Optimizers as executables show them: states in checkpoints, runs that go on on another mesh, flags: optimizers.py GOLDEN WORK [--all]

Without --all a run goes on from one mesh alone, each optimizer's from another, and some optimizers show their flags."""
import json
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import Golden, call, check, compile, distance, flags, fresh, interpreted, ranks_of, strategy, train

directory = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])
everything = "--all" in sys.argv
MESHES = {"zero": "data=2+zero=1", "tensor": "tensor=2", "pipe": "pipe=2/2", "one": "one"}
STATES = {"adam": ("momentum", "variance"), "lion": ("momentum",), "sgd-nesterov": ("momentum",), "muon": ("momentum", "variance"),
          "normuon": ("momentum", "variance", "row"), "adafactor": ("variance", "row", "column"),
          "schedule-free-adamw": ("variance", "y_minus_x")}
FLAGS = {"adam": {"beta1", "beta2", "eps", "weight-decay"}, "lion": {"beta1", "beta2", "weight-decay"}, "sgd": {"weight-decay"},
         "sgd-momentum": {"momentum", "weight-decay"}, "sgd-nesterov": {"momentum", "weight-decay"},
         "muon": {"momentum", "weight-decay", "beta1", "beta2", "eps"}, "normuon": {"momentum", "weight-decay", "beta1", "beta2", "eps"},
         "adafactor": {"beta2-decay", "eps", "weight-decay"},
         "schedule-free-adamw": {"beta1", "beta2", "eps", "weight-decay", "weight-lr-power"}}
ALL = set().union(*FLAGS.values())


def has_state(name, tensor, state):
    """Hidden matrices have no variance with muon, and rows with normuon. Matrices have rows and columns with adafactor, vectors variances."""
    if name in ("muon", "normuon") and state != "momentum":
        return (state == "row") == ("_proj" in tensor)
    return name != "adafactor" or (state == "variance") == ("norm" in tensor)


def refused(command, *words):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60)
    check(done.returncode == 1 and all(word in done.stderr for word in words),
          f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")


def go_on(name, golden):
    """Each mesh goes on from the checkpoint of the one before, and the file of metrics with it, which in the end has the losses
    of the float64 run."""
    tensors, before = set(read_safetensors(golden.weights)), None
    meshes = MESHES if everything else {exe: MESHES[exe] for exe in (list(MESHES)[list(STATES).index(name) % 3], "one")}
    for step, (exe, text) in enumerate(meshes.items()):
        compile(golden.config, exe, **golden.size, **strategy(text))
        start = {"init": None, "resume": before} if before else {}
        steps = golden.run["steps"] if exe == "one" else step + 1
        before = f"{name}-{exe}"
        have = train(f"./{exe}", ranks_of(strategy(text)["mesh"]), save=before, **dict(golden.run, steps=steps, **start))
        saved = set(read_safetensors(f"{before}/latest/optimizer.safetensors"))
        want = {f"{tensor}.{state}" for tensor in tensors for state in STATES[name] if has_state(name, tensor, state)}
        check(saved == want, f"{name} on {text} saves {sorted(saved)}")
    error = distance(have, [{"loss": loss} for loss in golden.answers["loss"]])
    print(f"{name} on {', '.join(meshes.values())}: loss {error:.1e}", flush=True)
    check(error <= 1e-5, f"a loss is off by {error:.2e}")


def joined(golden):
    """Queries, keys and values that files join, and transpose, have rows in one tensor and columns in three."""
    run, size = dict(golden.data, steps=4, lr=0.01, eps=1e-8, init=golden.weights), dict(golden.size, optimizer="adafactor")
    want = interpreted(golden.config, size, run)
    for before, text in ((None, "data=2+zero=1"), ("half", "tensor=2")):
        compile(golden.config, "exe", **size, **strategy(text))
        start = {"init": None, "resume": before} if before else {"steps": 2}
        have = train("./exe", 2, save="end" if before else "half", **dict(run, **start))
    error = distance(have, want)
    print(f"adafactor on joined tensors: loss {error:.1e}", flush=True)
    check(error <= 1e-5, f"a loss is off by {error:.2e}")
    shapes = {name: shape for name, (shape, _) in read_safetensors("end/latest/optimizer.safetensors").items() if name.startswith("h.0.attn.c_attn.weight.")}
    hidden = json.loads(golden.config.read_text())["n_embd"]
    of = {name.partition("c_attn.weight.")[2]: list(shape) for name, shape in shapes.items()}
    check(of == {"row": [1, 3 * hidden], **{f"column.{part * hidden}": [hidden, 1] for part in range(3)}}, f"the states of c_attn are {of}")


for name in STATES:
    go_on(name, Golden(directory / f"{name}.json"))
joined(Golden(directory.parent.parent / "golden" / "gpt2-tiny"))

# An executable has the flags of its optimizer, with the optimizer's defaults, and no others.
golden = Golden(directory / "lion.json")
run = {**golden.data, "steps": 1}
for name, want in FLAGS.items():
    if not everything and name not in ("lion", "sgd", "sgd-momentum", "muon", "adafactor"):
        continue
    compile(golden.config, name, **dict(golden.size, optimizer=name))
    said = call([f"./{name}", "--help"])
    have = {flag for flag in ALL if f"--{flag} X=" in said}
    check(have == want, f"{name} --help has {have}")
    for flag in (ALL | {"rho"}) - want:
        # One that looks like another is taken for it.
        words = () if flag.startswith("beta2") else (f", {name}, has --", *want)
        refused([f"./{name}", *flags({**run, flag: 0.5})], f"there is no flag --{flag}", *words)
check("--beta2 X=0.99 " in call(["./lion", "--help"]), "the default of --beta2")
refused(["./sgd", *flags({**run, "weight_decay": 0.1})], "--weight-decay is 0.1, but sgd decays no parameters")
call(["./sgd", *flags({**run, "weight_decay": 0})])
refused(["./lion", *flags({**run, "beta2": 1})], "--beta2 is 1", "less than 1")
# A run goes on with the same optimizer alone, even where another has states of the same names.
refused(["./sgd-momentum", *flags({**run, "steps": 6, "resume": "sgd-nesterov-one"})], "--optimizer sgd-nesterov", "compiled for sgd-momentum")
refused(["./lion", *flags({**run, "steps": 6, "resume": "adam-one"})], "--optimizer adam", "compiled for lion")
