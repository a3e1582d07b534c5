#!/usr/bin/env python3
"""What context parallelism leaves of activations on a rank and what a layer sends, read from plans: context_memory.py CONFIG [table]

Over N ranks activations are 1/N, within 1%, and what ranks that share a key head keep twice. With ulysses a rank sends forward
(N-1)/N^2 B S (2 h + 2 h_kv) elements a layer (Jacobs et al. 2023) as long as N ranks divide the key heads, and rotary tables are not
sent. With gather it sends (N-1)/N B S 2 h_kv forward and twice that backward, and where causal attention is balanced halves of queries and of
what is computed of them: B S h / N forward and twice that backward. A ring sends as much, but gradients of keys and values in f32, and halves of those too:
B S h_kv / N forward and twice that backward. A rank never has more than two parts of them. Of latent heads it sends what keys and values are made of. A rank's
attention is 1/N of the FLOPs, on average with gather and ring. With `table`, prints docs/context.md instead of a summary.
"""
import json
import math
import os
import pathlib
import re
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")
from harness import call, check, flags, most

SEQUENCE, RANKS = 131072, [1, 2, 4, 8, 16, 32]


def plan(config, ranks, how, **more):
    mesh = {"mesh": f"context={ranks}", "context-parallel": how} if ranks > 1 else {}
    options = {"target": "cuda", "precision": "bf16", "batch": 1, "seq": SEQUENCE, "emit": "exec", "output": "out.mlir",
               "report": "report", **mesh, **more}
    call(["meshwright", "compile", config, *flags(options)])
    return json.load(open("report/report.json"))


def sent(report, program, ranks, layers):
    """What a rank sends in a layer, in bytes of each kind of collective."""
    kinds = {}
    for entry in report["collectives"]:
        if entry["program"] == program and entry["times"] == layers:
            kinds[entry["op"]] = kinds.get(entry["op"], 0) + entry["bytes"] // ranks
    return kinds


def check_parts(ranks, part):
    """In no place of a program are there more than two parts of keys and values of `part` bytes: of what a rank sends on."""
    around, found = str([(rank - 1) % ranks for rank in range(ranks)]), 0
    for program in open("out.mlir").read().split("exec.program @")[1:]:
        # An op may be several lines.
        lines, views, lives = [re.sub(r"\s+", " ", op) for op in re.split(r"\n(?=\s*(?:exec\.\w+ (?!=)|%[\w.]+ = |\}))", program)], {}, {}
        for number, line in enumerate(lines):
            if made := re.match(r" ?(%[\w.]+) = exec\.view (%[\w.]+)", line):
                views[made[1]] = views.get(made[2], made[2])
            if sent := re.search(rf"exec\.permute %[\w.]+ to (%[\w.]+) from {re.escape(around)} ", line):
                shape = re.search(r"to memref<([\dx]+)x(bf16|f32)>", line)
                size = math.prod(map(int, shape[1].split("x"))) * (2 if shape[2] == "bf16" else 4)
                lives[sent[1]] = [number, number, size if shape[2] == "bf16" else 0]
            for name in re.findall(r"%[\w.]+", line):
                if views.get(name, name) in lives:
                    lives[views.get(name, name)][1] = number
        most = max((sum(size for first, last, size in lives.values() if first <= at <= last) for at, _, _ in lives.values()), default=0)
        found += most > 0
        check(most <= 2 * part, f"{ranks} ranks have {most} bytes of keys and values that go around, parts are of {part}")
    check(found == 2, f"{found} programs send keys and values")


def attention_flops(report):
    flops = {}
    for kernel in report["programs"][0]["kernels"]:
        if kernel["op"].startswith("attention"):
            flops[kernel["op"]] = flops.get(kernel["op"], 0) + kernel["flops"] * kernel["times"]
    return flops


