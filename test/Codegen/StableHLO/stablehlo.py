#!/usr/bin/env python3
"""Hands what --target stablehlo writes to XLA's CPU compiler, which shares no code with Meshwright, and holds its losses,
norms and gradients to a golden run.

  stablehlo.py GOLDEN WORK STAGE MESH...    STAGE: step (one device), dist (XLA partitions by our shardings)
                                            or local (our partitioned program, a replica a device)

Needs jaxlib.
"""
import json
import math
import os
import re
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "../..", folder) for folder in ("EndToEnd", "Golden")]
from harness import Golden, call, check, compile, flags, fresh, ranks_of, strategy
from masks import masked

try:
    import jax
    import numpy
    from jax._src import xla_bridge
    from jax._src.lib import xla_client
    from jax.sharding import NamedSharding, PartitionSpec
except ImportError:
    sys.exit("jaxlib is not installed: pip install jax")

BATCH_AXES = ("replica", "data", "expert")


def read_tensors(path):
    """The tensors of a safetensors file in f32, without the model's prefix."""
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name.removeprefix("transformer."): numpy.frombuffer(
        data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]], numpy.float32)
        .reshape(entry["shape"]) for name, entry in header.items()}


class Value:
    """A tensor with a sharding: whole, or for part() what a device has of it."""

    def __init__(self, text):
        found = (re.search(r"dist.global = (tensor<.*)", text) or re.search(r": (tensor<.*)", text))[1]
        self.shape = [int(size) for size in re.match(r"tensor<((?:\d+x)*)", found)[1].split("x")[:-1]]
        sharding = re.match(r"tensor<[\dx]*\w+, #dist.sharding<@mesh, \[(.*?)\]", found)
        self.axes = re.findall(r"{(.*?)}", sharding[1]) if sharding else [""] * len(self.shape)

    def part(self, value, coordinates):
        """What the device at `coordinates`, (place, size) by axis, has of it."""
        for dim, axes in enumerate(self.axes):
            place, parts = 0, 1
            for axis in filter(None, axes.split(", ")):
                place, parts = place * coordinates[axis][1] + coordinates[axis][0], parts * coordinates[axis][1]
            value = numpy.split(value, parts, dim)[place]
        return numpy.ascontiguousarray(value)


