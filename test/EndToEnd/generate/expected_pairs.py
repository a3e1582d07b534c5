#!/usr/bin/env python3
"""Writes expected-pairs.json: the tokens that transformers generates from encoder-decoder models, greedily and by beam search, those that beam
search finds with some decoder-only models, and weights of those models that test/Inputs does not have yet.

    venv/bin/python test/EndToEnd/generate/expected_pairs.py [MODEL...|beams]     (the environment of test/Golden/generate.py)

The product and the tests need none of this; the result is committed. Models compute in float64. What comes out otherwise where logits differ by
up to 1e-5 is refused: there 32 bits may choose other tokens."""
import json
import pathlib
import sys
import tempfile

import torch
import transformers.utils
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, LogitsProcessor

from cases import BEAMS, CASES, PAIRS, PROMPT, SEARCHES, SOURCES, TARGET_SEQ

transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(1)
HERE = pathlib.Path(__file__).resolve().parent
INPUTS = HERE.parent.parent / "Inputs"
SIZES = {"vocab_size": 256, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
         "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 64, "dropout": 0.0, "attention_dropout": 0.0,
         "activation_dropout": 0.0, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1, "forced_eos_token_id": 1}
MADE = {
    "pegasus": {"model_type": "pegasus", **SIZES, "activation_function": "relu", "decoder_start_token_id": 0},
    "t5-plain": {"model_type": "t5", "vocab_size": 256, "d_model": 16, "d_kv": 6, "d_ff": 24, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2,
                 "dropout_rate": 0.0, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 10, "feed_forward_proj": "relu",
                 "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1},
}


class Noise(LogitsProcessor):
    def __init__(self, seed):
        self.random = torch.Generator().manual_seed(seed)

    def __call__(self, ids, scores):
        return scores + 1e-5 * torch.rand(scores.shape, generator=self.random, dtype=scores.dtype)


def make(name, config):
    """A small model of random weights, if there is none yet."""
    folder = INPUTS / "generate" / name
    if folder.exists():
        return
    torch.manual_seed(1)
    model = AutoModelForSeq2SeqLM.from_config(AutoConfig.for_model(**config))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                # Small embeddings, so that a token is not the likeliest one to follow itself.
                std = 0.15 if parameter.shape[0] == config["vocab_size"] else 0.6
                parameter.normal_(0, std) if parameter.dim() > 1 else parameter.add_(0.05 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)


def load(case, kind=AutoModelForSeq2SeqLM):
    directory = INPUTS / case["inputs"]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "config.json").write_text(json.dumps({**json.loads((directory / "config.json").read_text()), **case["config"]}))
        (folder / "model.safetensors").write_bytes((directory / "model.safetensors").read_bytes())
        if "generation" in case:
            (folder / "generation_config.json").write_text(json.dumps(case["generation"]))
        more = {"experts_implementation": "eager"} if kind is AutoModelForCausalLM else {}
        return kind.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager", **more).eval()


def generate(model, source, search, processors=()):
    stopping = {"on": True, "off": False, "never": "never"}[search.get("early_stopping", "off")]
    # Blenderbot's own default forbids a target to repeat what its source has.
    ids = model.generate(torch.tensor([list(source)]), max_new_tokens=TARGET_SEQ, do_sample=False, num_beams=search["beams"],
                         length_penalty=search.get("length_penalty", 1.0), early_stopping=stopping, encoder_no_repeat_ngram_size=0,
                         logits_processor=list(processors))[0].tolist()[1:]
    ends = model.generation_config.eos_token_id
    ends = ends if isinstance(ends, list) else [ends]
    return ids[:-1] if ids[-1] in ends else ids


for name, config in MADE.items():
    make(name, config)
results = HERE / "expected-pairs.json"
rows = json.loads(results.read_text()) if sys.argv[1:] else {}
for name in sys.argv[1:] or [*PAIRS, "beams"]:
    if name == "beams":
        rows[name] = {}
        for decoder in BEAMS:
            model = load(CASES[decoder], AutoModelForCausalLM)
            found = [model.generate(torch.tensor([list(PROMPT)]), max_new_tokens=20, do_sample=False, num_beams=4, eos_token_id=None, pad_token_id=0,
                                    logits_processor=noise)[0].tolist()[len(PROMPT):] for noise in ([], [Noise(0)], [Noise(1)])]
            rows[name][decoder] = found[0] if found[0] == found[1] == found[2] else None
            print(f"{decoder}: {found}", flush=True)
        continue
    model = load(PAIRS[name])
    rows[name] = {}
    for search, flags in SEARCHES.items():
        rows[name][search] = []
        for source in SOURCES:
            ids = generate(model, source, flags)
            same = all(generate(model, source, flags, [Noise(seed)]) == ids for seed in range(3))
            rows[name][search].append(ids if same else None)
            print(f"{name} {search}: {len(ids)} tokens, {len(set(ids))} different{'' if same else ', NOT STABLE'}: {ids}", flush=True)
results.write_text(json.dumps(rows, indent=1).replace(",\n    ", ", ").replace("[\n    ", "[").replace("\n   ]", "]") + "\n")
