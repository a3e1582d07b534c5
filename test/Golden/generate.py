#!/usr/bin/env python3
"""Makes test/Inputs/golden-more: float64 training runs of transformers' own models.

    python3 -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python test/Golden/generate.py [NAME...]

The product needs none of this; the results are committed. For each model of
models.json: config.json, model.safetensors (initial weights), grads0.safetensors
(gradients of the first step, before clipping) and golden.json (loss and gradient
norm of each step, and the routers' part of the loss where there is one; norms of the
final weights; of gpt2's joint biases also by part; which tensors have elements
without a gradient).
`--check DIRECTORY...` runs golden directories again.

transformers computes rotary tables, norms and softmax in 32-bit floats whatever the
model's type; here what asks for float32 gets float64, with the same formulas, so that a
float64 interpreter can be held against the runs to many digits.
"""
import json
import math
import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers.utils
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, AutoModelForMaskedLM, GraniteConfig
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

import remote
from masks import masked

FLOAT32 = torch.float32
# Modules ask for float32 by these names when they run.
torch.float = torch.float32 = torch.double
torch.Tensor.float = torch.Tensor.double
torch.set_default_dtype(torch.double)
torch.set_num_threads(1)
transformers.utils.logging.disable_progress_bar()

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent / "Inputs" / "golden-more"
# Buffers of minimax that follow from the configuration, which transformers makes where a file lacks them.
DECAYS = ("slope_rate", "query_decay", "key_decay", "diagonal_decay")
RUN = {"steps": 5, "lr": 1e-3, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8,
       "grad_clip": 1.0, "optimizer": "adamw", "tokens": "u8", "data": "corpus.txt"}


def read_config(path):
    """The configuration in a file or folder. transformers has no minicpm: here it is the granite that computes the same,
    after the code that OpenBMB publishes with its models."""
    file = pathlib.Path(path)
    keys = json.loads((file / "config.json" if file.is_dir() else file).read_text())
    if keys["model_type"] in remote.JUDGES:
        config = remote.judge_of(keys)
        config.remote = keys
        return config
    if keys["model_type"] != "minicpm":
        return AutoConfig.from_pretrained(path)
    keys = {"tie_word_embeddings": True, "num_key_value_heads": None, **keys, "model_type": "granite"}
    heads = keys["hidden_size"] // keys["num_attention_heads"]
    return GraniteConfig(
        **keys, embedding_multiplier=keys.pop("scale_emb"), attention_multiplier=heads**-0.5,
        residual_multiplier=keys.pop("scale_depth") / math.sqrt(keys["num_hidden_layers"]),
        logits_scaling=keys["hidden_size"] / keys.pop("dim_model_base"))


def make_model(config_path):
    config = read_config(config_path)
    config._attn_implementation = "eager"  # the only one with soft caps
    config._experts_implementation = "eager"  # others have no float64
    config.dtype = None
    keys = config.__dict__.pop("remote", None)
    model = class_of(config).from_config(config)
    if keys:
        model.remote = keys
        remote.patch(model, keys)
    if config.model_type == "phimoe":  # It draws experts where it trains.
        model.eval()
        model.train = lambda mode=True: model
    if config.model_type == "recurrent_gemma":  # It rounds sqrt(hidden_size) to bf16, whatever the model's type.
        model.model.normalizer = model.model.normalizer.double()
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        assert value.dtype in (torch.double, torch.int64, torch.bool), name
    return model


def class_of(config):
    if hasattr(config, "text_config"):
        return AutoModelForImageTextToText
    return AutoModelForMaskedLM if config.model_type in ("bert", "roberta", "modernbert", "distilbert", "electra", "ernie", "mpnet", "albert") else AutoModelForCausalLM


