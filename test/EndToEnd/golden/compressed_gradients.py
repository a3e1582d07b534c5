#!/usr/bin/env python3
"""Sums of gradients whose terms are sent in bf16 or fp8, --grad-reduce-dtype, and gradients that are approximated, --grad-compression.

  compressed_gradients.py GOLDEN WORK terms STRATEGY...    bit for bit the sum of the ranks' gradients, which a rank computes alone, rounded here
  compressed_gradients.py GOLDEN WORK runs STRATEGY...     runs of PyTorch that round as these do; MPI, resumed runs
  compressed_gradients.py GOLDEN WORK meshes STRATEGY...   losses near those without rounding, on all meshes
  compressed_gradients.py GOLDEN WORK approximated STRATEGY...  runs of PyTorch that approximate as these do; MPI, resumed runs, also on another mesh
  compressed_gradients.py GOLDEN WORK signs STRATEGY...    the same of 1-bit Adam, which begins with the checkpoint of a run of AdamW
  compressed_gradients.py GOLDEN WORK targets              the same approximations on a GPU, of which one computes two blocks
  compressed_gradients.py CONFIG WORK learns STEPS         as low a loss as without it
  compressed_gradients.py CONFIG WORK sent                 bytes that ranks send

A strategy is written as for golden.py.
"""
import filecmp
import json
import math
import pathlib
import re
import struct
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import Golden, call, check, check_traffic, compile, distance, flags, fresh, planned, ranks_of, strategy, train

given, mode = pathlib.Path(sys.argv[1]).resolve(), sys.argv[3]
golden = Golden(given) if given.is_dir() else None
fresh(sys.argv[2])


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def bf16(tensors):
    def rounded(x):
        bits = struct.unpack("I", struct.pack("f", x))[0]
        return struct.unpack("f", struct.pack("I", bits + 0x7fff + (bits >> 16 & 1) & 0xffff0000))[0]
    return [[rounded(x) for x in tensor] for tensor in tensors]


def fp8(tensors):
    """E4M3, with the smallest power of two as the scale of all with which no number is beyond 448."""
    amax = max(abs(x) for tensor in tensors for x in tensor)
    scale = 2.0 ** max(-126, math.ceil(math.log2(amax / 448))) if amax else 2.0 ** -126

    def rounded(x):
        unit = 2.0 ** (max(math.frexp(x / scale)[1] - 1, -6) - 3)
        return round(x / scale / unit) * unit * scale
    return [[rounded(x) for x in tensor] for tensor in tensors]


def summed(terms, rounded, again):
    """The sum in f32, in the order of ranks, and rounded again where all ranks get all of it."""
    total = None
    for term in rounded(terms):
        total = term if total is None else [f32(a + b) for a, b in zip(total, term)]
    return rounded([total])[0] if again else total


def gradients(exe, ranks, data, by_layer):
    """The gradients of the first step, by the names of parameters; those of all layers are one tensor, or `by_layer` one each."""
    run = dict(golden.run, data=data, steps=1, beta1=0, grad_clip=0)
    train(exe, ranks, save="first", **run)
    stacks = {}
    for name, (_, values) in sorted(read_safetensors("first/latest/optimizer.safetensors").items(), key=lambda item: [int(n) for n in re.findall(r"\d+", item[0])]):
        if name.endswith(".momentum"):
            stacks.setdefault(name if by_layer else re.sub(r"layers\.\d+\.", "layers.*.", name), []).extend(values)
    return stacks


