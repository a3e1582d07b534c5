#!/usr/bin/env python3
"""Hands what --target stablehlo writes to XLA's CPU compiler, which shares no code with Meshwright, and holds its losses,
norms and gradients to a golden run.

  stablehlo.py GOLDEN WORK STAGE MESH...    STAGE: step (one device), dist (XLA partitions by our shardings)
                                            or local (our partitioned program, a replica a device)

Needs jaxlib; prints `jaxlib is not installed` and ends with 77 where it is missing.
"""
import json
import math
import os
import re
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

from harness import Golden, check, compile, fresh, ranks_of, strategy

try:
    import jax
    import numpy
    from jax._src import xla_bridge
    from jax._src.lib import xla_client
    from jax.sharding import NamedSharding, PartitionSpec
except ImportError:
    print("jaxlib is not installed")
    sys.exit(77)

NUMBERS = {"f32": numpy.float32, "i32": numpy.int32}


def read_tensors(path):
    """The tensors of a safetensors file in f32, without the model's prefix."""
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name.removeprefix("transformer."): numpy.frombuffer(
        data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]], numpy.float32)
        .reshape(entry["shape"]) for name, entry in header.items()}


class Variable:
    """One `train.variable`, from the comment that shows it."""

    def __init__(self, text):
        self.name, shape = re.search(r"train.variable @([\w.]+) : tensor<((?:\d+x)*)f32", text).groups()
        self.local = [int(size) for size in shape.split("x")[:-1]]
        found = re.search(r"dist.global = tensor<((?:\d+x)*)f32, #dist.sharding<@mesh, \[(.*?)\]", text)
        self.shape = [int(size) for size in found[1].split("x")[:-1]] if found else self.local
        self.axes = re.findall(r"{(.*?)}", found[2]) if found else [""] * len(self.shape)
        self.state = re.search(r'state "(\w+)"', text)
        self.stacked = " stacked " in text
        storage = re.search(r'storage <"([^"]+)"(.*?)>', text)
        self.file = storage[1].removeprefix("transformer.")
        options = dict(re.findall(r"(\w+) = (\w+)", storage[2]))
        self.transpose, self.dim = "transpose" in options, int(options.get("dim", 0))
        self.begin = int(options.get("begin", 0)) if "full" in options else None

    def of_file(self, tensors):
        """The variable's value from tensors as files have them."""
        layers = range(self.shape[0]) if self.stacked else [0]
        rows = []
        for layer in layers:
            part = tensors[self.file.replace("{layer}", str(layer))]
            shape = self.shape[1:] if self.stacked else self.shape
            if self.begin is not None:
                size = (shape[::-1] if self.transpose else shape)[self.dim]
                part = part.take(range(self.begin, self.begin + size), self.dim)
            rows.append(part.T if self.transpose else part)
        return numpy.stack(rows) if self.stacked else rows[0]

    def part(self, value, coordinates):
        """What the device at `coordinates`, (place, size) by axis, has of it."""
        for dim, axes in enumerate(self.axes):
            place, parts = 0, 1
            for axis in filter(None, axes.split(", ")):
                place, parts = place * coordinates[axis][1] + coordinates[axis][0], parts * coordinates[axis][1]
            value = numpy.split(value, parts, dim)[place]
        return value


class Program:
    """The text, compiled by XLA, with its arguments by name."""

    def __init__(self, path, stage, mesh):
        text = open(path).read()
        self.arguments = re.findall(r"^// argument \d+: (.*)$", text, re.M)
        self.results = re.findall(r"^// result \d+: (.*)$", text, re.M)
        self.variables = [Variable(line) for line in self.arguments if line.startswith("train.variable")]
        self.inputs = [line.removeprefix("input ") for line in self.arguments[len(self.variables):]]
        self.outputs = [line.removeprefix("output ") for line in self.results[len(self.variables):]]
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
        self.shardings = None if self.replicas or count == 1 else self.executable.get_parameter_shardings()

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
        program = self.program
        if program.replicas:
            return [numpy.ascontiguousarray(variable.part(value, program.coordinates(rank))) for rank in range(program.ranks)]
        return self.by_shardings(program.variables.index(variable), value)

    def by_shardings(self, number, value):
        """What XLA's partitions take of argument `number`."""
        program = self.program
        if not program.shardings:
            return [value]
        sharding = jax.sharding.GSPMDSharding(tuple(program.devices), program.shardings[number])
        places = sharding.devices_indices_map(value.shape)
        return [numpy.ascontiguousarray(value[places[device]]) for device in program.devices]

    def step(self, tokens, targets, scalars):
        """`tokens`: [microbatches, sequences, length]; the outputs by name."""
        program, inputs = self.program, []
        for number, name in enumerate(program.inputs):
            if name in ("tokens", "targets"):
                value = tokens if name == "tokens" else targets
            else:
                value = numpy.float32(scalars[name])
            if program.replicas and value.shape:
                data = [axis for axis, _ in program.axes if axis in ("replica", "data")]
                parts = []
                for rank in range(program.ranks):
                    where, place, count = program.coordinates(rank), 0, 1
                    for axis in data:
                        place, count = place * where[axis][1] + where[axis][0], count * where[axis][1]
                    parts.append(numpy.ascontiguousarray(numpy.split(value, count, 1)[place]))
            elif program.replicas:
                parts = [value] * program.ranks
            else:
                parts = self.by_shardings(len(program.variables) + number, numpy.asarray(value))
            inputs.append(parts)
        results = program.run(self.state + inputs)
        self.state = results[:len(program.variables)]
        return {name: float(parts[0]) for name, parts in zip(program.outputs, results[len(program.variables):])}


def batches(golden, step, microbatches, data_ranks):
    """Inputs of a step as DataOrder has them: [M, B/M, S], data ranks contiguous."""
    run = golden.answers["run"]
    stream = numpy.frombuffer(golden.data["data"].read_bytes(), numpy.uint8).astype(numpy.int32)
    batch, length = run["batch"], run["seq"]
    count = (len(stream) - 1) // length
    rows = [(step * batch + i) % count for i in range(batch)]
    def shaped(shift):
        whole = numpy.stack([stream[row * length + shift:row * length + shift + length] for row in rows])
        split = whole.reshape(data_ranks, microbatches, batch // data_ranks // microbatches, length)
        return numpy.ascontiguousarray(split.transpose(1, 0, 2, 3).reshape(microbatches, -1, length))
    return shaped(0), shaped(1)


def judge(golden, stage, text):
    options = strategy(text)
    mesh, microbatches = options["mesh"], int(options["microbatches"])
    data_ranks = math.prod(int(size) for axis, size in re.findall(r"(replica|data)=(\d+)", mesh))
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
    wanted, error = read_tensors(golden.gradients), 0
    for variable, old, new in zip(program.variables, before, one.state):
        want = one.parts(variable, variable.of_file(wanted))
        have = [(a - b) / lr for a, b in zip(old, new)]
        scale = math.sqrt(sum(float((part ** 2).sum()) for part in want)) or 1
        error = max(error, math.sqrt(sum(float(((a - b) ** 2).sum()) for a, b in zip(have, want))) / scale)
    print(f"{stage} {text}: loss {worst['loss']:.1e}, grad_norm {worst['grad_norm']:.1e}, gradients {error:.1e}", flush=True)
    check(worst["loss"] <= 1e-5 and worst["grad_norm"] <= 5e-5 and error <= 1e-4, f"{stage} {text}")


def main():
    golden = Golden(sys.argv[1])
    fresh(sys.argv[2])
    for text in sys.argv[4:]:
        judge(golden, sys.argv[3], text)


main()