def check_balance(config, ranks, how):
    """Every rank has as many pairs of a query and a key, within 2%, forward and backward."""
    call(["meshwright", "compile", config, "--batch", "1", "--seq", SEQUENCE, "--mesh", f"context={ranks}", "--context-parallel", how,
          "--emit", "local", "-o", "local.mlir"])
    counted = call(["meshwright-opt", "--dist-count-attention", "local.mlir"])
    for op in ("attention", "attention_grad"):
        calls = [[int(pairs) for pairs in found.split(",")]
                 for found in re.findall(rf"train\.{op} .*dist\.pairs = array<i64: ([\d, ]+)>", counted)]
        pairs = [sum(of) for of in zip(*calls)]
        check(len(pairs) == ranks and max(pairs) <= 1.02 * min(pairs), f"ranks compute {pairs} pairs of {op}")
        # A layer's forward is there twice, for evaluation too.
        all = SEQUENCE * (SEQUENCE + 1) // 2 * (2 if op == "attention" else 1)
        check(sum(pairs) == all, f"{sum(pairs)} pairs of {op} are not all {all}")


def measure(config):
    model = json.load(open(config))
    heads, key_heads, layers = (model[key] for key in ("num_attention_heads", "num_key_value_heads", "num_hidden_layers"))
    hidden = model["hidden_size"]
    depth = hidden // heads
    one = plan(config, 1, None)
    whole = most(one, "activation")
    check(len(attention_flops(one)) == 2, f"kernels of attention are {attention_flops(one)}")
    rows = [(1, whole, 0, whole, 0, 0, whole, 0, 0)]
    for ranks in RANKS[1:]:
        row = [ranks]
        for how in ("ulysses", "gather", "ring"):
            report = plan(config, ranks, how)
            kept = most(report, "activation")
            flops = {op: count * ranks for op, count in attention_flops(report).items()}
            check(all(abs(flops[op] / count - 1) < 1e-9 for op, count in attention_flops(one).items()), f"attention of {ranks} ranks with {how} has {flops} FLOPs, of one {attention_flops(one)}")
            forward, step = (sent(report, program, ranks, layers) for program in ("eval", "step"))
            # Ranks that share a key head keep it each: of keys and values, two bytes an element.
            shared = max(0, 1 - key_heads / ranks) * 4 * SEQUENCE * depth * layers if how == "ulysses" else 0
            check(abs(kept / (whole / ranks + shared) - 1) < 0.01, f"{ranks} ranks keep {kept} with {how}, one {whole}")
            if how == "gather":
                check_balance(config, ranks, how)
                each = (ranks - 1) * SEQUENCE * 2 * key_heads * depth * 2 // ranks
                # Of half of a rank's queries: q and the output, backwards also their gradients, in bf16; for the backward the log-sum-exp in f32.
                tensor, lse = SEQUENCE * hidden // ranks, SEQUENCE * heads * 2 // ranks
                expected = {"all_gather": each, "permute": 2 * tensor}
                check(forward == expected, f"forward a layer sends {forward} over {ranks} ranks, expected {expected}")
                # Gradients of parameters are all-reduced beside.
                moved = {kind: bytes for kind, bytes in step.items() if kind != "all_reduce"}
                expected = {"all_gather": 2 * each, "reduce_scatter": each, "permute": 6 * tensor + 2 * lse}
                check(moved == expected, f"a layer sends {step} over {ranks} ranks, expected {expected}")
            elif how == "ring":
                check_balance(config, ranks, how)
                if ranks > 2:  # Two send to each other for balance too.
                    check_parts(ranks, SEQUENCE * 2 * key_heads * depth * 2 // ranks)
                # Half of a rank's queries and output, as above, and of its keys and values.
                keys = SEQUENCE * 2 * key_heads * depth // ranks
                check(forward == {"permute": each + keys + 2 * tensor}, f"forward a layer sends {forward} over {ranks} ranks")
                moved = {kind: bytes for kind, bytes in step.items() if kind != "all_reduce"}
                expected = {"permute": 4 * each + 3 * keys + 6 * tensor + 2 * lse}
                check(moved == expected, f"a layer sends {step} over {ranks} ranks, expected {expected}")
            elif ranks <= key_heads:
                each = (ranks - 1) * SEQUENCE * 2 * hidden * (1 + key_heads / heads) * 2 / ranks**2
                check(forward == {"all_to_all": each}, f"forward a layer sends {forward} over {ranks} ranks, expected {each}")
            row += [kept, *([each, forward["permute"] - (each if how == "ring" else 0)] if how != "ulysses" else [sum(forward.values())])]
        rows.append(row)
    return rows


def latents(ranks=8):
    """Of DeepSeek-V2-Lite the latent and the rotary key of a token go around, forward and backward in bf16 and their gradients in f32. Returns
    what a rank sends of a layer in a step, what keys and values of all heads would be, and the FLOPs that are computed again."""
    config = pathlib.Path(__file__).resolve().parents[3] / "examples/models/deepseek-v2-lite.json"
    model = json.load(open(config))
    report = plan(config, ranks, "ring", context_balance="none")
    have = sum(entry["bytes"] * entry["times"] for entry in report["collectives"]
               if entry["program"] == "step" and entry["op"] == "permute") // ranks // model["num_hidden_layers"]
    steps = (ranks - 1) * SEQUENCE // ranks * (2 + 2 + 4)
    latent = model["kv_lora_rank"] + model["qk_rope_head_dim"]
    check(have == steps * latent, f"a layer of latent heads sends {have} bytes, expected {steps * latent}")
    whole = model["num_attention_heads"] * (model["qk_nope_head_dim"] + model["qk_rope_head_dim"] + model["v_head_dim"])
    again, flops = report["recomputed_flops"], report["flops"]
    return have, steps * whole, again / (flops - again)


def imbalance(config, ranks, how, balance, sequence=1024, *more):
    call(["meshwright", "compile", config, "--batch", "1", "--seq", sequence, "--mesh", f"context={ranks}", "--context-parallel", how,
          "--context-balance", balance, *more, "-o", "balance"])
    return json.loads(call(["meshwright", "inspect", "--json", "balance"]))["attention_imbalance"]


def check_imbalance():
    """The plan says by how much the rank with most attention is above the mean."""
    model = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "vocab_size": 64, "max_position_embeddings": 4096}
    json.dump(model, open("full.json", "w"))
    json.dump(dict(model, model_type="mistral", sliding_window=200), open("window.json", "w"))
    size, ranks = 1024, 8
    pairs = [[min(query + 1, window) for query in range(size)] for window in (size, 200)]
    for how in ("ring", "gather"):
        # Of causal attention the last rank sees most, 2 - 1/8 of the mean; of a window all but the first see as much.
        for config, seen in zip(("full.json", "window.json") if how == "ring" else ("full.json",), pairs):
            parts = [sum(seen[rank * size // ranks:(rank + 1) * size // ranks]) for rank in range(ranks)]
            stripes = [sum(seen[rank::ranks]) for rank in range(ranks)]
            have = {balance: imbalance(config, ranks, how, balance) for balance in ("zigzag", "none", "striped")}
            for balance, wanted in (("none", parts), ("striped", stripes)):
                check(abs(have[balance] - max(wanted) * ranks / sum(wanted)) < 1e-9, f"{config} {how} {balance}: the plan has {have}")
            if config == "full.json":
                check(have["none"] > 1.85 and have["zigzag"] < 1.02 and abs(have["striped"] - 1 - 7 / 1025) < 1e-9, f"{how}: {have}")
            else:  # Where an exchange would gain too little there is none.
                check(have["none"] > 1.1 and have["zigzag"] <= have["none"] and have["striped"] < 1.02, f"{how}: {have}")
    said = call(["meshwright", "inspect", "balance"])
    check(re.search(r"attention    the most loaded rank has 1\.0\d\d times the mean\n", said), said)
    imbalance("full.json", 2, "gather", "zigzag", 64, "--packed")
    check("if each sequence were one document" in call(["meshwright", "inspect", "balance"]), "of documents the plan says more than it knows")


PAGE = """# Context parallelism

The mesh axis `context` divides each sequence, for sequences that are too long for the memory of one device. Ranks along this axis hold
the same parameters and count as data-parallel ranks for gradient synchronization and ZeRO. All ops except attention and linear recurrences work on a rank's
own part of the sequence. In attention a query needs keys from the whole sequence; `--context-parallel` selects how it gets them.
Recurrences and short convolutions have the whole sequence and a part of their channels instead, whatever it selects ([recurrences.md](recurrences.md#parallelism)).

    meshwright compile config.json --seq 131072 --mesh context=8,tensor=2 --context-parallel ulysses --zero 3 ...

| | a rank computes attention of | communication in the forward | in the backward |
|---|---|---|---|
| `gather` | its queries, all heads; keys and values of the whole sequence | all-gathers of k and v; permutes of half of q and half of the output | the same and half of dq, then reduce-scatters of dk and dv |
| `ring` | its queries, all heads; keys and values of two ranks at a time | permutes of k and v; permutes of half of q, k, v and the output | the same and half of dq, dk and dv; permutes of dk and dv in f32 |
| `ulysses` | the whole sequence, its heads | all-to-alls of q, k, v and the output | all-to-alls of the output, its gradient, dq, dk and dv |
| `hybrid` | the queries of U ranks, its heads; keys and values of 2U ranks | as `ulysses` among U ranks, then as `ring` among R | the same |

The default, `auto`, is `ring`, or `hybrid` for a mesh axis `context=RxU`; it is `gather` for models whose attention has distances (relative positions as in T5), which no ring divides.

## All-gather

`gather` (Grattafiori et al. 2024, for Llama 3): each rank computes its own queries against all-gathered keys and values, which are
freed afterwards. A layer saves only its own part of them; the backward gathers them again and reduce-scatters their gradients.
Everything that depends on positions (the causal mask, sliding windows, linear biases, dropout) uses a query's index in the whole
sequence (`query_offset` of `train.attention`). The number of ranks is independent of the number of heads. On GPUs, generated kernels
compute this attention, because the cuDNN operations used here start at position 0.

## Load balancing of causal attention

Without load balancing, the last rank's queries see the most keys: it computes up to twice the mean of causal attention, and the other
ranks wait for it. With `--context-balance zigzag`, the default of `gather`, `ring` and `hybrid`, ranks p and N - 1 - p exchange the
second halves of their queries before attention, and return the results afterwards, in the forward and in the backward
(`dist-balance-attention`). Of 2N chunks of queries, rank p computes chunks 2p and 2 (N - 1 - p) + 1; all such pairs see equally many keys:

        tokens     0 1 | 2 3 | 4 5 | 6 7 | 8 9 | a b | c d | e f        4 ranks, 16 tokens
        rank        0     0     1     1     2     2     3     3         holds them
        rank        0     3     1     2     2     1     3     0         computes their attention; all ranks compute equally many pairs

Attention becomes two calls, each with half of the queries. Keys, positions, the data and everything outside attention do not change, so
load balancing works with any window, bias, dropout or padding. It is omitted where it would gain less than 2%: where attention is not
causal, or where a window gives all ranks the same work. The pairs of query and key in each call are counted at compile time
(`meshwright-opt --dist-count-attention` writes them into the IR). The volume of the exchange falls with N, while the volume of the
all-gathers does not: use `none` for few ranks with slow links and short sequences. In the plan, `flops` is the mean over ranks, and
`attention_imbalance` is the attention of the most loaded rank divided by the mean, forward and backward together; `inspect` and reports show both.
If windows differ between layers, it covers all layers of a step.

With `--context-balance striped` (striped attention, Brandon et al. 2023) rank p receives queries p, p + N, p + 2N, .. in one all-to-all,
and for a ring the same keys and values:

        tokens     0 1 2 3 | 4 5 6 7 | 8 9 a b | c d e f                4 ranks, 16 tokens
        rank           0   |    1    |    2    |    3                   holds them
        rank       0 1 2 3   0 1 2 3   0 1 2 3   0 1 2 3                computes their attention

Attention is one call for each step of a ring: a triangle with or without its diagonal, so the last rank has (N - 1) / (S + 1) more than
the mean. Since every part of a sequence is spread over all ranks, striping also balances windows, and the documents of packed sequences
(`--packed`), which start anywhere; zigzag balances neither. It sends (N - 1) / N of a rank's queries where zigzag sends half, and no step
of a ring can be skipped because of a window. The number of tokens per rank must be divisible by N, otherwise the command is refused. What
counts is `--seq` padded to a multiple of N: with N = 3, sequences of 16 to 18 tokens work, 19 to 21 do not. With `hybrid`, the tokens of
U ranks must be divisible by R. The distances between a call's queries and between its keys are attributes (`query_stride` and `key_stride` of
`train.attention`). `--target stablehlo` refuses striping.

## Ring attention

`ring` (Liu et al. 2023) computes the same as `gather`, but keys and values are passed from rank to rank instead (`dist-ring-attention`).
In step t, rank p holds the keys and values of rank p - t and computes its queries' attention to them, while those of p - t - 1 arrive. The
results of a step are merged with the earlier ones by their log-sum-exp, in f32. In the backward, the accumulated gradients of keys and
values travel along in f32 and return to their owner at the end:

        step        0    1    2    3            4 ranks: whose keys and values a rank has
        rank 0      0    3    2    1
        rank 1      1    0    3    2            rank 1 sends what it has to rank 2, and so on
        rank 2      2    1    0    3            dk and dv of 0 start at rank 1 in step 1, go to 2 and 3 in steps 2 and 3,
        rank 3      3    2    1    0            and then to 0, which adds its own

A rank never holds the keys and values of more than two ranks, so a sequence of any length fits, given enough ranks. On GPUs, communication
overlaps computation, as `--overlap on` does elsewhere. Steps in which a window hides all keys from all queries are skipped, and keys and
values are sent directly to the rank that needs them next: with a two-sided window, to a few ranks before and after.
For load balancing, ranks p and N - 1 - p also exchange the second halves of keys and values. Then two of the four pairs of a chunk of queries
and a chunk of keys are visible in every step on every rank, and the calls of the other two pairs return immediately.

On GPUs, generated kernels compute each step of a ring, as with `gather`. They write f32 results and merge them as they write them. cuDNN's
attention rounds its result to bf16, which would add one rounding per step.

**Multi-head latent attention** (DeepSeek-V2 and V3, MiniCPM3) derives the keys and values of all heads from one latent and one rotary key per
token. With `ring` the latents and rotary keys travel around the ring, and each rank recomputes keys and values from them in each step. In the
backward their gradients travel, and the gradients of the projection weights in between accumulate locally over the steps. A layer also saves
the latents instead of keys and values. The pass does not look for particular models: it takes the cheapest cut through the ops that compute
keys and values, at the price in FLOPs per byte that rematerialization uses, if less than half as much is then sent. For DeepSeek-V2-Lite on 8 ranks, a rank sends {latent} MB per layer
and step instead of {expanded} MB, and computes {again} more.

## Ulysses

`ulysses` (Jacobs et al. 2023): attention is divided by heads instead, by key-value heads first. All-to-alls redistribute queries, keys, values and the
output of attention, one for each, in the forward and in the backward. The product of `context` and `tensor` must divide the number of heads; if it exceeds the number of
key-value heads, ranks share them. All ranks have equal work. On GPUs cuDNN computes attention; its kernels are faster than the generated ones on the GPUs that they are written for.

## Hybrid

`hybrid` (USP, Fang and Zhao 2024), for `--mesh context=RxU`: of the R U ranks, each group of U neighbours exchanges sequence parts for heads as `ulysses` does, so that
it holds one of R long parts of the sequence; the R ranks that then have the same heads form a ring. U is limited by the number of heads, R by the
computation available in a ring step; a ring of R steps sends keys and values of 1/U of the heads. If there are fewer key-value heads than U, the neighbours that share one
gather it before it enters the ring.

        context=2x2, 4 heads        tokens of layers      attention: queries     heads     keys in step 0, 1
        rank 0 = (0, 0)             1st quarter           1st half               0 1       1st half, 2nd half
        rank 1 = (0, 1)             2nd quarter           1st half               2 3       1st half, 2nd half
        rank 2 = (1, 0)             3rd quarter           2nd half               0 1       2nd half, 1st half
        rank 3 = (1, 1)             4th quarter           2nd half               2 3       2nd half, 1st half

## Combinations, and which to choose

All four are sharding seeds (`lib/Dist/Strategy/SequenceSeeds.cpp`), and a ring is a rewrite of the partitioned program. They therefore combine with tensor and sequence
parallelism, ZeRO, pipelines, a parameter server, activation checkpointing and offload, and with windows and dropout. Sequences that do not divide evenly are padded.

- `ulysses`: for many ranks, if the heads divide evenly; on GPUs in bf16 whenever they do.
- `gather`: for few ranks, for heads that do not divide, or for few key-value heads; its volume does not depend on the number of heads.
- `ring`: when the keys and values of the whole sequence do not fit, or when attention takes long enough to hide the communication.
- `hybrid`: when the heads divide only among some of the ranks.

Llama 3 8B in bf16, one sequence of {sequence:,} tokens, from plans (`test/EndToEnd/memory/context_memory.py`): GB of activations that a rank
saves, and MB that a rank sends per layer in the forward; "balance" is the additional volume of load balancing.

| ranks | `ulysses`: GB | MB | `gather`: GB | MB | balance | `ring`: GB | MB | balance |
|---|---|---|---|---|---|---|---|---|
{rows}

Activations are 1/N. `ulysses` sends (N-1)/N^2 B S (2 h + 2 h_kv) elements as long as N divides the 8 key-value heads. Beyond that, the ranks
that share a key-value head each save its keys and values, and gather them. `gather` sends (N-1)/N B S 2 h_kv in the forward and twice that in the
backward; load balancing adds B S h / N in the forward and twice that in the backward. `ring` sends the same; load balancing adds a further B S h_kv / N in the forward and
twice that in the backward, and gradients of keys and values take 4 bytes per element.

On 16 GPUs with `ring`, a rank needs {zero3:,} bytes with `--zero 3`, including everything that its plan reserves for CUDA: {parts}.
With `--zero 0` it needs {zero0:,}.
"""

if __name__ == "__main__":
    config = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        check_imbalance()
        found = measure(config)
        if "table" in sys.argv:
            def cells(kept, *sent):
                return [f"{kept / 1e9:.2f}", *(f"{bytes / 1e6:.1f}" for bytes in sent)]
            lines = ["| " + " | ".join([str(row[0]), *cells(*row[1:3]), *cells(*row[3:6]), *cells(*row[6:9])]) + " |" for row in found]
            sharded = plan(config, 16, "ring", zero=3)
            parts = ", ".join(f"{line['category']} {line['bytes'] / 1e9:.1f} GB" for line in sharded["memory"] if line["bytes"] >= 1e8)
            latent, expanded, again = latents()
            print(PAGE.format(latent=f"{latent / 1e6:.1f}", expanded=f"{expanded / 1e6:.1f}", again=f"{again:.1%}", sequence=SEQUENCE, rows="\n".join(lines), zero3=sharded["device_bytes"], parts=parts,
                              zero0=plan(config, 16, "ring")["device_bytes"]))
        else:
            print(f"{len(found)} numbers of ranks keep 1/N of the activations")
            print(f"latent heads send {latents()[0]} bytes of a layer")
        os.chdir("/")
