#!/usr/bin/env python3
"""JAX on a GPU or a processor: one training configuration per process, one JSON line on stdout.

The model of a Hugging Face config.json (GPT-2, Llama or Mixtral) in bf16 or f32, jitted as one step: layers by scan, cuDNN's
attention or XLA's, AdamW with clipping on weights in f32 whose memory the step takes over. train_run.py has what is not of JAX.

  python jax_train.py config.json --data tokens.bin --batch 16 --seq 1024

--masters f32 keeps weights and AdamW's state in f32 and computes in bf16, as Meshwright does; bf16 keeps all in
bf16, which is faster and less precise. --remat recomputes each layer in the backward, for larger batches; auto
does so for batches that do not fit otherwise. --experts dense computes all experts for each token and weighs what they
give, ragged sorts tokens by expert and takes one ragged product for all."""
import functools

import jax
import jax.numpy as jnp
import numpy as np

import train_run


def layer_norm(x, w, b, eps):
    y = x.astype(jnp.float32)
    y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + eps)
    return (y * w + b).astype(x.dtype)


def rms_norm(x, w, eps):
    y = x.astype(jnp.float32)
    return (y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + eps) * w).astype(x.dtype)


def attention(q, k, v, implementation):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=implementation)


class GPT2:
    def __init__(self, c, args):
        self.c, self.args = c, args

    def init(self, key):
        width, layers = self.c["n_embd"], self.c["n_layer"]
        matrices = {"qkv": (width, 3 * width), "proj": (width, width), "fc": (width, 4 * width), "out": (4 * width, width)}
        layer = {name: normal(jax.random.fold_in(key, i), (layers, *shape))
                 for i, (name, shape) in enumerate(matrices.items())}
        layer |= {name + "_b": jnp.zeros((layers, shape[1])) for name, shape in matrices.items()}
        for norm in ("ln_1", "ln_2"):
            layer |= {norm: jnp.ones((layers, width)), norm + "_b": jnp.zeros((layers, width))}
        return {"tokens": normal(jax.random.fold_in(key, 8), (self.c["vocab_size"], width)),
                "places": normal(jax.random.fold_in(key, 9), (self.c["n_positions"], width)), "layers": layer,
                "norm": jnp.ones(width), "norm_b": jnp.zeros(width)}

    def layer(self, x, p):
        b, s, w = x.shape
        eps = self.c["layer_norm_epsilon"]
        qkv = layer_norm(x, p["ln_1"], p["ln_1_b"], eps) @ p["qkv"] + p["qkv_b"]
        q, k, v = (t.reshape(b, s, self.c["n_head"], -1) for t in jnp.split(qkv, 3, -1))
        x = x + attention(q, k, v, self.args.attention).reshape(b, s, w) @ p["proj"] + p["proj_b"]
        y = jax.nn.gelu(layer_norm(x, p["ln_2"], p["ln_2_b"], eps) @ p["fc"] + p["fc_b"], approximate=True)
        return x + y @ p["out"] + p["out_b"]

    def embed(self, p, tokens):
        return p["tokens"][tokens] + p["places"][:tokens.shape[1]]

    def logits(self, p, x):
        return layer_norm(x, p["norm"], p["norm_b"], self.c["layer_norm_epsilon"]) @ p["tokens"].T


