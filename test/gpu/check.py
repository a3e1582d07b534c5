#!/usr/bin/env python3
"""Judges build and run where there is no GPU: check.py FOLDER

Built for processors, the same list of runs must pass, and must fail when it expects other losses; built for GPUs, each
item must fail with the executable's own message where there is no driver, and pass on one that runs their PTX."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
folder = pathlib.Path(sys.argv[1])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
stands_in = pathlib.Path(os.environ["MESHWRIGHT_BUILD"]) / "runtime" / "test"


def call(script, *words, **more):
    environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    return subprocess.run([script, *map(str, words)], capture_output=True, text=True, timeout=600,
                          env={**environment, "CUDA_VISIBLE_DEVICES": "", **more})


def build(name, *words):
    carried = folder / name
    done = call(HERE / "build", carried, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return carried


def run(carried, *words, out="out", **more):
    """What `run` printed and wrote, by item."""
    out = folder / out
    shutil.rmtree(out, ignore_errors=True)
    done = call(carried / "run", out, "--carried", carried, *words, **more)  # the copy that is carried along
    assert not done.stderr, done.stderr
    results = json.loads((out / "results.json").read_text())
    for key in ("device", "versions", "commit", "date", "rows", "items", "goals"):
        assert key in results, results
    items = {item["item"]: item for item in results["items"]}
    for name, item in items.items():
        if "--after" not in words:
            assert f"{item['outcome']} {name}: {item['note']}" in done.stdout, (name, done.stdout)
        log = out / "logs" / (re.sub(r"[^\w.]+", "-", name) + ".log")
        assert item["outcome"] == "skip" or not (out / "logs").exists() or "--after" in words or log.read_text(), name
    failed = any(item["outcome"] == "fail" for item in [*items.values(), *results["goals"]])
    assert done.returncode == (1 if failed else 0), done.stdout
    return results, items


def outcomes(items):
    return sorted({item["outcome"] for item in items.values()})


cpu = build("cpu", "--target", "cpu", "--only", "golden gpt2-tiny|mesh gpt2-tiny data=2 f32|mesh gpt2-tiny data=2/4|replay gpt2-tiny f32")
results, items = run(cpu)
assert items.pop("killed data=2")["outcome"] == "skip", items  # Ranks on processors are threads of one process.
assert outcomes(items) == ["pass"] and len(items) == 5, items
row = results["rows"][0]
for key in ("system", "model", "seq", "batch", "precision", "ranks", "step_ms", "tokens_per_s", "mfu", "peak_bytes",
            "command", "start_to_first_step_ms"):
    assert key in row, row
assert row["peak_bytes"] > 1 << 20 and row["step_ms"] > 0 and row["start_to_first_step_ms"] > row["step_ms"], row
print(f"processors: {len(items)} items pass")

results, items = run(cpu, "--minutes", "0")
assert outcomes(items) == ["skip"] and "are left of --minutes" in items["golden gpt2-tiny f32"]["note"], items
results, items = run(cpu, "--only", "golden", "--pack", out="first")
assert sorted(path.name for path in (folder / "first").iterdir()) == ["logs-1.tar.xz", "results.json"], folder
results, items = run(cpu, "--only", "golden|replay", "--pack", "--after", folder / "first" / "results.json")
assert len(items) == 3 and outcomes(items) == ["pass"], items
with tarfile.open(folder / "out" / "dumps-1.tar.xz") as archive:
    archive.extractall(folder)
with tarfile.open(folder / "out" / "logs-1.tar.xz") as archive:
    assert len(archive.getnames()) == 1, archive.getnames()  # The others ran in the first call.
replayed = subprocess.run(["meshwright", "replay", folder / "dumps" / "replay-gpt2-tiny-f32"], capture_output=True, text=True)
assert replayed.returncode == 0 and "step 2: all" in replayed.stdout, replayed
print("little time: the rest is skipped, and left to another call")

listed = json.loads((cpu / "runs.json").read_text())
for entry in listed["runs"]:
    entry["loss"][7] *= 1.05
(cpu / "runs.json").write_text(json.dumps(listed))
results, items = run(cpu, "--only", "^(golden|mesh)")
assert outcomes(items) == ["fail"] and all("losses off by" in item["note"] for item in items.values()), items
for entry in listed["runs"]:
    entry["arguments"]["lr"] = -1
(cpu / "runs.json").write_text(json.dumps(listed))
results, items = run(cpu)
assert items.pop("killed data=2")["outcome"] == "skip", items
assert outcomes(items) == ["fail"] and all("--lr" in item["note"] for item in items.values()), items
print("other losses, bad arguments: all fail")

# A driver that stands in for a GPU, and says that a copy takes a millisecond.
driver = {"LD_LIBRARY_PATH": f"{stands_in / 'fake_gpu'}:{stands_in / 'fake_cudnn'}", "FAKE_GPUS": "2", "OMP_NUM_THREADS": "1"}
ceilings = subprocess.run([HERE / "ceilings.py", "3", "64"], env={**os.environ, **driver}, capture_output=True, text=True)
measured = json.loads(ceilings.stdout)
assert measured["copy_bytes_per_s"] == 2 * (3 << 20) / 1e-3 and measured["matmul_flops_per_s"] > 0, ceilings
print("ceilings: measured with a driver that looks on")
done = subprocess.run([HERE / "rates.py", folder / "rates.json", "--only", "copies", "--most", "1048576"], capture_output=True, text=True,
                      env={**os.environ, **driver})
assert done.returncode == 0 and "copies: 5 rows" in done.stdout, done
assert json.loads((folder / "rates.json").read_text())["copies"][0] == {"bytes": 4096, "tb_per_s": 0.0}, done
print("rates: copies by size, with that driver")

rates = ("--copy-rate", "4e12", "--matmul-rate", "7e14")
cuda = build("cuda", "--small", "--only", "golden (gpt2|llama)-uneven f32|replay gpt2-tiny data=2[+]zero=3 f32|bench gpt2|attention|"
             "variant gpt2-small --deterministic|mesh gpt2-tiny data=2 f32|offload|too much|largest")
only = "^(golden|replay|attention|bench|variant|kernels|memory)"
results, items = run(cuda, "--launch", "threads", "--only", only, *rates, FAKE_GPU_COMPUTES="1", **driver)
assert {name: item["outcome"] for name, item in items.items()} == {
    "golden gpt2-uneven f32": "pass", "golden llama-uneven f32": "pass",
    "attention gpt2-heads-64 bf16 cudnn": "pass", "attention gpt2-heads-64 bf16 generated": "pass",
    "attention gpt2-heads-64 compared": "pass", "replay gpt2-tiny data=2+zero=3 f32": "pass",
    "bench gpt2-small bf16": "pass", "variant gpt2-small --deterministic on --masters whole bf16": "pass", "kernels gpt2-small": "pass", "memory gpt2-small": "skip",
    "memory gpt2-small offloaded": "skip", "memory llama-7b offloaded": "skip",
    "memory of the largest that fits": "skip"}, items
table = results["kernels"]["gpt2-small"]
assert len(table) > 10 and all(row["bytes"] > 0 and row["floor_ms"] > 0 for row in table), table
assert (folder / "out" / "logs" / "kernels-gpt2-small.log").read_text().count("\n") > len(table)
replayed = subprocess.run(["meshwright", "replay", folder / "out" / "dumps" / "replay-gpt2-tiny-data-2-zero-3-f32"],
                          capture_output=True, text=True)
assert replayed.returncode == 0 and "step 2: all" in replayed.stdout, replayed
shutil.copy(folder / "out" / "results.json", folder / "before.json")
print("a driver that computes: golden, bench and replay pass")

products = [row["kernel"] for row in table if row["kernel"].startswith("matmul")]
assert len(products) > 4 and all(re.match(r"matmul \d+x\d+x\d+", name) for name in products), products
assert sum(row["kernel"].startswith("matmul") for row in table) == \
    sum(row["op"] == "matmul" for row in next(run for run in json.loads((cuda / "runs.json").read_text())["runs"] if
                                              run["name"] == "bench gpt2-small bf16")["kernels"]), table
sys.path.insert(0, str(HERE))
import items as what
rows = [{"bytes": 2 * 3.35e9, "flops": 0, "times": 2}, {"bytes": 3.35e6, "flops": 0, "times": 1}, {"bytes": 1, "flops": 989e9, "times": 1}]
for scale, wrong in ((0.97, [False] * 3), (0.94, [True, False, True])):  # the second fits into caches
    have = [what.impossible(argparse.Namespace(device="NVIDIA H100 80GB HBM3"), {**row, "ms": scale * ms}) for row, ms in zip(rows, (2, 1e-3, 1))]
    assert have == wrong, (scale, have)
assert not what.impossible(argparse.Namespace(device="another"), {**rows[0], "ms": 1e-9})
row, = (row for row in results["rows"] if row["kind"] == "bench")
assert row["graph_nodes"] > 10 and "cuDNN" in row["attention"], row

# Where cuDNN does not make attention as planned, what was measured is not what was wanted.
results, items = run(cuda, "--launch", "threads", "--only", "^bench", FAKE_CUDNN_REFUSES="1", **driver)
assert outcomes(items) == ["fail"] and "attention is to be cuDNN's: attention by generated kernels" in \
    items["bench gpt2-small bf16"]["note"], items
print("attention by generated kernels instead of cuDNN's: fails")

# A run that breaks is made again, to learn at which op.
results, items = run(cuda, "--only", "^golden gpt2-uneven", FAKE_GPU_FAULT="cuda:0:30", **driver)
note = items["golden gpt2-uneven f32"]["note"]
assert outcomes(items) == ["fail"] and re.search(r"; with MESHWRIGHT_SYNCHRONOUS=1: .*rank 0, \S+ \(at .+\): the GPU: ", note, re.S), note
print("broken: run again, and the op is named")

# What is run follows the GPU's memory.
import fits
built = json.loads((cuda / "runs.json").read_text())["runs"]
# These are so small that they differ by less than a page of the arena.
built = [{**run, "device_bytes": run["device_bytes"] - sum(line["bytes"] for line in run["allowances"]
                                                          if line["category"] == "last page of the arena")} for run in built]
of_two, of_one = (next(run for run in built if run["name"] == f"bench gpt2-small bf16{label}") for label in ("", " at 1"))
assert fits.needed(of_one) < fits.needed(of_two)
for available, name, other in ((fits.needed(of_two), of_two["name"], of_one["name"]),
                               (fits.needed(of_two) - 1, of_one["name"], of_two["name"]),
                               (fits.needed(of_one) - 1, of_one["name"], of_two["name"])):  # which fails, and says why
    names = {run["name"]: run.get("of") for run in fits.suitable(built, available)}
    assert name in names and other not in names and other not in names.values() and name in names.values(), (available, names)
shape = {"kind": "largest", "allowances": []}
layers = [{**shape, "name": f"{limit} {size}", "limit": limit, "device_bytes": size} for limit in (140, 80)
          for size in (limit - 5, limit + 5)]
for available, limit in ((141, 140), (80, 80), (79, 80), (200, 80)):
    assert {run["limit"] for run in fits.suitable(layers, available)} == {limit}, available
stub = folder / "smi"
stub.mkdir()
(stub / "nvidia-smi").write_text("#!/bin/sh\necho '1980, 2619, 612.50, 55, 0x0000000000000004, 1024'\n")
(stub / "nvidia-smi").chmod(0o755)
found = subprocess.run([sys.executable, "-c", "import machine, json; print(json.dumps(machine.state()))"], cwd=HERE, text=True,
                       capture_output=True, env={**os.environ, "PATH": f"{stub}:{os.environ['PATH']}"})
assert json.loads(found.stdout) == {"sm_mhz": 1980, "memory_mhz": 2619, "watts": 612.5, "celsius": 55,
                                    "throttled": "0x0000000000000004", "memory_bytes": 1 << 30}, found
listed = call(cuda / "run", folder / "listed", "--carried", cuda, "--list", "--minutes", "1", "--gpu-bytes", "17e9")
assert listed.returncode == 0 and "call 2" in listed.stdout and "bench gpt2-small bf16 (" in listed.stdout, listed
print("80 GB and 141 GB: other benchmarks")

# Its memory is what the largest was built for, less CUDA's context.
sizes = json.loads((cuda / "runs.json").read_text())["runs"]
fitting = sorted(run["device_bytes"] for run in sizes if run["kind"] == "largest")
context, = (line["bytes"] for line in sizes[-1]["allowances"] if line["category"] == "CUDA context")
memory = {"FAKE_GPU_COMPUTES": "1", "FAKE_GPU_BYTES": str((fitting[1] + fitting[2]) // 2 - context)}
results, items = run(cuda, "--only", "^(offload|largest)", "--after", folder / "before.json", **driver, **memory)
notes = {name: (item["outcome"], item["note"]) for name, item in items.items()}
assert all(outcome == "pass" for outcome, _ in notes.values()), notes
assert "the same losses as without" in notes["offload gpt2-small bf16"][1], notes
assert "without, " in notes["offload llama-7b bf16"][1] and "is refused" in notes["largest that fits"][1], notes
memory["FAKE_GPU_BYTES"] = str(fitting[0] - context - 1)
results, items = run(cuda, "--only", "^largest", **driver, **memory)
assert outcomes(items) == ["fail"] and "none runs" in items["largest that fits"]["note"], items
memory["FAKE_GPU_BYTES"] = str(1 << 34)
results, items = run(cuda, "--only", "^(largest|offload llama)", **driver, FAKE_GPU_BYTES=str(1 << 34))
assert "the largest that was built, runs" in items["largest that fits"]["note"], items
assert "it is not refused" in items["offload llama-7b bf16"]["note"], items
print("memory: what fits runs, what does not is refused")

meeting = folder / "meeting"
meeting.mkdir()
results, items = run(cuda, "--only", "^killed", **driver, FAKE_GPU_MEETING=str(meeting))
assert outcomes(items) == ["pass"] and len(items) == 1, items
print("killed: the other ends and says why")

# Goals, of rows as they could be.
import verdicts
bench = [{"model": "gpt2-1.5b", "seq": 1024, "batch": 16}]


def goals(**changed):
    def row(system, batch, tokens, kind=None, **more):
        return {"system": system, "model": "gpt2-1.5b", "seq": 1024, "batch": batch, "tokens_per_s": changed.get(
            f"{system}-{batch}", tokens), "kind": kind, "mfu": tokens / 1e5, **more}
    rows = [row("meshwright", 16, 54000, "bench", start_to_first_step_ms=changed.get("start", 9e3)),
            row("meshwright", 32, 60000, "batch"), row("meshwright", 16, 90000, "variant"),
            row("torch.compile", 16, 40000, start_to_first_step_ms=1e5), row("jax", 16, 30000)]
    if "bf16 weights" in changed:
        rows.append({**row("torch.compile", 16, changed["bf16 weights"]), "masters": "bf16"})
    rows = [row for row in rows if row["system"] != changed.get("without")]
    return [outcome for _, outcome, _ in verdicts.judge({"rows": rows}, bench)]


assert goals() == ["pass"] * 4, goals()
assert goals(jax=1, **{"jax-16": 46000}) == ["fail", "pass", "pass", "pass"], goals(**{"jax-16": 46000})
assert goals(**{"jax-16": 52000})[:2] == ["fail", "fail"] and goals(**{"bf16 weights": 52000})[:2] == ["fail", "fail"]
assert goals(start=11e3)[3] == "fail" and goals(without="jax")[:2] == ["skip", "skip"]
assert goals(without="torch.compile")[3] == "skip" and goals(without="meshwright") == ["skip"] * 4
print("goals: judged by the fastest of the others")

results, items = run(build("no-gpu", "--only", "golden (gpt2|llama)-uneven|golden gpt2-tiny f32"), "--at-once", "1")
ends = {"fail": 0, "skip": 0}
for name, item in items.items():
    words = item["note"]
    if name.startswith("golden"):
        ends[item["outcome"]] += 1
        assert item["outcome"] == "fail" or "2 before it ended alike" in words, item
    if item["outcome"] == "fail":
        assert "libcuda.so.1 cannot be loaded" in words or "no driver" in words or "NO_DEVICE" in words or \
               "no CUDA-capable device" in words, item
assert ends == {"fail": 3, "skip": 2} and all(items[f"device {name}"]["outcome"] == "fail" for name in ("ceilings", "rates")), items
assert "pass" not in outcomes(items) and results["rows"] == [], items
print("GPUs: items fail for want of one, until two of a kind have")
