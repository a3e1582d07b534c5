#!/usr/bin/env python3
"""What f32 leaves of gradients, of PyTorch and of executables, against float64: rounding.py t5|umt5|lora WORK [DRAWS]

For each draw of weights, of which the first is the golden directory's: the largest error of a tensor's gradient, and the geometric
mean over tensors of the executable's errors in units of PyTorch's. `ordered` is PyTorch in f32 that computes T5 as executables do:
FlashAttention's backward, products by OpenBLAS (NumPy's), sums over rows one row after the other. Needs torch, transformers and peft,
and meshwright in the PATH; run by hand (docs/precision.md has what it prints).
"""
import contextlib
import json
import math
import pathlib
import sys

import numpy as np
import torch
import transformers
from peft import LoraConfig, get_peft_model, set_peft_model_state_dict
from safetensors.torch import load_file, save_file
from torch.utils._python_dispatch import TorchDispatchMode

from pairs import in_float64

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "EndToEnd"))
from compare import GRADIENT_LR  # noqa: E402
from harness import INPUTS, Golden, compile, fresh, train  # noqa: E402

attend = torch.nn.functional.scaled_dot_product_attention


class FlashAttention(torch.autograd.Function):
    """The backward has the sum of each row of P dP from the result, as no row of P is whole in memory (Dao 2023)."""

    @staticmethod
    def forward(ctx, q, k, v, bias):
        scores = q @ k.transpose(-1, -2) + bias
        most = scores.max(-1, keepdim=True).values
        weights = (scores - most).exp()
        total = weights.sum(-1, keepdim=True)
        out = weights @ v / total
        ctx.save_for_backward(q, k, v, bias, out, most + total.log())
        return out

    @staticmethod
    def backward(ctx, d_out):
        q, k, v, bias, out, lse = ctx.saved_tensors
        p = (q @ k.transpose(-1, -2) + bias - lse).exp()
        d_scores = p * (d_out @ v.transpose(-1, -2) - (d_out * out).sum(-1, keepdim=True))
        return d_scores @ k, d_scores.transpose(-1, -2) @ q, p.transpose(-1, -2) @ d_out, d_scores


def flash(q, k, v, attn_mask=None, is_causal=False, scale=None, **_):
    assert scale == 1.0, "T5 has no scale"
    pairs = q.shape[2], k.shape[2]
    bias = torch.zeros(1, 1, *pairs) if attn_mask is None else attn_mask
    least = torch.finfo(torch.float).min
    if bias.dtype == torch.bool:
        bias = torch.zeros(bias.shape).masked_fill(~bias, least)
    if is_causal:
        bias = bias.masked_fill(torch.ones(pairs).tril() == 0, least)
    return FlashAttention.apply(q, k, v, bias.expand(*q.shape[:2], *pairs))


class Ordered(TorchDispatchMode):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if op is torch.ops.aten.mm.default:
            return torch.from_numpy(np.matmul(*(x.detach().numpy() for x in args)))
        last = args[0].dim() - 1 if op is torch.ops.aten.sum.dim_IntList else 0
        if last and sorted(dim % (last + 1) for dim in args[1]) == list(range(last)):
            total = sum(args[0].detach().flatten(0, -2))
            return total.reshape([1] * last + [-1]) if args[2:] and args[2] else total
        return op(*args, **(kwargs or {}))


class T5:
    golden = Golden(INPUTS / "golden-more" / "t5")
    start = golden.weights
    saved, options = "model.safetensors", {}

    def __init__(self):
        run = self.golden.answers["run"]
        self.tokens, self.source = (torch.full((run["batch"], run[size]), fill) for size, fill in (("seq", -100), ("source_seq", 0)))
        for name, documents, rows in (("data", "documents", self.tokens), ("source", "source_documents", self.source)):
            text, starts = self.golden.data[name].read_bytes(), np.fromfile(self.golden.data[documents], "<u8").tolist()
            for row, begin, end in zip(rows, starts, starts[1:]):
                words = list(text[begin:end])[:len(row)]
                row[:len(words)] = torch.tensor(words)
        self.seen = (self.source > 0).long()

    def model(self, weights):
        config = transformers.AutoConfig.from_pretrained(self.golden.directory)
        model = transformers.AutoModelForSeq2SeqLM.from_config(config)
        assert not model.load_state_dict(weights, strict=False).unexpected_keys
        return model

    def loss(self, model):
        begin = torch.full((len(self.tokens), 1), model.config.decoder_start_token_id)
        shifted = torch.cat([begin, self.tokens[:, :-1]], 1).clamp(min=model.config.pad_token_id)
        logits = model(input_ids=self.source, attention_mask=self.seen, decoder_input_ids=shifted).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), self.tokens.flatten(), ignore_index=-100)

    @staticmethod
    def draw(name, like, generator):
        noise = torch.randn(like.shape, generator=generator)
        return noise * like.std() if like.dim() > 1 else 1 + 0.05 * noise

    def given(self, path):
        return {"init": path}


