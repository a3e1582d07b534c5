#!/usr/bin/env python3
"""AdamW with states of 8 bits: blocks of matrices with many of them, experts, memory, and runs that go on on another mesh in the same bits:
eight_bit.py WORK STRATEGY...

Each strategy, written as for golden.py, is that of a dense model; after `--` follow those of a mixture of experts."""
import json
import pathlib
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import INPUTS, call, check, compile, distance, fresh, interpreted, ranks_of, strategy, train

fresh(sys.argv[1])
between = sys.argv.index("--")
# Rows of 512 elements have 8 blocks, those of 96 are one.
DENSE = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 512, "intermediate_size": 96, "num_attention_heads": 8, "num_key_value_heads": 8,
         "head_dim": 8, "vocab_size": 256, "max_position_embeddings": 32, "tie_word_embeddings": False, "initializer_range": 0.02}
# Each expert's matrices have 4096 elements.
EXPERTS = {"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
           "vocab_size": 256, "max_position_embeddings": 32, "num_local_experts": 4, "num_experts_per_tok": 1, "output_router_logits": True,
           "router_aux_loss_coef": 0.5}
SIZE = {"batch": 4, "seq": 8, "optimizer": "adamw-8bit"}
# With a larger eps elements of a variance whose code is 0 do not make large steps of rounding errors.
RUN = {"data": INPUTS / "golden-more" / "corpus.txt", "tokens": "u8", "steps": 3, "lr": 1e-3, "eps": 1e-4, "seed": 3}
WIDTHS = {"f32": 4, "i8": 1}


def states(exe):
    """Bytes of a rank's optimizer states by the plan, and how many elements its parameters have."""
    variables = json.loads(call(["meshwright", "inspect", "--json", exe]))["variables"]

    def elements(variable):
        count = 1
        for size in variable["local_shape"]:
            count *= size
        return count
    held = sum(elements(v) * WIDTHS[v["type"]] for v in variables if v["role"] != "parameter")
    return held, sum(elements(v) for v in variables if v["role"] == "parameter")


def meshes(name, model, items):
    config = pathlib.Path(f"{name}.json")
    config.write_text(json.dumps(model))
    want = interpreted(config, SIZE, RUN)
    for item in items:
        options = dict(SIZE, **strategy(item))
        compile(config, "exe", **options)
        have = train("./exe", ranks_of(options["mesh"]), save=f"{name}-{item}", **RUN)
        off = distance(have, want)
        print(f"{name} {item}: loss {off:.1e}", flush=True)
        check(off <= 1e-5, f"a loss is off by {off:.2e}")
    return config


def joined():
    """Queries, keys and values that files join, and transpose, have codes and amaxes in one tensor; the vocabulary is padded."""
    config = pathlib.Path("joined.json")
    config.write_text(json.dumps({"model_type": "gpt2", "vocab_size": 257, "n_positions": 32, "n_embd": 64, "n_layer": 2, "n_head": 4}))
    want = interpreted(config, SIZE, RUN)
    for before, text in ((None, "data=2+zero=1"), ("joined-half", "tensor=2")):
        compile(config, "exe", **SIZE, **strategy(text))
        start = {"resume": before} if before else {"steps": 1}
        have = train("./exe", 2, save="joined-end" if before else "joined-half", **dict(RUN, **start))
    off = distance(have, want)
    print(f"joined tensors: loss {off:.1e}", flush=True)
    check(off <= 1e-5, f"a loss is off by {off:.2e}")
    shapes = {name: list(shape) for name, (shape, _) in read_safetensors("joined-end/latest/optimizer.safetensors").items()}
    of = {state: shapes[f"h.0.attn.c_attn.weight.{state}"] for state in ("momentum", "momentum_amax")}
    check(of == {"momentum": [64, 192], "momentum_amax": [1, 192]}, f"the states of c_attn are {of}")


config = meshes("dense", DENSE, sys.argv[2:between])
joined()
meshes("experts", EXPERTS, sys.argv[between + 1:])

# Memory: a byte for each element, and an amax for 64 or 96.
compile(config, "one", **SIZE)
held, parameters = states("./one")
print(f"states of {parameters} parameters: {held} bytes, {held / parameters:.3f} for each", flush=True)
check(2 < held / parameters < 2.2, f"{held} bytes for {parameters} parameters")

# Of master weights lower halves are enough, as of AdamW's.
compile(config, "narrow", **SIZE, precision="bf16")
masters = {v["name"]: v["type"] for v in json.loads(call(["meshwright", "inspect", "--json", "narrow"]))["variables"] if v["role"] == "master"}
check(set(masters.values()) == {"i16"}, f"masters are {masters}")

# Codes and amaxes are in checkpoints; a run goes on from them, on any mesh.
whole = train("./one", save="whole", **RUN)
train("./one", save="half", **dict(RUN, steps=1))
rest = train("./one", save="rest", resume="half", **RUN)
check(rest == whole, f"a resumed run has the losses {rest}, not {whole}")
for other in ("data=2+zero=3", "tensor=2"):
    compile(config, "exe", **SIZE, **strategy(other))
    off = distance(train("./exe", 2, save="moved", resume="half", **RUN), whole)
    print(f"resumed on {other}: loss {off:.1e}", flush=True)
    check(off <= 1e-5, f"a loss is off by {off:.2e} on {other}")
saved = {name: values for name, (_, values) in read_safetensors("half/latest/optimizer.safetensors").items()}
for state, least, most in (("momentum", -128, 127), ("variance", -128, 127)):
    codes = saved[f"model.layers.1.mlp.gate_proj.weight.{state}"]
    check(all(code == int(code) and least <= code <= most for code in codes) and len(set(codes)) > 100, f"codes of {state}: {codes[:20]}")
    check(len(saved[f"model.layers.1.mlp.gate_proj.weight.{state}_amax"]) == 96 * 8, f"amaxes of {state}")
    check(f"model.norm.weight.{state}" in saved and f"model.norm.weight.{state}_amax" not in saved, "small tensors have no codes")
