#!/usr/bin/env python3
"""Sharded checkpoints and PyTorch's distributed checkpoints over safetensors, both ways. Needs torch and safetensors.

  shards.py write FOLDER          writes test/Inputs/sharded: a model as one file and, by two ranks, as shards
  shards.py read SHARDS MERGED    reads a folder of shards with PyTorch's reader, and compares it with a merged file, bit by bit;
                                  once as whole tensors, and once by two ranks that divide them otherwise
"""
import json
import os
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as processes
from safetensors.torch import load_file, save_file
from torch.distributed.checkpoint import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, zeros

RANKS = 2
KINDS = (Shard(0), Shard(1), Replicate())


def tensors_of(config):
    """Tensors of GPT-2 with values that bf16 holds."""
    width, layers = config["n_embd"], config["n_layer"]
    shapes = {"wte.weight": (config["vocab_size"], width), "wpe.weight": (config["n_positions"], width),
              "ln_f.weight": (width,), "ln_f.bias": (width,)}
    for layer in range(layers):
        for name, *shape in (("ln_1.weight", width), ("ln_1.bias", width), ("attn.c_attn.weight", width, 3 * width),
                             ("attn.c_attn.bias", 3 * width), ("attn.c_proj.weight", width, width), ("attn.c_proj.bias", width),
                             ("ln_2.weight", width), ("ln_2.bias", width), ("mlp.c_fc.weight", width, 4 * width),
                             ("mlp.c_fc.bias", 4 * width), ("mlp.c_proj.weight", 4 * width, width), ("mlp.c_proj.bias", width)):
            shapes[f"h.{layer}.{name}"] = tuple(shape)
    torch.manual_seed(0)
    made = {}
    for name, shape in shapes.items():
        value = 0.2 * torch.randn(shape)
        made["transformer." + name] = (value + 1 if "ln_" in name and name.endswith("weight") else value).bfloat16()
    return made


def kind_of(number, tensor):
    """How ranks divide a tensor: rows, columns or not at all."""
    kind = KINDS[number % len(KINDS)]
    return Shard(0) if kind == Shard(1) and tensor.dim() < 2 else kind


def start(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    return init_device_mesh("cpu", (RANKS,))


def write(rank, folder, port):
    mesh = start(rank, port)
    whole = tensors_of(json.loads((folder / "config.json").read_text()))
    state = {name: distribute_tensor(tensor, mesh, [kind_of(i, tensor)]) for i, (name, tensor) in enumerate(whole.items())}
    dcp.save(state, storage_writer=HuggingFaceStorageWriter(str(folder), save_distributed=True))
    dist.destroy_process_group()


def same(found, want, name):
    if not torch.equal(found.view(torch.int32), want.view(torch.int32)):
        sys.exit(f"FAILED: {name} differs from the merged file's")


def read(rank, shards, merged, port):
    mesh = start(rank, port)
    want = load_file(merged)
    state = {name: zeros(tensor.shape, device_mesh=mesh, placements=[kind_of(i + 1, tensor)]) for i, (name, tensor) in enumerate(want.items())}
    dcp.load(state, storage_reader=HuggingFaceStorageReader(shards))
    for name, tensor in want.items():
        same(state[name].full_tensor(), tensor, name)
    dist.destroy_process_group()


if __name__ == "__main__":
    port = 20000 + os.getpid() % 10000
    if sys.argv[1] == "write":
        folder = pathlib.Path(sys.argv[2])
        save_file(tensors_of(json.loads((folder / "config.json").read_text())), folder / "model.safetensors")
        (folder / "shards").mkdir(exist_ok=True)
        (folder / "shards/config.json").write_text((folder / "config.json").read_text())
        processes.spawn(write, (folder / "shards", port), nprocs=RANKS)
    else:
        shards, merged = sys.argv[2:4]
        want = load_file(merged)
        state = {name: torch.zeros_like(tensor) for name, tensor in want.items()}
        dcp.load(state, storage_reader=HuggingFaceStorageReader(shards), no_dist=True)
        for name, tensor in want.items():
            same(state[name], tensor, name)
        processes.spawn(read, (shards, merged, port), nprocs=RANKS)
        print(f"{len(want)} tensors are equal")
