"""What the end-to-end tests share: compile, train, and look at what comes out."""
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

from compare import largest

INPUTS = pathlib.Path(__file__).resolve().parent.parent / "Inputs"
ROOT = INPUTS.parent.parent


def fresh(directory):
    """An empty directory to work in."""
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    os.chdir(directory)
    return pathlib.Path(directory)


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


# Seconds until a run is given up for hanging. A GPU's kernels in plain code take long.
TIMEOUT = 600 if os.environ.get("FAKE_GPU_COMPUTES") else 120


def call(command, timeout=TIMEOUT, **more):
    """Runs a command that must succeed; its standard output and errors together."""
    command = [str(word) for word in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, **more)
    check(done.returncode == 0, f"{' '.join(command)}\nexited with {done.returncode}:\n{done.stdout}")
    return done.stdout


def most_resident(command, **more):
    """Runs a command that must succeed. Returns how many bytes its largest process, or one that it started, had in memory at most."""
    measure = "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]); " \
              "print(); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024); sys.exit(done.returncode)"
    # In a process of its own, whose children are this run's alone.
    return int(call([sys.executable, "-c", measure, *command], **more).split()[-1])


def flags(options):
    """{"grad_clip": 0, "shuffle": True} as --grad-clip 0 --shuffle."""
    words = []
    for name, value in options.items():
        name = "--" + name.replace("_", "-")
        words += [] if value is None or value is False else [name] if value is True else [name, str(value)]
    return words


def compile(model, output, **options):
    """Compiles and returns what the compiler says; the mesh "" is one rank."""
    options["mesh"] = options.get("mesh") or None
    return call(["meshwright", "compile", model, "-o", output, *flags(options)])


executables = {}


def built(model, **options):
    """The executable of these options, compiled the first time they are asked for."""
    key = (str(model), *sorted((name, str(value)) for name, value in options.items()))
    if key not in executables:
        executables[key] = f"./built-{len(executables)}"
        compile(model, executables[key], **options)
    return executables[key]


def planned(model, **options):
    """The plan that an executable of these options would have, for which no code is generated."""
    compile(model, "planned.mlir", emit="exec", report="planned", **options)
    return json.load(open("planned/report.json"))


def ir(path):
    """The text of printed IR, each operation on one line: a long line goes on in lines that are indented by four more."""
    lines = []
    for line in pathlib.Path(path).read_text().splitlines():
        indentation = len(line) - len(line.lstrip())
        if lines and indentation == start + 4:
            lines[-1] += " " + line.lstrip()
        else:
            lines.append(line)
            start = indentation
    return "\n".join(lines) + "\n"


def ranks_of(mesh):
    return math.prod(int(size) for size in re.findall(r"[=x](\d+)", mesh))


def strategy(text):
    """What the tests write as MESH[/MICROBATCHES][+FLAG[=VALUE]]..., as the compiler's options: data=2/2+zero=3. The
    mesh `one` is one rank."""
    where, *given = text.split("+")
    mesh, _, microbatches = where.partition("/")
    options = {flag: value or True for flag, _, value in (word.partition("=") for word in given)}
    return dict(options, mesh="" if mesh == "one" else mesh, microbatches=microbatches or 1)


def rows(path):
    """The lines of a metrics file without what depends on the clock."""
    lines = [json.loads(line) for line in open(path)]
    return [{k: v for k, v in line.items() if k not in ("step_ms", "tokens_per_s")} for line in lines]


def train(exe, ranks=1, mpi=False, metrics="metrics.jsonl", **options):
    """Trains with N ranks and returns the metrics' rows."""
    launcher = ["meshwright", "run", *(["--mpi"] if mpi else []), "-n", ranks]
    call([*launcher, exe, *flags(dict(options, metrics=metrics))])
    return rows(metrics)


