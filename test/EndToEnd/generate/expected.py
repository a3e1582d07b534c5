#!/usr/bin/env python3
"""Writes expected.json: the tokens that transformers generates greedily from the golden models.

    venv/bin/python test/EndToEnd/generate/expected.py [MODEL...]     (the environment of test/Golden/generate.py)

The product and the tests need none of this; the result is committed. Models compute in float64. A row ends where the two most likely tokens are
nearer than 1e-4: there 32 bits may choose the other one. With names of models other rows stay as they are."""
import json
import pathlib
import sys
import tempfile

import torch
import transformers.utils
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from cases import CASES, PROMPT, RECURRENT, SHORT, weights

transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(1)
HERE = pathlib.Path(__file__).resolve().parent
rows = json.loads((HERE / "expected.json").read_text())


def generate(model, prompt, tokens, name):
    ids, least = list(prompt), float("inf")
    with torch.no_grad():
        for _ in range(tokens):
            best = model(torch.tensor([ids]), use_cache=False).logits[0, -1].topk(2)
            margin = float(best.values[0] - best.values[1])
            if margin < 1e-4:
                break
            least = min(least, margin)
            ids.append(int(best.indices[0]))
    rows[name] = ids[len(prompt):]
    print(f"{name}: {len(rows[name])} of {tokens} tokens, {len(set(rows[name]))} different, least margin {least:.1e}", flush=True)


def with_identities(path, config):
    """Adds to a file of longcat_flash the rows that transformers has for experts without matrices, and that releases lack."""
    tensors = load_file(path)
    for name in [name for name in tensors if ".experts.0." in name and ".down_proj." not in name]:
        for expert in range(config["n_routed_experts"], config["n_routed_experts"] + config["zero_expert_num"]):
            tensors[name.replace(".experts.0.", f".experts.{expert}.")] = torch.zeros_like(tensors[name])
    save_file(tensors, path)


for name, case in CASES.items():
    if sys.argv[1:] and name not in sys.argv[1:]:
        continue
    directory = HERE.parent.parent / "Inputs" / case["inputs"]
    with tempfile.TemporaryDirectory() as folder:
        config = {**json.loads((directory / "config.json").read_text()), **case["config"]}
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(config))
        (pathlib.Path(folder) / "model.safetensors").write_bytes(weights(case, directory))
        if config["model_type"] == "longcat_flash":
            with_identities(pathlib.Path(folder) / "model.safetensors", config)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager", experts_implementation="eager").eval()
    generate(model, PROMPT, case["tokens"], name)
    for prompt in SHORT if name in RECURRENT else ():
        generate(model, prompt, 20, f"{name} after {prompt.decode()}")
(HERE / "expected.json").write_text(json.dumps(rows, indent=0).replace(",\n", ", ").replace("[\n", "[").replace("\n]", "]").replace("], ", "],\n") + "\n")