class Llama:
    def __init__(self, c, args):
        self.c, self.args = c, args
        head = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
        turns = c["rope_theta"] ** (-np.arange(0, head, 2) / head)
        angles = np.tile(np.outer(np.arange(args.seq), turns), 2)
        self.head, self.cos, self.sin = head, np.cos(angles)[:, None].astype(np.float32), np.sin(angles)[:, None].astype(
            np.float32)

    def init(self, key):
        c, layers, width = self.c, self.c["num_hidden_layers"], self.c["hidden_size"]
        queries, kept = c["num_attention_heads"] * self.head, c["num_key_value_heads"] * self.head
        shapes = {"q": (width, queries), "k": (width, kept), "v": (width, kept), "o": (queries, width),
                  "gate": (width, c["intermediate_size"]), "up": (width, c["intermediate_size"]),
                  "down": (c["intermediate_size"], width)}
        layer = {name: normal(jax.random.fold_in(key, i), (layers, *shape)) for i, (name, shape) in enumerate(shapes.items())}
        layer |= {"norm_1": jnp.ones((layers, width)), "norm_2": jnp.ones((layers, width))}
        p = {"tokens": normal(jax.random.fold_in(key, 8), (c["vocab_size"], width)), "layers": layer, "norm": jnp.ones(width)}
        if not c["tie_word_embeddings"]:
            p["unembed"] = normal(jax.random.fold_in(key, 9), (c["vocab_size"], width))
        return p

    def turn(self, x):
        first, second = jnp.split(x, 2, -1)
        return (x * self.cos + jnp.concatenate((-second, first), -1) * self.sin).astype(x.dtype)

    def layer(self, x, p):
        b, s, _ = x.shape
        y = rms_norm(x, p["norm_1"], self.c["rms_norm_eps"])
        q, k, v = ((y @ p[name]).reshape(b, s, -1, self.head) for name in "qkv")
        a = attention(self.turn(q), self.turn(k), v, self.args.attention)
        x = x + a.reshape(b, s, -1) @ p["o"]
        return x + self.inner(rms_norm(x, p["norm_2"], self.c["rms_norm_eps"]), p)

    def inner(self, y, p):
        return (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]

    def embed(self, p, tokens):
        return p["tokens"][tokens]

    def logits(self, p, x):
        return rms_norm(x, p["norm"], self.c["rms_norm_eps"]) @ p.get("unembed", p["tokens"]).T


class Mixtral(Llama):
    def init(self, key):
        p = super().init(key)
        experts, layers, width, inner = (self.c[name] for name in ("num_local_experts", "num_hidden_layers", "hidden_size",
                                                                   "intermediate_size"))
        shapes = {"router": (width, experts), "gate": (experts, width, inner), "up": (experts, width, inner),
                  "down": (experts, inner, width)}
        p["layers"] |= {name: normal(jax.random.fold_in(key, 16 + i), (layers, *shape)) for i, (name, shape) in enumerate(shapes.items())}
        return p

    def inner(self, y, p):
        experts, active = self.c["num_local_experts"], self.c["num_experts_per_tok"]
        rows = y.reshape(-1, y.shape[-1])
        scores, chosen = jax.lax.top_k(jax.nn.softmax((rows @ p["router"]).astype(jnp.float32), -1), active)
        weights = (scores / scores.sum(-1, keepdims=True)).astype(y.dtype)
        if self.args.experts == "dense":
            every = jnp.einsum("td,edf->tef", rows, p["gate"]), jnp.einsum("td,edf->tef", rows, p["up"])
            of_each = (jax.nn.one_hot(chosen, experts, dtype=y.dtype) * weights[..., None]).sum(1)
            return jnp.einsum("tef,efd,te->td", jax.nn.silu(every[0]) * every[1], p["down"], of_each).reshape(y.shape)
        order = jnp.argsort(chosen.reshape(-1))
        counts = jnp.bincount(chosen.reshape(-1), length=experts).astype(jnp.int32)
        mine = rows[order // active]
        hidden = jax.nn.silu(jax.lax.ragged_dot(mine, p["gate"], counts)) * jax.lax.ragged_dot(mine, p["up"], counts)
        out = jax.lax.ragged_dot(hidden, p["down"], counts) * weights.reshape(-1)[order][:, None]
        return jnp.zeros_like(rows).at[order // active].add(out).reshape(y.shape)


def normal(key, shape):
    return 0.02 * jax.random.normal(key, shape)


def loss_of(model, remat, parameters, tokens, targets):
    p = jax.tree.map(lambda w: w.astype(model.args.compute), parameters)
    layer = jax.checkpoint(model.layer) if remat else model.layer
    x, _ = jax.lax.scan(lambda x, one: (layer(x, one), None), model.embed(p, tokens), p["layers"])
    logits = model.logits(p, x).astype(jnp.float32)
    picked = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
    return (jax.nn.logsumexp(logits, -1) - picked).mean()


def update(args, stacked, parameters, gradients, moments, variances, step):
    """AdamW in f32, after clipping by the global norm; decay for matrices."""
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(g.astype(jnp.float32))) for g in jax.tree.leaves(gradients)))
    factor = jnp.minimum(1.0, args.clip / (norm + 1e-6)) if args.clip else 1.0
    b1, b2 = train_run.BETAS

    def one(w, g, m, v, is_stacked):
        g = g.astype(jnp.float32) * factor
        m, v = (b1 * m.astype(jnp.float32) + (1 - b1) * g), (b2 * v.astype(jnp.float32) + (1 - b2) * g * g)
        move = (m / (1 - b1 ** step)) / (jnp.sqrt(v / (1 - b2 ** step)) + train_run.EPSILON)
        decay = train_run.DECAY if w.ndim - is_stacked >= 2 else 0.0
        new = w.astype(jnp.float32) * (1 - args.lr * decay) - args.lr * move
        return new.astype(w.dtype), m.astype(w.dtype), v.astype(w.dtype)

    both = jax.tree.map(one, parameters, gradients, moments, variances, stacked)
    return tuple(jax.tree.map(lambda three: three[i], both, is_leaf=lambda t: isinstance(t, tuple)) for i in range(3))