class UMT5(T5):
    golden = Golden(INPUTS / "golden-more" / "umt5")
    start = golden.weights


class Lora(T5):
    golden = Golden(INPUTS / "lora" / "llama-tiny")
    base = INPUTS / "golden" / "llama-tiny"
    start = golden.directory / "adapter_model.safetensors"
    saved, options = "adapter_model.safetensors", {"lora": "r=4,alpha=16,targets=all-linear,rslora"}

    def __init__(self):
        run = self.golden.answers["run"]
        self.golden.config, self.golden.data["data"] = self.base / "config.json", INPUTS / "golden" / run["data"]
        text = torch.tensor(list(self.golden.data["data"].read_bytes()[:run["batch"] * run["seq"] + 1]))
        self.tokens, self.targets = (part.reshape(run["batch"], run["seq"]) for part in (text[:-1], text[1:]))
        self.weights = load_file(self.base / "model.safetensors")

    def model(self, weights):
        model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(self.base))
        assert not model.load_state_dict(self.weights, strict=False).unexpected_keys
        keys = json.loads((self.golden.directory / "adapter_config.json").read_text())
        names = ("r", "lora_alpha", "target_modules", "use_rslora")
        model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **{name: keys[name] for name in names}))
        set_peft_model_state_dict(model, weights)
        return model

    def loss(self, model):
        return torch.nn.functional.cross_entropy(model(input_ids=self.tokens).logits.flatten(0, 1), self.targets.flatten())

    @staticmethod
    def draw(name, like, generator):
        return torch.randn(like.shape, generator=generator) * 0.1

    def given(self, path):
        folder = path.parent / "adapter"
        folder.mkdir(exist_ok=True)
        (folder / "adapter_config.json").write_bytes((self.golden.directory / "adapter_config.json").read_bytes())
        (folder / self.saved).write_bytes(path.read_bytes())
        return {"init": self.base / "model.safetensors", "adapter": folder}


def gradients(case, weights, double=False):
    with in_float64() if double else contextlib.nullcontext():
        model = case.model(weights)
        if double:
            model.double()
        case.loss(model).backward()
    return {name.replace(".default", ""): p.grad.double() for name, p in model.named_parameters() if p.grad is not None}


def main():
    case = {"t5": T5, "umt5": UMT5, "lora": Lora}[sys.argv[1]]()
    work, draws = fresh(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else 6
    first = load_file(case.start)
    compile(case.golden.config, "exe", **case.golden.size, **case.options, optimizer="sgd")
    for draw in range(draws):
        generator = torch.Generator().manual_seed(draw)
        weights = {name: case.draw(name, like, generator) for name, like in first.items()} if draw else first
        save_file(weights, work / "start.safetensors")
        want = gradients(case, weights, double=True)
        have = {"PyTorch": gradients(case, weights)}
        if type(case) is T5:
            torch.nn.functional.scaled_dot_product_attention = flash
            with Ordered():
                have["ordered"] = gradients(case, weights)
            torch.nn.functional.scaled_dot_product_attention = attend
        train("./exe", save="saved", **case.golden.data, **case.given(work / "start.safetensors"), lr=GRADIENT_LR, grad_clip=0, steps=1)
        after = load_file(f"saved/latest/{case.saved}")
        ours = {name: (weights[name].double() - after[name].double()) / GRADIENT_LR for name in want}
        errors = {kind: {name: ((g[name] - want[name]).norm() / want[name].norm()).item() for name in want} for kind, g in [("executable", ours), *have.items()]}
        largest = ", ".join(f"{kind} {max(error.values()):.1e}" for kind, error in errors.items())
        beside = ", ".join(f"{math.exp(np.mean([math.log(errors['executable'][name] / errors[kind][name]) for name in want])):.2f} of {kind}'s" for kind in have)
        print(f"draw {draw}: {largest}; errors of the executable are {beside}", flush=True)


main()