def as_saved(model, values):
    """Tensors by the names and in the shapes that save_pretrained of transformers writes: that has each expert's
    matrices apart, for one. `values`: of parameters and buffers; what has none is saved as 0."""
    tensors = [*model.named_parameters(), *saved_buffers(model)]
    kept = [t.detach().clone() for _, t in tensors]
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        for name, tensor in tensors:
            tensor.copy_(values.get(name, torch.zeros_like(tensor)))
        model.save_pretrained(folder)
        for (_, tensor), value in zip(tensors, kept):
            tensor.copy_(value)
        saved = load_file(pathlib.Path(folder) / "model.safetensors")
    saved = {name: tensor for name, tensor in saved.items() if not name.endswith(DECAYS)}
    if keys := getattr(model, "remote", None):
        saved = remote.renamed(saved, model.config, keys["model_type"])
    if model.config.model_type == "olmo_hybrid":
        saved = of_release(model.config, saved)
    if model.config.model_type == "kimi_linear":  # It reads MLPs of layers without experts by their own name, and saves them by that of experts.
        dense = [f"block_sparse_moe.{part}_proj" for part in ("gate", "up", "down")]
        saved = {n.replace("block_sparse_moe", "mlp") if any(f".{part}." in n for part in dense) else n: t for n, t in saved.items()}
    if model.config.model_type == "longcat_flash":  # It has rows for experts without matrices, which releases have not.
        experts = model.config.n_routed_experts
        saved = {n: t for n, t in saved.items() if ".experts." not in n or int(n.split(".experts.")[1].split(".")[0]) < experts}
    if model.config.model_type == "qwen3_vl_moe":  # transformers reads experts either way; releases have [experts, in, out].
        saved = {n: t.transpose(1, 2) if ".mlp.experts." in n else t for n, t in saved.items()}
    return saved


def of_release(config, saved):
    """olmo_hybrid's tensors as its releases have them, which transformers reads too: it saves a convolution's rows in three equal
    parts, whatever the sizes of keys and values, and norms of layers that attend under the names of others."""
    tensors = {}
    for name, tensor in saved.items():
        layer, _, part = name.rpartition(".linear_attn.")
        if part == "q_conv1d.weight":
            joined = torch.cat([saved[f"{layer}.linear_attn.{which}_conv1d.weight"] for which in "qkv"])
            keys = config.linear_num_key_heads * config.linear_key_head_dim
            sizes = [keys, keys, len(joined) - 2 * keys]
            tensors |= {f"{layer}.linear_attn.{which}_conv1d.weight": rows for which, rows in zip("qkv", joined.split(sizes))}
        elif part not in ("k_conv1d.weight", "v_conv1d.weight"):
            attends = name.split(".feedforward")[0] + ".self_attn.q_proj.weight" in saved
            tensors[name.replace("feedforward_layer_norm", "post_attention_layernorm") if attends else name] = tensor
    return tensors


def saved_buffers(model):
    """Buffers that files hold beside the parameters."""
    return [(n, b) for n, b in model.named_buffers() if n in model.state_dict() and not n.endswith(DECAYS)]


