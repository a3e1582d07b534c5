#!/usr/bin/env python3
"""Makes golden runs of encoder-decoder models in float64, with transformers: pairs.py OUT [NAME...]

Pairs are documents of random lengths, some longer than what a model reads, of source.txt and target.txt in OUT/NAME. Needs torch and
transformers; run by hand (test/Inputs/golden-more has bart, blenderbot, marian and the four after them as 5.24 computes them).
"""
import contextlib
import json
import pathlib
import random
import struct
import sys

import torch
import transformers
from safetensors.torch import save_file

FLOAT32 = torch.float32
SOURCE, TARGET, BATCH, STEPS = 24, 16, 8, 5
CORPUS = pathlib.Path(__file__).resolve().parent.parent / "Inputs" / "golden" / "corpus.txt"
SIZES = {"vocab_size": 256, "d_model": 32, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
         "encoder_ffn_dim": 48, "decoder_ffn_dim": 64, "max_position_embeddings": 64, "dropout": 0.0, "attention_dropout": 0.0,
         "activation_dropout": 0.0, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
T5 = {"vocab_size": 256, "d_model": 32, "d_kv": 6, "d_ff": 48, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 4, "dropout_rate": 0.0,
      "relative_attention_num_buckets": 8, "relative_attention_max_distance": 10, "decoder_start_token_id": 0}
MODELS = {
    "bart": {"model_type": "bart", **SIZES, "decoder_start_token_id": 2},
    "blenderbot": {"model_type": "blenderbot", **SIZES, "scale_embedding": True, "decoder_start_token_id": 1},
    "marian": {"model_type": "marian", **SIZES, "scale_embedding": True, "activation_function": "swish", "decoder_start_token_id": 0},
    "pegasus": {"model_type": "pegasus", **SIZES, "scale_embedding": True, "activation_function": "relu", "decoder_start_token_id": 0},
    "mbart": {"model_type": "mbart", **SIZES, "scale_embedding": True, "decoder_start_token_id": 9},
    "plbart": {"model_type": "plbart", **SIZES, "decoder_start_token_id": 5},
    "blenderbot-small": {"model_type": "blenderbot-small", **SIZES, "decoder_start_token_id": 1},
    "m2m-100": {"model_type": "m2m_100", **SIZES, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "pad_token_id": 1, "decoder_start_token_id": 2},
    "t5-plain": {"model_type": "t5", **T5, "feed_forward_proj": "relu"},
    "umt5": {"model_type": "umt5", **T5, "pad_token_id": 0},
}


def make_model(config):
    torch.manual_seed(0)
    model = transformers.AutoModelForSeq2SeqLM.from_config(transformers.AutoConfig.for_model(**config))
    with torch.no_grad():
        for parameter in model.parameters():
            # Sines and cosines are no weights.
            if parameter.requires_grad:
                parameter.normal_(0, 0.12) if parameter.dim() > 1 else parameter.add_(0.05 * torch.randn_like(parameter))
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.normal_(0, 0.1)
    return model


@contextlib.contextmanager
def in_float64():
    """What asks for float32 meanwhile, as norms of T5 and tables of positions do whatever the model's type, gets float64."""
    names = torch.float, torch.float32, torch.Tensor.float
    torch.float = torch.float32 = torch.double
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.double)
    try:
        yield
    finally:
        torch.float, torch.float32, torch.Tensor.float = names
        torch.set_default_dtype(FLOAT32)


def use_exact_sines(model):
    """Positions of float64, which the model has as float32 when it is made."""
    for module in model.modules():
        if hasattr(module, "make_weights"):
            module.weights = module.get_embedding(len(module.weights), module.embedding_dim, module.padding_idx)


def make_pairs(out):
    """Writes the files of pairs; returns them as they are read."""
    draw, corpus, at, pairs = random.Random(1), CORPUS.read_bytes(), 0, []
    texts, starts = {"source": b"", "target": b""}, {"source": [], "target": []}
    while len(pairs) < 100:
        lengths = {"source": draw.randint(3, SOURCE + 4), "target": draw.randint(2, TARGET + 3)}
        pair = {}
        for part, length in lengths.items():
            pair[part] = corpus[at:at + length]
            starts[part].append(len(texts[part]))
            texts[part] += pair[part]
            at += length
        pairs.append((pair["source"][:SOURCE], pair["target"][:TARGET]))
    for part in texts:
        (out / f"{part}.txt").write_bytes(texts[part])
        (out / f"{part}s.bin").write_bytes(struct.pack(f"<{len(pairs)}Q", *starts[part]))
    return pairs


def train(model, pairs, out):
    groups = [{"params": [p for p in model.parameters() if p.requires_grad and (p.dim() > 1) == decays], "weight_decay": 0.1 * decays}
              for decays in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
    losses, norms = [], []
    for step in range(STEPS):
        source = torch.zeros(BATCH, SOURCE, dtype=torch.long)
        seen, targets = torch.zeros_like(source), torch.full((BATCH, TARGET), -100)
        for row in range(BATCH):
            text, wanted = pairs[(step * BATCH + row) % len(pairs)]
            source[row, :len(text)], seen[row, :len(text)], targets[row, :len(wanted)] = torch.tensor(list(text)), 1, torch.tensor(list(wanted))
        optimizer.zero_grad()
        # Most models shift targets themselves; some begin with what a target ends with, the code of its language.
        shifted = torch.cat([torch.full((BATCH, 1), model.config.decoder_start_token_id), targets[:, :-1]], 1)
        shifted = shifted.masked_fill(shifted < 0, model.config.pad_token_id)
        logits = model(input_ids=source, attention_mask=seen, decoder_input_ids=shifted).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
        loss.backward()
        if step == 0:
            save_file({name: p.grad.to(FLOAT32) for name, p in model.named_parameters() if p.grad is not None}, out / "grads0.safetensors")
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        losses.append(loss.item())
        optimizer.step()
    return {"loss": losses, "grad_norm": norms}


def generate(name, config, folder):
    out = folder / name
    out.mkdir(parents=True, exist_ok=True)
    model = make_model(config)
    model.save_pretrained(out)
    (out / "generation_config.json").unlink(missing_ok=True)
    run = {"steps": STEPS, "batch": BATCH, "seq": TARGET, "source_seq": SOURCE, "lr": 1e-3, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95,
           "eps": 1e-8, "grad_clip": 1.0, "optimizer": "adamw", "tokens": "u8", "data": f"{name}/target.txt", "source": f"{name}/source.txt",
           "documents": f"{name}/targets.bin", "source_documents": f"{name}/sources.bin"}
    model.double()
    with in_float64():
        use_exact_sines(model)
        answers = train(model, make_pairs(out), out)
    (out / "golden.json").write_text(json.dumps({"run": run, **answers}, indent=1) + "\n")
    print(name, answers["loss"][-1])


if __name__ == "__main__":
    for name in sys.argv[2:] or MODELS:
        generate(name, MODELS[name], pathlib.Path(sys.argv[1]))