class Variable(Value):
    """One `train.variable`, from the comment that shows it."""

    def __init__(self, text):
        super().__init__(text)
        self.name = re.search(r"train.variable @([\w.]+)", text)[1]
        self.state = re.search(r'state "(\w+)"', text)
        self.stacked = " stacked " in text
        storage = re.search(r'storage <"([^"]+)"(.*?)>', text)
        # A tensor with the variable's name is not named again.
        self.file = storage[1].removeprefix("transformer.") if storage else self.name
        text = storage[2] if storage else ""
        options = dict(re.findall(r"(\w+) = (\w+)", text))
        runs = list(map(int, re.findall(r"\d+", (re.search(r"runs = \[(.*)\]", text) or "  ")[1])))
        self.period = int(options.get("period", 0))
        self.pattern = [begin + step * i for begin, count, step in zip(runs[::3], runs[1::3], runs[2::3]) for i in range(count)]
        self.transpose, self.dim = "transpose" in options, int(options.get("dim", 0))
        self.begin = int(options.get("offset", 0)) if "full" in options else None

    def rows(self, size):
        """Where the first `size` rows lie, from the first one on."""
        if not self.period:
            return range(size)
        return [i // len(self.pattern) * self.period + self.pattern[i % len(self.pattern)] for i in range(size)]

    def of_tensor(self, part, shape):
        """What a variable of `shape` is of a file's tensor."""
        if self.begin is not None:
            stored = shape[:-2] + shape[:-3:-1] if self.transpose else shape
            part = part.take([self.begin + row for row in self.rows(stored[self.dim])], self.dim)
        return part.swapaxes(-1, -2) if self.transpose else part

    def of_file(self, tensors):
        """The variable's value from tensors as files have them."""
        shape, rows = self.shape[1:] if self.stacked else self.shape, []
        for layer in range(self.shape[0]) if self.stacked else [0]:
            name = re.sub(r"\{layer\+?(\d*)\}", lambda first: str(layer + int(first[1] or 0)), self.file)
            if "{expert}" in name:
                rows.append(numpy.stack([self.of_tensor(tensors[name.replace("{expert}", str(expert))], shape[1:])
                                         for expert in range(shape[0])]))
            else:
                rows.append(self.of_tensor(tensors[name], shape))
        return numpy.stack(rows) if self.stacked else rows[0]


class Program:
    """The text, compiled by XLA, with its arguments by name."""

    def __init__(self, path, stage, mesh):
        text = open(path).read()
        self.arguments = re.findall(r"^// argument \d+: (.*)$", text, re.M)
        self.results = re.findall(r"^// result \d+: (.*)$", text, re.M)
        self.variables = [Variable(line) for line in self.arguments if line.startswith("train.variable")]
        inputs = [line.removeprefix("input ") for line in self.arguments[len(self.variables):]]
        self.inputs = {line.split(" ")[0]: Value(line) for line in inputs}
        self.outputs = [line.split(" ")[1] for line in self.results[len(self.variables):]]
        self.axes = [(axis, int(size)) for axis, size in re.findall(r"(\w+)=(\d+)", mesh)]
        self.ranks, self.replicas = ranks_of(mesh), stage == "local"
        count = self.ranks if stage != "step" else 1
        options = xla_client.CompileOptions()
        options.num_replicas, options.num_partitions = (count, 1) if self.replicas else (1, count)
        options.device_assignment = xla_client.DeviceAssignment.create(
            numpy.arange(count).reshape(options.num_replicas, options.num_partitions))
        if not self.replicas and count > 1:
            options.executable_build_options.use_spmd_partitioning = True
            options.executable_build_options.use_shardy_partitioner = True
        backend = xla_bridge.get_backend("cpu")
        self.devices = backend.devices()[:count]
        self.executable = backend.compile_and_load(text, xla_client.DeviceList(tuple(self.devices)), options)

    def coordinates(self, rank):
        found = {}
        for axis, size in reversed(self.axes):
            found[axis] = (rank % size, size)
            rank //= size
        return found

    def place(self, parts):
        """One array a device as the executable takes them."""
        mesh = jax.sharding.Mesh(numpy.array(self.devices), ("device",))
        shape = parts[0].shape
        spec = PartitionSpec("device") if shape else PartitionSpec()
        whole = (shape[0] * len(parts), *shape[1:]) if shape else shape
        buffers = [jax.device_put(part, device) for part, device in zip(parts, self.devices)]
        return jax.make_array_from_single_device_arrays(whole, NamedSharding(mesh, spec), buffers)

    def run(self, arguments):
        """Results as one list of parts each, of arguments like that."""
        results = self.executable.execute_sharded([self.place(parts) for parts in arguments])
        return [[numpy.asarray(part) for part in shards] for shards in results.disassemble_into_single_device_arrays()]


class Run:
    """Steps of a program; state and inputs are global tensors outside, parts inside."""

    def __init__(self, program, tensors):
        self.program = program
        self.state = [self.parts(variable, numpy.zeros(variable.shape, numpy.float32) if variable.state
                                 else variable.of_file(tensors)) for variable in program.variables]

    def parts(self, variable, value):
        """What each device has of it."""
        program = self.program
        return [variable.part(value, program.coordinates(rank)) for rank in range(len(program.devices))]

    def step(self, tokens, targets, scalars, positions=None):
        """`tokens`: [microbatches, sequences, length]; the outputs by name."""
        program, inputs = self.program, []
        scalars = dict(scalars, target_weight=1 / (targets >= 0).sum())
        by_token = {"tokens": tokens, "targets": targets, "positions": positions}
        for name, where in program.inputs.items():
            if name not in by_token:
                inputs.append([numpy.float32(scalars[name])] * len(program.devices))
                continue
            value = by_token[name]
            if program.replicas:  # Its type is that of a part.
                where.axes = ["", ", ".join(axis for axis, _ in program.axes if axis in BATCH_AXES), ""]
            inputs.append(self.parts(where, value))
        results = program.run(self.state + inputs)
        self.state = results[:len(program.variables)]
        return {name: float(parts[0]) for name, parts in zip(program.outputs, results[len(program.variables):])}


def batches(golden, step, microbatches, data_ranks):
    """Tokens and targets of a step as DataOrder has them: [M, B/M, S], data ranks contiguous."""
    run = golden.answers["run"]
    stream = numpy.frombuffer(golden.data["data"].read_bytes(), numpy.uint8).astype(numpy.int32)
    batch, length = run["batch"], run["seq"]
    count = (len(stream) - 1) // length
    rows = [(step * batch + i) % count for i in range(batch)]
    def rows_from(shift):
        return [stream[row * length + shift:row * length + shift + length] for row in rows]

    def shaped(rows):
        whole = numpy.array(rows, numpy.int32)
        split = whole.reshape(data_ranks, microbatches, batch // data_ranks // microbatches, length)
        return numpy.ascontiguousarray(split.transpose(1, 0, 2, 3).reshape(microbatches, -1, length))
    if "mlm" in run:
        vocabulary = json.loads(golden.config.read_text())["vocab_size"]
        rows = masked([row.tolist() for row in rows_from(0)], run["mlm"], run["mask_id"], vocabulary, step)
    else:
        rows = rows_from(0), rows_from(1)
    return tuple(map(shaped, rows))


def judge(golden, stage, text):
    options = strategy(text)
    mesh, microbatches = options["mesh"], int(options["microbatches"])
    data_ranks = math.prod(int(size) for axis, size in re.findall(r"(\w+)=(\d+)", mesh) if axis in BATCH_AXES)
    shared = dict(golden.size, target="stablehlo", emit=stage, **options)
    tensors = read_tensors(golden.weights)
    run = golden.answers["run"]

    compile(golden.config, "adamw.mlir", **shared)
    training = Run(Program("adamw.mlir", stage, mesh), tensors)
    worst = {"loss": 0, "grad_norm": 0}
    for step in range(run["steps"]):
        scalars = dict(run, **{f"bias_correction{i}": 1 - run[f"beta{i}"] ** (step + 1) for i in (1, 2)})
        outputs = training.step(*batches(golden, step, microbatches, data_ranks), scalars)
        for name in worst:
            want = golden.answers[name][step]
            worst[name] = max(worst[name], abs(outputs[name] - want) / abs(want))

    compile(golden.config, "sgd.mlir", optimizer="sgd", **shared)
    program = Program("sgd.mlir", stage, mesh)
    one = Run(program, tensors)
    before, lr = one.state, 100.0
    one.step(*batches(golden, 0, microbatches, data_ranks), {"lr": lr, "grad_clip": 0})
    # By tensors of files, as some parts of them have no gradient but rounding errors.
    wanted, sums = read_tensors(golden.gradients), {}
    for variable, old, new in zip(program.variables, before, one.state):
        if variable.state:  # counts of experts' tokens, which have no gradient
            continue
        want = one.parts(variable, variable.of_file(wanted))
        off, scale = sums.get(variable.file, (0, 0))
        off += sum(float((((a - b) / lr - c) ** 2).sum()) for a, b, c in zip(old, new, want))
        sums[variable.file] = off, scale + sum(float((part ** 2).sum()) for part in want)
    # A gradient that is but the rounding error of a float64 run is none.
    most = max(scale for _, scale in sums.values())
    error = max(math.sqrt(off / (scale if scale > 1e-28 * most else most)) for off, scale in sums.values())
    print(f"{stage} {text}: loss {worst['loss']:.1e}, grad_norm {worst['grad_norm']:.1e}, gradients {error:.1e}", flush=True)
    check(worst["loss"] <= 1e-5 and worst["grad_norm"] <= 5e-5 and error <= 1e-4, f"{stage} {text}")


END = 32  # A blank: documents are words.


def judge_packed(golden, stage, text):
    """Losses of packed documents are those of the interpreter in float64."""
    options = strategy(text)
    run, steps = golden.answers["run"], 3
    compile(golden.config, "step.mlir", emit="step", packed=True, **golden.size)
    given = dict(golden.run, steps=steps, documents=END)
    said = call(["meshwright-interpret", "step.mlir", "--train", *flags(given)])
    want = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    compile(golden.config, "packed.mlir", **dict(golden.size, target="stablehlo", emit=stage, **options))
    training, worst = Run(Program("packed.mlir", stage, options["mesh"]), read_tensors(golden.weights)), 0
    for step in range(steps):
        tokens, targets = batches(golden, step, 1, 1)
        positions = numpy.zeros_like(tokens)
        for i in range(1, tokens.shape[2]):
            positions[:, :, i] = numpy.where(tokens[:, :, i - 1] == END, 0, positions[:, :, i - 1] + 1)
        targets = numpy.where(tokens == END, -1, targets).astype(numpy.int32)
        scalars = dict(run, **{f"bias_correction{i}": 1 - run[f"beta{i}"] ** (step + 1) for i in (1, 2)})
        outputs = training.step(tokens, targets, scalars, positions)
        worst = max([worst, *(abs(outputs[name] - want[step][name]) / want[step][name] for name in ("loss", "grad_norm"))])
    print(f"{stage} {text}: {worst:.1e}", flush=True)
    check(worst <= 5e-5, f"{stage} {text}")


def main():
    golden = Golden(sys.argv[1])
    fresh(sys.argv[2])
    for text in sys.argv[4:]:
        (judge_packed if "+packed" in text else judge)(golden, sys.argv[3], text)


main()
