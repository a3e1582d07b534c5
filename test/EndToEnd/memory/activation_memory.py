#!/usr/bin/env python3
"""Activations that a layer leaves for its backward, read from plans: activation_memory.py [table]

Korthikanti et al. 2022 count them for GPT in half precision: s tokens, b sequences, width h, a heads, t tensor ranks. Plans of
their 22B and 175B models must not have more, and must have exactly what the list below says is kept. With `table`, prints
docs/activations.md instead of a summary.
"""
import json
import math
import os
import re
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")
from harness import call, check, flags, ir

# Their table 3: width, heads, sequences of a microbatch; 2048 tokens, 8 tensor ranks, dropout everywhere.
MODELS = {"22B": (6144, 64, 4), "175B": (12288, 96, 1)}
S, T, VOCABULARY = 2048, 8, 51200
PARALLEL = {"none": {}, "tensor": {"mesh": f"tensor={T}"}, "tensor + sequence": {"mesh": f"tensor={T}", "sequence_parallel": True}}
PARALLEL["tensor + sequence, selective"] = dict(PARALLEL["tensor + sequence"], remat="selective")
PARALLEL["full"] = {"remat": "full"}
PARALLEL["tensor + sequence, full"] = dict(PARALLEL["tensor + sequence"], remat="full")
FORMULAS = {
    "none": ("sbh(34 + 5as/h)", lambda a, h: 34 + 5 * a * S / h),
    "tensor": ("sbh(10 + 24/t + 5as/ht)", lambda a, h: 10 + 24 / T + 5 * a * S / h / T),
    "tensor + sequence": ("sbh(34/t + 5as/ht)", lambda a, h: 34 / T + 5 * a * S / h / T),
    "tensor + sequence, selective": ("34sbh/t", lambda a, h: 34 / T),
    "full": ("2sbh", lambda a, h: 2),
    "tensor + sequence, full": ("2sbh", lambda a, h: 2),
}
# What a layer computes, their bytes and ours in sbh, whether tensor ranks have parts of it without sequence parallelism,
# and what we do instead. Their sums are the formula of `none`; ours must be the plan's.
LINES = [
    ("input of the layer and of the first norm", "2", 2, 2, False, "saved"),
    ("output of the norm, input of the q, k, v projections", "2", 2, 0, False,
     "recomputed: the norm is fused into a kernel of the backward, which reads the norm's input anyway"),
    ("q and k", "4", 4, 4, True, "saved"),
    ("v", "2", 2, 2, True, "saved"),
    ("softmax of the scores", "2as/h", None, 0, True,
     "never stored (FlashAttention, Dao et al. 2022): the backward recomputes scores, block by block"),
    ("softmax after dropout", "2as/h", None, 0, True, "never stored either"),
    ("mask of that dropout", "as/h", None, 0, True, "never stored: recomputed from key, layer and element"),
    ("log-sum-exp of each row of scores, in f32", "", 0, None, True, "saved: the backward recomputes the softmax from it, 4a/h"),
    ("output of attention, input of its projection", "2", 2, 2, True, "saved"),
    ("mask of the dropout after it", "1", 1, 0, False, "recomputed"),
    ("residual sum, input of the second norm", "2", 2, 2, False, "saved"),
    ("output of the norm, input of the MLP", "2", 2, 0, False, "recomputed, like the first"),
    ("hidden values of the MLP, input of gelu", "8", 8, 8, True, "saved"),
    ("output of gelu", "8", 8, 0, True, "recomputed, in one kernel with the derivative"),
    ("mask of the last dropout", "1", 1, 0, False, "recomputed"),
]


def kept(a, h, name):
    """What LINES say of ours."""
    parts = 1 if name in ("none", "full") else T
    if "full" in name:
        return 2 / parts
    return sum((4 * a / h if ours is None else ours) / (parts if cut or "sequence" in name else 1)
               for _, _, _, ours, cut, _ in LINES)


def plan(width, heads, batch, options, layers=5):
    """Bytes that the stacks of all layers take on a rank, by layer."""
    json.dump({"model_type": "gpt2", "n_layer": layers, "n_embd": width, "n_head": heads, "n_positions": S, "vocab_size": VOCABULARY,
               "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "attn_pdrop": 0.1, "embd_pdrop": 0.1,
               "resid_pdrop": 0.1, "tie_word_embeddings": True}, open("config.json", "w"))
    call(["meshwright", "compile", "config.json", *flags(dict(options, batch=batch, seq=S, precision="bf16", emit="exec",
                                                              output="out.mlir"))])
    step = ir("out.mlir").split("exec.program @step")[1].split("exec.program @")[0]
    # The layers' inputs have a slot more, for what the last layer makes.
    stacks = re.findall(rf'exec.buffer "activation\S*" activation .*: memref<(?:{layers}|{layers + 1})x([0-9x]+)x(bf16|f32)>', step)
    return sum(math.prod(int(n) for n in shape.split("x")) * (2 if kind == "bf16" else 4) for shape, kind in stacks)


def measure():
    rows = []
    for model, (h, a, b) in MODELS.items():
        for name, options in PARALLEL.items():
            ours, theirs = plan(h, a, b, options) / (S * b * h), FORMULAS[name][1](a, h)
            check(0 < ours <= theirs, f"{model} {name}: {ours:.3f} sbh a layer, the paper has {theirs:.3f}")
            check(abs(ours - kept(a, h, name)) < 1e-9, f"{model} {name}: {ours} sbh a layer are not the {kept(a, h, name)} of the list")
            rows.append([model, name, FORMULAS[name][0], f"{theirs:.4g}", f"{ours:.4g}", f"{theirs * S * b * h / 2**20:,.0f}",
                         f"{ours * S * b * h / 2**20:,.0f}"])
    return rows


def table(head, rows):
    return "".join("| " + " | ".join(str(cell) for cell in row) + " |\n" for row in [head, ["---"] * len(head), *rows])


os.chdir(tempfile.mkdtemp())
rows = measure()
check(sum(line[2] or 0 for line in LINES) == 34, "the list is not the paper's")
if sys.argv[1:] == ["table"]:
    print(f"""# Activation memory of a layer

Bytes of activations that a layer saves for its backward, per rank, from plans in bf16, beside the formulas of Korthikanti et al. (2022) for GPT in
half precision: s tokens in each of b sequences, width h, a heads, t tensor-parallel ranks. The models are the paper's 22B (h = 6144, a = 64, b = 4) and
175B (h = 12288, a = 96, b = 1), with s = {S}, t = {T} and dropout everywhere. `test/EndToEnd/memory/activation_memory.py` makes this page,
and fails if a plan has more than the formula or differs from the list below.

""" + table(["model", "parallelism, `--remat`", "formula", "sbh", "Meshwright", "MiB", "Meshwright"], rows) + f"""
Unless stated otherwise, `--remat` is `none`. `selective` saves the same activations here: ops that cost only memory traffic are recomputed
under `none` too, and no matrix product of a GPT is cheap enough for `selective` to recompute it. `full` saves the layer's input, which
sequence parallelism shards.

Where the differences come from, in sbh for t = 1:

""" + table(["value", "paper", "Meshwright", "what Meshwright does"], [(what, theirs, "4a/h" if ours is None else ours or "", why)
                                                       for what, theirs, _, ours, _, why in LINES]).rstrip())
else:
    for row in rows:
        print(*row)
