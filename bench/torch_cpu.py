#!/usr/bin/env python3
"""PyTorch CPU baseline: one training configuration per process, one JSON line on stdout.

Measures the median wall time of a full training step, in f32 or under autocast, (zero_grad, forward, loss, backward,
clip_grad_norm_, AdamW) and the peak resident set of the process.

  python torch_cpu.py --impl lean --mode compile --seq 64
"""
import argparse
import json
import math
import os
import resource
import statistics
import sys
import time


def parse_args():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--impl", choices=["lean", "hf", "config"], default="lean",
                   help="lean: nanoGPT-style module; hf: transformers.GPT2LMHeadModel; config: the model of --config")
    p.add_argument("--config", help="text of a config.json, for transformers' model of its family")
    p.add_argument("--experts", default="eager", help="what transformers computes experts with")
    p.add_argument("--mode", choices=["eager", "compile", "max-autotune"], default="eager")
    p.add_argument("--optim", choices=["fused", "foreach", "single"], default="fused")
    p.add_argument("--precision", choices=["f32", "bf16"], default="f32", help="bf16: autocast")
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--seq", type=int, default=64)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--steps", type=int, default=9)
    p.add_argument("--layers", type=int, default=12)
    p.add_argument("--width", type=int, default=768)
    p.add_argument("--heads", type=int, default=12)
    p.add_argument("--vocab", type=int, default=50257)
    p.add_argument("--positions", type=int, default=1024)
    p.add_argument("--lr", type=float, default=6e-4)
    p.add_argument("--clip", type=float, default=1.0, help="0: no clipping")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--profile", action="store_true", help="print torch.profiler's operator table to stderr")
    return p.parse_args()


args = parse_args()
os.environ["OMP_NUM_THREADS"] = str(args.threads)  # before torch starts its pools

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.fc = nn.Linear(width, 4 * width)
        self.out = nn.Linear(4 * width, width)

    def forward(self, x):
        b, s, c = x.shape
        q, k, v = self.qkv(self.ln_1(x)).split(c, dim=2)
        q, k, v = (t.view(b, s, self.heads, c // self.heads).transpose(1, 2) for t in (q, k, v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, s, c))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class LeanGPT2(nn.Module):
    def __init__(self, vocab, positions, width, layers, heads):
        super().__init__()
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.apply(self._init)
        for n, p in self.named_parameters():
            if n.endswith("proj.weight") or n.endswith("out.weight"):
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * layers))

    @staticmethod
    def _init(m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)
        if isinstance(m, nn.Linear):
            nn.init.zeros_(m.bias)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[: tokens.size(1)]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)  # tied head
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def build():
    if args.impl == "lean":
        return LeanGPT2(args.vocab, args.positions, args.width, args.layers, args.heads)
    from transformers import AutoConfig, AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

    class HF(nn.Module):
        def __init__(self):
            super().__init__()
            if args.impl == "config":
                config = AutoConfig.for_model(**json.loads(args.config))
                args.vocab = config.vocab_size
                self.m = AutoModelForCausalLM.from_config(config, experts_implementation=args.experts)
                return
            self.m = GPT2LMHeadModel(GPT2Config(
                vocab_size=args.vocab, n_positions=args.positions, n_embd=args.width, n_layer=args.layers,
                n_head=args.heads, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                activation_function="gelu_pytorch_tanh", use_cache=False))  # F.gelu(tanh); same as gelu_new

        def forward(self, tokens, targets):
            logits = self.m(input_ids=tokens, use_cache=False).logits
            return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    return HF()


def main():
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    model = build().train()
    params = [p for p in model.parameters() if p.requires_grad]
    groups = [{"params": [p for p in params if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0}]
    kind = {"fused": {"fused": True}, "foreach": {"foreach": True}, "single": {"foreach": False}}[args.optim]
    opt = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.95), eps=1e-8, **kind)
    fn = model
    if args.mode == "compile":
        fn = torch.compile(model)
    elif args.mode == "max-autotune":
        fn = torch.compile(model, mode="max-autotune")
    data = [torch.randint(args.vocab, (args.batch, args.seq + 1)) for _ in range(8)]
    phases = {"forward": [], "backward": [], "optimizer": []}
    times, losses = [], []

    def step(i):
        d = data[i % len(data)]
        t0 = time.perf_counter()
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.precision == "bf16"):
            loss = fn(d[:, :-1].contiguous(), d[:, 1:].contiguous())
        t1 = time.perf_counter()
        loss.backward()
        t2 = time.perf_counter()
        if args.clip:
            nn.utils.clip_grad_norm_(params, args.clip)
        opt.step()
        losses.append(loss.item())
        t3 = time.perf_counter()
        return t1 - t0, t2 - t1, t3 - t2

    t_start = time.perf_counter()
    step(0)
    first = time.perf_counter() - t_start  # includes compilation
    i = 1
    while i < args.warmup:
        step(i)
        i += 1
    for _ in range(args.steps):
        f, b, o = step(i)
        i += 1
        times.append(f + b + o)
        for k, v in zip(phases, (f, b, o)):
            phases[k].append(v)
    if args.profile:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            step(i)
        print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=15), file=sys.stderr)
    ms = lambda v: round(1e3 * statistics.median(v), 1)  # noqa: E731
    print(json.dumps({
        "impl": args.impl, "mode": args.mode, "optim": args.optim, "precision": args.precision, "batch": args.batch, "seq": args.seq,
        "threads": args.threads, "params": sum(p.numel() for p in params), "steps": len(times),
        "step_ms": ms(times), "step_ms_min": round(1e3 * min(times), 1), "step_ms_max": round(1e3 * max(times), 1),
        "forward_ms": ms(phases["forward"]), "backward_ms": ms(phases["backward"]),
        "optimizer_ms": ms(phases["optimizer"]),
        "tokens_per_s": round(args.batch * args.seq / statistics.median(times), 1),
        "first_step_s": round(first, 2),
        "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "loss_first": round(losses[0], 4), "loss_last": round(losses[-1], 4),
        "torch": torch.__version__,
    }))


if __name__ == "__main__":
    main()
