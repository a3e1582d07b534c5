#!/usr/bin/env python3
"""`meshwright checkpoint`: inspect, verify, diff, convert, merge and surgery: checkpoint_tools.py GOLDEN WORK FLIPS"""
import array
import ctypes
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from compare import read_safetensors
from harness import Golden, call, check, compile, distance, flags, fresh, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
compile(golden.config, "exe", mesh="data=2", **golden.size)
run = dict(golden.data, lr=0.01, seed=1)
train("./exe", 2, save="run", save_every=2, steps=6, **run)
MODEL, OPTIMIZER = "model.safetensors", "optimizer.safetensors"


def tool(*words, code=0):
    """What a subcommand prints, which must exit with `code`."""
    done = subprocess.run(["meshwright", "checkpoint", *map(str, words)], capture_output=True, text=True, timeout=60)
    check(done.returncode == code, f"checkpoint {' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout if code < 2 else done.stderr


def refused(*words, says):
    message = tool(*words, code=2)
    check(message.startswith("meshwright: error: ") and message.count("error: ") == 1, message)
    for part in [says] if isinstance(says, str) else says:
        check(part in message, f"{words}: {message}, expected {part}")
    check(not os.path.exists("new") and not list(pathlib.Path().glob("new.partial*")), f"{words} left something")


def header(path):
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8:8 + size]), data[8 + size:]


def resumed(folder, steps, **more):
    return train("./exe", 2, metrics="m.jsonl", resume=folder, steps=steps, **dict(golden.data, **more))


# inspect
text = tool("inspect", "run", "--tensors")
tensors = read_safetensors(f"run/latest/{MODEL}")
for part in ("step 6", "--lr 0.01", f"{MODEL}: {len(tensors)} tensors", "saved by data=2", "wte.weight f32 ["):
    check(part in text, f"{part} not in\n{text}")
check("wte.weight f32" not in tool("inspect", "run"), "tensors are listed without --tensors")

# verify: a changed byte anywhere is found, in all checkpoints of a folder.
check(tool("verify", "run").count(": whole: ") == 3, tool("verify", "run"))
chance = random.Random(0)
for flip in range(int(sys.argv[3])):
    file = pathlib.Path("run/step-00000004") / chance.choice([MODEL, OPTIMIZER, "state.json"])
    good = file.read_bytes()
    at = chance.randrange(len(good))
    file.write_bytes(good[:at] + bytes([good[at] ^ (1 << chance.randrange(8))]) + good[at + 1:])
    found = tool("verify", "run", code=1)
    check(found.count(": damaged: ") == 1 and found.count(": whole: ") == 2, f"byte {at} of {file}:\n{found}")
    file.write_bytes(good)
shutil.copytree("run/step-00000004", "mixed")
shutil.copy(f"run/step-00000002/{OPTIMIZER}", "mixed")
check("of another checkpoint than state.json" in tool("verify", "mixed", code=1), "a file of another checkpoint")
refused("surgery", "mixed", "-o", "new", "--reset-optimizer", says="of another checkpoint than state.json")
os.remove(f"mixed/{OPTIMIZER}")
check(f"it has no {OPTIMIZER}" in tool("verify", "mixed", code=1), "a missing file")
# A state that names a file that checkpoints do not have, under its checksum.
class Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


checksum = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
checksum.restype, checksum.argtypes = Hash, [ctypes.c_char_p, ctypes.c_size_t]
shutil.copytree("run/step-00000004", "unknown")
text = pathlib.Path("unknown/state.json").read_text()
was = json.loads(text)["checksum"]
# Under the name that it has the checksum is right.
for path, code in ((OPTIMIZER, 0), (OPTIMIZER + "2", 1)):
    changed = text.replace(f'"{OPTIMIZER}"', f'"{path}"').replace(was, "0" * 32)
    digest = checksum(changed.encode(), len(changed.encode()))
    pathlib.Path("unknown/state.json").write_text(changed.replace("0" * 32, f"{digest.high:016x}{digest.low:016x}"))
    found = tool("verify", "unknown", code=code)
    check(("whole" if code == 0 else f"names a file that checkpoints do not have, {path}") in found, found)