def interpreted(config, size, run):
    """The metrics' rows of the interpreter, which trains the steps of `config` in float64."""
    compile(config, "step.mlir", emit="step", **size)
    judge = ["meshwright-interpret", "step.mlir", "--train", *flags(run)]
    done = subprocess.run(list(map(str, judge)), capture_output=True, text=True, timeout=600)
    check(done.returncode == 0, done.stderr[:1000])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def check_traffic(exe, trace, steps):
    """Every rank's collectives have sent what the plan says, by kind; at most that where they move slots of rows, or as many
    rounds run as data says."""
    plan = json.loads(call(["meshwright", "inspect", "--json", exe]))
    want, have, slots = {}, {}, set()
    for entry in plan["collectives"]:
        if entry["program"] == "step":
            sent = entry["bytes"] * entry["times"] * steps
            want[entry["op"]] = want.get(entry["op"], 0) + sent
            slots |= {entry["op"]} if "row" in entry or "rounds" in entry else set()
    for event in json.load(open(trace))["traceEvents"]:
        for op, sent in event["args"].get("sent_bytes", {}).items():
            have[op] = have.get(op, 0) + sent
    same = have.keys() == want.keys() and all(have[op] == want[op] or op in slots and have[op] < want[op] for op in want)
    check(same and sum(have.values()) > 0, f"{trace}: ranks sent {have}, planned are {want}")


def changed(source, target, change):
    """Copies weights; `change` returns a tensor's new numbers, by its name and how many there are, or None."""
    data = open(source, "rb").read()
    start = 8 + struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)  # the checksums
    numbers, count = bytearray(data[start:]), 0
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if (values := change(name, (end - begin) // 4)) is not None:
            struct.pack_into(f"<{(end - begin) // 4}f", numbers, begin, *values)
            count += 1
    check(count > 0, f"no tensor of {source} is to be changed")
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(target, "wb").write(struct.pack("<Q", len(text)) + text + numbers)


class Golden:
    """A directory with a config, or a model.mlir, weights and the losses a float64 run had, in golden.json or the file that is named."""

    def __init__(self, path):
        path = pathlib.Path(path).resolve()
        self.directory = path if path.is_dir() else path.parent
        ir = self.directory / "model.mlir"
        self.config = ir if ir.exists() else self.directory / "config.json"
        self.weights = self.directory / "model.safetensors"
        self.gradients = self.directory / "grads0.safetensors"
        self.answers = json.loads((path / "golden.json" if path.is_dir() else path).read_text())
        run = self.answers["run"]
        self.size = {name: run[name] for name in ("batch", "seq", "mlm", "mask_id", "aux_loss", "aux_loss_coef", "aux_scope", "z_loss", "router_bias_rate",
                                                       "optimizer_groups", "source_seq", "muon_scale", "muon_coefficients")
                     if name in run}
        if run["optimizer"] != "adamw":
            self.size["optimizer"] = run["optimizer"]
        files = ("data", "documents", "source", "source_documents")
        self.data = {name: self.directory.parent / run[name] for name in files if name in run} | {"tokens": run["tokens"]}
        names = ("steps", "lr", "warmup", "weight_lr_power", "weight_decay", "beta1", "beta2", "beta2_decay", "eps", "momentum", "ema_decay", "grad_clip")
        self.run = dict(self.data, init=self.weights, **{name: run[name] for name in names if name in run})


def most(report, *categories, program=0):
    """The most bytes that a step holds of these categories together, at whichever op; at the peak it may be fewer."""
    over_time = next(entry for entry in report["memory_over_time"] if entry["in"] == program and entry["program"] == "step")
    return max(sum(point.get(category, 0) for category in categories) for point in over_time["points"])


def distance(have, want, key="loss"):
    """The largest relative difference of two runs."""
    check(len(have) == len(want) > 0, f"{len(have)} steps, expected {len(want)}")
    # A step that masks no token has no loss.
    return largest(0 if a[key] == b[key] else abs(a[key] - b[key]) / abs(b[key]) for a, b in zip(have, want))


def arena_printed(text):
    """The bytes in a line of the compiler or of a run."""
    found = re.search(r"arena (?:up to )?([\d,]+) bytes", text)
    check(found, f"no arena in: {text}")
    return int(found[1].replace(",", ""))
