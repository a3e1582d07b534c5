#!/usr/bin/env python3
"""Makes the golden runs of optimizers as their authors, or PyTorch, publish them: MODEL/NAME.json beside golden.json of golden models.

    python3 -m venv venv && venv/bin/pip install torch transformers
    PYTHONPATH=FOLDER venv/bin/python test/Golden/published_optimizers.py [MODEL/NAME...]

FOLDER has normuon.py of github.com/zichongli5/NorMuon and the package schedulefree 1.4.1. adamw-8bit is written here after its paper (eight_bit.py), and
runs a model whose matrices are large enough for it.

The product needs none of this; the results are committed. Models are those of transformers, everything in float64. The run
with torch.optim.AdamW must be the one of golden.json.
"""
import json
import pathlib
import sys
import types

import numpy as np
import torch
import torch.optim._muon
import torch.optim.swa_utils
import transformers
import transformers.optimization
from safetensors.torch import load_file

INPUTS = pathlib.Path(__file__).resolve().parent.parent / "Inputs" / "golden-more"
FOLDERS = {"llama-v5": INPUTS / "llama-v5", "opt": INPUTS / "opt", "llama-tiny": INPUTS.parent / "golden" / "llama-tiny"}
WEIGHTS = {model: {name: weight.double() for name, weight in load_file(folder / "model.safetensors").items()} for model, folder in FOLDERS.items()}

# Modules ask for float32 by these names when they run, as in generate.py.
torch.float = torch.float32 = torch.double
torch.set_default_dtype(torch.double)
# torch.optim.Muon orthogonalizes in bfloat16. Its code runs in float64 where that name says so.
torch.optim._muon.torch = types.SimpleNamespace(**{**vars(torch), "bfloat16": torch.float64})

