#!/usr/bin/env python3
"""Makes test/Inputs/preferences: float64 runs of direct preference optimization on the models of test/Inputs/golden.

    python3 -m venv venv && venv/bin/pip install torch transformers peft safetensors numpy
    venv/bin/python test/Golden/preferences.py

The product needs none of this; the results are committed. The loss is TRL's DPOTrainer's with loss_type sigmoid, written out
here: the log-probabilities of a completion's tokens are summed, and of a pair the loss is
-log sigmoid(beta ((chosen - chosen's reference) - (rejected - rejected's reference))), of which a batch has the mean.

pairs.bin has a document for each completion with its prompt, chosen and rejected in turn, of one byte a token; pairs.starts
their first tokens; pairs.mask which tokens are a completion's; reference.f32 log-probabilities of another model, as random
numbers near those of this one. For each model: losses, gradient norms, what TRL reports, the log-probabilities of all
sequences under the first weights (golden.json) and the first step's gradients (grads0.safetensors). Folders in lora train the
adapters of test/Inputs/lora.
"""
import json

import numpy as np
import torch
from torch.nn.functional import logsigmoid

from generate import FLOAT32, RUN, output_of
from lora import GOLDEN, HERE, MODELS, OUT as ADAPTERS, base, saved_name, tensors_in, write
from peft import LoraConfig, get_peft_model, set_peft_model_state_dict

OUT = HERE.parent / "Inputs" / "preferences"
BETA, BATCH, SEQ, STEPS, PAIRS = 0.1, 8, 24, 4, 16
NAMES = ["rewards/chosen", "rewards/rejected", "rewards/accuracies", "rewards/margins", "logps/chosen", "logps/rejected"]


def make_data():
    """Prompts and two continuations of each, of various lengths; some sequences are longer than SEQ and its last target."""
    text = (GOLDEN / "corpus.txt").read_bytes()
    draw = np.random.default_rng(11)
    tokens, mask, starts = b"", b"", []
    for _ in range(PAIRS):
        at = int(draw.integers(0, 4000))
        prompt = text[at:at + int(draw.integers(2, 13))]
        for _ in range(2):
            other = int(draw.integers(0, 4000))
            completion = text[other:other + int(draw.integers(3, 18))]
            starts.append(len(tokens))
            tokens += prompt + completion
            mask += b"\0" * len(prompt) + b"\1" * len(completion)
    (OUT / "pairs.bin").write_bytes(tokens)
    (OUT / "pairs.mask").write_bytes(mask)
    np.asarray(starts, "<u8").tofile(OUT / "pairs.starts")


def rows():
    """All sequences: their tokens, padded, and their targets, -100 where none counts."""
    tokens = np.fromfile(OUT / "pairs.bin", "u1").astype(np.int64)
    mask = np.fromfile(OUT / "pairs.mask", "u1")
    starts = [*np.fromfile(OUT / "pairs.starts", "<u8").astype(int), len(tokens)]
    x, y = np.zeros((2 * PAIRS, SEQ), np.int64), np.full((2 * PAIRS, SEQ), -100)
    for i, (begin, end) in enumerate(zip(starts, starts[1:])):
        row, counts = tokens[begin:end][:SEQ + 1], mask[begin:end][:SEQ + 1]
        x[i, :min(len(row), SEQ)] = row[:SEQ]
        y[i, :len(row) - 1] = np.where(counts[1:], row[1:], -100)
    return torch.tensor(x), torch.tensor(y)


def log_probs(model, x, y):
    logits = output_of(model, x).logits
    assert logits.dtype == torch.double
    each = logits.log_softmax(-1).gather(-1, y.clamp(min=0)[..., None])[..., 0]
    return (each * (y >= 0)).sum(-1)


def losses_of(policy, reference):
    chosen, rejected = (BETA * (policy[i::2] - reference[i::2]) for i in (0, 1))
    loss = -logsigmoid(chosen - rejected).mean()
    said = [chosen.mean(), rejected.mean(), (chosen > rejected).double().mean(), (chosen - rejected).mean(),
            policy[0::2].mean(), policy[1::2].mean()]
    return loss, [value.item() for value in said]


def train(model, run, reference):
    decay = [p for p in model.parameters() if p.requires_grad and p.dim() >= 2]
    plain = [p for p in model.parameters() if p.requires_grad and p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": run["weight_decay"]}, {"params": plain, "weight_decay": 0.0}],
        lr=run["lr"], betas=(run["beta1"], run["beta2"]), eps=run["eps"])
    x, y = rows()
    golden = {"run": run, "loss": [], "grad_norm": [], **{name: [] for name in NAMES}}
    model.train()
    with torch.no_grad():
        golden["log_probs"] = log_probs(model, x, y).tolist()
    for step in range(run["steps"]):
        of = torch.arange(step * BATCH, (step + 1) * BATCH) % len(x)
        loss, said = losses_of(log_probs(model, x[of], y[of]), reference[of])
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            first = {n: p.grad.clone() for n, p in model.named_parameters() if p.requires_grad}
        norm = torch.nn.utils.clip_grad_norm_([*decay, *plain], run["grad_clip"])
        optimizer.step()
        for name, value in zip(["loss", "grad_norm", *NAMES], [loss.item(), norm.item(), *said]):
            golden[name].append(value)
    return golden, first


def save(folder, golden, grads):
    folder.mkdir(parents=True, exist_ok=True)
    write(grads, folder / "grads0.safetensors")
    (folder / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    print(f"{folder.relative_to(OUT)}: loss {golden['loss'][0]:.6f} -> {golden['loss'][-1]:.6f}, "
          f"accuracy {golden['rewards/accuracies'][0]} -> {golden['rewards/accuracies'][-1]}")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    make_data()
    x, y = rows()
    with torch.no_grad():
        near = log_probs(base("llama-tiny").double(), x, y)
    noise = torch.randn(len(x), generator=torch.Generator().manual_seed(3), dtype=FLOAT32) * 4
    np.minimum((near + noise).numpy(), -1).astype("<f4").tofile(OUT / "reference.f32")
    reference = torch.tensor(np.fromfile(OUT / "reference.f32", "<f4").astype(float))
    run = {**RUN, "steps": STEPS, "batch": BATCH, "seq": SEQ, "beta": BETA, "data": "pairs.bin"}
    for name in ("llama-tiny", "gpt2-tiny"):
        model = base(name).double()
        save(OUT / name, *train(model, run, reference))
    for name in ("llama-tiny",):
        model = get_peft_model(base(name).double(), LoraConfig(task_type="CAUSAL_LM", **MODELS[name]))
        set_peft_model_state_dict(model, tensors_in(ADAPTERS / name / "adapter_model.safetensors"))
        golden, grads = train(model, run, reference)
        save(OUT / "lora" / name, golden, {saved_name(n): g for n, g in grads.items()})


main()
