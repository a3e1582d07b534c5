#!/usr/bin/env python3
"""How near `meshwright predict` is to published step times of layouts: predict_layouts.py ROWS.csv [--profile P] [--cluster C] [--limit N]

ROWS.csv has a column for each of model, gpus, dp, tp, pp, mbs, accum, zero, status, tok_s_gpu, mfu, memory_gb and note, as the chart data of Hugging
Face's ultra-scale playbook does: Llama models of 1B to 80B on H100, sequences of 4,096 tokens, 256 a step. Times are judged on rows that ran with an MFU of 20% or
more and no note. Prints the mean error, and for each group of a model and a number of GPUs the rank correlation and how much slower than the best
layout the one is that is predicted to be fastest."""
import argparse
import collections
import csv
import json
import pathlib
import random
import statistics
import subprocess
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("rows")
parser.add_argument("--profile", default="nanotron")
parser.add_argument("--cluster", default="dgx-h100")
parser.add_argument("--limit", type=int, default=10**9)
options = parser.parse_args()

SHAPES = {"1B": (16, 2048, 32, 8192, True), "3B": (28, 3072, 32, 8192, True), "8B": (32, 4096, 32, 14336, False), "80B": (80, 8192, 64, 28672, False)}
TOKENS, SEQ = 1048576, 4096
work = pathlib.Path(tempfile.mkdtemp())
for name, (layers, hidden, heads, ffn, tied) in SHAPES.items():
    json.dump({"model_type": "llama", "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": heads,
               "intermediate_size": ffn, "vocab_size": 131072, "tie_word_embeddings": tied, "max_position_embeddings": SEQ, "rms_norm_eps": 1e-5,
               "rope_theta": 10000.0, "hidden_act": "silu"}, open(work / f"{name}.json", "w"))


def predict(row):
    mesh = ",".join(f"{axis}={row[key]}" for axis, key in (("pipe", "pp"), ("data", "dp"), ("tensor", "tp")) if int(row[key]) > 1)
    command = ["meshwright", "predict", work / f"{row['model']}.json", "--cluster", options.cluster, "--profile", options.profile, "--json",
               "--precision", "bf16", "--batch", TOKENS // SEQ, "--seq", SEQ, "--microbatches", row["accum"]]
    command += ["--mesh", mesh] if mesh else []
    command += ["--zero", row["zero"]] if int(row["dp"]) > 1 else []
    command += ["--sequence-parallel"] if int(row["tp"]) > 1 else []
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    return [float(order.index(i)) for i in range(len(values))]


with open(options.rows) as file:
    rows = [row for row in csv.DictReader(line for line in file if not line.startswith("#"))
            if row["status"] == "ok" and float(row["mfu"]) >= 20 and row["note"] in ("", "failed-once")]
random.Random(1).shuffle(rows)
groups = collections.defaultdict(list)
for row in rows[:options.limit]:
    measured = TOKENS / (int(row["gpus"]) * float(row["tok_s_gpu"]))
    groups[row["model"], int(row["gpus"])].append((measured, predict(row)["step_s"], row))
errors = [predicted / measured - 1 for group in groups.values() for measured, predicted, _ in group]
correlations, best = [], []
for (model, gpus), group in sorted(groups.items()):
    measured, predicted = [m for m, _, _ in group], [p for _, p, _ in group]
    line = f"{model:>4} on {gpus:4} GPUs: {len(group):3} layouts, mean error {statistics.mean(abs(p / m - 1) for m, p, _ in group):5.1%}"
    if len(group) >= 5:
        correlations.append(statistics.correlation(ranks(measured), ranks(predicted)))
        best.append(measured[predicted.index(min(predicted))] / min(measured) - 1)
        line += f", rank correlation {correlations[-1]:.3f}, the layout predicted fastest is {best[-1]:.1%} slower than the fastest"
    print(line, flush=True)
print(f"{len(errors)} layouts as {options.profile} on {options.cluster}: mean error {statistics.mean(map(abs, errors)):.1%}, median {statistics.median(map(abs, errors)):.1%}, "
      f"worst {max(map(abs, errors)):.1%}; mean rank correlation {statistics.mean(correlations):.3f}; fastest within 3% in {sum(b <= 0.03 for b in best)} of {len(best)} groups")
