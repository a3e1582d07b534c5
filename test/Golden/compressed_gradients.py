#!/usr/bin/env python3
"""Makes the golden runs of --grad-reduce-dtype: golden/llama-tiny/reduce-TYPE-N.json, of N data-parallel ranks without ZeRO.

    python3 -m venv venv && venv/bin/pip install torch transformers
    venv/bin/python test/Golden/compressed_gradients.py

The product needs none of this; the results are committed. The model is that of transformers in float64, and so is AdamW. The gradient of
each rank's sequences is rounded to f32; from there on reductions are computed here as docs/compression.md says: terms are rounded,
added in f32 in the order of ranks, and the sum is rounded again. A tensor of the program is a stack of all layers' matrices.
"""
import json
import re

import numpy as np
import torch
import transformers

import published_optimizers
from published_optimizers import FOLDERS, WEIGHTS, adamw, batch_of

FOLDER = FOLDERS["llama-tiny"]
single = torch.empty(0).float().dtype  # published_optimizers takes the name float32 for float64


def bf16(tensors):
    return [x.bfloat16().to(single) for x in tensors]


def fp8(tensors):
    """E4M3; the scale of all is the smallest power of two with which no number is beyond 448."""
    amax = max(x.abs().max().item() for x in tensors)
    scale = 2.0 ** max(-126, int(np.ceil(np.log2(amax / 448)))) if amax else 2.0 ** -126
    assert amax / scale <= 448 and (amax / scale > 224 or scale == 2.0 ** -126)
    return [(x / scale).to(torch.float8_e4m3fn).to(single) * scale for x in tensors]


def reduced(terms, rounded):
    """The sum of the ranks' tensors, as all of them have it then."""
    total = torch.zeros_like(terms[0])
    for term in rounded(terms):
        total += term
    return rounded([total])[0]


def stacks(model):
    """The names of parameters that are one tensor of the program."""
    groups = {}
    for name, _ in model.named_parameters():
        groups.setdefault(re.sub(r"layers\.\d+\.", "layers.*.", name), []).append(name)
    return groups.values()


def train(run, ranks, rounded):
    config = transformers.AutoConfig.from_pretrained(FOLDER)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.double)
    model.load_state_dict(WEIGHTS["llama-tiny"])
    (optimizer,) = adamw(model, run)
    parameters = dict(model.named_parameters())
    losses, norms = [], []
    for step in range(run["steps"]):
        x, y = batch_of("llama-tiny", run, step)
        loss, own = 0.0, []
        for xs, ys in zip(x.chunk(ranks), y.chunk(ranks)):
            model.zero_grad()
            term = torch.nn.functional.cross_entropy(model(xs).logits.flatten(0, 1), ys.flatten(), reduction="sum") / y.numel()
            term.backward()
            loss += term.item()
            own.append({name: weight.grad.to(single) for name, weight in parameters.items()})
        for names in stacks(model):
            total = reduced([torch.stack([gradients[name] for name in names]) for gradients in own], rounded)
            for name, gradient in zip(names, total):
                parameters[name].grad = gradient.double()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), run["grad_clip"]).item())
        optimizer.step()
        losses.append(loss)
    return {"run": run, "loss": losses, "grad_norm": norms, "final_norm": {n: w.norm().item() for n, w in model.named_parameters()}}


if __name__ == "__main__":
    known = json.loads((FOLDER / "golden.json").read_text())
    exact = train(known["run"], 2, lambda tensors: tensors)
    error = max(abs(a / b - 1) for key in ("loss", "grad_norm") for a, b in zip(exact[key], known[key]))
    print(f"without rounding: largest difference from golden.json {error:.1e}")
    assert error < 1e-5
    for kind, rounded in (("bf16", bf16), ("fp8", fp8)):
        for ranks in (2, 4):
            golden = train(known["run"], ranks, rounded)
            off = max(abs(a / b - 1) for a, b in zip(golden["loss"], known["loss"]))
            print(f"{kind}, {ranks} ranks: loss {golden['loss'][0]:.6f} -> {golden['loss'][-1]:.6f}, at most {off:.1e} off the uncompressed run's")
            (FOLDER / f"reduce-{kind}-{ranks}.json").write_text(json.dumps(golden, indent=1) + "\n")
