#!/usr/bin/env python3
"""What context parallelism leaves of activations on a rank and what a layer sends, read from plans: context_memory.py CONFIG [table]

Over N ranks activations are 1/N, within 1%, and what ranks that share a key head keep twice. With ulysses a rank sends forward
(N-1)/N^2 B S (2 h + 2 h_kv) elements a layer (Jacobs et al. 2023) as long as N ranks divide the key heads, and rotary tables are not
sent. With gather it sends (N-1)/N B S 2 h_kv forward and twice that backward. A rank's attention is 1/N of the FLOPs, on average with
gather. With `table`, prints docs/context.md instead of a summary.
"""
import json
import os
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")
from harness import call, check, flags

SEQUENCE, RANKS = 131072, [1, 2, 4, 8, 16, 32]


def plan(config, ranks, how):
    mesh = {"mesh": f"context={ranks}", "context-parallel": how} if ranks > 1 else {}
    options = {"target": "cuda", "precision": "bf16", "batch": 1, "seq": SEQUENCE, "emit": "exec", "output": "out.mlir",
               "report": "report", **mesh}
    call(["meshwright", "compile", config, *flags(options)])
    return json.load(open("report/report.json"))


def sent(report, program, ranks, layers):
    """What a rank sends in a layer, in bytes of each kind of collective."""
    kinds = {}
    for entry in report["collectives"]:
        if entry["program"] == program and entry["times"] == layers:
            kinds[entry["op"]] = kinds.get(entry["op"], 0) + entry["bytes"] // ranks
    return kinds


def attention_flops(report):
    return {kernel["op"]: kernel["flops"] for kernel in report["programs"][0]["kernels"] if kernel["op"].startswith("attention")}


def measure(config):
    model = json.load(open(config))
    heads, key_heads, layers = (model[key] for key in ("num_attention_heads", "num_key_value_heads", "num_hidden_layers"))
    hidden = model["hidden_size"]
    depth = hidden // heads
    one = plan(config, 1, None)
    whole = {line["category"]: line["bytes"] for line in one["memory"]}["activation"]
    check(len(attention_flops(one)) == 2, f"kernels of attention are {attention_flops(one)}")
    rows = [(1, whole, 0, whole, 0)]
    for ranks in RANKS[1:]:
        row = [ranks]
        for how in ("ulysses", "gather"):
            report = plan(config, ranks, how)
            kept = {line["category"]: line["bytes"] for line in report["memory"]}["activation"]
            flops = {op: count * ranks for op, count in attention_flops(report).items()}
            check(flops == attention_flops(one), f"attention of {ranks} ranks with {how} has {flops} FLOPs, of one {attention_flops(one)}")
            forward, step = (sent(report, program, ranks, layers) for program in ("eval", "step"))
            # Ranks that share a key head keep it each: of keys and values, two bytes an element.
            shared = max(0, 1 - key_heads / ranks) * 4 * SEQUENCE * depth * layers if how == "ulysses" else 0
            check(abs(kept / (whole / ranks + shared) - 1) < 0.01, f"{ranks} ranks keep {kept} with {how}, one {whole}")
            if how == "gather":
                each = (ranks - 1) * SEQUENCE * 2 * key_heads * depth * 2 // ranks
                check(forward == {"all_gather": each}, f"forward a layer sends {forward} over {ranks} ranks, expected {each}")
                # Gradients of parameters are all-reduced beside.
                moved = {kind: bytes for kind, bytes in step.items() if kind != "all_reduce"}
                check(moved == {"all_gather": 2 * each, "reduce_scatter": each}, f"a layer sends {step} over {ranks} ranks")
            elif ranks <= key_heads:
                each = (ranks - 1) * SEQUENCE * 2 * hidden * (1 + key_heads / heads) * 2 / ranks**2
                check(forward == {"all_to_all": each}, f"forward a layer sends {forward} over {ranks} ranks, expected {each}")
            row += [kept, sum(forward.values())]
        rows.append(row)
    return rows


PAGE = """# Context parallelism

A mesh axis `context` divides sequences, for lengths that one device has no memory for. Its ranks hold the same parameters and
are data-parallel as far as gradients and ZeRO go. Everything but attention works on the part of the sequence that a rank has;
`--context-parallel` says what attention does, whose queries look at keys of the whole sequence.

    meshwright compile config.json --seq 131072 --mesh context=8,tensor=2 --context-parallel ulysses --zero 3 ...

| | attention of a rank has | forward | backward |
|---|---|---|---|
| `gather` | its queries, all heads; keys and values of the whole sequence | all-gathers of k and v | the same, then reduce-scatters of dk and dv |
| `ulysses` | the whole sequence, its heads | all-to-alls of q, k, v and the output | all-to-alls of the output, its gradient, dq, dk and dv |

`gather` (Grattafiori et al. 2024, for Llama 3): attention divides its queries. Keys and values are gathered before attention, and given up
after it; the layer keeps its part of them for the backward, which gathers them again and adds their gradients where they belong. What
depends on a position, the causal mask, windows, linear biases and dropout, reckons from a query's place in the whole sequence
(`query_offset` of `train.attention`). Any number of ranks will do for any number of heads. The last rank's queries see
most keys, so with causal attention it computes longest, up to twice the mean; `flops` in the plan is the mean. On GPUs attention is made by generated
kernels, since cuDNN's that are used here begin at position 0.

`ulysses` (Jacobs et al. 2023): attention divides its heads instead, of key heads first. Queries, keys, values and attention's output
change hands, each in one all-to-all, forward and backward. Context and tensor together must divide the heads evenly; beyond the
number of key heads, ranks share them. All ranks compute alike, and cuDNN serves.

Both are seeds alone (`lib/Dist/Strategy/SequenceSeeds.cpp`), so they go with tensor and sequence parallelism, ZeRO, pipelines, a
parameter server, rematerialization and offload, and with windows and dropout. Sequences that do not divide are padded. Rings, and an order of
tokens that gives each rank the same work, are not there yet.

Take `ulysses` where ranks are many and the heads divide, `gather` where ranks are few, heads do not divide, or key heads are few: what it
sends does not depend on the number of heads.

Llama 3 8B in bf16, one sequence of {sequence:,} tokens, as plans have it (`test/EndToEnd/memory/context_memory.py`): GB of activations that a rank
keeps, and MB that a rank sends in a layer, forward.

| ranks | `ulysses`: GB | MB | `gather`: GB | MB |
|---|---|---|---|---|
{rows}

Activations are 1/N. With `ulysses` (N-1)/N^2 B S (2 h + 2 h_kv) elements are sent while N ranks divide the 8 key heads. Beyond, the ranks
that share a key head each keep its keys and values, and gather them. With `gather` (N-1)/N B S 2 h_kv are sent forward, and twice that
backward.
"""

if __name__ == "__main__":
    config = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        found = measure(config)
        if "table" in sys.argv:
            lines = ["| " + " | ".join([str(row[0]), *(f"{kept / 1e9:.2f} | {sent / 1e6:.1f}" for kept, sent in zip(row[1::2], row[2::2]))]) + " |"
                     for row in found]
            print(PAGE.format(sequence=SEQUENCE, rows="\n".join(lines)))
        else:
            print(f"{len(found)} numbers of ranks keep 1/N of the activations")
        os.chdir("/")
