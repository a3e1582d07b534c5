#!/usr/bin/env python3
"""Routers of papers, made of a family and flags, against their formulas in float64.

  published_routers.py WORK CAPACITY,... MESH...

The model is one layer of qwen3_moe, written out here. Losses are held to it, and gradients of the router's and the experts'
weights to differences of its losses: for Switch (Fedus et al. 2022) the best expert weighs its probability, for GShard (Lepikhin et
al. 2021) the best two share 1; an expert takes ceil(C k S / E) tokens of a sequence; the loss has coefficient * E sum_e f_e P_e,
Switch's of the batch, GShard's of each sequence, which is its group.
"""
import json
import math
import pathlib
import random
import struct
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import check, compile, fresh, ranks_of, strategy, train

V, H, HEADS, D, E, INNER, B, S, COEFFICIENT = 16, 8, 2, 4, 4, 6, 4, 8, 0.1
ROUTERS = {"switch": dict(k=1, normalised=False, first=False, scope="batch"),
           "gshard": dict(k=2, normalised=True, first=True, scope="sequence")}
CONFIG = {"model_type": "qwen3_moe", "vocab_size": V, "hidden_size": H, "num_hidden_layers": 1, "num_attention_heads": HEADS,
          "num_key_value_heads": HEADS, "head_dim": D, "intermediate_size": INNER, "moe_intermediate_size": INNER, "num_experts": E,
          "max_position_embeddings": S, "rms_norm_eps": 1e-6, "rope_theta": 10000.0}


def times(weight, x):
    return [sum(w * v for w, v in zip(row, x)) for row in weight]


def norm(x, gain):
    scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + CONFIG["rms_norm_eps"])
    return [v * scale * g for v, g in zip(x, gain)]


def softmax(x):
    powers = [math.exp(v - max(x)) for v in x]
    return [p / sum(powers) for p in powers]


def turn(x, position):
    half = D // 2
    angles = [position * CONFIG["rope_theta"] ** (-i / half) for i in range(half)]
    return [x[i] * math.cos(a) - x[i + half] * math.sin(a) for i, a in enumerate(angles)] + \
           [x[i + half] * math.cos(a) + x[i] * math.sin(a) for i, a in enumerate(angles)]


def attention(w, rows):
    heads = []
    for name in "qkv":
        flat = [times(w[f"self_attn.{name}_proj.weight"], x) for x in rows]
        heads.append([[x[h * D:(h + 1) * D] for h in range(HEADS)] for x in flat])
    q, k, v = heads
    for part, name in ((q, "q"), (k, "k")):
        for t in range(S):
            part[t] = [turn(norm(x, w[f"self_attn.{name}_norm.weight"]), t) for x in part[t]]
    result = []
    for t in range(S):
        row = []
        for h in range(HEADS):
            weights = softmax([sum(a * b for a, b in zip(q[t][h], k[u][h])) / math.sqrt(D) for u in range(t + 1)])
            row += [sum(p * v[u][h][i] for u, p in enumerate(weights)) for i in range(D)]
        result.append(times(w["self_attn.o_proj.weight"], row))
    return result


def expert(w, e, x):
    gate, up = (times(w[f"mlp.experts.{e}.{name}_proj.weight"], x) for name in ("gate", "up"))
    return times(w[f"mlp.experts.{e}.down_proj.weight"], [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)])


def reference(w, sequences, k, normalised, first, scope, capacity):
    """The loss, the routers' part of it, and how many choices are dropped."""
    most = math.ceil(capacity * k * S / E)
    total, dropped, groups = 0.0, 0, []
    for tokens in sequences:
        if scope == "sequence" or not groups:
            groups.append(([0] * E, [0.0] * E))
        counts, mass = groups[-1]
        x = [w["model.embed_tokens.weight"][token] for token in tokens[:S]]
        x = [[a + b for a, b in zip(*rows)] for rows in zip(x, attention(w, [norm(r, w["input_layernorm.weight"]) for r in x]))]
        taken = [0] * E
        for t in range(S):
            h = norm(x[t], w["post_attention_layernorm.weight"])
            scores = softmax(times(w["mlp.gate.weight"], h))
            best = sorted(range(E), key=lambda e: -scores[e])[:k]
            sum_of_best = sum(scores[e] for e in best) if normalised else 1
            for e in range(E):
                mass[e] += scores[e]
            for e in best[:1] if first else best:
                counts[e] += 1
            for e in best:
                taken[e] += 1
                if taken[e] > most:
                    dropped += 1
                    continue
                x[t] = [a + scores[e] / sum_of_best * b for a, b in zip(x[t], expert(w, e, h))]
            logits = times(w["lm_head.weight"], norm(x[t], w["model.norm.weight"]))
            total -= math.log(softmax(logits)[tokens[t + 1]])
    T = B * S
    part = COEFFICIENT * E * sum(c / sum(counts) * m for counts, mass in groups for c, m in zip(counts, mass)) / T
    return total / T + part, part, dropped


