#!/usr/bin/env python3
"""Trains random models of all families on random meshes against the interpreter in f64.

  random_models.py WORK FIRST COUNT      seeds FIRST .. FIRST+COUNT-1

Random sizes make some gradients small differences of large numbers: theirs is a wider tolerance than that of the
golden runs.
"""
import json
import random
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from compare import gradient_error
from harness import INPUTS, call, check, compile, distance, flags, fresh, ranks_of, train

STEPS = 3


def random_config(pick):
    family = pick(["gpt2", "llama", "mistral", "qwen2", "qwen3"])
    heads = pick([1, 2, 3, 4, 5, 6])
    head = 2 * pick([1, 2, 3, 4, 5, 8])
    if heads * head < 8:
        head *= 4  # A norm of two or three numbers divides by almost nothing.
    activation = pick(["gelu", "gelu_new", "gelu_pytorch_tanh", "silu", "relu"])
    common = {"model_type": family, "vocab_size": pick([256, 257, 300, 331]), "initializer_range": 0.2,
              "tie_word_embeddings": pick([True, False])}
    if family == "gpt2":
        return dict(common, n_positions=48, n_embd=heads * head, n_layer=pick([1, 2, 3]), n_head=heads,
                    n_inner=pick([None, 1, 17, 40]), activation_function=activation,
                    scale_attn_weights=pick([True, False]), scale_attn_by_inverse_layer_idx=pick([True, False]),
                    layer_norm_epsilon=pick([1e-5, 1e-3]), attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0)
    groups = pick([n for n in range(1, heads + 1) if heads % n == 0])
    config = dict(common, max_position_embeddings=64, hidden_size=heads * pick([head, 7]), num_hidden_layers=pick([1, 2, 4]),
                  num_attention_heads=heads, num_key_value_heads=heads // groups, head_dim=head,
                  intermediate_size=pick([1, 13, 32, 50]), hidden_act=activation, rms_norm_eps=pick([1e-6, 1e-3]),
                  rope_theta=pick([100.0, 10000.0]))
    if pick([True, False]):
        config["rope_scaling"] = pick([
            {"type": "linear", "factor": 3.0},
            {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0,
             "original_max_position_embeddings": 16}])
    if pick([True, False]):
        config["pad_token_id"] = pick([None, 0, 3, 30])
    if family == "llama":
        config.update(attention_bias=pick([True, False]), mlp_bias=pick([True, False]))
    if family == "mistral":
        config.update(sliding_window=pick([None, 1, 5, 40]))
    if family.startswith("qwen"):
        config.update(use_sliding_window=pick([True, False]), sliding_window=pick([1, 6]),
                      max_window_layers=pick([0, 1, 2]))
    if family == "qwen3":
        config.update(attention_bias=pick([True, False]))
    return config


def try_seed(seed):
    pick = random.Random(seed).choice
    config = random_config(pick)
    json.dump(config, open("config.json", "w"))
    mesh, microbatches = pick([("", 1), ("", 3), ("data=2", 1), ("data=2", 2), ("data=3", 1), ("replica=2,data=2", 1)])
    parts = ranks_of(mesh) * microbatches
    size = dict(batch=parts * pick([1, 2, 3]), seq=pick([1, 2, 7, 16, 33, 48]))
    data = dict(data=INPUTS / "golden/corpus.txt", tokens="u8")
    # With this eps AdamW does not make whole steps of gradients that are but rounding errors.
    run = dict(data, steps=STEPS, lr=1e-3, eps=1e-4)
    name = f"seed {seed}: {json.dumps(config)} --mesh '{mesh}' --microbatches {microbatches} {size}"

    ranks = ranks_of(mesh)
    compile("config.json", "adamw", mesh=mesh, microbatches=microbatches, **size)
    train("./adamw", ranks, save="start", steps=0, seed=seed, **data)
    weights = "start/latest/model.safetensors"
    have = train("./adamw", ranks, init=weights, **run)
    compile("config.json", "train.mlir", emit="train", **size)
    # Not `--emit step`, which keeps nothing that a step does not call: the interpreter takes its gradients there.
    call(["meshwright-opt", "train.mlir", "--train-autodiff", "--train-accumulate", "--train-build-optimizer", "-o",
          "step.mlir"])
    judge = ["meshwright-interpret", "step.mlir", "--gradients-out", "gradients.safetensors", "--train",
             *map(str, flags(dict(run, init=weights)))]
    done = subprocess.run(judge, capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, f"{name}\n{done.stderr[:1000]}")
    want = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    loss, norm = distance(have, want), distance(have, want, "grad_norm")
    compile("config.json", "sgd", mesh=mesh, microbatches=microbatches, optimizer="sgd", **size)
    train("./sgd", ranks, save="sgd-weights", init=weights, lr=100, grad_clip=0, steps=1, **data)
    error, where = gradient_error(weights, "sgd-weights/latest/model.safetensors", "gradients.safetensors", 100)
    print(f"{name}\n  loss {loss:.1e}, grad_norm {norm:.1e}, gradients {error:.1e} at {where}")
    sys.stdout.flush()
    return loss <= 1e-5 and norm <= 5e-5 and error <= 1e-4


def main():
    fresh(sys.argv[1])
    first, count = int(sys.argv[2]), int(sys.argv[3])
    bad = [seed for seed in range(first, first + count) if not try_seed(seed)]
    check(not bad, f"seeds {bad}")


if __name__ == "__main__":
    main()
