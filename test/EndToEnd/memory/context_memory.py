#!/usr/bin/env python3
"""What context parallelism leaves of activations on a rank and what a layer sends, read from plans: context_memory.py CONFIG [table]

Over N ranks activations are 1/N, within 1%, and what ranks that share a key head keep twice. Forward a rank sends (N-1)/N^2 B S (2 h + 2 h_kv) elements a layer (Jacobs et al. 2023)
as long as N ranks divide the key heads, and rotary tables are not sent. With `table`, prints docs/context.md instead of a summary.
"""
import json
import os
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")
from harness import call, check, flags

SEQUENCE, RANKS = 131072, [1, 2, 4, 8, 16, 32]


def plan(config, ranks):
    mesh = {"mesh": f"context={ranks}", "context-parallel": "ulysses"} if ranks > 1 else {}
    options = {"target": "cuda", "precision": "bf16", "batch": 1, "seq": SEQUENCE, "emit": "exec", "output": "out.mlir",
               "report": "report", **mesh}
    call(["meshwright", "compile", config, *flags(options)])
    return json.load(open("report/report.json"))


def measure(config):
    model = json.load(open(config))
    heads, key_heads, layers = (model[key] for key in ("num_attention_heads", "num_key_value_heads", "num_hidden_layers"))
    hidden = model["hidden_size"]
    rows, whole = [], None
    for ranks in RANKS:
        report = plan(config, ranks)
        memory = {line["category"]: line["bytes"] for line in report["memory"]}
        inside = [entry for entry in report["collectives"] if entry["program"] == "eval" and entry["times"] == layers]
        sent = sum(entry["bytes"] // ranks for entry in inside if entry["op"] == "all_to_all")
        whole = whole or memory["activation"]
        # Ranks that share a key head keep it each: of keys and values, two bytes an element.
        shared = max(0, 1 - key_heads / ranks) * 4 * SEQUENCE * (hidden // heads) * layers
        check(abs(memory["activation"] / (whole / ranks + shared) - 1) < 0.01,
              f"{ranks} ranks keep {memory['activation']}, one {whole}")
        if ranks <= key_heads:
            check(all(entry["op"] == "all_to_all" for entry in inside), f"a layer communicates otherwise: {inside}")
            formula = (ranks - 1) * SEQUENCE * 2 * hidden * (1 + key_heads / heads) * 2 / ranks**2
            check(sent == formula, f"a layer sends {sent} bytes over {ranks} ranks, expected {formula}")
        rows.append((ranks, memory["activation"], sent))
    return rows


PAGE = """# Context parallelism

A mesh axis `context` divides sequences, for lengths that one device has no memory for. Its ranks hold the same parameters and
are data-parallel as far as gradients and ZeRO go. Everything but attention works on the part of the sequence that a rank has;
`--context-parallel` says what attention does, which needs the sequence whole.

    meshwright compile config.json --seq 131072 --mesh context=8,tensor=2 --context-parallel ulysses --zero 3 ...

`ulysses` (Jacobs et al. 2023): attention divides its heads instead, of key heads first. Queries, keys, values and attention's output
change hands, each in one all-to-all, forward and backward. Context and tensor together must divide the heads evenly; beyond the
number of key heads, ranks share them. The scheme is seeds alone (`lib/Dist/Strategy/SequenceSeeds.cpp`), so it goes with tensor and
sequence parallelism, ZeRO, pipelines, a parameter server, rematerialization and offload, and with windows and dropout. Sequences that
do not divide are padded. Ring and gathered attention are not there yet.

Llama 3 8B in bf16, one sequence of {sequence:,} tokens, as plans have it (`test/EndToEnd/memory/context_memory.py`):

| ranks | GB of activations a rank | MB that a rank sends in a layer, forward |
|---|---|---|
{rows}

Activations are 1/N, and sent are (N-1)/N^2 B S (2 h + 2 h_kv) elements, while N ranks divide the 8 key heads. Beyond, the ranks
that share a key head each keep its keys and values, and gather them, which the last column leaves out.
"""

if __name__ == "__main__":
    config = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        found = measure(config)
        if "table" in sys.argv:
            lines = [f"| {ranks} | {kept / 1e9:.2f} | {sent / 1e6:.1f} |" for ranks, kept, sent in found]
            print(PAGE.format(sequence=SEQUENCE, rows="\n".join(lines)))
        else:
            print(f"{len(found)} numbers of ranks keep 1/N of the activations")
        os.chdir("/")
