"""A Llama in JAX: RMSNorm, rotary positions, grouped queries, SwiGLU; tokens and targets are two arguments."""
import jax
import jax.export
import jax.numpy as jnp

LAYERS, WIDTH, HEADS, KEY_HEADS, INNER, VOCABULARY, LENGTH, BATCH = 2, 32, 4, 2, 48, 256, 16, 4
SIZE = WIDTH // HEADS


def shapes():
    def layer():
        return {"norm_1": (WIDTH,), "norm_2": (WIDTH,), "wq": (WIDTH, WIDTH), "wk": (WIDTH, KEY_HEADS * SIZE),
                "wv": (WIDTH, KEY_HEADS * SIZE), "wo": (WIDTH, WIDTH), "gate": (WIDTH, INNER), "up": (WIDTH, INNER), "down": (INNER, WIDTH)}
    return {"embed": (VOCABULARY, WIDTH), "layers": [layer() for _ in range(LAYERS)], "norm": (WIDTH,), "head": (WIDTH, VOCABULARY)}


def norm(x, gain):
    return x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5) * gain


def rope(x):
    angles = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(0, SIZE, 2) / SIZE)
    cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def layer(x, p):
    h = norm(x, p["norm_1"])
    q, k, v = ((h @ p[name]).reshape(*x.shape[:2], -1, SIZE) for name in ("wq", "wk", "wv"))
    q = rope(q).reshape(*x.shape[:2], KEY_HEADS, -1, SIZE)
    scores = jnp.einsum("bqgrd,bkgd->bgrqk", q, rope(k)) / SIZE**0.5
    position = jnp.arange(x.shape[1])
    probabilities = jax.nn.softmax(jnp.where(position[:, None] >= position, scores, -jnp.inf))
    x = x + jnp.einsum("bgrqk,bkgd->bqgrd", probabilities, v).reshape(x.shape) @ p["wo"]
    h = norm(x, p["norm_2"])
    return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]


def loss(params, tokens, targets):
    x = params["embed"][tokens]
    for p in params["layers"]:
        x = layer(x, p)
    logits = norm(x, params["norm"]) @ params["head"]
    return (jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]).mean()


if __name__ == "__main__":
    params = jax.tree.map(lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32), shapes(), is_leaf=lambda x: isinstance(x, tuple))
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32)
    print(jax.jit(loss).lower(params, tokens, tokens).as_text(debug_info=True), end="")
