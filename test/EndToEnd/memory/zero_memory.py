#!/usr/bin/env python3
"""What ZeRO leaves of a model's state on a rank, read from plans: zero_memory.py [table]

Rajbhandari et al. 2020: with weights and gradients of two bytes and Adam, a parameter takes 2 + 2 + 12 bytes; over N data
ranks stage 1 leaves 2 + 2 + 12/N of them, stage 2 2 + 14/N, stage 3 16/N. Plans must agree within 1%, and a model as large as
80 GB allow must fit where one with a layer more does not. With `table`, prints docs/zero.md instead of a summary.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")
from harness import call, check, flags

RANKS, BUDGET, TOLERANCE = 64, 80e9, 0.01
FORMULAS = [16, 2 + 2 + 12 / RANKS, 2 + 14 / RANKS, 16 / RANKS]
PAPER = [120, 31.4, 16.6, 1.9]  # GB of 7.5e9 parameters, their figure 1
WIDTHS = [2048, 4096, 4096, 8192]  # for the largest models: a layer is less than 1% of each
STATES = "parameter", "gradient", "optimizer"


def config(layers, width):
    """GPT-2 without dropout: 12 width^2 weights a layer."""
    json.dump({"model_type": "gpt2", "n_layer": layers, "n_embd": width, "n_head": width // 128, "n_positions": 1024,
               "vocab_size": 50257, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "attn_pdrop": 0,
               "embd_pdrop": 0, "resid_pdrop": 0, "tie_word_embeddings": True}, open("config.json", "w"))
    return "config.json"


def compiling(layers, width, stage, **more):
    """Sequences of one token, so that next to nothing is there but the state; two microbatches, so that gradients
    are accumulated and none is computed into its parameter's place."""
    options = {"mesh": f"data={RANKS}", "zero": stage, "precision": "bf16", "grad-dtype": "bf16", "masters": "whole", "seq": 1, "microbatches": 2,
               "emit": "exec", "output": "out.mlir", **more}
    return ["meshwright", "compile", config(layers, width), *flags(options)]


def plan(layers, width, stage, **more):
    """The number of parameters, a rank's bytes of them, of gradients and states, and of everything."""
    call(compiling(layers, width, stage, report="report", **more))
    report = json.load(open("report/report.json"))
    memory = {line["category"]: line["bytes"] for line in report["memory"]}
    count = sum(math.prod(v["shape"]) for v in report["variables"] if v["role"] == "parameter")
    return count, [memory.get(category, 0) for category in STATES], report["arena_bytes"]


def near(have, want, what):
    check(abs(have / want - 1) <= TOLERANCE, f"{what}: {have:.4f}, expected {want:.4f}")


def bytes_each():
    rows = []
    for stage, formula in enumerate(FORMULAS):
        count, states, arena = plan(36, 4096, stage)
        near(sum(states) / count, formula, f"bytes a parameter in stage {stage}")
        paper = sum(states) / count * 7.5 - PAPER[stage]
        check(abs(paper) <= TOLERANCE * PAPER[stage] + 0.05, f"{paper:+.2f} GB from the paper's {PAPER[stage]}, to its one decimal")
        cells = [f"{size / count:.4g}" for size in (*states, sum(states))]
        rows.append([stage, *cells, f"{formula:.5g}", f"{sum(states) / count * 7.5:.1f}", PAPER[stage], f"{arena / count:.3g}"])
    count, states, _ = plan(36, 4096, 0, **{"grad-dtype": "f32"})
    near(sum(states) / count, 18, "bytes a parameter with gradients in f32")
    return count, rows


def fits(layers, width, stage):
    """Whether the compiler finds the state within the budget."""
    command = compiling(layers, width, stage, **{"assert": f"{'+'.join(STATES)}<=80GB"})
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    check(done.returncode == 0 or "is broken" in done.stderr, done.stderr)
    return done.returncode == 0


def largest():
    rows = []
    for stage, (formula, width) in enumerate(zip(FORMULAS, WIDTHS)):
        least, most = 1, 2048
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if fits(middle, width, stage) else (least, middle)
        count, states, arena = plan(least, width, stage)
        more, above, _ = plan(most, width, stage)
        check(sum(states) <= BUDGET < sum(above), f"stage {stage}: {sum(states)} and {sum(above)} bytes")
        near(count, BUDGET / formula, f"parameters in 80 GB in stage {stage}")
        rows.append([stage, f"{BUDGET / formula / 1e9:.4g}", width, least, f"{count / 1e9:.4g}", f"{sum(states) / 1e9:.2f}",
                     f"{arena / 1e9:.1f}", most, f"{more / 1e9:.4g}", f"{sum(above) / 1e9:.2f}"])
    return rows


def table(head, rows):
    return "".join("| " + " | ".join(str(cell) for cell in row) + " |\n" for row in [head, ["---"] * len(head), *rows])


os.chdir(tempfile.mkdtemp())
count, each = bytes_each()
models = largest()
if sys.argv[1:] == ["table"]:
    print(f"""# ZeRO: memory per rank

The memory of a model's states per rank, from plans for data={RANKS}: weights and gradients in bf16, AdamW with complete f32 master weights (`--masters whole`).
Rajbhandari et al. (2020) count 2 + 2 + 12 bytes per parameter: ZeRO stage 1 divides the 12 bytes of optimizer states by the number of ranks, stage 2 also the 2 bytes of gradients,
stage 3 (FSDP) everything. `test/EndToEnd/memory/zero_memory.py` makes these tables from `--report` and fails if a plan differs by more than 1%.

Bytes per parameter on a rank at peak memory, for a GPT-2 with 36 layers of width 4096 ({count / 1e9:.3f} billion
parameters), and the resulting GB for 7.5 billion parameters, beside the paper's:

""" + table(["--zero", "parameters", "gradients", "optimizer", "sum", "formula", "GB", "paper's GB", "whole plan"], each) + f"""
With `--grad-dtype f32` gradients take 4 bytes, which makes 18 at stage 0. The batch has two microbatches, so that gradients are
accumulated; with one microbatch, a gradient that is reduced in bf16 reuses the memory of its parameter, and the plan counts it as parameter memory. Plans
exceed the formula slightly, because shards are aligned to 64 bytes, which matters for norms and biases. The whole plan is a
rank's arena: it also holds communication buffers (at stage 3, those of one layer) and the workspaces of matrix products.

The largest models whose states fit into 80 GB (decimal), to the layer:

""" + table(["--zero", "10^9 by the formula", "width", "layers that fit", "10^9 parameters", "GB of states", "GB of the plan",
             "layers that do not", "10^9 parameters", "GB of states"], models).rstrip())
else:
    for row in (*each, *models):
        print(*row)
