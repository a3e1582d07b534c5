#!/usr/bin/env python3
"""A golden model as a multimodal release holds it: release.py GOLDEN FOLDER MODEL_TYPE

The configuration becomes the "text_config" of one of MODEL_TYPE, names of tensors begin with "model.language_model.", and the
experts of a layer become two tensors: "gate_up_proj", gates over ups, and "down_proj".
"""
import json
import pathlib
import re
import struct
import sys

golden, folder = (pathlib.Path(path) for path in sys.argv[1:3])
folder.mkdir(parents=True, exist_ok=True)
config = json.loads((golden / "config.json").read_text())
(folder / "config.json").write_text(json.dumps({"model_type": sys.argv[3], "text_config": config, "tie_word_embeddings": config["tie_word_embeddings"]}))

data = (golden / "model.safetensors").read_bytes()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
header.pop("__metadata__", None)
parts, tensors = {}, {}
for name, tensor in header.items():
    begin, end = (8 + size + offset for offset in tensor["data_offsets"])
    assert tensor["dtype"] == "F32"
    whole = re.sub(r"^model\.", "model.language_model.", name)
    if match := re.fullmatch(r"(.*\.mlp\.experts\.)(\d+)\.(gate|up|down)_proj\.weight", whole):
        parts[match[1], match[3], int(match[2])] = tensor["shape"], data[begin:end]
    else:
        tensors[whole] = tensor["shape"], data[begin:end]
for prefix in {prefix for prefix, _, _ in parts}:
    count = 1 + max(expert for other, _, expert in parts if other == prefix)
    rows, columns = parts[prefix, "gate", 0][0]
    tensors[prefix + "gate_up_proj"] = [count, 2 * rows, columns], b"".join(parts[prefix, part, expert][1] for expert in range(count) for part in ("gate", "up"))
    tensors[prefix + "down_proj"] = [count, *parts[prefix, "down", 0][0]], b"".join(parts[prefix, "down", expert][1] for expert in range(count))

rows, blob = {}, b""
for name, (shape, content) in tensors.items():
    rows[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(blob), len(blob) + len(content)]}
    blob += content
text = json.dumps(rows).encode()
text += b" " * (-len(text) % 8)
(folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + blob)
