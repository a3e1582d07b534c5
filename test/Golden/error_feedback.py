#!/usr/bin/env python3
"""Makes the golden runs of --grad-compression: golden/llama-tiny/powersgd-RANK-BLOCKS.json topk-DENSITY-BLOCKS.json
and onebit-1-BLOCKS.json.

    python3 -m venv venv && venv/bin/pip install torch transformers
    venv/bin/python test/Golden/error_feedback.py

The product needs none of this; the results are committed. The model is that of transformers in float64, and so is AdamW. The mean
gradient of each block of the batch is computed alone. From there on PowerSGD is algorithms 1 and 2 of Vogels et al. 2019, with QR in place of Gram
and Schmidt's method; signs of its columns, which that leaves open, change nothing. Top-k is that of Stich et al. 2018, of each group of a row. 1-bit Adam
begins after 10 steps of AdamW, with the scale of signs that is the mean magnitude of a group of a row.
"""
import json
import re

import numpy as np
import torch
import transformers

import published_optimizers
from philox import philox
from published_optimizers import FOLDERS, WEIGHTS, adamw, batch_of

FOLDER = FOLDERS["llama-tiny"]


def normal(name, shape, seed=0):
    """Standard normal numbers by a tensor's name and the index of an element (Box and Muller)."""
    key = 0xcbf29ce484222325
    for byte in name.encode():
        key = (key ^ byte) * 0x100000001b3 & 2**64 - 1
    key = philox([key & 0xFFFFFFFF, key >> 32, 0x1417, 2], [seed & 0xFFFFFFFF, seed >> 32])[:2]
    values = []
    for block in range((int(np.prod(shape)) + 3) // 4):
        words = philox([block, 0, 0, 3], list(key))
        for a, b in (words[:2], words[2:]):
            radius, angle = np.sqrt(-2 * np.log((a >> 1) * 2.0**-31 + 2.0**-32)), 2 * np.pi * b / 2**32
            values += [radius * np.cos(angle), radius * np.sin(angle)]
    return torch.tensor(values[:int(np.prod(shape))]).reshape(shape)


def variable_of(name):
    """The program's name of the state of a parameter in files, in which layers count behind all else."""
    layer = re.search(r"layers\.(\d+)\.", name)
    name = re.sub(r"layers\.\d+\.", "layers.", name.removeprefix("model."))
    return f"{name}.grad_factor" + (f".{layer[1]}" if layer else "")


class PowerSgd:
    """What workers know of a matrix: their errors, and the right factor that all have."""

    def __init__(self, name, shape, rank, workers):
        self.errors = [torch.zeros(shape) for _ in range(workers)]
        self.q = normal(variable_of(name), (shape[1], rank))

    def mean(self, gradients):
        wanted = [gradient + error for gradient, error in zip(gradients, self.errors)]
        p = torch.linalg.qr(sum(m @ self.q for m in wanted) / len(wanted))[0]
        self.q = sum(m.T @ p for m in wanted) / len(wanted)
        approximation = p @ self.q.T
        self.errors = [m - approximation for m in wanted]
        return approximation


class OneBit:
    """What workers know of a matrix, and what a server does, of the average of AdamW (1-bit Adam, algorithm 1). Rows are in groups of at
    most 512, all of one length that is a multiple of 8, which have one scale each."""

    def __init__(self, weight, optimizer, workers):
        self.weight, self.optimizer = weight, optimizer
        self.errors = [torch.zeros_like(weight) for _ in range(workers)]
        self.error = torch.zeros_like(weight)
        self.length = next((n for n in range(min(weight.shape[1], 512) // 8 * 8, 0, -8) if weight.shape[1] % n == 0), 0)

    def signs(self, wanted):
        groups = wanted.reshape(-1, self.length)
        return torch.where(groups >= 0, 1.0, -1.0).mul(groups.abs().mean(1, keepdim=True)).reshape(wanted.shape)

    def mean(self, gradients):
        decay = self.optimizer.param_groups[0]["betas"][0]
        state = self.optimizer.state[self.weight]
        average = state["exp_avg"] if state else torch.zeros_like(self.weight)
        sent = []
        for worker, gradient in enumerate(gradients):
            wanted = decay * average + (1 - decay) * gradient + self.errors[worker]
            sent.append(self.signs(wanted))
            self.errors[worker] = wanted - sent[-1]
        total = sum(sent) / len(sent) + self.error
        result = self.signs(total)
        self.error = total - result
        return (result - decay * average) / (1 - decay)  # of which AdamW makes `result`


class TopK:
    """What workers know of a matrix: their errors. Rows are in groups of at most 512, all of one length."""

    def __init__(self, shape, density, workers):
        self.errors = [torch.zeros(shape) for _ in range(workers)]
        self.length = next(n for n in range(min(shape[1], 512), 0, -1) if shape[1] % n == 0)
        self.kept = max(1, round(density * self.length))

    def is_worth(self):
        return 2 * self.kept < self.length

    def mean(self, gradients):
        sent = []
        for worker, gradient in enumerate(gradients):
            wanted = (gradient + self.errors[worker]).reshape(-1, self.length)
            columns = wanted.abs().topk(self.kept).indices
            kept = torch.zeros_like(wanted).scatter(1, columns, wanted.gather(1, columns))
            self.errors[worker] = (wanted - kept).reshape(gradient.shape)
            sent.append(kept.reshape(gradient.shape))
        return sum(sent) / len(sent)


def compressor(name, weight, optimizer, method, blocks):
    """What compresses a matrix by `method`, e.g. ("powersgd", 4), or None where it would not be less."""
    kind, size = method
    shape = weight.shape
    if kind == "onebit":
        made = OneBit(weight, optimizer, blocks)
        return made if made.length else None
    if kind == "topk":
        made = TopK(shape, size, blocks)
        return made if made.is_worth() else None
    return PowerSgd(name, shape, size, blocks) if kind == "powersgd" and 2 * size * sum(shape) < shape[0] * shape[1] else None


WARMUP = 10  # steps of AdamW before signs are sent


def frozen_step(optimizer, parameters, variances, updates):
    """AdamW with the second moments that it had after some updates."""
    for name, weight in parameters.items():
        group = next(one for one in optimizer.param_groups if any(weight is other for other in one["params"]))
        beta1, beta2 = group["betas"]
        state = optimizer.state[weight]
        state["step"] += 1
        with torch.no_grad():
            state["exp_avg"].mul_(beta1).add_(weight.grad, alpha=1 - beta1)
            weight.mul_(1 - group["lr"] * group["weight_decay"])
            root = (variances[name] / (1 - beta2**updates)).sqrt() + group["eps"]
            weight.sub_(group["lr"] * state["exp_avg"] / (1 - beta1**state["step"].item()) / root)


def train(run, method, blocks):
    config = transformers.AutoConfig.from_pretrained(FOLDER)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.double)
    model.load_state_dict(WEIGHTS["llama-tiny"])
    (optimizer,) = adamw(model, run)
    parameters = dict(model.named_parameters())
    # The gradient of a table in which rows are looked up is no product.
    made = {name: compressor(name, weight, optimizer, method, blocks) for name, weight in parameters.items() if weight.ndim == 2 and "embed" not in name}
    compressed = {name: one for name, one in made.items() if one}
    losses, norms = [], []
    for step in range(run["steps"]):
        if method[0] == "onebit" and step == WARMUP:
            variances = {name: optimizer.state[weight]["exp_avg_sq"].clone() for name, weight in parameters.items()}
        x, y = batch_of("llama-tiny", run, step)
        loss, own = 0.0, []
        for xs, ys in zip(x.chunk(blocks), y.chunk(blocks)):
            model.zero_grad()
            term = torch.nn.functional.cross_entropy(model(xs).logits.flatten(0, 1), ys.flatten())
            term.backward()
            loss += term.item() / blocks
            own.append({name: weight.grad.clone() for name, weight in parameters.items()})
        for name, weight in parameters.items():
            gradients = [gradient[name] for gradient in own]
            is_compressed = name in compressed and (method[0] != "onebit" or step >= WARMUP)
            weight.grad = compressed[name].mean(gradients) if is_compressed else sum(gradients) / blocks
        clip = run["grad_clip"] if method[0] != "onebit" or step < WARMUP else torch.inf
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), clip).item())
        if method[0] == "onebit" and step >= WARMUP:
            frozen_step(optimizer, parameters, variances, WARMUP)
        else:
            optimizer.step()
        losses.append(loss)
    return {"run": run, "compressed": sorted(compressed), "loss": losses, "grad_norm": norms}


if __name__ == "__main__":
    known = json.loads((FOLDER / "golden.json").read_text())
    exact = train(known["run"], ("none", 0), 2)
    error = max(abs(a / b - 1) for key in ("loss", "grad_norm") for a, b in zip(exact[key], known[key]))
    print(f"without compression: largest difference from golden.json {error:.1e}")
    assert error < 1e-5
    for method, blocks in ((("powersgd", 2), 2), (("powersgd", 4), 4), (("topk", 0.05), 2), (("topk", 0.02), 4), (("onebit", 1), 2), (("onebit", 1), 4)):
        golden = train(known["run"], method, blocks)
        off = max(abs(a / b - 1) for a, b in zip(golden["loss"], known["loss"]))
        print(f"{method[0]} {method[1]}, {blocks} blocks, {len(golden['compressed'])} matrices: loss {golden['loss'][0]:.6f} -> {golden['loss'][-1]:.6f}, "
              f"at most {off:.1e} off the uncompressed run's")
        (FOLDER / f"{method[0]}-{method[1]}-{blocks}.json").write_text(json.dumps(golden, indent=1) + "\n")
