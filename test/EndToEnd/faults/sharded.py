#!/usr/bin/env python3
"""Sharded checkpoints: the same numbers as merged ones, on every mesh, written by all ranks, and refused where they are not
whole; shards that PyTorch wrote start runs: sharded.py GOLDEN WORK STRATEGY..."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import INPUTS, Golden, call, check, compile, flags, fresh, ranks_of, strategy, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
run = dict(golden.run, seed=1, init=None)
run.pop("steps")

def shards(checkpoint):
    """The files with tensors, by their folders."""
    found = {}
    for path in sorted(pathlib.Path(checkpoint).rglob("*.safetensors")):
        found.setdefault(path.parent.name, []).append(path)
    return found


def header(path):
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8:8 + size]), data[8 + size:]


def checkpoint(*words, code=0):
    done = subprocess.run(["meshwright", "checkpoint", *words], capture_output=True, text=True, timeout=60)
    check(done.returncode == code, f"checkpoint {words}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def refused(exe, ranks, says, **options):
    command = [exe, "--ranks", ranks, *flags(dict(golden.data, steps=4, lr=1e-3, **options))]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
    check(done.returncode and done.stderr.count("error: ") == 1, f"{options} is not refused: {done.stderr}")
    for part in says:
        check(part in done.stderr, f"{options}: {done.stderr}, expected {part}")


def look(folder, ranks):
    """Every shard says where its boxes are. Returns the most that a rank has written, in means of all, and the least."""
    bytes_of = [0] * ranks
    for folder_name, files in shards(folder).items():
        for path in files:
            head, data = header(path)
            rank = int(path.name.split("-")[1]) - 1
            bytes_of[rank] += len(data)
            places = json.loads(head["__metadata__"]["DCP_SHARDING_INFO"])
            check(head["__metadata__"]["DCP_VERSION"] == "1.0", head["__metadata__"])
            check(set(places) == set(head) - {"__metadata__"}, f"{path}: places of other tensors than it has")
            check(all(len(places[name]["saved_offsets"]) == len(head[name]["shape"]) for name in places), f"{path}: offsets")
    return max(bytes_of) * ranks / sum(bytes_of), min(bytes_of)


for text in sys.argv[3:]:
    where = pathlib.Path(text.replace("/", "_"))
    where.mkdir()
    options = strategy(text)
    ranks = ranks_of(options["mesh"])
    exe, other = f"./{where}/exe", f"./{where}/other"
    changes = {name: value for name, value in options.items() if name not in ("mesh", "microbatches", "zero", "schedule", "sequence_parallel")}
    compile(golden.config, exe, **{**golden.size, **options})
    compile(golden.config, other, **{**golden.size, **changes, "mesh": "" if ranks > 1 else "data=2"})
    rows = {}
    for kind, more in {"merged": {"save_format": "merged"}, "sharded": {"save_format": "sharded"},
                       "async": {"save_format": "sharded", "async_save": True}}.items():
        rows[kind] = train(exe, ranks, metrics=f"{where}/{kind}.jsonl", save=f"{where}/{kind}", save_every=2, steps=4, **run, **more)
        check(rows[kind] == rows["merged"], f"{text}: the steps of --save-format {kind} differ")
    most, least = look(f"{where}/sharded/latest", ranks)
    for kind in ("sharded", "async"):
        for step in ("step-00000002", "step-00000004"):
            folder = f"{where}/{kind}/{step}"
            found = checkpoint("verify", folder)
            check("whole: " in found, found)
            found = checkpoint("diff", f"{where}/merged/{step}", folder)
            check(found.count(": equal") >= 2 and "differ" not in found, found)
            check(not os.path.exists(f"{folder}/model.safetensors"), "a sharded checkpoint has a merged file")
    check(not list(where.rglob(".partial*")), "a partial folder is left")
    again = [train(exe, ranks, metrics=f"{where}/again.jsonl", resume=f"{where}/{kind}/step-00000002", steps=4, **golden.data)
             for kind in ("merged", "sharded")]
    check(again[0] == again[1] == rows["merged"][2:], f"{text}: resumed runs differ")
    moved = [train(other, 1 if ranks > 1 else 2, metrics=f"{where}/moved.jsonl", resume=f"{where}/{kind}/step-00000002", steps=4,
                   save=f"{where}/moved-{kind}", save_format=kind, **golden.data) for kind in ("merged", "sharded")]
    check(moved[0] == moved[1], f"{text}: runs resumed on another mesh differ")
    # There and back again: what another mesh has saved resumes here.
    back = [train(exe, ranks, mpi=kind == "sharded" and ranks > 1, metrics=f"{where}/back.jsonl", resume=f"{where}/moved-{kind}", steps=6,
                  save=f"{where}/back-{kind}", save_format=kind, **golden.data) for kind in ("merged", "sharded")]
    check(back[0] == back[1], f"{text}: runs that are back on their mesh differ")
    checkpoint("diff", f"{where}/back-merged", f"{where}/back-sharded")
    if "lora" not in options:
        checkpoint("convert", f"{where}/sharded", "-o", f"{where}/converted")
        checkpoint("convert", f"{where}/merged", "-o", f"{where}/of-merged")
        same = [pathlib.Path(f"{where}/{name}/model.safetensors").read_bytes() for name in ("converted", "of-merged")]
        check(same[0] == same[1], "converted weights differ")
    print(f"{text}: the rank that writes the most writes {most:.2f} times the mean, that which writes the least {least} bytes")

# Surgery writes a merged checkpoint that resumes.
names = {name for path in shards(f"{where}/sharded/step-00000002")["model"] for name in header(path)[0]}
name = next(name for name in names if name.endswith(("ln_f.weight", "model.norm.weight")))
checkpoint("surgery", f"{where}/sharded/step-00000002", "-o", "cut", "--rename", f"{name}=other.weight")
checkpoint("surgery", "cut", "-o", "mended", "--rename", f"other.weight={name}")
check(train(exe, ranks, resume="mended", steps=4, **golden.data) == rows["merged"][2:], "a checkpoint that surgery has cut and mended")

# What is not whole is refused.
first = sorted(shards(f"{where}/sharded/step-00000002")["model"])


def copy(change):
    """A checkpoint whose first file of weights `change` treats."""
    shutil.rmtree("bad", ignore_errors=True)
    shutil.copytree(f"{where}/sharded/step-00000002", "bad")
    change(pathlib.Path("bad/model") / first[0].name)


def flip(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


for change, says, found in ((os.remove, ["bad/model is not the file", "name another checkpoint"], "of another checkpoint than state.json"),
                            (flip, ["checksum", "the file is damaged"], "checksum"),
                            (lambda path: shutil.copy(pathlib.Path(f"{where}/sharded/step-00000004/model") / first[0].name, path),
                             ["bad/model is not the file", "another checkpoint's"], "of another checkpoint than state.json")):
    copy(change)
    if change is os.remove and len(first) > 1:
        says = found = "a file is missing"
        says = [says]
    refused(exe, ranks, says, resume="bad")
    check(found in checkpoint("verify", "bad", code=1), f"verify does not say {found}")
# Errors name what is there.
copy(lambda path: shutil.rmtree("bad/optimizer"))
found = checkpoint("verify", "bad", code=1)
check("it has no optimizer/" in found and "safetensors" not in found, found)
copy(lambda path: [shutil.copy(file, "bad/model") for file in shards(f"{where}/sharded/step-00000004")["model"]])
found = checkpoint("verify", "bad", code=1)
check("model/ is of another checkpoint than state.json" in found, found)
# --resume auto passes over it.
copy(lambda path: None)
shutil.copytree(f"{where}/sharded", "auto", symlinks=True)
flipped = sorted(shards("auto/step-00000004")["optimizer"])[0]
flipped.write_bytes(flipped.read_bytes()[:-4])
said = call([exe, "--ranks", ranks, *flags(dict(golden.data, save="auto", resume="auto", steps=4))])
check("passes over the checkpoint auto/step-00000004" in said and "resumed from auto/step-00000002" in said, said)

# Weights alone: of a checkpoint, by its folder, and of PyTorch's writer.
config = INPUTS / "sharded/config.json"
size = dict(batch=4, seq=16, optimizer="sgd")
compile(config, "two", mesh="tensor=2", **size)
compile(config, "alone", **size)
start = dict(golden.data, steps=2, lr=0.1)
want = {exe: train(exe, ranks, init=INPUTS / "sharded/model.safetensors", **start) for exe, ranks in (("./alone", 1), ("./two", 2))}
for exe, ranks in (("./alone", 1), ("./two", 2)):
    check(train(exe, ranks, init=INPUTS / "sharded/shards", **start) == want[exe], f"{exe}: shards of PyTorch's writer")
# ... beside files that it consolidated, as it calls the folder.
os.makedirs("torch")
shutil.copytree(INPUTS / "sharded/shards", "torch/sharded")
check(train("./alone", 1, init="torch", **start) == want["./alone"], "a folder sharded/ of PyTorch's writer")
part = "torch/sharded/shard-00001-model-00001-of-00001.safetensors"
refused("./alone", 1, ["is one of a sharded checkpoint", "name the folder of all its shards"], init=part)
# ... also if it lacks a whole tensor.
data = pathlib.Path(part).read_bytes()
(size,) = struct.unpack("<Q", data[:8])
head = json.loads(data[8:8 + size])
places = json.loads(head["__metadata__"]["DCP_SHARDING_INFO"])
lacking = max(places, key=lambda name: head[name]["data_offsets"][1])
end = head.pop(lacking)["data_offsets"][0]
del places[lacking]
head["__metadata__"] = dict(head["__metadata__"], DCP_SHARDING_INFO=json.dumps(places))
text = json.dumps(head).encode()
pathlib.Path("lacking.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size:8 + size + end])
refused("./alone", 1, ["has no tensor " + lacking, "is one of a sharded checkpoint", "name the folder of all its shards"], init="lacking.safetensors")
os.remove(part)
refused("./alone", 1, ["a file is missing"], init="torch")
# Shards whose places contradict each other, or their file.
whole = pathlib.Path(str(INPUTS / "sharded/shards" / pathlib.Path(part).name)).read_bytes()
for was, now, says in (("saved_offsets\\\": [18]", "saved_offsets\\\": [17]", "overlap"), ("saved_offsets", "saved_0ffsets", "has no saved_offsets"),
                       ('"DCP_VERSION":"1.0"', '"DCP_VERSION":"2.0"', "version 2.0 of PyTorch"), ("[6, 0]", "[60,]", "valid JSON")):
    shutil.rmtree("torch")
    shutil.copytree(INPUTS / "sharded/shards", "torch")
    changed = 0
    for path in pathlib.Path("torch").glob("*.safetensors"):
        data = path.read_bytes()
        changed += was.encode() in data
        path.write_bytes(data.replace(was.encode(), now.encode(), 1))
    check(changed, f"no shard has {was}")
    refused("./alone", 1, [says], init="torch")
# A folder without a checkpoint is not taken for the root of the file system, which is one here with weights.
os.mkdir("nothing")
os.mkdir("root")
enter = """for path in /*; do
  if [ -d "$path" ] && [ ! -L "$path" ]; then mkdir root"$path" && mount --rbind "$path" root"$path"; else cp -a "$path" root"$path"; fi
done
cp "$1" root/model.safetensors
shift
exec chroot root sh -c 'cd "$0" && exec "$@"' "$PWD" "$@" """
command = ["unshare", "-rm", "sh", "-c", enter, "sh", INPUTS / "sharded/model.safetensors", "./alone", "--ranks", 1, *flags(dict(start, init="nothing"))]
done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
check(done.returncode and "--init nothing: the folder has neither model.safetensors" in done.stderr, done.stdout + done.stderr)
# The format is chosen for checkpoints.
refused("./alone", 1, ["--save-format", "auto|merged|sharded"], save="none", save_format="whole")
refused("./alone", 1, ["--save-format needs --save"], save_format="sharded")
