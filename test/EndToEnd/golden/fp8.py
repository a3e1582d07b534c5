#!/usr/bin/env python3
"""Trains a golden directory's model with --precision fp8.

  fp8.py GOLDEN WORK meshes STRATEGY...    the losses of one rank with the same microbatches, and the interpreter's
  fp8.py GOLDEN WORK exact STRATEGY...     the same numbers of 8 bits on all ranks, by the interpreter at each floor
  fp8.py CONFIG WORK bf16 STEPS            the losses of bf16 over some steps, of a model made from a configuration
  fp8.py GOLDEN WORK memory                buffers of 8 bits
  fp8.py GOLDEN WORK history               amaxes of delayed scaling in checkpoints, and runs that go on from them
  fp8.py - WORK numbers                    the numbers of 8 bits in blocks, bit by bit

A strategy is written as for golden.py. A mode may name a recipe, as exact:block; block makes the model of a golden directory wide enough
for it, and the losses are then those of the f64 interpreter without rounding.
"""
import itertools
import json
import math
import pathlib
import random
import re
import struct
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import Golden, call, check, check_traffic, compile, distance, flags, fresh, ir, ranks_of, strategy, train

mode, _, recipe = sys.argv[3].partition(":")
given = pathlib.Path(sys.argv[1]).resolve()
golden = Golden(given) if mode not in ("bf16", "numbers") else None
fresh(sys.argv[2])
FP8 = {"precision": "fp8"} | ({"fp8_recipe": recipe} if recipe else {})


def widened(config):
    """A configuration with widths of whole blocks of 128."""
    wide = json.loads(config.read_text())
    wide |= {"hidden_size": 128, "intermediate_size": 256, "num_key_value_heads": wide["num_attention_heads"],
             "max_position_embeddings": 128}
    path = pathlib.Path("wide.json").resolve()
    path.write_text(json.dumps(wide))
    return path


if golden and recipe == "block":
    golden.config, golden.size = widened(golden.config), golden.size | {"seq": 128}
    del golden.run["init"]


def interpreted(options, run, phase="step", precision="f32"):
    """The same run by the interpreter, which rounds as the types say, or, with the precision fp8, to 8 bits only."""
    compile(golden.config, "floor.mlir", emit=phase, **options, **({"certify": True} if phase == "schedule" else {}))
    judge = ["meshwright-interpret", "floor.mlir", "--precision", precision, "--train", *flags(run)]
    done = subprocess.run(map(str, judge), capture_output=True, text=True, timeout=600)
    check(done.returncode == 0, done.stderr[:1000])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def meshes(items):
    """Scales are of whole tensors or blocks, so that only sums in another order can change what is rounded."""
    alone, truth = {}, [{"loss": loss} for loss in golden.answers["loss"]]
    if recipe == "block":
        truth = interpreted(dict(golden.size, mesh="data=1"), golden.run, precision="f64")
    for item in ["one", *items]:
        options = dict(golden.size, **strategy(item), **FP8)
        ranks, parts = ranks_of(options["mesh"]), options.get("microbatches", 1)
        if parts not in alone:  # An amax is of a microbatch.
            compile(golden.config, "one", **golden.size, **FP8, **({"microbatches": parts} if parts != 1 else {}))
            alone[parts] = train("./one", **golden.run)
        compile(golden.config, "exe", **options)
        have = train("./exe", ranks, save="run", trace="trace.json", **golden.run)
        if ranks > 1:
            check_traffic("./exe", "trace.json", golden.run["steps"])
        name = f"{golden.directory.name} {item}"
        off, norms = distance(have, alone[parts]), distance(have, alone[parts], "grad_norm")
        true = distance(have, truth)
        print(f"{name}: a loss is {off:.1e} off one rank's, {true:.1e} off the float64 run's, grad_norm {norms:.1e}", flush=True)
        # A number between two of E5M2 that sums in another order move across their middle changes by up to a quarter.
        check(off <= 5e-3, f"{name}: a loss is {off:.1e} off one rank's")
        check(norms <= 5e-2, f"{name}: a gradient norm is {norms:.1e} off one rank's")
        check(true <= 2e-2, f"{name}: a loss is {true:.1e} off the float64 run's")
        check(train("./exe", ranks, **golden.run) == have, f"{name}: the run differs from itself")
        if item == "one":
            judge = interpreted(options, dict(golden.run, steps=3))
            near = distance(have[:3], judge)
            print(f"{name}: {near:.1e} off the interpreter's", flush=True)
            check(near <= 2e-3, f"{name}: a loss is {near:.1e} off the interpreter's")


