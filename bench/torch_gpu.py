#!/usr/bin/env python3
"""PyTorch on a GPU: one training configuration per process, one JSON line on stdout.

The model of a Hugging Face config.json (GPT-2 or Llama) in bf16 with torch.compile, fused AdamW,
clipping, and whichever of PyTorch's attentions is fastest at this shape. train_run.py has what is not of PyTorch.

  python torch_gpu.py config.json --data tokens.bin --batch 16 --seq 1024

--masters f32 keeps weights and AdamW's state in f32 and computes in bf16 (autocast), as Meshwright
does; bf16 keeps the weights in bf16 too, which is faster and less precise. --compile layers compiles one layer, for all,
rather than the whole model: quicker to compile and a little slower, to find out which batch is best."""
import contextlib
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import train_run


class GPT2Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, self.heads = c["n_embd"], c["n_head"]
        self.ln_1 = nn.LayerNorm(width, eps=c["layer_norm_epsilon"])
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width, eps=c["layer_norm_epsilon"])
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, s, w = x.shape
        q, k, v = (t.view(b, s, self.heads, -1).transpose(1, 2) for t in self.qkv(self.ln_1(x)).split(w, dim=2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, s, w))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, c, seq):
        super().__init__()
        self.tokens = nn.Embedding(c["vocab_size"], c["n_embd"])
        self.places = nn.Embedding(c["n_positions"], c["n_embd"])
        self.blocks = nn.ModuleList(GPT2Block(c) for _ in range(c["n_layer"]))
        self.norm = nn.LayerNorm(c["n_embd"], eps=c["layer_norm_epsilon"])

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places.weight[:tokens.size(1)]
        for block in self.blocks:
            x = block(x)
        return loss_of(F.linear(self.norm(x), self.tokens.weight), targets)


class LlamaBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, inner, head = c["hidden_size"], c["intermediate_size"], c["head_dim"]
        self.head, self.shared = head, c["num_key_value_heads"] != c["num_attention_heads"]
        self.norm_1, self.norm_2 = (nn.RMSNorm(width, eps=c["rms_norm_eps"]) for _ in range(2))
        self.q = nn.Linear(width, c["num_attention_heads"] * head, bias=False)
        self.k, self.v = (nn.Linear(width, c["num_key_value_heads"] * head, bias=False) for _ in range(2))
        self.o = nn.Linear(c["num_attention_heads"] * head, width, bias=False)
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x, cos, sin):
        b, s, _ = x.shape
        y = self.norm_1(x)
        q, k, v = (layer(y).view(b, s, -1, self.head).transpose(1, 2) for layer in (self.q, self.k, self.v))
        q, k = turn(q, cos, sin), turn(k, cos, sin)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.shared)
        x = x + self.o(a.transpose(1, 2).reshape(b, s, -1))
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def turn(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((-second, first), dim=-1) * sin).to(x.dtype)


class Llama(nn.Module):
    def __init__(self, c, seq):
        super().__init__()
        self.tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.blocks = nn.ModuleList(LlamaBlock(c) for _ in range(c["num_hidden_layers"]))
        self.norm = nn.RMSNorm(c["hidden_size"], eps=c["rms_norm_eps"])
        tied = c["tie_word_embeddings"]
        self.unembed = None if tied else nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        turns = c["rope_theta"] ** (-torch.arange(0, c["head_dim"], 2) / c["head_dim"])
        angles = torch.outer(torch.arange(seq), turns).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        weight = self.tokens.weight if self.unembed is None else self.unembed.weight
        return loss_of(F.linear(self.norm(x), weight), targets)


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def initialize(module):
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def fastest_attention(c, args):
    """The backend with the least time forward and backward at the model's shape."""
    heads = c.get("n_head") or c["num_attention_heads"]
    kept = c.get("num_key_value_heads") or heads
    head = c.get("head_dim") or c["n_embd"] // heads
    q, k, v = (torch.randn(args.batch[0], n, args.seq, head, device=args.device, dtype=torch.bfloat16,
                           requires_grad=True) for n in (heads, kept, kept))
    times = {}
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.MATH):
        if times and backend is SDPBackend.MATH:
            break  # what works everywhere, if nothing else does
        try:
            with sdpa_kernel(backend):
                for i in range(8):
                    if i == 3:
                        wait(args.device)
                        begin = time.perf_counter()
                    F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=kept != heads).sum().backward()
                wait(args.device)
            times[backend] = time.perf_counter() - begin
        except RuntimeError:
            continue  # it does not take this shape or device
    return min(times, key=times.get)


def compiled(model, args):
    """Batches are measured one after another, each with kernels of its own shape."""
    if args.mode == "eager":
        return model
    if args.compile == "model":
        return torch.compile(model, mode=args.mode, dynamic=False)
    for block in model.blocks:
        block.compile(mode=args.mode, dynamic=False)
    return model


def main():
    parser = train_run.parser(__doc__)
    parser.add_argument("--mode", default="default", help="of torch.compile, or eager")
    parser.add_argument("--compile", choices=["model", "layers"], default="model")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    c = train_run.model(args)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    began = time.time()
    backend = fastest_attention(c, args)
    choosing = time.time() - began
    with torch.device(args.device):
        model = {"gpt2": GPT2, "llama": Llama}[c["model_type"]](c, args.seq)
    model.apply(initialize)
    if args.masters == "bf16":
        model.to(torch.bfloat16)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW([{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": train_run.DECAY},
                                   {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}],
                                  lr=args.lr, betas=train_run.BETAS, eps=train_run.EPSILON, fused=True)
    step_loss = compiled(model, args)

    def train(rows):
        tokens = torch.frombuffer(rows, dtype=torch.int16).to(args.device).long() & 0xFFFF
        tokens = tokens.view(-1, args.seq + 1)
        optimizer.zero_grad(set_to_none=True)
        cast = torch.autocast(args.device, torch.bfloat16) if args.masters == "f32" else contextlib.nullcontext()
        with sdpa_kernel(backend), cast:
            loss = step_loss(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        loss.backward()
        if args.clip:
            nn.utils.clip_grad_norm_(parameters, args.clip)
        optimizer.step()
        return loss.item()

    def run(batch):
        on_gpu = args.device == "cuda"
        if on_gpu:
            optimizer.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        measured = train_run.measure(args, batch, train, aside=choosing)
        return {**measured, "peak_bytes": torch.cuda.max_memory_reserved() if on_gpu else None}

    train_run.sweep(args, run, lambda error: isinstance(error, torch.OutOfMemoryError), attention=backend.name.lower(),
                  parameters=sum(p.numel() for p in parameters), torch=torch.__version__)


main()
