#!/usr/bin/env python3
"""Writes expected.json: the tokens that transformers generates greedily from the golden models.

    venv/bin/python test/EndToEnd/generate/expected.py     (the environment of test/Golden/generate.py)

The product and the tests need none of this; the result is committed. Models compute in float64. A row ends where the two most likely tokens are
nearer than 1e-4: there 32 bits may choose the other one."""
import json
import pathlib
import tempfile

import torch
import transformers.utils
from transformers import AutoConfig, AutoModelForCausalLM

from cases import CASES, PROMPT

transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(1)
HERE = pathlib.Path(__file__).resolve().parent
rows = {}
for name, case in CASES.items():
    directory = HERE.parent.parent / "Inputs" / case["inputs"]
    with tempfile.TemporaryDirectory() as folder:
        config = {**json.loads((directory / "config.json").read_text()), **case["config"]}
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(config))
        (pathlib.Path(folder) / "model.safetensors").write_bytes((directory / "model.safetensors").read_bytes())
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager", experts_implementation="eager").eval()
    ids = list(PROMPT)
    least = float("inf")
    with torch.no_grad():
        for _ in range(case["tokens"]):
            best = model(torch.tensor([ids]), use_cache=False).logits[0, -1].topk(2)
            margin = float(best.values[0] - best.values[1])
            if margin < 1e-4:
                break
            least = min(least, margin)
            ids.append(int(best.indices[0]))
    rows[name] = ids[len(PROMPT):]
    print(f"{name}: {len(rows[name])} of {case['tokens']} tokens, {len(set(rows[name]))} different, least margin {least:.1e}", flush=True)
(HERE / "expected.json").write_text(json.dumps(rows, indent=0).replace(",\n", ", ").replace("[\n", "[").replace("\n]", "]").replace("], ", "],\n") + "\n")
