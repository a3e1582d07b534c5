#!/usr/bin/env python3
"""Whether transformers loads what executables save: loads.py WORK [NAME...]

With the environment of generate.py, and meshwright on the PATH. Each model of models.json trains for five steps and saves; then
transformers loads the checkpoint without a tensor too many or too few, and in float64 the sixth step's loss is
what the executable has.
"""
import json
import pathlib
import subprocess
import sys

import generate
import torch


def call(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def losses(path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["step"]: row["loss"] for row in rows if "loss" in row}


def load(name, work):
    directory = generate.OUT / name
    run = json.loads((directory / "golden.json").read_text())["run"]
    program, metrics = work / "train", work / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    sizes = [word for key in ("batch", "seq", "mlm", "mask_id") if key in run
             for word in ("--" + key.replace("_", "-"), run[key])]
    call("meshwright", "compile", directory / "config.json", "-o", program, *sizes)
    data = ["--data", generate.OUT / run["data"], "--tokens", run["tokens"], "--lr", run["lr"]]
    call(program, *data, "--steps", 5, "--save", work / "saved", "--init", directory / "model.safetensors")
    call(program, *data, "--steps", 6, "--metrics", metrics, "--init", directory / "model.safetensors")
    saved = work / "saved" / "latest"
    torch.float = torch.float32 = generate.FLOAT32  # that of files
    try:
        model, info = generate.class_of(generate.read_config(saved)).from_pretrained(
            saved, config=generate.read_config(saved), output_loading_info=True, dtype=torch.double, attn_implementation="eager",
            experts_implementation="eager")
    finally:
        torch.float = torch.float32 = torch.double
    model.double()  # Some routers ask for float32 when they are made.
    # transformers makes these, which follow from the configuration.
    info["missing_keys"] = {name for name in info["missing_keys"] if not name.endswith(generate.DECAYS)}
    faults = {what: names for what, names in info.items() if names}
    tokens = generate.tokens_of(run, directory.parent)
    x, y = generate.batch_of(run, tokens, 5, model.config.get_text_config().vocab_size)
    with torch.no_grad():
        output = generate.output_of(model, x)
        loss = torch.nn.functional.cross_entropy(output.logits.flatten(0, 1), y.flatten()).item()
        if getattr(model.config, "output_router_logits", False):
            loss += model.config.router_aux_loss_coef * output.aux_loss.item()
    error = abs(loss / losses(metrics)[5] - 1)
    print(f"{name}: loss {error:.1e}", faults or "", flush=True)
    return not faults and error < 1e-6


if __name__ == "__main__":
    work = pathlib.Path(sys.argv[1])
    work.mkdir(parents=True, exist_ok=True)
    # transformers has no code for families of remote.py.
    names = sys.argv[2:] or [name for name, spec in json.loads((generate.HERE / "models.json").read_text()).items()
                             if spec["config"]["model_type"] not in generate.remote.JUDGES]
    sys.exit(sum(not load(name, work) for name in names) > 0)
