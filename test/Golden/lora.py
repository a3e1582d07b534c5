#!/usr/bin/env python3
"""Makes test/Inputs/lora: float64 fine-tuning runs of PEFT on the models of test/Inputs/golden.

    python3 -m venv venv && venv/bin/pip install torch transformers peft safetensors numpy
    venv/bin/python test/Golden/lora.py [FOLDER... | --read FOLDER MODEL]

The product needs none of this; the results are committed. For each model: the adapter that the run starts from, as PEFT
saves it (adapter_config.json, adapter_model.safetensors; B is not zero, so that A has gradients), the gradients of the first
step (grads0.safetensors) and losses and gradient norms (golden.json).

--read has PEFT load the adapter in FOLDER over the model of that golden directory and prints the loss of the first batch of
that directory's run. Where FOLDER is a merged model's, transformers loads that alone.
"""
import json
import pathlib
import sys

import torch
from safetensors.numpy import load_file, save_file

from generate import FLOAT32, RUN, batch_of, make_model, output_of, tokens_of, train
from transformers.pytorch_utils import Conv1D
from peft import LoraConfig, get_peft_model, set_peft_model_state_dict

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN, OUT = HERE.parent / "Inputs" / "golden", HERE.parent / "Inputs" / "lora"
# By folder, whose last name is that of the base.
MODELS = {"llama-tiny": {"r": 4, "lora_alpha": 16, "target_modules": "all-linear", "use_rslora": True},
          "gpt2-tiny": {"r": 6, "lora_alpha": 9, "target_modules": ["c_attn", "c_proj"], "fan_in_fan_out": True},
          "dora/llama-tiny": {"r": 4, "lora_alpha": 6, "target_modules": "all-linear", "use_dora": True, "modules_to_save": ["lm_head", "embed_tokens"]},
          "dora/gpt2-tiny": {"r": 6, "lora_alpha": 9, "target_modules": ["c_attn", "c_proj"], "fan_in_fan_out": True, "use_dora": True,
                             "modules_to_save": ["ln_1", "wpe"]},
          "int8/llama-tiny": {"r": 4, "lora_alpha": 16, "target_modules": ["q_proj", "o_proj", "up_proj"], "use_rslora": True},
          "int8/gpt2-tiny": {"r": 6, "lora_alpha": 9, "target_modules": ["c_attn", "c_proj"], "fan_in_fan_out": True, "use_dora": True}}


def tensors_in(path):
    """In float64; generate.py has other numbers take the name of float32."""
    return {name: torch.tensor(value).double() for name, value in load_file(path).items()}


def saved_name(name):
    """That of PEFT's files for a parameter of its model."""
    name = name.replace(".modules_to_save.default", "").replace("lora_magnitude_vector.default.weight", "lora_magnitude_vector")
    return name.replace(".default", "")


def write(tensors, path):
    save_file({name: value.to(FLOAT32).contiguous().numpy() for name, value in tensors.items()}, path)


def base(name):
    model = make_model(GOLDEN / name)
    weights = tensors_in(GOLDEN / name / "model.safetensors")
    missing = model.load_state_dict(weights, strict=False)
    if missing.unexpected_keys:  # files without the model's prefix
        missing = getattr(model, model.base_model_prefix).load_state_dict(weights, strict=False)
    assert not missing.unexpected_keys and set(missing.missing_keys) <= {"lm_head.weight"}, missing
    return model


def quantize(model):
    """Weight-only int8: matrices of layers become what codes with a scale for each output channel stand for."""
    for name, module in model.named_modules():
        if not isinstance(module, (torch.nn.Linear, Conv1D)) or name == "lm_head":
            continue
        with torch.no_grad():
            rows = module.weight.T if isinstance(module, Conv1D) else module.weight
            rows = rows.to(FLOAT32)
            scale = rows.abs().amax(dim=1, keepdim=True) / 127
            codes = torch.round(rows / scale).clamp(-127, 127)
            weight = codes.double() * scale.double()
            module.weight.copy_(weight.T if isinstance(module, Conv1D) else weight)
    return model


def generate(name, keys):
    directory = OUT / name
    directory.mkdir(parents=True, exist_ok=True)
    # Before the model is made, whose magnitudes are norms in its type.
    is_int8 = name.startswith("int8/")
    model = base(pathlib.Path(name).name).double()
    model = get_peft_model(quantize(model) if is_int8 else model, LoraConfig(task_type="CAUSAL_LM", **keys))
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if parameter.requires_grad:
                noise = torch.randn(parameter.shape, generator=generator, dtype=FLOAT32) * 0.1
                of_lora = ".lora_A." in parameter_name or ".lora_B." in parameter_name
                parameter.copy_(noise if of_lora else (parameter * (1 + noise)).to(FLOAT32))  # As files have it.
    model.save_pretrained(directory)
    (directory / "README.md").unlink(missing_ok=True)
    config = json.loads((directory / "adapter_config.json").read_text())
    (directory / "adapter_config.json").write_text(json.dumps(dict(config, base_model_name_or_path=None), indent=1) + "\n")
    saved = tensors_in(directory / "adapter_model.safetensors")
    write(saved, directory / "adapter_model.safetensors")
    run = {**RUN, "batch": 4, "seq": 32}
    losses, norms, _, grads = train(model, run, tokens_of(run, GOLDEN))
    trained = {n: saved_name(n) for n, p in model.named_parameters() if p.requires_grad}
    grads = {trained[n]: g for n, g in grads.items() if n in trained}
    assert grads.keys() == saved.keys()
    write(grads, directory / "grads0.safetensors")
    golden = {"run": run, "loss": losses, "grad_norm": norms,
              "final_norm": {trained[n]: p.norm().item() for n, p in model.named_parameters() if n in trained}}
    if is_int8:
        golden["frozen_weights"] = "int8"
    (directory / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    print(f"{name}: {sum(g.numel() for g in grads.values())} weights of adapters, loss {losses[0]:.6f} -> {losses[-1]:.6f}")


def read(folder, name):
    model = base(pathlib.Path(name).name)
    if (pathlib.Path(folder) / "adapter_config.json").exists():
        # What PeftModel.from_pretrained does, but for its reader, which takes float32 by torch's name.
        model = get_peft_model(model, LoraConfig.from_pretrained(folder))
        found = set_peft_model_state_dict(model, tensors_in(pathlib.Path(folder) / "adapter_model.safetensors"))
        assert not found.unexpected_keys and not any("lora_" in key or "modules_to_save" in key for key in found.missing_keys)
    else:
        weights = tensors_in(pathlib.Path(folder) / "model.safetensors")
        missing = model.load_state_dict(weights, strict=False)
        if missing.unexpected_keys:
            getattr(model, model.base_model_prefix).load_state_dict(weights, strict=False)
    run = json.loads((OUT / name / "golden.json").read_text())["run"]
    x, y = batch_of(run, tokens_of(run, GOLDEN), 0, model.config.vocab_size)
    model.double().eval()
    loss = torch.nn.functional.cross_entropy(output_of(model, x).logits.flatten(0, 1), y.flatten())
    print(f"{name}: loss {loss.item():.12f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read(*sys.argv[2:4])
    else:
        for name in sys.argv[1:] or MODELS:
            generate(name, MODELS[name])
