#!/usr/bin/env python3
"""Makes test/Inputs/golden-jax: float64 training runs of examples/jax and of jax_mixed.py, by JAX's own derivatives and an AdamW of a few lines.

    python3 -m venv venv && venv/bin/pip install jax safetensors
    venv/bin/python test/Golden/jax_models.py

The product needs none of this; the results are committed. For each model: model.mlir (what the example prints), generic.mlir (the
same in MLIR's generic form), model.safetensors (initial weights), grads0.safetensors (gradients of the first step) and golden.json,
as in golden-more.
"""
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from safetensors.numpy import save_file

jax.config.update("jax_enable_x64", True)
ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "test" / "Inputs" / "golden-jax"
RUN = {"steps": 5, "batch": 4, "seq": 16, "lr": 1e-2, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "grad_clip": 1.0,
       "optimizer": "adamw", "tokens": "u8", "data": "../golden-more/corpus.txt"}


def initial(shapes, seed):
    generator = np.random.default_rng(seed)

    def value(path, shape):
        noise = generator.standard_normal(shape).astype(np.float32)
        if len(shape) > 1:
            return noise * np.float32(shape[0] ** -0.5 if "layers" in name(path) or "head" in name(path) else 0.3)
        return noise * np.float32(0.2) + np.float32("bias" not in name(path))
    return jax.tree_util.tree_map_with_path(value, shapes, is_leaf=lambda x: isinstance(x, tuple) and isinstance(x[0], int))


def name(path):
    return jax.tree_util.keystr(path, simple=True, separator=".")


def named(tree):
    return {name(path): np.asarray(value, np.float32) for path, value in jax.tree_util.tree_flatten_with_path(tree)[0]}


def batch_of(data, step):
    batch, length = RUN["batch"], RUN["seq"]
    starts = [(step * batch + i) % ((len(data) - 1) // length) * length for i in range(batch)]
    return np.stack([data[start:start + length + 1] for start in starts]).astype(np.int32)


def norm_of(tree):
    return jnp.sqrt(sum((leaf * leaf).sum() for leaf in jax.tree.leaves(tree)))


def adamw(params, grads, mean, square, step):
    scale = jnp.minimum(1, RUN["grad_clip"] / (norm_of(grads) + 1e-6))
    b1, b2 = RUN["beta1"], RUN["beta2"]
    grads = jax.tree.map(lambda g: g * scale, grads)
    mean = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, mean, grads)
    square = jax.tree.map(lambda s, g: b2 * s + (1 - b2) * g * g, square, grads)

    def moved(p, m, s):
        decay = RUN["weight_decay"] if p.ndim > 1 else 0
        return p * (1 - RUN["lr"] * decay) - RUN["lr"] * (m / (1 - b1**step)) / (jnp.sqrt(s / (1 - b2**step)) + RUN["eps"])
    return jax.tree.map(moved, params, mean, square), mean, square


def generic(text):
    """The text in MLIR's generic form, with the names of arguments and no other locations."""
    with mlir.make_ir_context() as context, ir.Location.unknown(context):
        module = ir.Module.parse(text)
        printed = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)
    printed = re.sub(r"^#loc.*\n", "", printed, flags=re.M)
    return re.sub(r" ?loc\((#loc\d*|unknown|\"[^\"]*\"\(#loc\d*\))\)", "", printed)


def generate(model, seed):
    directory = OUT / model
    directory.mkdir(parents=True, exist_ok=True)
    file = ROOT / ("test/Golden/jax_mixed.py" if model == "mixed" else f"examples/jax/{model}.py")
    # Places in files of the machine that made it are of no use.
    text = subprocess.run([sys.executable, file.name], cwd=file.parent, check=True, capture_output=True, text=True).stdout
    (directory / "generic.mlir").write_text(generic(text))
    text = re.sub(r"^#loc.*\n", "", text, flags=re.M)
    text = re.sub(r" ?loc\(#loc\d*\)", "", text)
    (directory / "model.mlir").write_text(text)
    spec = importlib.util.spec_from_file_location(model, file)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    weights = initial(example.shapes(), seed)
    params = jax.tree.map(lambda w: jnp.asarray(w, jnp.float64), weights)
    data = np.frombuffer((OUT / RUN["data"]).read_bytes(), np.uint8)

    def loss(params, tokens):
        return example.loss(params, tokens[:, :-1], tokens[:, 1:]) if model == "llama" else example.loss(params, tokens)
    derivative = jax.jit(jax.value_and_grad(loss))
    mean = square = jax.tree.map(jnp.zeros_like, params)
    losses, norms, first = [], [], None
    for step in range(RUN["steps"]):
        value, grads = derivative(params, batch_of(data, step))
        assert value.dtype == jnp.float64
        first = first or grads
        losses.append(float(value))
        norms.append(float(norm_of(grads)))
        params, mean, square = adamw(params, grads, mean, square, step + 1)
    save_file(named(weights), directory / "model.safetensors")
    save_file(named(first), directory / "grads0.safetensors")
    final = {n: float(np.linalg.norm(np.asarray(v, np.float64))) for n, v in named(params).items()}
    golden = {"run": RUN, "loss": losses, "grad_norm": norms, "final_norm": final}
    (directory / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    print(f"{model}: {sum(w.size for w in jax.tree.leaves(weights))} weights, loss {losses[0]:.6f} -> {losses[-1]:.6f}")


if __name__ == "__main__":
    for seed, model in enumerate(("gpt", "llama", "mixed")):
        generate(model, seed)