def exact(items):
    """Where nothing but quantization rounds, sums in another order change no number of 8 bits: all meshes agree to f64's rounding."""
    # Adam with a smaller eps divides gradients that cancel by next to nothing, and so makes rounding visible.
    run, alone = dict(golden.run, steps=3, eps=1e-4), {}
    for item in items:
        options = dict(golden.size, **strategy(item), **FP8)
        parts = options["microbatches"]
        one = dict(golden.size, **FP8, microbatches=parts)
        if parts not in alone:
            alone[parts] = interpreted(one, run, precision="fp8")
            rounds = distance(interpreted(one, run, precision="f64"), alone[parts])
            check(rounds > 1e-6, f"quantization changes losses by {rounds:.1e} only")
        for phase in ("dist", "local", "schedule"):
            have = interpreted(options, run, phase, "fp8")
            off = max(distance(have, alone[parts], key) for key in ("loss", "grad_norm"))
            print(f"{golden.directory.name} {item} {phase}: {off:.1e} off one rank", flush=True)
            check(off <= 1e-9, f"{golden.directory.name} {item} {phase} is {off:.1e} off one rank")


def bf16(steps):
    """fp8 trains as bf16 does."""
    data = pathlib.Path("tokens.bin")
    # Text with something to learn: each token depends on the two before.
    state, tokens = 12345, [1, 2]
    config = json.load(open(given))
    for _ in range(1 << 15):
        state = (state * 1103515245 + 12345) % 2**31
        noise = state >> 16
        follows = (tokens[-1] * 31 + tokens[-2] * 17 + 7) % config["vocab_size"]
        tokens.append(noise % config["vocab_size"] if noise % 8 == 0 else follows)
    data.write_bytes(b"".join(token.to_bytes(2, "little") for token in tokens))
    run = {"data": data, "steps": steps, "lr": 1e-3, "seed": 3, "warmup": 10}
    have, path, seq = {}, *((widened(given), 128) if recipe == "block" else (given, 64))
    for precision in ("bf16", "fp8"):
        compile(path, precision, batch=8, seq=seq, **(FP8 if precision == "fp8" else {"precision": precision}))
        have[precision] = train(f"./{precision}", **run)
    off = distance(have["fp8"], have["bf16"])
    first, last = have["bf16"][0]["loss"], have["bf16"][-1]["loss"]
    print(f"{given.name}: from {first:.3f} to {last:.3f} in bf16, {have['fp8'][-1]['loss']:.3f} in fp8; at most {off:.1e} apart", flush=True)
    check(last < 0.9 * first or steps < 100, "the model learns nothing")
    check(off <= 2e-2, f"a loss is {off:.1e} off bf16's")
    check(have["fp8"] != have["bf16"], "fp8 computes what bf16 does")


def memory():
    compile(golden.config, "exec.mlir", emit="exec", **golden.size, **FP8)
    masters = re.findall(r'tensor<[0-9x]+x(\w+)> (?:stacked )?state "master"', ir("exec.mlir"))
    check(masters and set(masters) == {"i16"}, f"masters are not halves: {masters}")
    if recipe:  # All its numbers of 8 bits are inside kernels.
        return
    compile(golden.config, "exe", **golden.size, **FP8)
    plan = json.loads(call(["meshwright", "inspect", "exe", "--json"]))
    check(plan["precision"] == "fp8", f"the plan says {plan['precision']}")
    found = re.findall(r"exec.buffer .* offset (\d+) : memref<([0-9x]+)x(f8E4M3FN|f8E5M2)>", ir("exec.mlir"))
    check({name for _, _, name in found} == {"f8E4M3FN", "f8E5M2"}, f"buffers of 8 bits: {found}")
    # One of an element a byte ends where the arena does, at the latest.
    ends = [int(offset) + math.prod(map(int, shape.split("x"))) for offset, shape, _ in found]
    check(max(ends) <= plan["arena_bytes"], f"{max(ends)} of {plan['arena_bytes']} bytes")
    print(f"{len(found)} buffers of 8 bits in {plan['arena_bytes']} bytes")
    train("./exe", **golden.run)


