#!/usr/bin/env python3
"""Makes the golden runs of optimizers that generate.py does not run: NAME.json beside golden.json of a golden model.

    python3 -m venv venv && venv/bin/pip install jax optax safetensors numpy
    venv/bin/python test/Golden/optimizers.py

The product needs none of this; the results are committed. Updates are optax's, in float64, on a model of the Llama family
written here in JAX, whose run with AdamW must be the one of transformers in golden.json.
"""
import fnmatch
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors.numpy import load_file

jax.config.update("jax_enable_x64", True)

HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE.parent / "Inputs" / "golden-more" / "llama-v5"
DECAY = {"adam": 0.02, "lion": 0.5, "sgd-momentum": 0.02, "sgd-nesterov": 0.02}


def norm(x, weight, eps):
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def rotate(x, config):
    """x: [b, s, h, d]; the halves of a head turn together."""
    half, rope = x.shape[-1] // 2, config["rope_parameters"]
    frequency = rope["rope_theta"] ** (-np.arange(half) / half) / rope["factor"]
    angle = np.arange(x.shape[1])[:, None] * frequency
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def loss_of(weights, x, y, config):
    """The mean cross-entropy of the targets y."""
    eps, heads, size = config["rms_norm_eps"], config["num_attention_heads"], config["head_dim"]
    h = weights["model.embed_tokens.weight"][x]
    mask = np.tril(np.ones((x.shape[1], x.shape[1]), bool))
    for layer in range(config["num_hidden_layers"]):
        of = lambda name: weights[f"model.layers.{layer}.{name}.weight"]
        n = norm(h, of("input_layernorm"), eps)
        q, k, v = ((n @ of(f"self_attn.{p}_proj").T).reshape(*x.shape, heads, size) for p in "qkv")
        scores = jnp.einsum("bqhd,bkhd->bhqk", rotate(q, config), rotate(k, config)) / np.sqrt(size)
        p = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), -1)
        h = h + jnp.einsum("bhqk,bkhd->bqhd", p, v).reshape(*x.shape, -1) @ of("self_attn.o_proj").T
        n = norm(h, of("post_attention_layernorm"), eps)
        h = h + (jax.nn.relu(n @ of("mlp.gate_proj").T) * (n @ of("mlp.up_proj").T)) @ of("mlp.down_proj").T
    logits = norm(h, weights["model.norm.weight"], eps) @ weights["lm_head.weight"].T
    return (jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, y[..., None], -1)[..., 0]).mean()


# Factors of the learning rate and of the weight decay by names; the first that matches holds.
GROUPS = {"*.embed_tokens.weight": {"lr": 0.5, "decay": 0}, "*_proj.weight": {"lr": 2}, "*norm.weight": {"decay": 3}}


def optimizer_of(run):
    """optax's, one for each group."""
    if "optimizer_groups" not in run:
        return optimizer_of_group(run)
    groups = {"": optimizer_of_group(run)}
    for pattern, factors in GROUPS.items():
        of_group = dict(run, lr=run["lr"] * factors.get("lr", 1), weight_decay=run["weight_decay"] * factors.get("decay", 1))
        groups[pattern] = optimizer_of_group(of_group, all_decay="decay" in factors)

    def labels(weights):
        return {name: next((pattern for pattern in GROUPS if fnmatch.fnmatchcase(name, pattern)), "") for name in weights}
    return optax.multi_transform(groups, labels)


def optimizer_of_group(run, all_decay=False):
    """Matrices alone decay, unless `all_decay`."""
    def matrices(weights):
        return {name: all_decay or getattr(value, "ndim", 0) >= 2 for name, value in weights.items()}
    rate, decay = run["lr"], run["weight_decay"]
    if run["optimizer"].startswith("sgd-"):  # as torch.optim.SGD, in which decay is a part of the gradient
        return optax.chain(optax.add_decayed_weights(decay, matrices),
                           optax.sgd(rate, momentum=run["momentum"], nesterov=run["optimizer"] == "sgd-nesterov"))
    betas = {"b1": run["beta1"], "b2": run["beta2"]}
    if run["optimizer"] == "lion":
        return optax.lion(rate, **betas, weight_decay=decay, mask=matrices)
    if run["optimizer"] == "adam":  # as torch.optim.Adam: decay is a part of the gradient
        return optax.chain(optax.add_decayed_weights(decay, matrices), optax.adam(rate, **betas, eps=run["eps"]))
    return optax.adamw(rate, **betas, eps=run["eps"], weight_decay=decay, mask=matrices)


def train(run):
    config = json.loads((MODEL / "config.json").read_text())
    weights = {n: jnp.asarray(w, jnp.float64) for n, w in load_file(MODEL / "model.safetensors").items()}
    data = np.frombuffer((MODEL.parent / run["data"]).read_bytes(), np.uint8).astype(np.int64)
    optimizer = optimizer_of(run)
    state = optimizer.init(weights)
    step_of = jax.jit(jax.value_and_grad(lambda w, x, y: loss_of(w, x, y, config)))
    losses, norms, batch, seq = [], [], run["batch"], run["seq"]
    for step in range(run["steps"]):
        starts = [(step * batch + i) % ((len(data) - 1) // seq) * seq for i in range(batch)]
        x, y = (np.stack([data[at + shift:at + shift + seq] for at in starts]) for shift in (0, 1))
        loss, gradients = step_of(weights, x, y)
        size = float(optax.global_norm(gradients))
        clip = min(1.0, run["grad_clip"] / (size + 1e-6))
        updates, state = optimizer.update({n: g * clip for n, g in gradients.items()}, state, weights)
        weights = optax.apply_updates(weights, updates)
        losses.append(float(loss))
        norms.append(size)
    return {"run": run, "loss": losses, "grad_norm": norms,
            "final_norm": {n: float(jnp.linalg.norm(w)) for n, w in weights.items()}}


def write(name, run):
    golden = train(run)
    (MODEL / f"{name}.json").write_text(json.dumps(golden, indent=1) + "\n")
    print(f"{name}: loss {golden['loss'][0]:.6f} -> {golden['loss'][-1]:.6f}")


if __name__ == "__main__":
    known = json.loads((MODEL / "golden.json").read_text())
    again = train(known["run"])
    error = max(abs(a / b - 1) for key in ("loss", "grad_norm") for a, b in zip(again[key], known[key]))
    print(f"adamw: largest difference from transformers {error:.1e}")
    assert error < 1e-12
    for name, decay in DECAY.items():
        run = {**known["run"], "optimizer": name, "weight_decay": decay}
        if name == "lion":
            del run["eps"]
            run["beta2"] = 0.99
        if name.startswith("sgd-"):
            del run["eps"], run["beta1"], run["beta2"]
            run["momentum"], run["lr"] = 0.9, 0.05
        write(name, run)
    groups = ";".join(f"{pattern}:" + ",".join(f"{name}={factor}" for name, factor in factors.items())
                      for pattern, factors in GROUPS.items())
    write("groups", {**known["run"], "weight_decay": 0.5, "optimizer_groups": groups})