def weights():
    """Large enough that routers are sure of their choices."""
    draw = random.Random(3)
    matrix = lambda rows, columns, size: [[struct.unpack("f", struct.pack("f", draw.gauss(0, size)))[0] for _ in range(columns)] for _ in range(rows)]
    w = {"model.embed_tokens.weight": matrix(V, H, 1), "lm_head.weight": matrix(V, H, 0.5), "model.norm.weight": [1.0] * H,
         "mlp.gate.weight": matrix(E, H, 0.7), "self_attn.q_norm.weight": [1.0] * D, "self_attn.k_norm.weight": [1.0] * D}
    for name in ("input_layernorm", "post_attention_layernorm"):
        w[f"{name}.weight"] = [1.0] * H
    for name in "qkvo":
        w[f"self_attn.{name}_proj.weight"] = matrix(H, H, 0.4)
    for e in range(E):
        for name, rows, columns in (("gate", INNER, H), ("up", INNER, H), ("down", H, INNER)):
            w[f"mlp.experts.{e}.{name}_proj.weight"] = matrix(rows, columns, 0.5)
    return w


def file_name(name):
    return name if name.startswith(("model.", "lm_head.")) else f"model.layers.0.{name}"


def write(w, path):
    header, data = {}, b""
    for name, value in w.items():
        rows = value if isinstance(value[0], list) else [value]
        flat = [v for row in rows for v in row]
        shape = [len(value), len(value[0])] if isinstance(value[0], list) else [len(value)]
        header[file_name(name)] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(flat)]}
        data += struct.pack(f"<{len(flat)}f", *flat)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def slope(w, name, row, column, loss):
    """By the difference of two losses."""
    old, step = w[name][row][column], 1e-5
    ends = []
    for value in (old + step, old - step):
        w[name][row][column] = value
        ends.append(loss())
    w[name][row][column] = old
    return (ends[0] - ends[1]) / (2 * step)


work, capacities, *meshes = sys.argv[1:]
fresh(work)
w = weights()
write(w, "weights.safetensors")
draw = random.Random(5)
tokens = [draw.randrange(V) for _ in range(B * S + 1)]
pathlib.Path("tokens").write_bytes(bytes(tokens))
sequences = [tokens[i * S:i * S + S + 1] for i in range(B)]
run = dict(data="tokens", tokens="u8", init="weights.safetensors", steps=1, lr=1, grad_clip=0)
for kind, router in ROUTERS.items():
    pathlib.Path("config.json").write_text(json.dumps(dict(CONFIG, num_experts_per_tok=router["k"], norm_topk_prob=router["normalised"])))
    for capacity in map(float, capacities.split(",")):
        want, part, dropped = reference(w, sequences, capacity=capacity, **router)
        check(dropped > 0, f"capacity {capacity} drops nothing")
        loss = lambda: reference(w, sequences, capacity=capacity, **router)[0]
        names = ("mlp.gate.weight", "mlp.experts.1.gate_proj.weight", "mlp.experts.2.down_proj.weight")
        places = [(name, 1 + row, column) for name in names for row in range(3) for column in range(0, 6, 2)]
        slopes = [slope(w, *place, loss) for place in places]
        size = max(map(abs, slopes))
        for mesh in meshes:
            options = strategy(mesh)
            compile("config.json", "exe", batch=B, seq=S, optimizer="sgd", aux_loss=kind, aux_loss_coef=COEFFICIENT, aux_scope=router["scope"],
                    expert_capacity=capacity, **options)
            have = train("./exe", ranks_of(options["mesh"]), save="run", **run)[0]
            after = read_safetensors("run/latest/model.safetensors")
            off, of_part = abs(have["loss"] - want) / want, abs(have["aux_loss"] - part) / part
            worst = max(abs(w[name][row][column] - after[file_name(name)][1][row * len(w[name][0]) + column] - gradient) / size
                        for (name, row, column), gradient in zip(places, slopes))
            print(f"{kind}, capacity {capacity}, {mesh}: {dropped} dropped, loss {off:.1e}, aux_loss {of_part:.1e}, gradients {worst:.1e}", flush=True)
            check(off <= 1e-6 and of_part <= 1e-6, f"{kind}: loss {have['loss']} and {have['aux_loss']}, expected {want} and {part}")
            check(worst <= 1e-5, f"{kind}: a gradient is off by {worst:.1e}")