def terms(items):
    batch, seq = golden.size["batch"], golden.size["seq"]
    text = golden.data["data"].read_bytes()
    for item in items:
        options = dict(golden.size, **strategy(item))
        ranks, level = ranks_of(options["mesh"]), int(options.get("zero", 0))
        own, by_layer = [], level >= 2
        compile(golden.config, "one", batch=batch // ranks, seq=seq)
        for rank in range(ranks):
            part = pathlib.Path(f"rank-{rank}.txt")
            part.write_bytes(text[rank * batch // ranks * seq:])
            # The mean over a part of the batch, and powers of two are exact.
            check(ranks & (ranks - 1) == 0, f"{ranks} ranks")
            own.append({name: [x / ranks for x in values] for name, values in gradients("./one", 1, part, by_layer).items()})
        for kind, rounded in (("bf16", bf16), ("fp8", fp8)):
            compile(golden.config, "exe", grad_reduce_dtype=kind, **options)
            have = gradients("./exe", ranks, golden.data["data"], by_layer)
            check(have.keys() == own[0].keys(), f"{sorted(have)}")
            wrong = changed = elements = 0
            for name, values in have.items():
                want = summed([rank[name] for rank in own], rounded, again=level == 0)
                exact = summed([rank[name] for rank in own], lambda tensors: tensors, False)
                wrong += sum(a != b for a, b in zip(values, want))
                changed += sum(a != b for a, b in zip(values, exact))
                elements += len(values)
            print(f"{item} {kind}: {wrong} of {elements} elements are other than they should be, {changed} other than without rounding", flush=True)
            check(wrong == 0, f"{item} {kind}: {wrong} elements")
            check(changed > elements / 2, f"{item} {kind}: {changed} elements are rounded")


def resumes(exe, ranks, have, by=None, run=golden and golden.run, steps=golden and golden.run["steps"] // 2):
    """A run that another continues after `steps` ends as the one without a break, to the bit; `by` is the executable that continues, and its ranks."""
    train(exe, ranks, save="half", **dict(run, steps=steps))
    rest = train(*(by or (exe, ranks)), save="half", **dict({flag: value for flag, value in run.items() if flag != "init"}, resume="half"))
    if by:
        return distance(rest, have)
    check(rest == have, "a resumed run has other losses")
    for file in ("model.safetensors", "optimizer.safetensors"):
        check(filecmp.cmp(f"whole/latest/{file}", f"half/latest/{file}", shallow=False), f"{file} of a resumed run differs in a bit")
    return 0


def judged(file, options, ranks):
    """What PyTorch computed, as `file` has it; the metrics of a run; how far its losses and gradient norms are off; and how far compression changes losses."""
    answers = json.loads((golden.directory / file).read_text())
    check(answers["run"] == golden.answers["run"], "another run")
    compile(golden.config, "exe", **options)
    have = train("./exe", ranks, save="whole", trace="trace.json", **golden.run)
    check_traffic("./exe", "trace.json", golden.run["steps"])
    want = [{"loss": loss, "grad_norm": norm} for loss, norm in zip(answers["loss"], answers["grad_norm"])]
    uncompressed = [{"loss": loss} for loss in golden.answers["loss"]]
    return answers, have, distance(have, want), distance(have, want, "grad_norm"), distance(want, uncompressed)


def approximated(items):
    for item in items:
        options = dict(golden.size, **strategy(item))
        ranks, (method, size, blocks) = ranks_of(options["mesh"]), re.split(r":|,blocks=", options["grad-compression"])
        answers, have, off, norms, gap = judged(f"{method}-{size}-{blocks}.json", options, ranks)
        print(f"{item}: a loss is {off:.1e} off PyTorch's, grad_norm {norms:.1e}; {gap:.1e} are due to compression", flush=True)
        check(off <= 1e-6 and norms <= 5e-5 and gap > 1e-3, f"{item}: a loss is {off:.1e} off PyTorch's run, grad_norm {norms:.1e}")
        states = read_safetensors("whole/latest/optimizer.safetensors")
        stems = [name.partition(".grad_residual")[0] for name in states if ".grad_residual" in name]
        check(len(stems) == len(answers["compressed"]), f"{len(stems)} matrices are compressed, not {len(answers['compressed'])}")
        check(train("./exe", ranks, mpi=True, save="mpi", **golden.run) == have, f"{item}: MPI ranks have other losses")
        resumes("./exe", ranks, have)
        # The number of blocks is the program's, so that other ranks may go on with its errors.
        compile(golden.config, "one", **{flag: value for flag, value in options.items() if flag not in ("mesh", "zero", "overlap")})
        off = resumes("./exe", ranks, have, by=("./one", 1))
        print(f"{item}: a run that one rank continues has losses {off:.1e} off", flush=True)
        check(off < 1e-6, f"{item}: on one rank losses are {off:.1e} off")


def signs(items):
    warmup, steps = 10, golden.run["steps"]
    run = {flag: value for flag, value in golden.run.items() if flag not in ("init", "grad_clip")} | dict(resume="warm", freeze_variance=warmup)
    compile(golden.config, "plain", **golden.size)
    train("./plain", save="warm", **dict(golden.run, steps=warmup))
    for item in items:
        options = dict(golden.size, **strategy(item))
        ranks, blocks = ranks_of(options["mesh"]), options["grad-compression"].rpartition("=")[2]
        answers = json.loads((golden.directory / f"onebit-1-{blocks}.json").read_text())
        compile(golden.config, "exe", **options)
        have = train("./exe", ranks, save="whole", trace="trace.json", **run)
        check_traffic("./exe", "trace.json", steps - warmup)
        want = [{"loss": loss, "grad_norm": norm} for loss, norm in zip(answers["loss"], answers["grad_norm"])]
        gap = distance(want, [{"loss": loss} for loss in golden.answers["loss"]])
        off, norms = distance(have, want), distance(have, want, "grad_norm")
        print(f"{item}: a loss is {off:.1e} off PyTorch's, grad_norm {norms:.1e}; {gap:.1e} are due to compression", flush=True)
        # Of ten million signs some are of numbers that are 0 but for rounding.
        check(len(have) == steps and off <= 5e-6 and norms <= 1e-4 and gap > 1e-2, f"{item}: a loss is {off:.1e} off PyTorch's run, grad_norm {norms:.1e}")
        states = read_safetensors("whole/latest/optimizer.safetensors")
        stems = [name for name in states if ".grad_server_residual" in name]
        check(len(stems) == len(answers["compressed"]), f"{len(stems)} matrices are compressed, not {len(answers['compressed'])}")
        check(train("./exe", ranks, mpi=True, save="mpi", **run) == have, f"{item}: MPI ranks have other losses")
        resumes("./exe", ranks, have, run=run, steps=warmup + 5)
        compile(golden.config, "one", **{flag: value for flag, value in options.items() if flag not in ("mesh", "overlap")})
        off = resumes("./exe", ranks, have, by=("./one", 1), run=run, steps=warmup + 5)
        print(f"{item}: a run that one rank continues has losses {off:.1e} off", flush=True)
        check(off < 5e-6, f"{item}: on one rank losses are {off:.1e} off")
    # A checkpoint has all residuals, or none.
    begun = subprocess.run(["./exe", "--ranks", str(ranks), *map(str, flags(dict(run, steps=warmup + 1)))], capture_output=True, text=True)
    check(begun.returncode == 0 and re.search(r"has no state \S*residual\S*: gradients are compressed from this step on", begun.stderr), begun.stderr)
    compile(golden.config, "topk", **dict(options, **{"grad-compression": f"topk:0.05,blocks={blocks}"}))
    train("./topk", ranks, save="largest", **dict(golden.run, steps=2))
    other = subprocess.run(["./exe", "--ranks", str(ranks), *map(str, flags(dict(run, resume="largest")))], capture_output=True, text=True)
    early = subprocess.run(["./exe", "--ranks", str(ranks), *map(str, flags(dict(run, freeze_variance=warmup - 1)))], capture_output=True, text=True)
    check(early.returncode == 1 and f"--freeze-variance {warmup - 1}: " in early.stderr and f"give {warmup} or more" in early.stderr, early.stderr)
    check(other.returncode == 1 and re.search(r"has the state \S*grad_residual\S* but not \S*grad_server_residual", other.stderr), other.stderr)
    print("residuals: all of them or none", flush=True)


def surgery():
    """A checkpoint whose optimizer begins anew has factors that approximate: matrices learn on."""
    compile(golden.config, "exe", **{**golden.size, "grad-compression": "powersgd:2,blocks=2"})
    train("./exe", save="half", **dict(golden.run, steps=2))
    done = subprocess.run(["meshwright", "checkpoint", "surgery", "half", "-o", "renamed", "--drop", "*q_proj*"], capture_output=True, text=True)
    check(done.returncode == 2 and "is a state of --grad-compression" in done.stderr and "give --reset-optimizer" in done.stderr, done.stderr)
    call(["meshwright", "checkpoint", "surgery", "half", "-o", "anew", "--reset-optimizer"])
    train("./exe", resume="anew", save="rest", **{**{flag: value for flag, value in golden.run.items() if flag != "init"}, "steps": 4, "weight_decay": 0})
    before, after = (read_safetensors(f"{folder}/model.safetensors") for folder in ("anew", "rest/latest"))
    still = [name for name in before if before[name][1] == after[name][1]]
    check(not still, f"these weights do not learn: {still}")
    print("surgery: all weights learn on", flush=True)


def targets():
    run = dict(golden.run, steps=3)
    for method in ("powersgd:2,blocks=2", "topk:0.05,blocks=2"):
        have = {}
        for target in ("cpu", "cuda"):
            compile(golden.config, "exe", batch=4, seq=16, target=target, grad_compression=method)
            have[target] = train("./exe", **run)
        off, norms = distance(have["cuda"], have["cpu"]), distance(have["cuda"], have["cpu"], "grad_norm")
        print(f"cuda, {method}: a loss is {off:.1e} off the processor's, grad_norm {norms:.1e}")
        check(off < 1e-6 and norms < 5e-5, f"cuda, {method}: a loss is {off:.1e} off, grad_norm {norms:.1e}")


def runs(items):
    for item in items:
        options = dict(golden.size, **strategy(item))
        ranks, kind = ranks_of(options["mesh"]), options["grad-reduce-dtype"]
        _, have, off, norms, gap = judged(f"reduce-{kind}-{ranks}.json", options, ranks)
        print(f"{item}: a loss is {off:.1e} off PyTorch's, grad_norm {norms:.1e}; {gap:.1e} are due to rounding", flush=True)
        check(off <= gap / 3, f"{item}: a loss is {off:.1e} off PyTorch's run, and that {gap:.1e} off the uncompressed one")
        check(train("./exe", ranks, mpi=True, save="mpi", **golden.run) == have, f"{item}: MPI ranks have other losses")
        resumes("./exe", ranks, have)


def meshes(items):
    for item in items:
        options = dict(golden.size, **strategy(item))
        ranks = ranks_of(options["mesh"])
        compile(golden.config, "exe", **options)
        have = train("./exe", ranks, trace="trace.json", **golden.run)
        check_traffic("./exe", "trace.json", golden.run["steps"])
        compile(golden.config, "plain", **{flag: value for flag, value in options.items() if flag != "grad-reduce-dtype"})
        off = distance(have, train("./plain", ranks, **golden.run))
        print(f"{golden.directory.name} {item}: a loss is {off:.1e} off the one without rounding", flush=True)
        check(1e-7 < off < (2e-2 if "precision" in options else 3e-3), f"{item}: a loss is {off:.1e} off")
        check(train("./exe", ranks, **golden.run) == have, f"{item}: the run differs from itself")


def learns(steps):
    """Text with something to learn: each token depends on the two before."""
    state, tokens = 12345, [1, 2]
    size = json.loads(given.read_text())["vocab_size"]
    for _ in range(1 << 17):
        state = (state * 1103515245 + 12345) % 2**31
        noise = state >> 16
        tokens.append(noise % size if noise % 8 == 0 else (tokens[-1] * 31 + tokens[-2] * 17 + 7) % size)
    data = pathlib.Path("tokens.bin")
    data.write_bytes(b"".join(token.to_bytes(2, "little") for token in tokens))
    # Top-k is for plain gradient descent: with averages of gradients each element that waits comes late into them, and the model learns
    # more slowly. The bound is how much of the loss that may be.
    adamw, sgd, frozen, bound = dict(lr=1e-3), dict(lr=1.0), dict(lr=1e-3, freeze_variance=steps * 2 // 5), 5e-3
    kinds = {"bf16": (adamw, {"grad_reduce_dtype": "bf16"}, bound), "fp8": (adamw, {"grad_reduce_dtype": "fp8"}, bound),
             "powersgd:4": (adamw, {"grad_compression": "powersgd:4"}, bound), "topk:0.02 and sgd": (sgd, {"grad_compression": "topk:0.02"}, bound),
             "topk:0.02 and adamw": (adamw, {"grad_compression": "topk:0.02"}, 0.15),
             "topk:0.1 and adamw": (adamw, {"grad_compression": "topk:0.1"}, 0.06),
             "onebit after adamw": (adamw, {"grad_compression": "onebit", "begin": steps * 2 // 5}, 1e-2),
             "onebit and a frozen variance": (frozen, {"grad_compression": "onebit", "begin": steps * 2 // 5}, 2e-2)}

    def losses(run, begin=0, **options):
        def run_of(options, **more):
            compile(given, "exe", batch=8, seq=32, mesh="data=4", **({"optimizer": "sgd"} if run is sgd else {}), **options)
            return train("./exe", 4, data=data, **{**dict(steps=steps, warmup=10, seed=3), **run, **more})
        if begin:
            run_of({}, steps=begin, save="warm")
        rows = run_of(options, **(dict(resume="warm") if begin else {}))
        return rows, sum(row["loss"] for row in rows[-20:]) / 20

    plain = {id(run): losses(run) for run in (adamw, sgd, frozen)}
    for kind, (run, options, bound) in kinds.items():
        (rows, last), (known, without) = losses(run, **options), plain[id(run)]
        print(f"{given.name}: the mean loss of the last 20 of {steps} steps is {last:.4f} with {kind}, {without:.4f} without; "
              f"a step's differs by {distance(rows, known):.1e} at most", flush=True)
        check(rows != known, f"{kind} changes nothing")
        check(abs(last / without - 1) < bound, f"{kind} ends at {last:.4f}, not {without:.4f}")
        check(steps < 100 or without < 0.9 * known[0]["loss"], "the model learns nothing")


def sent():
    """bf16 sends half of the bytes of gradients, fp8 a quarter and two numbers a tensor."""
    def bytes_of(kind, **options):
        report = planned(given, batch=8, seq=32, mesh="data=4", grad_reduce_dtype=kind, **options)
        step = [entry for entry in report["collectives"] if entry["program"] == "step" and entry["bytes"] * entry["times"] >= 4096]
        return sum(entry["bytes"] * entry["times"] for entry in step)
    # With ZeRO parameters are gathered in f32, as many bytes as gradients are scattered in f32.
    for zero, others in ((0, 0), (1, 1)):
        whole = bytes_of(None, zero=zero)
        for kind, part in (("bf16", 1 / 2), ("fp8", 1 / 4)):
            want = whole * (part if not others else (1 + part) / 2)
            have = bytes_of(kind, zero=zero)
            print(f"zero {zero}, {kind}: {have:,} of {whole:,} bytes", flush=True)
            check(abs(have / want - 1) < 0.02, f"zero {zero}, {kind}: {have} bytes, not {want:.0f}")
    # Two factors in place of each matrix.
    matrices = [(4, 64, 64), (4, 32, 64), (4, 32, 64), (4, 64, 64), (4, 176, 64), (4, 176, 64), (4, 64, 176), (1, 256, 64)]
    def elements(**options):
        report = planned(given, batch=8, seq=32, mesh="data=4", **options)
        return sum(entry["count"] * entry["times"] for entry in report["collectives"] if entry["program"] == "step")
    whole = elements()
    for rank in (1, 4):
        have = elements(grad_compression=f"powersgd:{rank}")
        want = whole - sum(layers * (m * n - rank * (m + n)) for layers, m, n in matrices)
        print(f"powersgd:{rank}: {have:,} elements are summed in place of {whole:,}", flush=True)
        check(have == want, f"powersgd:{rank}: {have} elements, not {want}")
    # Of each group of a row some values and their places, which a rank sends to all others.
    report = planned(given, batch=8, seq=32, mesh="data=4", grad_compression="topk:0.02")
    have = sum(entry["count"] * entry["times"] for entry in report["collectives"] if entry["program"] == "step")
    kept = sum(layers * m * max(1, round(0.02 * n)) for layers, m, n in matrices)
    want = whole - sum(layers * m * n for layers, m, n in matrices) + 2 * kept
    print(f"topk:0.02: {have:,} elements are summed or gathered in place of {whole:,}", flush=True)
    check(have == want, f"topk:0.02: {have} elements, not {want}")
    # Of each row, which is a group, a byte for eight signs and four for their magnitude. Each of the 4 ranks sends the others their rows of its block, and its rows of the sum.
    # Those of gate and up are 22 bytes of signs in rows of down, which 4 does not divide: each rank sends these to all.
    report = planned(given, batch=8, seq=32, mesh="data=4", grad_compression="onebit")
    signs = sum(layers * m * (n // 8 + 4) for layers, m, n in matrices if m != 176)
    others = sum(layers * m * (n // 8 + 4) for layers, m, n in matrices if m == 176)
    have = {op: sum(entry["bytes"] * entry["times"] for entry in report["collectives"] if entry["program"] == "step" and entry["op"] == op) for op in ("all_to_all", "all_gather")}
    want = {"all_to_all": 3 * signs, "all_gather": 3 * signs + 4 * 3 * others}
    print(f"onebit: ranks send {have} bytes in place of {4 * 2 * 3 / 4 * 4 * sum(layers * m * n for layers, m, n in matrices):,.0f}", flush=True)
    check(have == want, f"onebit: {have} bytes, not {want}")


{"terms": terms, "runs": runs, "approximated": approximated, "signs": signs, "targets": lambda items: targets(), "surgery": lambda items: surgery(), "meshes": meshes, "learns": lambda items: learns(int(items[0])), "sent": lambda items: sent()}[mode](sys.argv[4:])
