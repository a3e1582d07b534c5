#!/usr/bin/env python3
"""A checkpoint is brought together in parts: saving takes little memory, however large a tensor is, and every mesh writes the same
tensors: save.py CONFIG CORPUS WORK [--all]

Initial values depend on a weight's name and index alone, so that checkpoints after no step are the same."""
import json
import pathlib
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, compile, flags, fresh, most_resident, ranks_of, strategy

config, corpus = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
fresh(sys.argv[3])
# The embedding and the head are of 30.7 MB each: eight windows of 4 MiB.
shape = json.loads(config.read_text()) | {"vocab_size": 60000, "hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 4,
                                          "head_dim": 32, "tie_word_embeddings": False}
pathlib.Path("config.json").write_text(json.dumps(shape))
WINDOW = 4 << 20


def tensors(path):
    """The tensors' bytes by name, whose order in the file is the programs'."""
    content = pathlib.Path(path).read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    return {name: content[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]]
            for name, entry in json.loads(content[8:begin]).items() if name != "__metadata__"}


starts = []
few = ("one", "data=2+zero=3+precision=bf16", "data=2,tensor=2+zero=3")
for words in (*few, "data=2+zero=3", "tensor=2", "pipe=2/2") if "--all" in sys.argv else few:
    options = strategy(words)
    ranks = ranks_of(options.get("mesh") or "")
    compile("config.json", "exe", batch=4, seq=16, **options)
    command = ["./exe", *flags({"data": corpus, "tokens": "u8", "ranks": ranks})]
    call([*command, "--steps", 0, "--save", "start"])
    starts.append((words, tensors("start/latest/model.safetensors")))
    # What has been trained is read back as it was.
    call([*command, "--steps", 2, "--lr", 0.01, "--save", "trained"])
    call([*command, "--steps", 2, "--resume", "trained", "--save", "again"])
    for name in ("model", "optimizer"):
        a, b = (pathlib.Path(folder, "latest", name + ".safetensors").read_bytes() for folder in ("trained", "again"))
        check(a == b, f"{words}: {name} is not the same when it is read and written again")
    without, saving = (most_resident([*command, "--steps", 2, *more]) for more in ([], ["--save", "measured"]))
    print(f"{words}: {without:,} bytes resident, {saving:,} with --save", flush=True)
    # Rank 0's window, what each rank packs for it, and a bit for all else.
    check(saving - without < (3 + ranks) * WINDOW, f"{words}: saving takes {saving - without:,} bytes")
for words, start in starts[1:]:
    check(start == starts[0][1], f"{words}: other initial weights than on one rank")