def out_of_memory(error):
    return "RESOURCE_EXHAUSTED" in str(error) or "out of memory" in str(error).lower()


def main():
    parser = train_run.parser(__doc__)
    parser.add_argument("--attention", choices=["cudnn", "xla"], default="cudnn")
    parser.add_argument("--compute", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--experts", choices=["dense", "ragged"], default="ragged")
    parser.add_argument("--remat", choices=["off", "on", "auto"], default="off")
    args = parser.parse_args()
    c = train_run.model(args)
    model = {"gpt2": GPT2, "llama": Llama, "mixtral": Mixtral}[c["model_type"]](c, args)
    dtype = jnp.float32 if args.masters == "f32" else jnp.bfloat16

    @jax.jit
    def begin(key):
        parameters = jax.tree.map(lambda w: w.astype(dtype), model.init(key))
        return parameters, *(jax.tree.map(jnp.zeros_like, parameters) for _ in range(2))

    shapes = jax.eval_shape(begin, jax.random.key(0))[0]
    stacked = {name: jax.tree.map(lambda _: int(name == "layers"), part) for name, part in shapes.items()}

    @functools.partial(jax.jit, donate_argnums=(1, 2, 3), static_argnums=0)
    def step(remat, parameters, moments, variances, number, tokens, targets):
        loss, gradients = jax.value_and_grad(functools.partial(loss_of, model, remat))(parameters, tokens, targets)
        return (*update(args, stacked, parameters, gradients, moments, variances, number), loss)

    def measure(batch, remat):
        """From new weights: those of a step that did not fit are lost."""
        state, number = begin(jax.random.key(0)), 0

        def train(rows):
            nonlocal state, number
            number += 1
            rows = np.frombuffer(rows, np.uint16).astype(np.int32).reshape(-1, args.seq + 1)
            *state, loss = step(remat, *state, np.float32(number), rows[:, :-1], rows[:, 1:])
            return loss

        measured = train_run.measure(args, batch, train)
        peak = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
        return {**measured, "remat": remat, "peak_bytes": peak}

    def run(batch):
        if args.remat != "auto":
            return measure(batch, args.remat == "on")
        try:
            return measure(batch, False)
        except Exception as error:
            if not out_of_memory(error):
                raise
        return measure(batch, True)

    train_run.sweep(args, run, out_of_memory, attention=args.attention,
                    parameters=sum(w.size for w in jax.tree.leaves(shapes)), jax=jax.__version__)


main()