def initial_weights(model, seed):
    """Values large enough that every part of the model shows in the loss."""
    generator = torch.Generator().manual_seed(seed)
    # What these norms multiply by is 1 + weight.
    middle = 0 if model.config.model_type in ("gemma", "gemma2", "gemma3_text", "vaultgemma", "nemotron", "recurrent_gemma", "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "step3p7") else 1
    weights = {}
    for name, parameter in [*model.named_parameters(), *saved_buffers(model)]:
        noise = torch.randn(parameter.shape, generator=generator, dtype=FLOAT32)
        if name.endswith("A_log") and parameter.dim() > 1:  # decays from slow to fast
            value = noise
        elif parameter.dim() > 1:
            value = noise * (1.0 / math.sqrt(parameter.shape[-1]))
            if "embed" in name or "wte" in name or "wpe" in name:
                value = noise * 0.3
        elif name.endswith("act_fn.eps"):  # xIELU's, which is below 0
            value = parameter.detach().clone()
        elif name.endswith("recurrent_param"):  # decays that are close to 1, and that are not
            value = noise - 3
        elif name.endswith("bias"):  # of routers, too, which choose by it
            value = noise * 0.2
        else:
            value = (1 if "linear_attn" in name else middle) + noise * 0.2
        weights[name] = value
    return weights


def tokens_of(run, directory):
    kind = {"u8": np.uint8, "u16": "<u2", "u32": "<u4"}[run["tokens"]]
    return np.frombuffer((directory / run["data"]).read_bytes(), dtype=kind).astype(np.int64)


def batch_of(run, data, step, vocabulary):
    """Tokens and targets of a step: targets are the next tokens, or those that are masked (docs/models.md)."""
    batch, seq = run["batch"], run["seq"]
    starts = [(step * batch + i) % ((len(data) - 1) // seq) * seq for i in range(batch)]
    x = np.stack([data[start:start + seq] for start in starts])
    if "mlm" not in run:
        return torch.tensor(x), torch.tensor(np.stack([data[start + 1:start + seq + 1] for start in starts]))
    x, y = map(torch.tensor, masked(x.tolist(), run["mlm"], run["mask_id"], vocabulary, step))
    return x, y.masked_fill(y < 0, -100)


def output_of(model, x):
    keys = {} if class_of(model.config) is AutoModelForMaskedLM else {"use_cache": False}
    if model.config.model_type in ("roberta", "mpnet"):  # Left to itself it skips those of padding tokens.
        first = model.config.pad_token_id + 1
        keys["position_ids"] = torch.arange(first, first + x.shape[1]).expand_as(x)
    return model(input_ids=x, **keys)


def train(model, run, data):
    decay = [p for p in model.parameters() if p.dim() >= 2]
    plain = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": run["weight_decay"]}, {"params": plain, "weight_decay": 0.0}],
        lr=run["lr"], betas=(run["beta1"], run["beta2"]), eps=run["eps"])
    losses, norms, parts, first = [], [], [], None
    routers = [Balanced(module) for module in model.modules() if "router_bias_rate" in run and Balanced.fits(module)]
    assert bool(routers) == ("router_bias_rate" in run)
    recorded = record_logits(model) if "aux_loss" in run else []
    model.train()
    for step in range(run["steps"]):
        x, y = batch_of(run, data, step, model.config.get_text_config().vocab_size)
        recorded.clear()
        output = output_of(model, x)
        assert output.logits.dtype == torch.double
        loss = torch.nn.functional.cross_entropy(output.logits.flatten(0, 1), y.flatten())
        if "aux_loss" in run:
            part = run["aux_loss_coef"] * layer_losses(model.config, recorded or output.router_logits, run)
            parts.append(part.item())
            loss = loss + part
        elif getattr(model.config, "output_router_logits", False):
            part = model.config.router_aux_loss_coef * router_loss(model.config, output, run)
            if "z_loss" in run:
                part = part + run["z_loss"] * sum(logits.logsumexp(-1).square().mean() for logits in output.router_logits)
            parts.append(part.item())
            loss = loss + part
        elif factor := getattr(model, "remote", {}).get("moe", {}).get("router_aux_loss_coef"):
            part = factor * sum(module.balance for module in model.modules() if isinstance(module, remote.Mixture))
            parts.append(part.item())
            loss = loss + part
        optimizer.zero_grad()
        loss.backward()
        for name, parameter in model.named_parameters():
            if ".indexer." in name:  # What selects keys has gradients of 0, so it is decayed.
                parameter.grad = torch.zeros_like(parameter)
        if first is None:
            first = {n: torch.zeros_like(p) if p.grad is None else p.grad.clone() for n, p in model.named_parameters()}
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), run["grad_clip"])
        optimizer.step()
        for router in routers:
            router.balance(run["router_bias_rate"])
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms, parts, first