def e4m3(x):
    """The number of E4M3 nearest to x, ties to even, without infinities: of 3 digits after the first, down to 2^-9."""
    if x == 0:
        return 0.0
    unit = 2.0 ** (max(math.frexp(x)[1] - 1, -6) - 3)
    return max(-448.0, min(448.0, round(x / unit) * unit))  # Python's round is to even


def history():
    """The states of delayed scaling say what the steps before observed, on any mesh."""
    options = dict(golden.size, precision="fp8", fp8_recipe="delayed")
    rest = {flag: value for flag, value in golden.run.items() if flag != "init"}
    compile(golden.config, "one", **options)
    compile(golden.config, "two", **options, mesh="tensor=2", sequence_parallel=True)
    have = train("./one", save="whole", save_every=1, keep=6, **dict(golden.run, steps=6))
    folders = [pathlib.Path(f"whole/step-{step:08}") for step in range(1, 7)]
    seen = [(read_safetensors(folder / "model.safetensors"), read_safetensors(folder / "optimizer.safetensors")) for folder in folders]
    roles = ("input_amax", "weight_amax", "gradient_amax")
    states = [name for name in seen[0][1] if name.endswith(roles)]
    layers = json.loads(golden.config.read_text())["num_hidden_layers"]
    # Queries, keys and values read one input, as the gate and the projection beside it do.
    wanted = layers * (7 + 7 + 4)
    check(len(states) == wanted, f"{len(states)} states of layers' products, not {wanted}")
    for (weights, before), (_, after) in itertools.pairwise(seen):
        for name in states:
            old, new = (list(step[f"{name}_history"][1]) for step in (before, after))
            check(len(new) == 1024 and new[1:] == old[:-1], f"{name}: the history is not that of the step before, moved on by one")
            check(new[0] > 0 and after[name][1][0] == max(new), f"{name} is not the largest of its history")
            if name.endswith("weight_amax"):
                most = max(map(abs, weights[name.removesuffix(".weight_amax")][1]))
                bits = struct.unpack("<I", struct.pack("<f", most))[0]
                nearest = struct.unpack("<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000))[0]  # in bf16
                check(new[0] == nearest, f"{name} has seen {new[0]}, the weight has {nearest}")
    print(f"{len(states)} states with histories of {sum(x > 0 for x in seen[-1][1][states[0] + '_history'][1])} steps")
    train("./one", save="half", **dict(golden.run, steps=3))
    check(train("./one", resume="half", save="half", **dict(rest, steps=6)) == have, "a resumed run has other losses")
    for file in ("model.safetensors", "optimizer.safetensors"):
        check((folders[-1] / file).read_bytes() == pathlib.Path("half/latest", file).read_bytes(), f"{file} of a resumed run differs")
    # A mesh that finds no histories would scale by 1, which moves nothing for a step.
    train("./one", save="other", **dict(golden.run, steps=3))
    off = distance(train("./two", 2, resume="other", **dict(rest, steps=6))[-3:], have[-3:])
    print(f"a run that two ranks continue has losses {off:.1e} off", flush=True)
    check(off <= 5e-3, f"on two ranks losses are {off:.1e} off")


def numbers():
    """Rounding in blocks by the formulas of the recipes, written down once more."""
    rows, columns, drawn = 256, 256, random.Random(7)
    # Of many magnitudes; a block of zeros, amaxes that are the largest number of a scale and a little more, and one below all scales.
    x = [[drawn.gauss(0, 1) * 2.0 ** drawn.randint(-20, 12) for _ in range(columns)] for _ in range(rows)]
    for row in range(128):
        x[row][:128] = [0.0] * 128
    for row, most in ((200, 448.0 * 2**-5), (201, 448.5 * 2**-5), (202, 2.0**-130)):
        x[row][:32] = [most] + [math.fmod(v, most) for v in x[row][1:32]]
    x = [[struct.unpack("<f", struct.pack("<f", v))[0] for v in row] for row in x]
    for m, n in ((1, 128), (128, 128), (1, 32), (128, 1), (32, 1)):
        sizes = [(rows // m, m), (columns // n, n)]
        shape = [size for count, length in sizes for size in ((count, length) if length > 1 else (count,))]
        within = ([1] if m > 1 else []) + ([len(shape) - 1] if n > 1 else [])
        blocks, of = "x".join(map(str, shape)), "x".join(str(count) for count, _ in sizes)
        pathlib.Path("round.mlir").write_text(f"""
func.func @main(%x: tensor<{rows}x{columns}xf32> {{train.input = "x"}}, %want: tensor<{rows}x{columns}xf32> {{train.input = "want"}}) -> tensor<f32> {{
  %b = train.reshape %x : (tensor<{rows}x{columns}xf32>) -> tensor<{blocks}xf32>
  %a = train.amax %b over {within} : (tensor<{blocks}xf32>) -> tensor<{of}xf32>
  %s = train.quantization_scale %a to f8E4M3FN : (tensor<{of}xf32>) -> tensor<{of}xf32>
  %q = train.quantize %b by %s along {within} : (tensor<{blocks}xf32>, tensor<{of}xf32>) -> tensor<{blocks}xf8E4M3FN>
  %d = train.dequantize %q by %s along {within} : (tensor<{blocks}xf8E4M3FN>, tensor<{of}xf32>) -> tensor<{blocks}xf32>
  %y = train.reshape %d : (tensor<{blocks}xf32>) -> tensor<{rows}x{columns}xf32>
  %minus = train.scale %want by -1.0 : (tensor<{rows}x{columns}xf32>) -> tensor<{rows}x{columns}xf32>
  %off = train.add %y, %minus : (tensor<{rows}x{columns}xf32>, tensor<{rows}x{columns}xf32>) -> tensor<{rows}x{columns}xf32>
  %most = train.amax %off : (tensor<{rows}x{columns}xf32>) -> tensor<f32>
  return %most : tensor<f32>
}}
""")
        amax = [[max(abs(x[i][j]) for i in range(I, I + m) for j in range(J, J + n)) for J in range(0, columns, n)] for I in range(0, rows, m)]
        # The smallest power of two with which no magnitude is above 448.
        scale = [[2.0 ** max(math.ceil(math.log2(most / 448)) if most else -126, -126) for most in row] for row in amax]
        want = [e4m3(x[i][j] / scale[i // m][j // n]) * scale[i // m][j // n] for i in range(rows) for j in range(columns)]
        given = {"x": list(itertools.chain(*x)), "want": want}
        entries = {name: {"dtype": "F32", "shape": [rows, columns], "data_offsets": [i * 4 * len(want), (i + 1) * 4 * len(want)]}
                   for i, name in enumerate(given)}
        header = json.dumps(entries).encode()
        data = b"".join(struct.pack(f"<{len(want)}f", *values) for values in given.values())
        pathlib.Path("in.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
        printed = call(["meshwright-interpret", "round.mlir", "--precision", "fp8", *(f"--input={name}=in.safetensors" for name in given)])
        check(printed.strip() == "result0 : tensor<f32> = 0", f"blocks {m} x {n}: the largest difference is {printed}")
        changed = sum(a != b for a, b in zip(want, given["x"]))
        check(changed > len(want) / 2, f"blocks {m} x {n}: rounding changes {changed} numbers only")
        print(f"blocks {m} x {n}: {len(want)} numbers, {changed} of them rounded")


{"meshes": meshes, "exact": exact, "bf16": lambda items: bf16(int(items[0])), "memory": lambda items: memory(), "history": lambda items: history(), "numbers": lambda items: numbers()}[mode](sys.argv[4:])
