"""What generate.py and expected.py generate from: golden models, their configurations changed where sequences are to be longer."""
import array
import json
import re
import struct

PROMPT = b"What light" # more than a decoder reads at once

LONG = {"max_position_embeddings": 320}
CASES = {
    # 200 tokens, of rotary families, whose weights do not depend on how many positions there are.
    **{name: {"inputs": f"golden-more/{name}", "config": LONG, "tokens": 200}
       for name in ("qwen3", "gemma2", "mixtral", "deepseek-v3", "gpt-oss", "phi3", "mistral-window")},
    "llama": {"inputs": "golden/llama-tiny", "config": LONG, "tokens": 200},
    # Recurrences and short convolutions, alone and beside attention.
    **{name: {"inputs": f"golden-more/{name}", "config": {} if name == "mamba2" else LONG, "tokens": 60}
       for name in ("mamba2", "bamba", "qwen3-next", "qwen3-5", "lfm2", "lfm2-moe")},
    # Those that would say one token, or a few, over and over, whatever their states are: what recurrences add weighs more.
    **{name: {"inputs": f"golden-more/{name}", "config": LONG, "tokens": 60, "scaled": (r"\.out_proj\.weight$", 8)}
       for name in ("granite4", "nemotron-h", "falcon-h1", "qwen3-5-moe")},
    # Recurrences with decays of elements, and with fixed ones.
    **{name: {"inputs": f"golden-more/{name}", "config": config, "tokens": 60, "scaled": (r"\.(out_proj|linear_out|o_proj)\.weight$", 4)}
       for name, config in (("recurrent-gemma", {}), ("mamba", {}), ("falcon-mamba", {}), ("jamba", LONG), ("kimi-linear", {"model_max_length": 320}),
                            ("minimax", LONG))},
    # Two attentions a layer, their difference, and experts in one tensor.
    **{name: {"inputs": f"golden-more/{name}", "config": config, "tokens": 40}
       for name, config in (("longcat-flash", LONG), ("diffllama", LONG), ("dbrx", {"max_seq_len": 320}))},
    # As many as the model has positions.
    "gpt2": {"inputs": "golden/gpt2-tiny", "config": {}, "tokens": 20},
    **{name: {"inputs": f"golden-more/{name}", "config": {}, "tokens": 20}
       for name in ("apertus", "bloom", "cohere2", "ernie4_5-moe", "exaone4", "falcon", "gemma3", "glm4", "gpt-neox", "gptj", "llama4", "llama4-chunks",
                    "minicpm3", "minimax-m2", "mpt", "nemotron", "olmo2",
                    "olmoe", "opt", "qwen2-window", "smollm3", "stablelm", "starcoder2")},
}
# Recurrences continue these too, by 20 tokens: fewer than a convolution sees, and fewer than a decoder reads at once.
SHORT = (b"O", b"Oh no")
RECURRENT = ("mamba2", "qwen3-next", "lfm2", "recurrent-gemma", "mamba", "kimi-linear")
# What beam search continues the prompt with, too, by 20 tokens.
BEAMS = ("gpt2", "mistral-window", "deepseek-v3", "mamba2", "qwen3-next")

# Of encoder-decoder models: sources as they are read, one of them much shorter than the encoder's; how long the executable's sequences are; and
# what is searched for each. Several tokens end targets, so that some end before they are as long as they may be.
SOURCES = [b"What light through yonder", b"O"]
SOURCE_SEQ, TARGET_SEQ = 32, 24
SEARCHES = {
    "greedy": {"beams": 1},
    "beams": {"beams": 4},
    "long": {"beams": 4, "length_penalty": 2.0},
    "short": {"beams": 3, "length_penalty": -1.0},
    "early": {"beams": 4, "early_stopping": "on"},
    "never": {"beams": 4, "length_penalty": 1.5, "early_stopping": "never"},
}
PAIRS = {
    "t5": {"inputs": "golden-more/t5", "config": {"eos_token_id": [210, 40]}},
    "t5-plain": {"inputs": "generate/t5-plain", "config": {"eos_token_id": [132, 171, 1]}},
    "bart": {"inputs": "golden-more/bart", "config": {"eos_token_id": [95, 74, 2], "forced_bos_token_id": 7}},
    "blenderbot": {"inputs": "golden-more/blenderbot", "config": {"eos_token_id": [50, 2]}},
    # generation_config.json is read in place of the configuration.
    "marian": {"inputs": "golden-more/marian", "config": {},
               "generation": {"decoder_start_token_id": 3, "pad_token_id": 0, "eos_token_id": [27, 249, 50], "bad_words_ids": [[119]], "forced_eos_token_id": 0,
                              "renormalize_logits": True}},
    "pegasus": {"inputs": "generate/pegasus", "config": {}},
}


def weights(case, directory):
    """The file of weights, with the tensors that a case names multiplied by its factor."""
    file = bytearray((directory / "model.safetensors").read_bytes())
    pattern, factor = case.get("scaled", (None, 1))
    begin = 8 + struct.unpack("<Q", file[:8])[0]
    for name, tensor in json.loads(file[8:begin]).items() if pattern else ():
        if name == "__metadata__" or not re.search(pattern, name):
            continue
        assert tensor["dtype"] == "F32"
        first, last = (begin + offset for offset in tensor["data_offsets"])
        file[first:last] = array.array("f", [value * factor for value in array.array("f", file[first:last])]).tobytes()
    return bytes(file)