check("has no checksums" in tool("verify", golden.weights), "a file without checksums")
refused("verify", "nothing", says="nothing: there is no such file or folder")
os.mkdir("empty")
refused("inspect", "empty", says=["the folder has neither model.safetensors nor", "name a checkpoint"])

# diff
check("equal" in tool("diff", "run", "run/step-00000006"), "a checkpoint differs from itself")
text = tool("diff", "run/step-00000002", "run/step-00000004", code=1)
for part in ("state.json: step is 2 and 4", "elements differ", "more: --all shows them"):
    check(part in text, f"{part} not in\n{text}")
check("more: " not in tool("diff", "run/step-00000002", "run/step-00000004", "--all", code=1), "--all")
check("only in run/step-00000006" in tool("diff", golden.weights, "run/step-00000006", code=1), "a file that one lacks")

# convert: to bf16, in shards that --init reads.
tool("convert", "run", "-o", "new", "--dtype", "bf16", "--shard-size", "100KB")
index = json.load(open(f"new/{MODEL}.index.json"))
shards = sorted(set(index["weight_map"].values()))
check(len(shards) > 1 and index["metadata"]["total_size"] == 2 * sum(len(values) for _, values in tensors.values()), "shards")
for shard in shards:
    entries, data = header(f"new/{shard}")
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        check(entry["dtype"] == "BF16" and index["weight_map"][name] == shard, name)
        begin, end = entry["data_offsets"]
        for i, was in enumerate(tensors[name.removeprefix("transformer.")][1]):
            (bits,) = struct.unpack("<H", data[begin + 2 * i:begin + 2 * i + 2])
            (now,) = struct.unpack("<f", struct.pack("<I", bits << 16))
            check(abs(now - was) <= abs(was) / 256, f"{name}: {was} became {now}")
check(json.load(open("new/config.json")) == json.load(open(golden.config)), "the configuration")
train("./exe", 2, init="new", steps=1, **run)
tool("convert", "new", "-o", "back")
check("equal" in tool("diff", "new", "back", "--all", code=1), "bf16 and its f32 have other values")
check("equal, as bf16 and f32" in tool("diff", "new", "back", "--all", code=1), "types are compared")
check(tool("diff", "back", "back") == f"{MODEL}: equal\n", "a merged file")
shutil.rmtree("new")
refused("convert", "run", "-o", "back", says="-o back: it is there already")
refused("convert", "run", "-o", "new", "--dtype", "f8", says="f32|bf16|f16")
refused("convert", "run", "-o", "new", "--shard-size", "5 apples", says="a number of bytes, such as 5GB")
refused("convert", "run", "-o", "new", "--ema", says="has no averages of weights")
refused("convert", "run", says="needs -o DIR")

# merge: the mean of two, and a weighted one.
tool("merge", "run/step-00000002", "run/step-00000006", "-o", "mean")
tool("merge", "run/step-00000002", "run/step-00000006", "-o", "weighted", "--weights", "3,1")
first, mean, weighted = (read_safetensors(f"{folder}/{MODEL}") for folder in ("run/step-00000002", "mean", "weighted"))
for name, (shape, values) in first.items():
    last = tensors[name][1]
    check(mean[name] == (shape, array.array("f", [(a + b) / 2 for a, b in zip(values, last)])), f"mean of {name}")
    check(weighted[name] == (shape, array.array("f", [0.75 * a + 0.25 * b for a, b in zip(values, last)])), f"weighted {name}")
refused("merge", "run", "-o", "new", says="two paths or more")
refused("merge", "run", "run", "-o", "new", "--weights", "1", says="has 1 numbers for 2 checkpoints")
refused("merge", "run", "run", "-o", "new", "--weights", "0,0", says="are all 0")

# surgery: a renamed weight and its states come back, and the run goes on to the bit.
name = "transformer.ln_f.weight"
whole = resumed("run/step-00000004", 6)
tool("surgery", "run/step-00000004", "-o", "renamed", "--rename", f"{name}=other.weight")
check("other.weight" in header(f"renamed/{MODEL}")[0] and "other.weight.momentum" in header(f"renamed/{OPTIMIZER}")[0], "not renamed")
check(tool("verify", "renamed").count("whole"), "what surgery writes is damaged")
tool("surgery", "renamed", "-o", "again", "--rename", f"other.weight={name}")
check(resumed("again", 6) == whole, "a weight that was renamed to and fro changes the run")
tool("surgery", "run/step-00000004", "-o", "dropped", "--drop", "*.ln_f.*")
check(not any("ln_f" in entry for file in (MODEL, OPTIMIZER) for entry in header(f"dropped/{file}")[0]), "not dropped")
done = subprocess.run(["./exe", "--ranks", "2", "--data", golden.data["data"], "--tokens", golden.data.get("tokens", "u16"), "--resume", "dropped"],
                      capture_output=True, text=True)
