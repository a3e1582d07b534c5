#!/usr/bin/env python3
"""How near the bytes that `meshwright predict` gives are to those that Megatron-LM allocates: predict_allocated.py ROWS.csv [--profile P] [--cluster C] [--json FILE] [-- FLAGS]

ROWS.csv has a column for each of model, layers, hidden, heads, kv_heads, head_dim, ffn, vocab_padded, tp, pp, dp, microbatches, global_batch, seq and alloc_gib (the largest of all ranks, by PyTorch's allocator): dense Llama models with ZeRO 1, sequence
parallelism, f32 gradients, and no activation recomputation. Compared are the bytes of the arena, without what drivers and libraries allocate. Flags after -- are those of `meshwright predict`."""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

words, more = (sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]) if "--" in sys.argv else (sys.argv[1:], [])
parser = argparse.ArgumentParser()
parser.add_argument("rows")
parser.add_argument("--profile", default="megatron")
parser.add_argument("--cluster", default="dgx-b200")
parser.add_argument("--json")
options = parser.parse_args(words)
work = pathlib.Path(tempfile.mkdtemp())
with open(options.rows) as file:
    rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
results = []
for row in rows:
    number = {key: int(value) for key, value in row.items() if value.isdigit()}
    (work / "config.json").write_text(json.dumps({
        "model_type": "llama", "num_hidden_layers": number["layers"], "hidden_size": number["hidden"], "num_attention_heads": number["heads"], "num_key_value_heads": number["kv_heads"], "head_dim": number["head_dim"],
        "intermediate_size": number["ffn"], "vocab_size": number["vocab_padded"], "tie_word_embeddings": False, "max_position_embeddings": number["seq"], "rms_norm_eps": 1e-5, "rope_theta": 5e5, "hidden_act": "silu"}))
    mesh = ",".join(f"{axis}={number[key]}" for axis, key in (("pipe", "pp"), ("data", "dp"), ("tensor", "tp")) if number[key] > 1)
    command = ["meshwright", "predict", work / "config.json", "--cluster", options.cluster, "--profile", options.profile, "--json", "--precision", "bf16", "--mesh", mesh, "--batch", number["global_batch"],
               "--microbatches", number["microbatches"], "--seq", number["seq"], "--residuals", "written", "--masters", "whole", "--loss-parts", 1]
    command += ["--zero", 1] if number["dp"] > 1 else []
    # Stages have equally many layers, whatever the head adds to the last.
    command += ["--cuts", ",".join(str(number["layers"] // number["pp"] * stage) for stage in range(1, number["pp"]))] if number["pp"] > 1 else []
    command += ["--sequence-parallel"] if number["tp"] > 1 else []
    done = subprocess.run([str(word) for word in command] + more, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    gib = json.loads(done.stdout)["arena_bytes"] / 2**30
    results.append({"row": {key: row[key] for key in ("model", "tp", "pp", "dp")}, "gib": gib, "measured_gib": float(row["alloc_gib"]), "error": gib / float(row["alloc_gib"]) - 1})
    print(f"{row['model']} tp={row['tp']} pp={row['pp']} dp={row['dp']}: {gib:.2f} GiB, measured {row['alloc_gib']} GiB ({results[-1]['error']:+.1%})", flush=True)
print(f"as {options.profile} on {options.cluster}: mean error {statistics.mean(abs(one['error']) for one in results):.1%}, worst {max(abs(one['error']) for one in results):.1%}, within 1% {sum(abs(one['error']) <= 0.01 for one in results)} of {len(results)}")
if options.json:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=pathlib.Path(__file__).parent).stdout.strip()
    json.dump({"commit": commit, "profile": options.profile, "cluster": options.cluster, "rows": results}, open(options.json, "w"), indent=1)
