#!/usr/bin/env python3
"""What recurrences and short convolutions send along axis context, read from plans: recurrence_bytes.py WORK

N ranks send (N-1)/N^2 B S C elements of what enters and leaves a layer, where C counts its channels, in its forward, and as much in its backward:
channels are exchanged for parts of the sequence. Of what ranks share a rank sends (N-1)/N times its own part to all others, and backward as much.
"""
import json
import pathlib
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, flags, fresh

BATCH, LAYERS = 2, 3
SIZES = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": LAYERS}
MAMBA2 = dict(SIZES, model_type="mamba2", num_heads=8, head_dim=8, expand=2, n_groups=4, state_size=6, chunk_size=8)
DELTA = dict(SIZES, model_type="qwen3_5_text", layer_types=["linear_attention"] * LAYERS, num_attention_heads=4, num_key_value_heads=1, head_dim=8, intermediate_size=48,
             linear_num_key_heads=4, linear_num_value_heads=4, linear_key_head_dim=12, linear_value_head_dim=8, linear_conv_kernel_dim=2, max_position_embeddings=64)
LFM2 = dict(SIZES, model_type="lfm2", layer_types=["conv"] * LAYERS, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48, block_auto_adjust_ff_dim=False,
            conv_L_cache=3, max_position_embeddings=64)


def sent(config, program, mesh, sequence):
    """Bytes that a rank sends in a layer, by the kind of collective, without all-reduces of gradients of parameters."""
    pathlib.Path("config.json").write_text(json.dumps(config))
    call(["meshwright", "compile", "config.json", *flags({"mesh": mesh, "batch": BATCH, "seq": sequence, "emit": "exec", "output": "exec.mlir", "report": "report"})])
    report, kinds = json.load(open("report/report.json")), {}
    ranks = 1
    for axis in report["mesh"]:
        ranks *= axis["size"]
    for entry in report["collectives"]:
        if entry["program"] == program and entry["times"] == LAYERS and entry["op"] != "all_reduce":
            kinds[entry["op"]] = kinds.get(entry["op"], 0) + entry["bytes"] // ranks
    return kinds


def exchanged(ranks, sequence, channels):
    """What a rank sends of tensors of f32."""
    return (ranks - 1) * BATCH * sequence * channels * 4 // ranks**2


def gathered(ranks, sequence, channels):
    return (ranks - 1) * BATCH * sequence * channels * 4 // ranks


fresh(sys.argv[1])
# x and y, B and C, and steps. A sequence that the ranks do not divide is exchanged with its padding.
inner, keys, heads = 64, 4 * 6, 8
for sequence in (48, 45):
    for ranks in (2, 4):
        padded = -(-sequence // ranks) * ranks
        each = exchanged(ranks, padded, 2 * inner + 2 * keys + heads)
        forward, step = (sent(MAMBA2, program, f"context={ranks}", sequence) for program in ("eval", "step"))
        check(forward == {"all_to_all": each}, f"{ranks} ranks send {forward} for {sequence} tokens, expected {each}")
        # Gradients of the parameters of divided channels are gathered beside.
        check(step["all_to_all"] == 2 * each, f"{ranks} ranks send {step} for {sequence} tokens in a step, expected {2 * each}")
# More ranks than groups share B and C.
have, each = sent(MAMBA2, "eval", "context=8", 48), exchanged(8, 48, 2 * inner + heads)
check(have.get("all_to_all", 0) >= each and sum(have.values()) <= each + gathered(8, 48, 2 * keys), f"8 ranks send {have}, expected {each} and B and C")
# Keys and queries, values and results, steps and gates: four heads, whose elements of keys are more than those of values.
each = exchanged(4, 48, 2 * 48 + 2 * 32 + 2 * 4)
have = sent(DELTA, "eval", "context=4", 48)
check(have == {"all_to_all": each}, f"the delta rule sends {have}, expected {each}")
each = exchanged(4, 48, 2 * 32)
have = sent(LFM2, "eval", "context=4", 48)
check(have == {"all_to_all": each}, f"a convolution sends {have}, expected {each}")
print("recurrences send what they exchange")