check(done.returncode and "ln_f" in done.stderr, done.stderr)
# Begun anew: weights as they are said, their moments zeros, and other tensors as they were.
tool("surgery", "run/step-00000004", "-o", "anew", "--reinit", "*.h.0.mlp.c_fc.weight=normal:0.5", "--reinit", "*.ln_f.weight=ones")
was, now = (read_safetensors(f"{folder}/{MODEL}") for folder in ("run/step-00000004", "anew"))
moments = read_safetensors(f"anew/{OPTIMIZER}")
drawn = now["h.0.mlp.c_fc.weight"][1]
deviation = (sum(value * value for value in drawn) / len(drawn)) ** 0.5
check(0.45 < deviation < 0.55, f"standard deviation {deviation}")
check(set(now["ln_f.weight"][1]) == {1.0}, "not ones")
for entry, (_, values) in moments.items():
    check(any(values) != entry.startswith(("h.0.mlp.c_fc.weight.", "ln_f.weight.")), f"moments of {entry}")
check(all(now[entry] == was[entry] for entry in was if entry not in ("h.0.mlp.c_fc.weight", "ln_f.weight")), "other tensors changed")
resumed("anew", 5)
# From the weights and the beginning: as a run that begins with them.
tool("surgery", "run/step-00000004", "-o", "fresh", "--reset-optimizer", "--reset-step")
anew = train("./exe", 2, metrics="i.jsonl", init="run/step-00000004", steps=2, **run)
check(distance(resumed("fresh", 2, lr=0.01), anew) == 0, "a run from the beginning differs from one of --init")
# Names keep the prefix of the text part of a larger model, which --tensors does not show.
PREFIX = "language_model."
entries, data = header(golden.weights)
entries.pop("__metadata__", None)
text = json.dumps({PREFIX + entry: value for entry, value in entries.items()}).encode()
pathlib.Path("within.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
train("./exe", 2, save="within", init="within.safetensors", steps=1, **run)
tool("convert", "within", "-o", "within-converted", "--shard-size", "100KB")
tool("merge", "within", "within.safetensors", "-o", "within-merged")
tool("surgery", "within", "-o", "within-renamed", "--rename", f"{name}={PREFIX}other.weight")
for file in ("within/latest/" + MODEL, "within-merged/" + MODEL, "within-renamed/" + MODEL,
             *map(str, pathlib.Path("within-converted").glob("*.safetensors"))):
    bare = [entry for entry in header(file)[0] if entry != "__metadata__" and not entry.startswith(PREFIX)]
    check(not bare, f"{file} has {bare[:1]} without {PREFIX}")
check(PREFIX + "other.weight" in header("within-renamed/" + MODEL)[0], "not renamed")
check("equal" in tool("diff", "within", "within-converted", code=1), "convert changes values")
train("./exe", 2, init="within-converted", steps=1, **run)
# Averages begin anew with their weights, as those of a run that begins.
compile(golden.config, "averaging-exe", mesh="data=2", ema=True, **golden.size)
train("./averaging-exe", 2, save="averaging", steps=3, **run)
tool("surgery", "averaging", "-o", "averaging-anew", "--reinit", "*.ln_f.weight=ones", "--reinit", "*.wpe.weight=normal:0.5")
tool("surgery", "averaging", "-o", "averaging-reset", "--reset-optimizer")
tool("surgery", "averaging", "-o", "averaging-begun", "--reset-optimizer", "--reset-step")
for folder, begun in (("averaging-anew", ("ln_f.weight", "wpe.weight")), ("averaging-reset", tensors), ("averaging-begun", tensors)):
    weights, states, was = (read_safetensors(file) for file in (f"{folder}/{MODEL}", f"{folder}/{OPTIMIZER}", f"averaging/latest/{OPTIMIZER}"))
    for entry in tensors:
        average = states[entry + ".ema"][1]
        if entry in begun:
            check(average == weights[entry][1], f"{folder}: the average of {entry} is not the weight")
        else:
            check(average == was[entry + ".ema"][1], f"{folder}: the average of {entry} has changed")
check(read_safetensors(f"averaging-anew/ema/{MODEL}")["wpe.weight"] == read_safetensors(f"averaging-anew/{MODEL}")["wpe.weight"],
      "the average in ema/ is drawn otherwise than the weight")
# Averages of adapters are a checkpoint's too.
compile(golden.config, "adapting-exe", mesh="data=2", ema=True, lora="r=2,alpha=4,targets=all-linear", **golden.size)
train("./adapting-exe", 2, save="adapting", init=golden.weights, steps=1, **run)
ADAPTERS = "adapter_model.safetensors"
check(f"ema/{ADAPTERS}: " in tool("inspect", "adapting"), "inspect does not show the averages of adapters")
tool("surgery", "adapting", "-o", "adapting-reset", "--reset-optimizer")
check(read_safetensors(f"adapting-reset/ema/{ADAPTERS}") == read_safetensors(f"adapting/latest/{ADAPTERS}"), "averages of adapters")
refused("convert", "adapting", "-o", "new", "--ema", says="has adapters alone")
# The size of the copy with --async-save is known when an executable is compiled.
for exe, folder in (("exe", "run"), ("averaging-exe", "averaging"), ("adapting-exe", "adapting")):
    printed = re.search(r"^checkpoint +([\d,]+) bytes.*--async-save", call(["meshwright", "inspect", exe]), re.M)
    size = sum(len(header(path)[1]) for path in pathlib.Path(folder, "latest").resolve().rglob("*.safetensors"))
    check(printed and int(printed[1].replace(",", "")) == size, f"{exe}: {size} bytes, inspect prints {printed}")


def numbers(folder):
    return json.load(open(f"{folder}/state.json"))["numbers"]


# What changes the numbers of a run is said in its numbers; names change none.
check(numbers("renamed") == numbers("again") == numbers("run/step-00000004"), "a new name changes numbers")
check(re.fullmatch("checkpoint surgery [0-9a-f]{16} at step 4", numbers("anew")["history"]), numbers("anew"))
check(numbers("averaging-reset")["history"].endswith(" at step 3, optimizer state reset"), numbers("averaging-reset"))
check(numbers("fresh")["--init"].startswith("checkpoint surgery ") and "history" not in numbers("fresh"), numbers("fresh"))
check("state.json: numbers:" in tool("diff", "run/step-00000004", "anew", code=1), "diff does not compare numbers")
for folder in ("anew", "fresh"):
    printed = call(["./exe", "--ranks", 2, "--resume", folder, "--steps", 0, "--eval-batches", 1, *flags(dict(golden.data, eval_data=golden.data["data"]))])
    hash = re.search("^numbers ([0-9a-f]{16})", printed, re.M)[1]
    check(f"  numbers {hash}\n" in tool("inspect", folder), f"{folder}: a run prints {hash}\n{tool('inspect', folder)}")
refused("surgery", "run", "-o", "new", says="nothing to do")
refused("surgery", "run", "-o", "new", "--reset-step", says="--reset-step needs --reset-optimizer")
refused("surgery", "run", "-o", "new", "--drop", "nothing*", says="no weight of")
refused("surgery", "run", "-o", "new", "--rename", "a", says="OLD=NEW")
refused("surgery", "run", "-o", "new", "--rename", f"{name}=transformer.wte.weight", says="two tensors of")
refused("surgery", "run", "-o", "new", "--reinit", "*=halves", says="zeros, ones or normal:STD")
refused("surgery", "run", "-o", "new", "--reinit", "*=ones", "--seed", "1", says="--seed changes nothing")
refused("surgery", golden.weights, "-o", "new", "--reset-optimizer", says="has no state.json")
refused("verfy", "run", says="did you mean 'verify'?")
refused("diff", "run", says="two paths")
refused("inspect", "run", "--all", says="unknown option '--all'")
print(f"{len(tensors)} tensors, {sys.argv[3]} flips found")
