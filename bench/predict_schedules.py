#!/usr/bin/env python3
"""Whether `meshwright predict` orders pipeline schedules as they were measured: predict_schedules.py SCHEDULES.csv [--microbatches M,..] [--json FILE]

SCHEDULES.csv has a column for each of schedule, tok_s_over_1f1b and memory_over_1f1b: tokens per second and largest memory of Llama 2 7B with 16 layers on eight stages, of a system without activation recomputation. The number of
microbatches is not stated with the rows, so several are tried. Weights, gradients and moments have 16 bits here, because the memory of two rows that differ in what is kept of activations alone leaves no room for more
(1F1B holds 8 microbatches on its first stage, interleaved:2 23 of half the layers). Bytes are those of the arena, without what drivers allocate."""
import argparse
import csv
import json
import pathlib
import subprocess
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("rows")
parser.add_argument("--microbatches", default="16,24,32")
parser.add_argument("--cluster", default=str(pathlib.Path(__file__).parent / "clusters/mi300x.toml"))
parser.add_argument("--profile", default="megatron")
parser.add_argument("--json")
options = parser.parse_args()
STAGES, SEQ = 8, 4096
NAMES = {"zero-bubble": "zb-h1", "zbv": "zb-v", "interleaved": "interleaved:2"}
CONFIG = {"model_type": "llama", "num_hidden_layers": 16, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 11008, "vocab_size": 32000,
          "tie_word_embeddings": False, "max_position_embeddings": SEQ, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu"}
work = pathlib.Path(tempfile.mkdtemp())
(work / "config.json").write_text(json.dumps(CONFIG))
with open(options.rows) as file:
    rows = [row for row in csv.DictReader(line for line in file if not line.startswith("#")) if row["tok_s_over_1f1b"]]


def predict(schedule, microbatches):
    command = ["meshwright", "predict", work / "config.json", "--cluster", options.cluster, "--profile", options.profile, "--json", "--precision", "bf16", "--grad-dtype", "bf16", "--moments-dtype", "bf16", "--residuals", "written",
               "--mesh", f"pipe={STAGES}", "--schedule", schedule, "--batch", microbatches, "--microbatches", microbatches, "--seq", SEQ]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


results = []
for microbatches in map(int, options.microbatches.split(",")):
    found = {row["schedule"]: predict(NAMES.get(row["schedule"], row["schedule"]), microbatches) for row in rows}
    base = found["1f1b"]
    said = sorted(found, key=lambda name: found[name]["step_s"])
    measured = [row["schedule"] for row in sorted(rows, key=lambda row: -float(row["tok_s_over_1f1b"]))]
    print(f"{microbatches} microbatches: fastest first {' '.join(said)}" + ("" if said == measured else f"; measured {' '.join(measured)}"))
    for row in rows:
        one = found[row["schedule"]]
        speed, memory = base["step_s"] / one["step_s"], one["arena_bytes"] / base["arena_bytes"]
        speed_off, memory_off = speed / float(row["tok_s_over_1f1b"]) - 1, memory / float(row["memory_over_1f1b"]) - 1
        print(f"  {row['schedule']:12} speed {speed:.3f} of 1f1b's, measured {float(row['tok_s_over_1f1b']):.3f} ({speed_off:+.1%}); memory {memory:.3f}, measured {float(row['memory_over_1f1b']):.3f} ({memory_off:+.1%})", flush=True)
        results.append({"microbatches": microbatches, "schedule": row["schedule"], "speed": speed, "speed_measured": float(row["tok_s_over_1f1b"]), "memory": memory, "memory_measured": float(row["memory_over_1f1b"]), "arena_bytes": one["arena_bytes"], "step_s": one["step_s"]})
if options.json:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=pathlib.Path(__file__).parent).stdout.strip()
    json.dump({"commit": commit, "cluster": "mi300x", "profile": options.profile, "rows": results}, open(options.json, "w"), indent=1)
