"""A model in JAX with what examples/jax has not: capped scores, which stay products; one matrix for queries, keys and values;
interleaved rotary positions; repeated key heads; sequences by vmap; the sum of all earlier positions; positions by index; logits of all tokens in one matrix; a z-loss."""
import jax
import jax.export
import jax.numpy as jnp

WIDTH, HEADS, KEY_HEADS, VOCABULARY, LENGTH, BATCH = 16, 4, 2, 256, 16, 4
SIZE = WIDTH // HEADS


def shapes():
    return {"wte": (VOCABULARY, WIDTH), "wpe": (LENGTH, WIDTH), "norm": {"gain": (WIDTH,), "bias": (WIDTH,)},
            "layers": ({"qkv": (WIDTH, (HEADS + 2 * KEY_HEADS) * SIZE), "out": (HEADS, SIZE, WIDTH), "gate": (WIDTH, 24), "up": (WIDTH, 24),
                        "down": (24, WIDTH), "bias": (WIDTH,)},)}


def rope(x):
    angles = jnp.outer(jnp.arange(x.shape[1]), 1 / 100 ** (jnp.arange(0, SIZE, 2) / SIZE))
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)


def features(params, tokens):
    x = jnp.take(params["wte"], tokens, axis=0) + params["wpe"][jnp.arange(LENGTH)]
    x = x + jnp.tril(jnp.ones((LENGTH, LENGTH)), -1) @ x / LENGTH
    for p in params["layers"]:
        h = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * params["norm"]["gain"] + params["norm"]["bias"]
        q, k, v = jnp.split(h @ p["qkv"], (HEADS * SIZE, (HEADS + KEY_HEADS) * SIZE), -1)
        q, k, v = (part.reshape(LENGTH, -1, SIZE).transpose(1, 0, 2) for part in (q, k, v))
        k, v = (jnp.repeat(part, HEADS // KEY_HEADS, 0) for part in (rope(k), v))
        scores = 5 * jnp.tanh(rope(q) @ k.transpose(0, 2, 1) / SIZE**0.5 / 5)
        hidden = jnp.triu(jnp.ones((LENGTH, LENGTH), bool), 1)
        x = x + jnp.einsum("hst,htd,hdw->sw", jax.nn.softmax(jnp.where(hidden, -jnp.inf, scores)), v, p["out"])
        x = x + (jax.nn.sigmoid(x @ p["gate"]) * jnp.abs(jax.nn.gelu(x @ p["up"], approximate=False))) @ p["down"] + jnp.square(jax.nn.relu(jnp.minimum(p["bias"] ** 3, 1)))
    return x


def loss(params, tokens):
    x = jax.vmap(features, (None, 0))(params, tokens[:, :-1])
    logits, targets = (x @ params["wte"].T).reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1)
    log_sums = jax.nn.logsumexp(logits, axis=-1)
    return jnp.mean(log_sums - jnp.take_along_axis(logits, targets[:, None], 1)[:, 0]) + 1e-2 * jnp.mean(log_sums**2)


if __name__ == "__main__":
    params = jax.tree.map(lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32), shapes(),
                          is_leaf=lambda x: isinstance(x, tuple) and isinstance(x[0], int))
    print(jax.jit(loss).lower(params, jax.ShapeDtypeStruct((BATCH, LENGTH + 1), jnp.int32)).as_text(debug_info=True), end="")