class Balanced:
    """A router whose bias follows its counts (Wang et al. 2024), which transformers leaves to others."""

    def __init__(self, router):
        self.router = router
        router.register_forward_hook(self.count)

    @staticmethod
    def fits(module):
        return "e_score_correction_bias" in dict(module.named_buffers(recurse=False))

    def count(self, router, _, output):
        logits, _, chosen = output
        self.tokens = torch.bincount(chosen.flatten(), minlength=logits.shape[-1]).double()

    def balance(self, rate):
        self.router.e_score_correction_bias += rate * torch.sign(self.tokens.mean() - self.tokens)


def parts_of(run):
    """The number of parts of the batch that have statistics of their own."""
    return {"batch": 1, "microbatch": run.get("microbatches"), "sequence": run["batch"]}[run.get("aux_scope", "batch")]


def record_logits(model):
    """A list that a forward fills with the logits of routers that transformers does not return, layer by layer."""
    logits = []
    for module in model.modules():
        if Balanced.fits(module):
            module.register_forward_hook(lambda _, __, output: logits.append(output[0]))
    return logits


def layer_losses(config, logits, run):
    """The sum over layers of the losses that transformers lacks, as the papers write them: that of Switch Transformers
    (Fedus et al. 2021, with shares of choices), and the complementary one of DeepSeek-V3 (equations 17 to 20)."""
    total, k = 0, config.num_experts_per_tok
    parts = run["batch"] if run["aux_loss"] == "sequence" else parts_of(run)
    for layer in logits:
        for part in layer.chunk(parts):
            scores = part.sigmoid() if config.model_type == "deepseek_v3" else part.softmax(-1)
            tokens, experts = scores.shape
            chosen = torch.bincount(scores.topk(k, dim=-1).indices.flatten(), minlength=experts).double()
            if run["aux_loss"] == "switch":
                total = total + experts * ((chosen / chosen.sum()) * scores.mean(0)).sum()
            else:
                shares = scores / scores.sum(-1, keepdim=True)
                total = total + ((experts / (k * tokens) * chosen) * shares.mean(0)).sum()
    return total / parts


def router_loss(config, output, run):
    """The mean of what transformers computes for the parts of the batch that have statistics of their own."""
    parts = parts_of(run)
    inner = getattr(config, "ffn_config", None)  # dbrx's
    experts = inner.moe_num_experts if inner else getattr(config, "num_experts", None) or config.num_local_experts
    chosen = inner.moe_top_k if inner else config.num_experts_per_tok
    losses = [load_balancing_loss_func(logits, experts, chosen)
              for logits in zip(*(layer.chunk(parts) for layer in output.router_logits))]
    assert parts > 1 or losses[0] == output.aux_loss
    return sum(losses) / parts


