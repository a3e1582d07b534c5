#!/usr/bin/env python3
"""Runs executables for GPUs with a driver that only looks on: host.py FOLDER GOLDEN [--all]

The fake library (test/Runtime/Cuda/FakeGpu.cpp) checks every call and ends the process at
the first that is wrong. Here: every kernel of the table is launched, as often in each step,
as a CUDA graph or not, and no message is left. Without --all what several rows show is shown by one."""
import argparse
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess

import executables


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("golden", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    data = options.folder / "tokens.bin"
    # Other tokens in each step: what the host writes while the GPU may still read is noticed.
    data.write_bytes(bytes(random.Random(1).choices(range(64), k=1 << 16)))
    built = pathlib.Path(os.environ["MESHWRIGHT_BUILD"]) / "runtime" / "test"
    fake = f"{built / 'fake_gpu'}:{built / 'fake_cudnn'}"

    compiled = {}

    def compile(model, *flags):
        """The executable, which is made once."""
        if (path := compiled.get((model, flags))):
            return path
        path = compiled[model, flags] = options.folder / f"model-{len(compiled)}"
        subprocess.run(["meshwright", "compile", str(options.golden / model / "config.json"), "--target", "cuda",
                        *flags, "-o", str(path)], check=True, stdout=subprocess.DEVNULL)
        return path

    def run(path, ranks, steps, *more, **environment):
        log = options.folder / "log"
        arguments = [path, "--ranks", str(ranks), "--data", str(data), "--tokens", "u8", "--steps", str(steps),
                     "--lr", "1e-3", "--eval-data", str(data), "--eval-every", "1", "--eval-batches",
                     # Running kernels takes long.
                     "1" if "FAKE_GPU_COMPUTES" in environment else "64", *more]
        done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, timeout=300,
                              env={**os.environ, "LD_LIBRARY_PATH": str(fake), "FAKE_GPUS": str(ranks),
                                   "FAKE_GPU_LOG": str(log), **environment})
        launches, pending = {}, {}
        for counts in (copied, channels, read, registered):
            counts.clear()
        if done.returncode == 0:
            for line in log.read_text().splitlines():
                kind, *name, count = line.split(" ")
                counts = {"launch": launches, "pending": pending, "copied": copied, "channels": channels, "read": read,
                          "registered": registered}[kind]
                counts[" ".join(name)] = int(count)
        return done, launches, pending

    channels = {}  # communicators by the most channels that they may have, in the last run
    registered = {}  # of what NCCL was told, by kind, in the last run
    copied = {}  # bytes from and to memory that is kept on the host, in the last run

    read = {}  # bytes that the host has read besides, in the last run

    def check(label, model, ranks, *flags):
        path = compile(model, *flags)
        names = executables.sections(path)["meshwright_kernel_names"].split(b"\0")[:-1]
        counts = []
        # The first step is enqueued, the second captured and launched, the third launched again.
        # An evaluation takes several batches, so its program is captured in the first.
        # Programs with messages are captured where that is asked for.
        other = "on" if any("pipe" in flag for flag in flags) else "off"
        for steps, *more in ((1,), (3,), (3, "--cuda-graphs", other)):
            done, launches, pending = run(path, ranks, steps, *more)
            assert done.returncode == 0, (label, done.stdout, done.stderr)
            assert not any(pending.values()), (label, pending)
            graphs = re.findall(r"captured a CUDA graph of (\d+) nodes", done.stderr)
            assert len(graphs) == (0 if bool(more) == (other == "off") else 1 if steps == 1 else 2), (label, done.stderr)
            counts.append(launches)
        # Calls of libraries are made once before the first step, and kernels that could stand in for a
        # part of them.
        before = {name: (3 * counts[0][name] - count) // 2 for name, count in counts[1].items()}
        rehearsed = {name for name, count in before.items() if count}
        assert {name.split("$")[0] for name in rehearsed} <= {"cublasLtMatmul", "cudnn attention", "cudnn attention_grad",
                                                              "epilogue"}, (label, before)
        assert {"cublasLtMatmul", *(name for name in counts[0] if name.startswith("cudnn"))} <= rehearsed, (label, before)
        for later in counts[1:]:
            assert later == {name: 3 * count - 2 * before[name] for name, count in counts[0].items()}, (label, counts)
        assert all(counts[0][name] == before[name] for name in before if name.startswith("epilogue")), (label, counts)
        missing = {name.decode() for name in names} - set(counts[0])
        if "cudnn attention" in counts[0]:  # The generated kernels are for where it is missing.
            missing = {name for name in missing if not name.startswith("attention")}
        assert not missing, (label, missing)
        note = ", every message received" if pending else ""
        plan = json.loads(subprocess.run(["meshwright", "inspect", "--json", path], check=True, capture_output=True,
                                         text=True).stdout)
        for way, count in copied.items():
            each = [program.get("copied_bytes", {}).get("step", {}).get(way, 0) for program in plan["programs"]]
            assert count == 3 * sum(each) * ranks // len(each), (label, way, count, each)
        if "host_bytes" in plan:
            note += f", {copied['to_device']:,} bytes copied from the host and {copied['to_host']:,} to it"
        print(f"{label}: 3 steps, {sum(counts[1].values())} launches of all {len(names)} kernels{note}", flush=True)

    if options.all:
        check("gpt2-tiny f32", "gpt2-tiny", 1)
    check("llama-tiny bf16", "llama-tiny", 1, "--precision", "bf16")
    check("data=2 zero 3", "gpt2-tiny", 2, "--mesh", "data=2", "--zero", "3", "--dropout", "0.1")
    check("pipe=2,data=2", "gpt2-tiny", 4, "--mesh", "pipe=2,data=2", "--microbatches", "4", "--batch", "8")
    if options.all:
        check("tensor=2 sequence-parallel", "llama-tiny", 2, "--mesh", "tensor=2", "--sequence-parallel")
    # All epilogues; a vocabulary of 331 and layers of 50, whose rows are padded.
    check("gpt2-tiny bf16", "gpt2-tiny", 1, "--precision", "bf16", "--dropout", "0")
    check("padded rows", "../golden-more/gpt2-odd", 1, "--precision", "bf16", "--seq", "40", "--batch", "2")
    # Products in parts, whose windows shift from step to step.
    check("tensor=2 in parts", "llama-tiny", 2, "--mesh", "tensor=2", "--sequence-parallel", "--collective-matmul",
          "on")
    if options.all:
        check("offload", "gpt2-tiny", 1, "--offload", "optimizer,activations", "--offload-buffer", "1KiB")
    check("offload zero 3", "llama-tiny", 2, "--mesh", "data=2", "--zero", "3", "--precision", "bf16", "--microbatches", "2",
          "--offload", "optimizer,activations", "--offload-buffer", "4KiB")
    check("offload pipe=2", "gpt2-tiny", 2, "--mesh", "pipe=2", "--microbatches", "4", "--batch", "4", "--offload",
          "optimizer,activations")
    check("no overlap", "gpt2-tiny", 4, "--mesh", "pipe=2,data=2", "--microbatches", "4", "--batch", "8", "--overlap",
          "off")

    if options.all:
        check("experts", "../golden-more/sparse-deepseek-v3", 1, "--batch", "4", "--seq", "18")
    check("expert=2 zero 3", "../golden-more/sparse-deepseek-v3", 4, "--mesh", "data=2,expert=2", "--zero", "3", "--precision",
          "bf16", "--expert-capacity", "1.5", "--expert-buffer", "8", "--batch", "4", "--seq", "18")
    # The host reads how many rounds there are. Here nothing is computed, so there are none.
    path = compile("../golden-more/sparse-deepseek-v3", "--mesh", "expert=2", "--batch", "4", "--seq", "18")
    reason = "the host reads how many rounds experts' rows take"
    done, launches, pending = run(path, 2, 3)
    assert done.returncode == 0 and "captured a CUDA graph" not in done.stderr, done
    assert done.stderr.count(f"note: not captured as a CUDA graph, since {reason}") == 2, done  # nor the evaluation
    assert not any(pending.values()), pending
    done, *_ = run(path, 2, 3, "--cuda-graphs", "on")
    assert done.returncode and f"--cuda-graphs on: the program cannot be captured as a CUDA graph: {reason}" in done.stderr, done
    # Of a step with a ramp it reads the microbatches first, but of an evaluation, which has all, only rounds.
    path = compile("../golden-more/sparse-deepseek-v3", "--mesh", "expert=2", "--batch", "4", "--seq", "18", "--microbatches", "2", "--batch-ramp")
    done, *_ = run(path, 2, 3)
    assert done.returncode == 0, done
    assert [done.stderr.count(f"since {why}") for why in ("the host reads how many microbatches", reason)] == [1, 1], done
    print("rounds: not captured", flush=True)

    # Of a step the host reads what it says of it, and the counts of experts' tokens, not all variables.
    path = compile("../golden-more/sparse-deepseek-v3", "--batch", "4", "--seq", "18")
    each = []
    for steps in (1, 3):
        done, *_ = run(path, 1, steps)
        assert done.returncode == 0, done
        each.append(read["bytes"])
    plan = json.loads(subprocess.run(["meshwright", "inspect", "--json", path], check=True, capture_output=True, text=True).stdout)
    sizes = {role: sum(4 * math.prod(variable["local_shape"]) for variable in plan["variables"] if variable["role"] == role)
             for role in ("tokens", "parameter")}
    assert 0 < sizes["tokens"] <= (each[1] - each[0]) / 2 < sizes["parameter"] / 4, (each, sizes)
    print("counts: the host reads no other variables", flush=True)

    # Beside computation NCCL gets a part of the GPU, otherwise what it likes.
    allowed = []
    for overlap, most in (("on", {"16": 2}), ("off", {"free": 2})):
        path = compile("gpt2-tiny", "--mesh", "data=2", "--overlap", overlap)
        done, *_ = run(path, 2, 1)
        assert done.returncode == 0 and channels == most, (overlap, channels, done)
        plan = json.loads(subprocess.run(["meshwright", "inspect", "--json", path], check=True, capture_output=True,
                                         text=True).stdout)
        allowed += [line["bytes"] for line in plan["allowances"] if line["category"] == "NCCL"]
    assert allowed[0] < allowed[1], allowed
    print("channels: bounded where collectives overlap", flush=True)

    # A rank takes part in as many splits as there are groups and pairs of a rank, however many ranks and stages there are.
    splits = {}
    for stages, parts in ((2, 2), (2, 4), (4, 1), (4, 2)):
        mesh = f"pipe={stages},data={parts}"
        path = compile("llama-tiny", "--mesh", mesh, "--microbatches", "4", "--batch", "16", "--overlap", "off")
        done, *_ = run(path, stages * parts, 1)
        assert done.returncode == 0, (mesh, done)
        splits[mesh] = {most: count / (stages * parts) for most, count in channels.items()}
    messages, = set(splits["pipe=2,data=2"]) - {"free"}
    assert splits["pipe=2,data=2"] == splits["pipe=2,data=4"] and splits["pipe=2,data=2"][messages] == 2, splits
    # Rank 2 is in three pairs with each of its neighbours.
    assert splits["pipe=4,data=1"][messages] == splits["pipe=4,data=2"][messages] == 6, splits
    print("splits: as many as groups and pairs of a rank", flush=True)

    # NCCL knows the arena as a window where all ranks of a group run one program, else rank by rank; what it refuses
    # is left, with one note, and the run goes on.
    note = r"note: NCCL [\d.]+ knows the arena of rank \d in .* only"

    def told(path, ranks, windows, buffers, said=None, **environment):
        done, *_ = run(path, ranks, 2, **environment)
        assert done.returncode == 0, (environment, done)
        assert registered == {key: count for key, count in (("windows", windows), ("buffers", buffers)) if count}, (environment, registered)
        assert len(re.findall(note, done.stderr)) == (said is not None) and (said or "") in done.stderr, (environment, done.stderr)

    path = compile("gpt2-tiny", "--mesh", "data=2")
    told(path, 2, 2, 0)
    told(path, 2, 2, 0, FAKE_GPU_FABRIC="1")
    told(path, 2, 2, 0, FAKE_GPU_FABRIC="refused")
    told(path, 2, 0, 2, FAKE_NCCL_VERSION="22600")
    told(path, 2, 0, 2, "ncclCommWindowRegister: error", FAKE_NCCL_REFUSES="windows")
    told(path, 2, 0, 2, "ncclCommWindowRegister has none for these GPUs", FAKE_NCCL_REFUSES="null-windows")
    told(path, 2, 1, 2, "of rank 1 in 0 windows and 1 buffers of 1 communicator only", FAKE_NCCL_REFUSES="a-window")
    told(path, 2, 0, 0, "ncclCommWindowRegister: error", FAKE_NCCL_REFUSES="all")
    told(path, 2, 0, 2, "the GPU has no virtual memory management", FAKE_GPU_VMM="none")
    told(path, 2, 0, 2, "cuMemCreate: error", FAKE_GPU_VMM="refused")
    print("arena: NCCL knows it, or the run goes on without", flush=True)

    for algorithm in ("ring", "halving-doubling") if options.all else ("ring",):
        check(f"data=4 {algorithm}", "gpt2-tiny", 4, "--mesh", "data=4", "--collective-algorithm", algorithm)

    def traced(label, ranks, *flags):
        """What ranks count as sent is what the plan says, of steps in graphs and of others."""
        path, trace = compile("gpt2-tiny", "--mesh", *flags), options.folder / "trace.json"
        for more in ((), ("--trace-from", "2")):
            done, *_ = run(path, ranks, 3, "--trace", str(trace), *more)
            assert done.returncode == 0, done
            # Evaluations communicate too, and are in the sums.
            plan = json.loads(subprocess.run(["meshwright", "inspect", "--json", str(path)], check=True,
                                             capture_output=True, text=True).stdout)
            batches = min(64, -(-((64 * 1024 - 1) // plan["sequence"]) // plan["batch"]))
            want, have = {}, {}
            for entry in plan["collectives"]:
                runs = 3 * (1 if entry["program"] == "step" else batches)
                want[entry["op"]] = want.get(entry["op"], 0) + entry["bytes"] * entry["times"] * runs
            events = json.loads(trace.read_text())["traceEvents"]
            for event in events:
                for op, sent in event["args"].get("sent_bytes", {}).items():
                    have[op] = have.get(op, 0) + sent
            assert have == want and sum(have.values()) > 0, (label, have, want)
            collectives = [event for event in events if event.get("cat") == "gpu-collective"]
            assert collectives and {event["tid"] for event in collectives} == {3}, (label, collectives[:3])
            assert {event["name"] for event in collectives} == set(want), (label, want)
        print(f"{label}: ranks send what the plan says", flush=True)

    traced("data=2 zero 3", 2, "data=2", "--zero", "3")
    traced("pipe=2 ring", 4, "pipe=2,data=2", "--microbatches", "4", "--batch", "8", "--collective-algorithm", "ring")

    # Where kernels are run too, what is dumped is what the interpreter computes, and losses
    # of steps in graphs are those of others.
    for label, ranks, *flags in (("one rank", 1), ("data=2 zero 3", 2, "--mesh", "data=2", "--zero", "3"),
                                 *[("data=2 ring", 2, "--mesh", "data=2", "--collective-algorithm", "ring")][:options.all],
                                 ("pipe=2", 2, "--mesh", "pipe=2", "--microbatches", "4")):
        path, dump = compile("gpt2-tiny", "--replay", "--batch", "4", "--seq", "8", *flags), options.folder / "dump"
        metrics, losses = options.folder / "metrics.jsonl", []
        for more in (("--dump", str(dump), "--dump-step", "1", "--cuda-graphs", "on"), ("--cuda-graphs", "off"),
                     # The tokens of an evaluation, which take the place of those read ahead, change no step.
                     ("--cuda-graphs", "off", "--eval-data", data, "--eval-every", "1", "--eval-batches", "1")):
            done = subprocess.run([path, "--ranks", str(ranks), "--data", data, "--tokens", "u8", "--steps", "4", "--lr",
                                   "1e-3", "--metrics", metrics, *more], capture_output=True, text=True, timeout=300,
                                  env={**os.environ, "LD_LIBRARY_PATH": str(fake), "FAKE_GPUS": str(ranks),
                                       "FAKE_GPU_COMPUTES": "1"})
            assert done.returncode == 0, (label, done)
            assert ("captured a CUDA graph" in done.stderr) == ("--dump" in more), (label, done)
            losses.append([json.loads(line)["loss"] for line in metrics.read_text().splitlines()])
        assert losses[0] == losses[1] == losses[2] and losses[0][0] > losses[0][3] > 0, (label, losses)
        replayed = subprocess.run(["meshwright", "replay", dump], capture_output=True, text=True)
        assert replayed.returncode == 0 and "step 1: all" in replayed.stdout, (label, replayed.stdout)
        print(f"{label}: the interpreter agrees, graphs or not", flush=True)

    # While a batch grows, the tokens read ahead are those of the next step's batch, and the host says of each how many microbatches
    # it has. Gradients are added up over these, also where communication overlaps.
    flags = ("--mesh", "data=2", "--batch", "8", "--microbatches", "4", "--seq", "8", "--overlap", "on", "--batch-ramp", "--replay")
    path, dump, metrics = compile("gpt2-tiny", *flags), options.folder / "dump", options.folder / "metrics.jsonl"
    shutil.rmtree(dump, ignore_errors=True)
    subprocess.run(["meshwright", "compile", str(options.golden / "gpt2-tiny" / "config.json"), *flags, "-o", str(options.folder / "on-cpu")], check=True,
                   stdout=subprocess.DEVNULL)
    grown = []
    for executable, *more in ((path, "--dump", dump, "--dump-step", "2"), (path, "--eval-data", data, "--eval-every", "1", "--eval-batches", "1"),
                              (options.folder / "on-cpu",)):
        words = [executable, "--ranks", "2", "--data", data, "--tokens", "u8", "--steps", "5", "--lr", "1e-3", "--eps", "1e-4", "--init", options.golden / "gpt2-tiny" /
                 "model.safetensors", "--batch-ramp", "2+2:8", "--metrics", metrics, *more]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300,
                              env={**os.environ, "LD_LIBRARY_PATH": str(fake), "FAKE_GPUS": "2", "FAKE_GPU_COMPUTES": "1"})
        assert done.returncode == 0, done
        # A step has no graph, and says why; evaluations, which are of whole batches, have one.
        noted = [done.stderr.count(f"note: {words}") for words in ("not captured as a CUDA graph, since the host reads how many microbatches", "captured a CUDA graph of ")]
        assert noted == ([0, 0] if executable != path else [1, 1] if "--eval-data" in more else [1, 0]), done
        grown.append([(row["batch"], row["loss"], row["grad_norm"]) for row in map(json.loads, metrics.read_text().splitlines())])
    assert grown[0] == grown[1] and [batch for batch, *_ in grown[0]] == [2, 2, 4, 8, 8], grown
    assert all(math.isclose(a, b, rel_tol=1e-4) for have, want in zip(grown[0], grown[2]) for a, b in zip(have, want)), grown
    replayed = subprocess.run(["meshwright", "replay", dump], capture_output=True, text=True)
    assert replayed.returncode == 0 and "step 2: all" in replayed.stdout, replayed.stdout
    done, *_ = run(path, 2, 1, "--cuda-graphs", "on")
    assert done.returncode == 1 and "--cuda-graphs on is not possible: the host reads how many microbatches a step has" in done.stderr, done
    print("ramp: the same losses as on CPUs, not captured", flush=True)

    path = compile("gpt2-tiny", "--mesh", "data=2")
    for label, environment in (("own GPUs", {"FAKE_GPU_OWN": "1"}), ("one GPU", {"MESHWRIGHT_RANKS_PER_GPU": "2"})):
        done, *_ = run(path, 2, 1, FAKE_GPUS="1", **environment)
        assert done.returncode == 0 and "fake 0: " in done.stdout, (label, done)
        print(f"{label}: 2 ranks that see one", flush=True)
    done, *_ = run(path, 2, 1, FAKE_GPUS="1")
    assert done.returncode == 1 and "ranks 0, 1 have the same 1 GPU (GPU-00000000-" in done.stderr, done
    print("one GPU for two ranks: refused", flush=True)

    path = compile("gpt2-tiny")
    for variables in (["LOCAL_RANK", "WORLD_SIZE", "RANK"], ["SLURM_LOCALID", "SLURM_NTASKS", "SLURM_PROCID"]):
        environment = {variables[0]: "1", variables[1]: "1", variables[2]: "0"}
        done, *_ = run(path, 1, 1, **{**environment, "FAKE_GPUS": "2"})
        assert done.returncode == 0 and "fake 1: " in done.stdout, done
        print(f"{variables[0]} 1: the second GPU", flush=True)
    # Counted past what is shown: each task sees GPUs of its own.
    done, *_ = run(path, 1, 1, FAKE_GPUS="2", LOCAL_RANK="5", WORLD_SIZE="1", RANK="0")
    assert done.returncode == 0 and "fake 0: " in done.stdout, done
    print("LOCAL_RANK 5: the first of two that are seen", flush=True)

    # The host's threads run near the GPU, as far as they may.
    cores = sorted(os.sched_getaffinity(0))
    first = str(1 << cores[0])
    for label, words, environment in (
            ("one of them", f"the host's threads on cores {cores[0]} near the GPU", {"FAKE_NVML_CORES": first}),
            ("of a part of a GPU", f"the host's threads on cores {cores[0]} near the GPU",
             {"FAKE_NVML_CORES": first, "FAKE_NVML_MIG": "1"}),
            ("elsewhere", "near the GPU are cores 62", {"FAKE_NVML_CORES": str(1 << 62)}),
            ("turned off", None, {"FAKE_NVML_CORES": first, "MESHWRIGHT_BIND": "off"}),
            ("all", None, {"FAKE_NVML_CORES": str(sum(1 << core for core in cores))}), ("unknown", None, {})):
        done, *_ = run(path, 1, 1, **environment)
        assert done.returncode == 0 and (words or "arena") in done.stdout, (label, done)
        assert ("near the GPU" in done.stdout) == (words is not None and len(cores) > 1), (label, done)
        if label == "one of them":
            assert re.search(r"\), 1 thread each", done.stdout), done
    print("affinity: cores near the GPU", flush=True)

    trace = options.folder / "trace.json"
    done = subprocess.run([path, "--data", data, "--tokens", "u8", "--steps", "2", "--lr", "1e-3", "--trace", trace,
                           "--trace-from", "1"], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "LD_LIBRARY_PATH": str(fake), "FAKE_GPU_LOG": str(options.folder / "log")})
    assert done.returncode == 0, done
    events = json.loads(trace.read_text())["traceEvents"]
    # The index is of the plan's kernels in both; what encloses them has other categories.
    spans = [[(event["name"], event["args"]["bytes"], event["args"].get("index")) for event in events
              if event.get("cat") == category] for category in ("compute", "gpu")]
    assert any(event.get("cat") == "gpu-loop" for event in events)
    assert spans[0] == spans[1] and len(spans[1]) > 20, spans
    assert {event["tid"] for event in events if event.get("cat") == "gpu"} == {2}
    print("trace: a span of the GPU for each of the program", flush=True)

    # What follows a product is tried before the first step, and left to kernels where cuBLASLt is wrong or does not do
    # it: bias, gelu with what it is taken of, its derivative, the gradient of a bias.
    path, metrics = compile("gpt2-tiny", "--precision", "bf16", "--batch", "2", "--seq", "8"), options.folder / "metrics.jsonl"

    def losses(**environment):
        done, launches, _ = run(path, 1, 2, "--metrics", metrics, FAKE_GPU_COMPUTES="1", **environment)
        assert done.returncode == 0, done
        return [json.loads(line)["loss"] for line in metrics.read_text().splitlines()], done.stderr, launches

    want, said, usual = losses()
    assert "epilogue" not in said, said
    faults = (("FAKE_BLAS_WRONG", "in a trial it made "), ("FAKE_BLAS_REFUSE", "it has no algorithm: "))
    for row, (number, words) in enumerate(((4, "+bias "), (164, "+bias +gelu +preactivation"), (192, "+gelu-grad"), (512, "+bias-grad-of-A"))):
        for fault, why in faults if options.all else faults[row % 2:][:1]:
            have, said, launches = losses(**{fault: str(number)})
            notes = [line for line in said.splitlines() if "instead of cuBLASLt's epilogue of the product" in line]
            assert notes and all(words in line and why in line for line in notes), (number, fault, said)
            assert all(abs(one / other - 1) < 2e-3 for one, other in zip(have, want, strict=True)), (number, have, want)
            assert sum(launches.values()) > sum(usual.values()), (number, launches, usual)
    print("epilogues that are wrong or missing: kernels", flush=True)

    # To what the microbatch before has left a product is added once. The norm of gradients says so: AdamW's first step would not.
    path = compile("gpt2-tiny", "--precision", "bf16", "--batch", "2", "--seq", "8", "--microbatches", "2")

    def norm(**environment):
        done, *_ = run(path, 1, 1, "--metrics", metrics, FAKE_GPU_COMPUTES="1", **environment)
        assert done.returncode == 0, done
        return json.loads(metrics.read_text().splitlines()[0])["grad_norm"], done.stderr

    (want, _), (have, said) = norm(), norm(FAKE_BLAS_REFUSE="512")
    assert "+addend +bias-grad-of-A" in said and abs(have / want - 1) < 2e-3, (have, want, said)
    print("products of microbatches by kernels: added once", flush=True)

    # The third candidate is the fastest; what is in the file is taken while it fits.
    tuned = options.folder / "tuned.json"
    tuned.unlink(missing_ok=True)
    path = compile("gpt2-tiny", "--mesh", "data=2", "--precision", "bf16")
    done, *_ = run(path, 2, 1, "--tune", tuned)
    assert done.returncode == 0, done
    stored = json.loads(tuned.read_text())
    assert stored["device"].startswith("fake") and stored["cublasLt"] == 130000, stored
    assert all((product["candidate"], product["of"]) == (2, 4) for product in stored["products"].values()), stored
    kinds = {word for key in stored["products"] for word in key.split() if word.startswith("+")}
    assert kinds == {"+addend", "+bias", "+gelu", "+preactivation", "+gelu-grad", "+bias-grad-of-A"}, kinds
    assert f"tuned {len(stored['products'])} products: for {len(stored['products'])} another" in done.stdout, done
    done, *_ = run(path, 2, 1, "--tune", tuned)
    assert done.returncode == 0 and "tuned" not in done.stdout + done.stderr, done
    print(f"tuned: {', '.join(sorted(kinds))}", flush=True)
    for words, text, environment in (("its cublasLt is 130000, not 131000; tuning again", None,
                                      {"FAKE_BLAS_VERSION": "131000"}),
                                     ("it is not what --tune writes",
                                      json.dumps({**stored, "products": dict.fromkeys(stored["products"], {})}), {}),
                                     ("it has no product m=", json.dumps({**stored, "products": {}}), {})):
        if text:
            tuned.write_text(text)
        done, *_ = run(path, 2, 1, "--tune", tuned, **environment)
        assert done.returncode == 0 and words in done.stderr and "tuned" in done.stdout, (words, done)
    print("tuned for something else: tuned again", flush=True)
    for text in ("{", "3", '{"loss": 1}'):  # A file of something else stays as it is.
        tuned.write_text(text)
        done, *_ = run(path, 2, 1, "--tune", tuned)
        assert done.returncode == 1 and "is not what --tune writes" in done.stderr and tuned.read_text() == text, done
    tuned.unlink()
    path = compile("gpt2-tiny")
    done, *_ = run(path, 1, 1, "--tune", tuned)
    assert done.returncode == 0, done
    stored = json.loads(tuned.read_text())
    next(iter(stored["products"].values()))["algorithm"][0] = 9
    tuned.write_text(json.dumps(stored))
    done, *_ = run(path, 1, 1, "--tune", tuned)
    assert done.returncode == 1 and "refuses the algorithm chosen for the product" in done.stderr, done
    # All ranks refuse it at once; one says so.
    tuned.unlink()
    path = compile("gpt2-tiny", "--mesh", "data=2")
    done, *_ = run(path, 2, 1, "--tune", tuned)
    assert done.returncode == 0, done
    stored = json.loads(tuned.read_text())
    next(iter(stored["products"].values()))["algorithm"][0] = 9
    tuned.write_text(json.dumps(stored))
    for _ in range(10 if options.all else 3):
        done, *_ = run(path, 2, 1, "--tune", tuned)
        assert done.returncode == 1 and done.stderr.count("error: cuBLASLt refuses the algorithm") == 1, done
    print("two ranks refuse an algorithm: one says so", flush=True)

    # In the cache the second start is tuned, and executables share what they have found.
    cache = options.folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)

    def products(path):
        alone = options.folder / "alone.json"
        alone.unlink(missing_ok=True)
        assert run(path, 1, 1, "--tune", alone)[0].returncode == 0
        return set(json.loads(alone.read_text())["products"])

    def cached(path, expected, **environment):
        done, *_ = run(path, 1, 1, "--tune", "cache", XDG_CACHE_HOME=str(cache.resolve()), **environment)
        assert done.returncode == 0 and "tuning again" not in done.stderr, done
        found = re.search(r"tuned (\d+) products", done.stdout)
        assert int(found[1] if found else 0) == expected, (expected, done)
        return sorted((cache / "meshwright").iterdir())

    small, large = compile("gpt2-tiny", "--batch", "2"), compile("gpt2-tiny", "--batch", "4")
    of_small, of_large = products(small), products(large)
    assert of_small != of_large, of_small
    tuned, = cached(small, len(of_small))
    assert tuned.name.startswith("tuned-cublasLt-130000-device-fake") and "-driver-" in tuned.name, tuned
    assert cached(small, 0) == [tuned]
    assert cached(large, len(of_large - of_small)) == [tuned]
    assert set(json.loads(tuned.read_text())["products"]) == of_small | of_large
    assert cached(small, 0) == cached(large, 0) == [tuned]
    assert len(cached(small, len(of_small), FAKE_BLAS_VERSION="131000")) == 2
    done, *_ = run(small, 1, 1, "--tune", "cache", XDG_CACHE_HOME="", HOME="")
    assert done.returncode == 1 and "neither XDG_CACHE_HOME nor HOME" in done.stderr, done
    print("tuned once for all: kept in the cache", flush=True)
    path = compile("gpt2-tiny")

    def refused(label, words, **environment):
        done, *_ = run(path, 1, 1, **environment)
        assert done.returncode == 1 and all(word in done.stderr for word in words), (label, done)
        assert done.stderr.count("error:") == 1, (label, done)
        print(f"{label}: refused", flush=True)

    plan = json.loads(subprocess.run(["meshwright", "inspect", "--json", str(path)], check=True, capture_output=True,
                                     text=True).stdout)
    context, = (line["bytes"] for line in plan["allowances"] if line["category"] == "CUDA context")
    pages, = (line["bytes"] for line in plan["allowances"] if line["category"] == "last page of the arena")
    assert 0 <= pages < 1 << 21 and (plan["arena_bytes"] + pages) % (1 << 21) == 0, plan["allowances"]
    needed = plan["device_bytes"] - context
    assert needed == plan["arena_bytes"] + sum(line["bytes"] for line in plan["allowances"]) - context, plan
    refused("too little memory", [f"the GPU has {needed - 1:,} bytes free", f"the plan needs {needed:,}", "parameter",
                                  "optimizer", "allowance for CUDA graphs"], FAKE_GPU_BYTES=str(needed - 1))
    done, *_ = run(path, 1, 1, FAKE_GPU_BYTES=str(needed))
    assert done.returncode == 0 and "the plan allows " in done.stdout, done
    print("enough memory: runs", flush=True)
    refused("a product without an algorithm", ["cuBLASLt has no algorithm for the product m=", "(lm_head)"],
            FAKE_BLAS_REFUSE="1")
    path = compile("gpt2-tiny", "--offload", "optimizer")
    host_bytes = json.loads(subprocess.run(["meshwright", "inspect", "--json", str(path)], check=True, capture_output=True,
                                           text=True).stdout)["host_bytes"]
    refused("too little memory to pin", [f"cannot pin {host_bytes:,} bytes", "--offload", "cuMemHostAlloc", "bytes available",
                                         "ulimit -l"], FAKE_GPU_PINNED=str(host_bytes - 1))
    # So large that no machine has memory for its states.
    config = json.loads((options.golden / "gpt2-tiny" / "config.json").read_text())
    deep = options.folder.resolve() / "deep"
    deep.mkdir(exist_ok=True)
    (deep / "config.json").write_text(json.dumps({**config, "n_layer": 512, "n_embd": 1 << 15, "n_head": 512}))
    path = compile(deep, "--offload", "optimizer")
    done, *_ = run(path, 1, 1, FAKE_GPU_BYTES=str(1 << 50))
    assert done.returncode == 1 and re.search(r"error: this machine has [\d,]+ bytes of memory available, but the plan needs "
                                              r"[\d,]+ a rank \(optimizer kept on the host", done.stderr), done
    print("too little memory of the host: refused before anything is allocated", flush=True)
    path = compile("gpt2-tiny")
    refused("too few GPUs", ["rank 0 sees 0 GPUs (CUDA_VISIBLE_DEVICES is \"3\")"], FAKE_GPUS="0", CUDA_VISIBLE_DEVICES="3")
    refused("an older GPU", ["the GPU is of architecture sm_80", "compiled for sm_90", "--gpu-arch sm_80"],
            FAKE_GPU_ARCH="80")
    path = compile("gpt2-tiny", "--mesh", "pipe=2", "--microbatches", "4")
    done, *_ = run(path, 2, 1, CUDA_DEVICE_MAX_CONNECTIONS="1")
    assert done.returncode == 1 and "CUDA_DEVICE_MAX_CONNECTIONS is 1: ranks that send messages need 8" in done.stderr, done
    print("one queue for messages: refused", flush=True)
    path = compile("gpt2-tiny")
    refused("an old driver", ["the driver supports CUDA 12.4", "needs 13.0", "580"], FAKE_GPU_DRIVER="12040")
    refused("no whole number", ["MESHWRIGHT_RANKS_PER_GPU", "whole number"], MESHWRIGHT_RANKS_PER_GPU="2x")


main()
