#!/usr/bin/env python3
"""Trains small models on GPUs with cuDNN's attention and with generated kernels: attention_numbers.py CORPUS WORK [NAME]...

Losses and gradient norms are the same but for bf16's rounding, and each value of a step that cuDNN has computed is
what the float64 interpreter computes of its operands."""
import json
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, compile, distance, fresh, train

COMMON = {"vocab_size": 256, "num_hidden_layers": 1, "intermediate_size": 64, "max_position_embeddings": 64}
MODELS = {
    "gpt2": ({"model_type": "gpt2", "vocab_size": 256, "n_positions": 64, "n_embd": 192, "n_layer": 1, "n_head": 3,
              "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0}, {"seq": 32}),
    "shared-keys": ({"model_type": "llama", **COMMON, "hidden_size": 64, "num_attention_heads": 4,
                     "num_key_value_heads": 2, "head_dim": 64}, {"seq": 29}),
    "window": ({"model_type": "mistral", **COMMON, "hidden_size": 64, "num_attention_heads": 2,
                "num_key_value_heads": 1, "head_dim": 128, "sliding_window": 7}, {"seq": 33}),
    "any-order": ({"model_type": "llama", **COMMON, "hidden_size": 64, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "head_dim": 64}, {"seq": 24, "deterministic": "off"}),
    "fp16": ({"model_type": "llama", **COMMON, "hidden_size": 80, "num_attention_heads": 2, "head_dim": 40},
             {"seq": 32, "precision": "fp16"}),
    "two-ranks": ({"model_type": "llama", **COMMON, "hidden_size": 64, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "head_dim": 64}, {"seq": 32, "mesh": "tensor=2"}),
}

corpus = pathlib.Path(sys.argv[1]).resolve()
fresh(sys.argv[2])
for name in sys.argv[3:] or MODELS:
    config, options = MODELS[name]
    options = {"batch": 2, "precision": "bf16", **options}
    ranks = 2 if "mesh" in options else 1
    json.dump(config, open("config.json", "w"))
    rows = {}
    for by in ("cudnn", "generated"):
        compile("config.json", by, target="cuda", replay=True, attention=by, **options)
        makers = {row["by"] for row in json.loads(call(["meshwright", "inspect", "--json", by]))["attentions"]}
        check(makers == {by}, f"{name}: attention is made by {makers}")
        rows[by] = train(f"./{by}", ranks, data=corpus, tokens="u8", steps=4, lr=3e-3, dump=f"{name}-{by}", dump_step=2)
    loss, norm = (distance(rows["cudnn"], rows["generated"], key) for key in ("loss", "grad_norm"))
    check(loss <= 1e-3, f"{name}: a loss is {loss:.1e} off that with generated kernels")
    check(norm <= 1e-2, f"{name}: a gradient norm is {norm:.1e} off that with generated kernels")
    done = subprocess.run(["meshwright", "replay", f"{name}-cudnn"], capture_output=True, text=True)
    check(done.returncode == 0 and "step 2: all" in done.stdout, f"{name}: {done.stdout}{done.stderr}")
    print(f"{name}: loss {loss:.1e}, grad_norm {norm:.1e} off generated kernels; {done.stdout.strip()}", flush=True)