def generate(name, spec, seed):
    directory = OUT / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(spec["config"], indent=1) + "\n")
    model = make_model(directory)
    if spec.get("saved"):  # in the form that save_pretrained of this version writes
        model.config.save_pretrained(directory)
        generation = directory / "generation_config.json"
        generation.unlink(missing_ok=True)
    weights = initial_weights(model, seed)
    if spec.get("opposite"):
        make_opposite(weights)
    missing = model.load_state_dict(weights, strict=False)
    assert not missing.unexpected_keys
    run = {**RUN, **spec["run"]}
    losses, norms, parts, grads = train(model, run, tokens_of(run, OUT))
    grads = as_saved(model, grads)
    if "router_bias_rate" in run:  # What counts move has no gradient.
        grads = {n: g for n, g in grads.items() if not n.endswith("e_score_correction_bias")}
    final = as_saved(model, model.state_dict())
    grads, final = of_text(model, grads), of_text(model, final)
    for file, tensors in ("model", as_saved(model, weights)), ("grads0", grads):
        save_file({n: t.to(FLOAT32).contiguous() for n, t in tensors.items()}, directory / f"{file}.safetensors")
    golden = {"run": run, "loss": losses, "grad_norm": norms, "final_norm": {n: t.norm().item() for n, t in final.items()}}
    if parts:
        golden["aux_loss"] = parts
    if final_parts(model):
        golden["final_parts"] = final_parts(model)
    if without_gradient(grads):
        golden["without_gradient"] = without_gradient(grads)
    (directory / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    print(f"{name}: {sum(w.numel() for w in weights.values())} weights, "
          f"loss {losses[0]:.6f} -> {losses[-1]:.6f}")


def of_text(model, tensors):
    """Those that text trains: of a larger model, its language model and the head, without layers that read images alone."""
    if not hasattr(model.config, "text_config"):
        return tensors
    others = getattr(model.config.text_config, "cross_attention_layers", [])
    skipped = [f".layers.{layer}." for layer in others]
    return {n: t for n, t in tensors.items()
            if not any(part in n for part in ["visual.", "vision", "projector", *skipped])}


def make_opposite(weights):
    """Makes embeddings of upper-case letters point the other way than those of others, so that routers without biases send
    them to the experts that others avoid."""
    for name, table in weights.items():
        if "embed" in name:
            signs = torch.tensor([-1.0 if chr(i).isupper() else 1.0 for i in range(len(table))])
            table += signs[:, None] * table[0].sign()


def final_parts(model):
    """Norms of the q, k and v parts of gpt2's joint biases: that of k has no gradient but rounding errors."""
    weights = dict(model.named_parameters())
    norms = {}
    for name, p in weights.items():
        if name.endswith("c_attn.bias"):
            queries = weights[name.replace("c_attn", "c_proj")].numel()
            keys = (p.numel() - queries) // 2
            norms[name] = [part.norm().item() for part in p.split([queries, keys, keys])]
    return norms


def without_gradient(grads):
    """Tensors with elements of which the gradient is a rounding error: a key's bias, where it does not turn, adds the same
    to all scores of a query. Adam makes steps of full size from such errors, in any direction."""
    largest = max(g.abs().max().item() for g in grads.values())
    return [n for n, g in grads.items() if not n.endswith("c_attn.bias") and ((g != 0) & (g.abs() < 1e-14 * largest)).any()]


def check(directory):
    """Whether this file's training reproduces a golden run made elsewhere; if so, adds its parts."""
    golden = json.loads((directory / "golden.json").read_text())
    model = make_model(directory)
    model = type(model).from_pretrained(directory, config=model.config, dtype=torch.double)
    losses, norms, _, _ = train(model, golden["run"], tokens_of(golden["run"], directory.parent))
    error = max(abs(a / b - 1) for a, b in zip(losses + norms, golden["loss"] + golden["grad_norm"]))
    print(f"{directory.name}: largest relative difference {error:.1e}")
    if error < 1e-10 and final_parts(model):
        golden["final_parts"] = final_parts(model)
        (directory / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")


def make_tokens(path, vocabulary=331, count=2000):
    """A token stream with structure to learn: a noisy walk over a prime vocabulary."""
    token, state, tokens = 7, 12345, []
    for _ in range(count):
        state = (1103515245 * state + 12345) % 2**31
        token = (3 * token + 5) % vocabulary if state >> 16 & 3 else (state >> 8) % vocabulary
        tokens.append(token)
    path.write_bytes(np.array(tokens, dtype="<u2").tobytes())


def make_cases(path, length=18, sequences=20):
    """A text of which two sequences are in lower case and the next two in upper case, and so on."""
    text = (OUT / "corpus.txt").read_text()
    letters = "".join(c for c in text if c.isalpha() and c.isascii())[:length * sequences + 1].lower()
    path.write_text("".join(c.upper() if i // (2 * length) % 2 else c for i, c in enumerate(letters)))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--check":
        for argument in sys.argv[2:]:
            check(pathlib.Path(argument))
        sys.exit()
    OUT.mkdir(parents=True, exist_ok=True)
    make_tokens(OUT / "tokens.u16")
    make_cases(OUT / "cases.txt")
    for seed, (name, spec) in enumerate(json.loads((HERE / "models.json").read_text()).items()):
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            generate(name, spec, seed)