# Amsel et al. 2025, implementation 1, five steps.
POLAR_EXPRESS = [(8.28721201814563, -23.595886519098837, 17.300387312530933), (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
                 (3.9486908534822946, -2.908902115962949, 0.5518191394370137), (3.3184196573706015, -2.488488024314874, 0.51004894012372),
                 (2.300652019954817, -1.6689039845747493, 0.4188073119525673)]


def polar_express(grad, ns_coefficients, ns_steps, eps):
    """In place of torch's iteration."""
    x = grad.mT if grad.size(0) > grad.size(1) else grad
    x = x / (x.norm() * 1.01).clamp(min=eps)
    for a, b, c in POLAR_EXPRESS:
        a, b, c = a / 1.01, b / 1.01**3, c / 1.01**5
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if grad.size(0) > grad.size(1) else x


def is_matrix(name, weight):
    return weight.ndim == 2 and not any(word in name for word in ("embed", "lm_head"))


def groups_of(model, decay):
    """Matrices alone decay."""
    return [{"params": [w for w in model.parameters() if w.ndim >= 2], "weight_decay": decay},
            {"params": [w for w in model.parameters() if w.ndim < 2], "weight_decay": 0}]


def adamw(model, run):
    return [torch.optim.AdamW(groups_of(model, run["weight_decay"]), run["lr"], (run["beta1"], run["beta2"]), run["eps"])]


def muon(model, run):
    hidden = [w for name, w in model.named_parameters() if is_matrix(name, w)]
    rest = torch.nn.ParameterList([w for name, w in model.named_parameters() if not is_matrix(name, w)])
    scale = {"match-rms-adamw": "match_rms_adamw", "keller": "original"}[run.get("muon_scale", "match-rms-adamw")]
    polar = run.get("muon_coefficients") == "polar-express"
    iteration = torch.optim._muon._zeropower_via_newtonschulz

    class Muon(torch.optim.Muon):
        def step(self):
            torch.optim._muon._zeropower_via_newtonschulz = polar_express if polar else iteration
            super().step()
            torch.optim._muon._zeropower_via_newtonschulz = iteration
    return [Muon(hidden, run["lr"], run["weight_decay"], run["momentum"], adjust_lr_fn=scale)] + adamw(rest, run)


def normuon(model, run):
    import normuon
    hidden = [w for name, w in model.named_parameters() if is_matrix(name, w)]
    rest = torch.nn.ParameterList([w for name, w in model.named_parameters() if not is_matrix(name, w)])
    # torch's iteration in float64, which divides by the norm or 1e-7 and not by their sum.
    normuon.zeropower_via_newtonschulz5 = lambda u, steps: torch.optim._muon._zeropower_via_newtonschulz(u, (3.4445, -4.7750, 2.0315), steps, 1e-7)
    return [normuon.SingleDeviceNorMuon(hidden, run["lr"], run["weight_decay"], run["momentum"], run["beta2"])] + adamw(rest, run)


def adafactor(model, run):
    return [transformers.optimization.Adafactor(groups_of(model, run["weight_decay"]), run["lr"], (run["eps"], 1e-3), scale_parameter=False,
                                                relative_step=False, decay_rate=-run["beta2_decay"])]


def adafactor_scaled(model, run):
    """torch's bounds the rate by the inverse root of the step, which these few steps do not reach."""
    assert run["lr"] < run["steps"] ** -0.5
    return [torch.optim.Adafactor(groups_of(model, run["weight_decay"]), run["lr"], -run["beta2_decay"], (run["eps"], 1e-3), foreach=False)]


def schedule_free(model, run):
    import schedulefree
    return [schedulefree.AdamWScheduleFree(groups_of(model, run["weight_decay"]), run["lr"], (run["beta1"], run["beta2"]), run["eps"],
                                           warmup_steps=run["warmup"], weight_lr_power=run["weight_lr_power"])]


def adamw_8bit(model, run):
    import eight_bit
    return [eight_bit.AdamW8bit(groups_of(model, run["weight_decay"]), run["lr"], (run["beta1"], run["beta2"]), run["eps"])]


# What a run does not have is None.
ADAFACTOR = {"beta1": None, "beta2": None, "eps": 1e-30, "weight_decay": 0.1}
RUNS = {"llama-v5/adamw": (adamw, {}),
        "llama-v5/ema": (adamw, {"optimizer": "adamw", "lr": 0.01, "ema_decay": 0.8}),
        "llama-v5/muon": (muon, {"momentum": 0.95}),
        "llama-v5/muon-keller": (muon, {"optimizer": "muon", "momentum": 0.9, "lr": 0.02, "muon_scale": "keller", "muon_coefficients": "polar-express"}),
        "llama-v5/normuon": (normuon, {"momentum": 0.9, "lr": 0.02, "muon_scale": "keller"}),
        "llama-v5/adafactor": (adafactor, {**ADAFACTOR, "lr": 0.01, "beta2_decay": 0.8}),
        "llama-v5/adafactor-scaled": (adafactor_scaled, {**ADAFACTOR, "lr": 0.05, "beta2_decay": 0.7}),
        "llama-v5/schedule-free-adamw": (schedule_free, {"lr": 0.01, "warmup": 2, "weight_lr_power": 2}),
        # Its table of positions has rows that no position selects.
        "opt/adafactor": (adafactor, {**ADAFACTOR, "lr": 0.01, "beta2_decay": 0.8}),
        "opt/adafactor-scaled": (adafactor_scaled, {**ADAFACTOR, "lr": 0.05, "beta2_decay": 0.7}),
        "llama-tiny/adamw-8bit": (adamw_8bit, {"lr": 0.01, "steps": 5})}


def batch_of(name, run, step):
    """The tokens of a step's sequences, which follow each other in the file, and the tokens behind them."""
    data = np.frombuffer((FOLDERS[name].parent / run["data"]).read_bytes(), np.uint8).astype(np.int64)
    batch, seq = run["batch"], run["seq"]
    starts = [(step * batch + i) % ((len(data) - 1) // seq) * seq for i in range(batch)]
    return tuple(torch.from_numpy(np.stack([data[at + shift:at + shift + seq] for at in starts])) for shift in (0, 1))


def train(name, run, of):
    config = transformers.AutoConfig.from_pretrained(FOLDERS[name])
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.double)
    missing, unknown = model.load_state_dict(WEIGHTS[name], strict=False)
    assert not unknown and set(missing) <= ({"lm_head.weight"} if config.tie_word_embeddings else set()), (missing, unknown)
    optimizers = of(model, run)
    losses, norms = [], []
    decay = run.get("ema_decay", 0)
    # torch's average, corrected for its start as Adam's moments are.
    average = torch.optim.swa_utils.AveragedModel(model, avg_fn=lambda a, p, n: a + (1 - decay) / (1 - decay ** (n + 1)) * (p - a))

    def loss_of(model, step):
        x, y = batch_of(name, run, step)
        logits = model(x).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
    averaging = [optimizer for optimizer in optimizers if hasattr(optimizer, "train")]  # whose parameters are others in evaluation
    for optimizer in averaging:
        optimizer.train()
    for step in range(run["steps"]):
        loss = loss_of(model, step)
        model.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), run["grad_clip"])
        for optimizer in optimizers:
            optimizer.step()
        average.update_parameters(model)
        losses.append(loss.item())
        norms.append(norm.item())
    for optimizer in averaging:
        optimizer.eval()
    golden = {"run": run, "loss": losses, "grad_norm": norms, "final_norm": {n: w.norm().item() for n, w in model.named_parameters()}}
    if "ema_decay" in run:
        golden["ema_norm"] = {n: w.norm().item() for n, w in average.module.named_parameters()}
        golden["ema_loss"] = sum(loss_of(average.module, step).item() for step in range(2)) / 2  # of two batches
    if averaging:
        golden["eval_loss"] = sum(loss_of(model, step).item() for step in range(2)) / 2  # of two batches
    return golden


if __name__ == "__main__":
    for name in sys.argv[1:] or [name for name in RUNS if not name.endswith("/adamw")]:
        model, _, optimizer = name.partition("/")
        known = json.loads((FOLDERS[model] / "golden.json").read_text())
        again = train(model, known["run"], adamw)
        error = max(abs(a / b - 1) for key in ("loss", "grad_norm") for a, b in zip(again[key], known[key]))
        print(f"{model} with adamw: largest difference from golden.json {error:.1e}")
        assert error < 1e-12
        of, differs = RUNS[name]
        run = {**known["run"], "optimizer": optimizer, **differs}
        golden = train(model, {key: value for key, value in run.items() if value is not None}, of)
        golden |= {key: known[key] for key in ("without_gradient",) if key in known}
        (FOLDERS[model] / f"{optimizer}.json").write_text(json.dumps(golden, indent=1) + "\n")
        print(f"{name}: loss {golden['loss'][0]:.6f} -> {golden['loss'][-1]:.6f}")
