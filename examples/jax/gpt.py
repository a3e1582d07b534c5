"""A GPT in JAX, whose loss Meshwright differentiates, shards and trains: python gpt.py > gpt.mlir"""
import jax
import jax.export
import jax.numpy as jnp

LAYERS, WIDTH, HEADS, VOCABULARY, LENGTH, BATCH = 2, 32, 4, 256, 16, 4


def shapes():
    def norm():
        return {"gain": (WIDTH,), "bias": (WIDTH,)}

    def layer():
        return {"ln_1": norm(), "ln_2": norm(), "query": (WIDTH, WIDTH), "key": (WIDTH, WIDTH), "value": (WIDTH, WIDTH),
                "proj": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "up_bias": (4 * WIDTH,), "down": (4 * WIDTH, WIDTH)}
    return {"wte": (VOCABULARY, WIDTH), "wpe": (LENGTH, WIDTH), "layers": [layer() for _ in range(LAYERS)], "ln_f": norm()}


def norm(x, p):
    x = x - x.mean(-1, keepdims=True)
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * p["gain"] + p["bias"]


def layer(x, p):
    h = norm(x, p["ln_1"])
    q, k, v = ((h @ p[name]).reshape(*x.shape[:2], HEADS, -1) for name in ("query", "key", "value"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (WIDTH // HEADS) ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[2:], bool)), scores, -1e10)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(x.shape) @ p["proj"]
    return x + jax.nn.gelu(norm(x, p["ln_2"]) @ p["up"] + p["up_bias"]) @ p["down"]


def loss(params, tokens):
    x = params["wte"][tokens[:, :-1]] + params["wpe"]
    for p in params["layers"]:
        x = layer(x, p)
    log_probabilities = jax.nn.log_softmax(norm(x, params["ln_f"]) @ params["wte"].T)
    return -jnp.take_along_axis(log_probabilities, tokens[:, 1:, None], -1).mean()


if __name__ == "__main__":
    params = jax.tree.map(lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32), shapes(), is_leaf=lambda x: isinstance(x, tuple))
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH + 1), jnp.int32)
    print(jax.export.export(jax.jit(loss))(params, tokens).mlir_module(), end="")
