#!/usr/bin/env python3
"""Judges build and run where there is no GPU: check.py FOLDER

Built for processors, the same list of runs must pass, and must fail when it expects other
losses; built for GPUs, each item must fail with the executable's own message."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
folder = pathlib.Path(sys.argv[1])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)


def call(script, *words):
    environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    return subprocess.run([script, *map(str, words)], capture_output=True, text=True, timeout=600,
                          env={**environment, "CUDA_VISIBLE_DEVICES": ""})


def build(name, *words):
    carried = folder / name
    done = call(HERE / "build", carried, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return carried


def run(carried, *words):
    """What `run` printed and wrote, by item."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    done = call(carried / "run", out, "--carried", carried, *words)  # the copy that is carried along
    assert not done.stderr, done.stderr
    results = json.loads((out / "results.json").read_text())
    for key in ("device", "versions", "commit", "date", "rows", "items"):
        assert key in results, results
    items = {item["item"]: item for item in results["items"]}
    for name, item in items.items():
        assert f"{item['outcome']} {name}: {item['note']}" in done.stdout, (name, done.stdout)
        log = out / "logs" / (name.replace(" ", "-").replace("=", "-") + ".log")
        assert item["outcome"] == "skip" or log.read_text(), name
    failed = any(item["outcome"] == "fail" for item in items.values())
    assert done.returncode == (1 if failed else 0), done.stdout
    return results, items


def outcomes(items):
    return sorted({item["outcome"] for item in items.values()})


stand_in = build("cpu", "--target", "cpu", "--only", "golden gpt2-tiny|mesh gpt2-tiny data=2 |replay gpt2-tiny f32")
results, items = run(stand_in)
assert outcomes(items) == ["pass"] and len(items) == 5 and "killed data=2" in items, items
row = results["rows"][0]
for key in ("system", "model", "seq", "batch", "precision", "ranks", "step_ms", "tokens_per_s", "mfu", "peak_bytes",
            "command"):
    assert key in row, row
dump = folder / "out" / items["replay gpt2-tiny f32"]["note"].split("meshwright replay ")[1]
replayed = subprocess.run(["meshwright", "replay", dump], capture_output=True, text=True)
assert replayed.returncode == 0 and "step 2: all" in replayed.stdout, replayed
assert row["peak_bytes"] > 1 << 20 and row["step_ms"] > 0, row
print(f"processors: {len(items)} items pass")

results, items = run(stand_in, "--minutes", "0")
assert outcomes(items) == ["skip"] and "no time" in items["golden gpt2-tiny f32"]["note"], items
print("no time: all skipped")

listed = json.loads((stand_in / "runs.json").read_text())
for entry in listed["runs"]:
    entry["loss"][7] *= 1.05
(stand_in / "runs.json").write_text(json.dumps(listed))
results, items = run(stand_in, "--only", "^(golden|mesh)")
assert outcomes(items) == ["fail"] and all("losses off by" in item["note"] for item in items.values()), items
for entry in listed["runs"]:
    entry["arguments"]["lr"] = -1
(stand_in / "runs.json").write_text(json.dumps(listed))
results, items = run(stand_in)
assert outcomes(items) == ["fail"] and all("--lr" in item["note"] for item in items.values()), items
print("other losses, bad arguments: all fail")

# A driver that only looks on, and says that a copy takes a millisecond.
fake = pathlib.Path(os.environ["MESHWRIGHT_BUILD"]) / "runtime" / "test" / "fake_gpu"
copies = subprocess.run([HERE / "copy_bandwidth.py", "3"], env={**os.environ, "LD_LIBRARY_PATH": str(fake)},
                        capture_output=True, text=True, check=True)
assert json.loads(copies.stdout) == {"bytes_per_s": 2 * (3 << 20) / 1e-3}, copies
print("copies: measured with a driver that looks on")

results, items = run(build("cuda", "--only", "golden gpt2-tiny f32|mesh gpt2-tiny data=2 "))
assert len(items) == 7, items
for name, item in items.items():
    words = item["note"]
    if name.startswith("sanitizer"):
        assert item["outcome"] == "skip" and "compute-sanitizer" in words or item["outcome"] == "fail", item
    else:
        assert item["outcome"] == "fail", item
        assert "libcuda.so.1 cannot be loaded" in words or "no driver" in words or "NO_DEVICE" in words or \
               "no CUDA-capable device" in words, item
assert results["rows"] == [], results["rows"]
print("GPUs: each item fails for want of one")
