"""Dumps a step of executables on several meshes, replays it, and finds the one value that is then changed in the dump.

usage: replay.py CONFIG BIASED SINKS CORPUS DIR SPARSE... [--all]

BIASED is a model whose keys have a bias, the gradient of which cancels between devices that hold parts of a sequence;
SINKS is one whose attention has sinks: a kernel rounds their gradients between numbers in f32; SPARSE models have experts, which must be chosen alike in every precision.
Without --all one value of each dump is changed, not three."""
import array
import json
import math
import pathlib
import shutil
import struct
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import call, check, compile, flags, fresh, ranks_of, strategy

config, biased, sinks, corpus = (pathlib.Path(path).resolve() for path in sys.argv[1:5])
everything = "--all" in sys.argv
sparse = [pathlib.Path(path).resolve() for path in sys.argv[6:] if path != "--all"]
here = fresh(sys.argv[5])
RUN = dict(data=corpus, tokens="u8", steps=3, lr=1e-3)


def replay(directory):
    done = subprocess.run(["meshwright", "replay", directory], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def dump(name, text, model=config, data=corpus, scale=None, **options):
    """A dump of step 1, after one in which moments have become other than zero."""
    options = {**strategy(text), "batch": 8, "seq": 16, "replay": True, **options}
    compile(model, name, **options)
    documents = {"documents": 32} if options.get("packed") else {}
    call(["./" + name, *flags(dict(RUN, data=data, ranks=ranks_of(options["mesh"]), dump=name + ".dump", dump_step=1, initial_loss_scale=scale,
                               **documents))])
    return here / (name + ".dump")


def change(directory, rank, pick):
    """Changes one element of the entry of the index that `pick` chooses, and returns the op's number."""
    index = json.load(open(directory / f"rank-{rank}.json"))
    entry = pick(index)
    begin = entry["begin"] if isinstance(entry, dict) else entry[2]
    with open(directory / f"rank-{rank}.bin", "r+b") as file:
        file.seek(begin)
        old, = struct.unpack("<f", file.read(4))
        file.seek(begin)
        file.write(struct.pack("<f", old + 0.5 * (1 + abs(old))))
    return entry


dumps = {}
for name, text, options in [("one", "one/2", {}), ("data", "data=2/2+zero=1", {}), ("overlap", "data=2/2+zero=3", {"overlap": "on"}),
                            ("tensor", "tensor=2", {}), ("context", "context=4+context-parallel=ulysses+zero=2", {"model": biased}),
                            ("ring", "context=4+context-parallel=ring", {"packed": True, "precision": "bf16"}),
                            ("pipe", "pipe=2/2", {}), ("server", "data=2/2+data-sync=parameter-server", {}),
                            ("one-key", "one", {"seq": 1}),  # The gradient of its scores is 0 but for rounding.
                            ("8-bit", "data=2", {"optimizer": "adamw-8bit"}), ("offload", "data=2/2", {"offload": "parameters"}),
                            ("bf16", "one/2", {"precision": "bf16"}), ("fp8", "data=2/2", {"precision": "fp8"}),
                            ("delayed", "one/2", {"precision": "fp8", "fp8_recipe": "delayed"}), *[("fp16", "one/2", {"precision": "fp16"})][:everything],
                            # With gradients that are normal numbers of fp16, and with some that are not.
                            *((f"sinks-{scale}", "one/2", {"precision": "fp16", "model": sinks, "aux_loss": "none", "scale": scale,
                                                           "data": sinks.parent.parent / "corpus.txt"}) for scale in (65536, 1)),
                            *((f"{precision}-{model.parent.name}", "data=2",
                               {"precision": precision, "model": model, "data": model.parent.parent / "corpus.txt"})
                              for precision in ("bf16", "fp16") for model in sparse)]:
    dumps[name] = directory = dump(name, text, **options)
    code, said = replay(directory)
    print(name, said.strip())
    check(code == 0 and "step 1: all" in said, f"{name}: exits with {code}:\n{said}")

# A value in the middle of a loop, of one run of its op, on each rank.
for name, rank in [("one", 0), ("data", 1), ("tensor", 1), ("pipe", 1)]:
    for part in (3, 2, 1) if everything else (2,):
        broken = here / "broken"
        shutil.rmtree(broken, ignore_errors=True)
        shutil.copytree(dumps[name], broken)

        number = change(broken, rank, lambda index: index["values"][len(index["values"]) * part // 4])[0]
        code, said = replay(broken)
        check(code == 1 and f"rank {rank}: " in said and f"(exec.value_id {number})" in said and " at " in said,
              f"{name}: a changed value of op {number} on rank {rank} is reported with {code} as:\n{said}")

# Of queries that see nothing of a part of the keys the logarithm of the sum is -inf: what the others may be off by is measured by them alone.
broken = here / "broken"
shutil.rmtree(broken)
shutil.copytree(dumps["ring"], broken)
index = json.load(open(broken / "rank-0.json"))
with open(broken / "rank-0.bin", "r+b") as file:
    for _, _, begin, size in index["values"]:
        file.seek(begin)
        numbers = array.array("f", file.read(size // 4 * 4))
        seen = [number for number in numbers if math.isfinite(number)]
        if -math.inf in numbers and seen:
            break
    least = min(seen, key=abs)
    file.seek(begin + 4 * numbers.index(least))
    file.write(struct.pack("<f", least + math.hypot(*seen) / math.sqrt(len(seen)) / 64))
code, said = replay(broken)
check(code == 0, f"a number that is off by less than is allowed is reported as:\n{said}")

# What is no number is wrong where there should be one.
shutil.rmtree(broken)
shutil.copytree(dumps["one"], broken)
index = json.load(open(broken / "rank-0.json"))
number, _, begin, _ = index["values"][len(index["values"]) // 2]
with open(broken / "rank-0.bin", "r+b") as file:
    file.seek(begin)
    file.write(struct.pack("<f", math.nan))
code, said = replay(broken)
check(code == 1 and f"(exec.value_id {number})" in said and "is nan, should be" in said, f"NaN is reported with {code} as:\n{said}")

# A value that the program does not compute.
shutil.rmtree(broken)
shutil.copytree(dumps["one"], broken)
index["values"].append(index["values"][-1])
(broken / "rank-0.json").write_text(json.dumps(index))
code, said = replay(broken)
count = len(index["values"])
check(code == 2 and f"rank 0 has dumped {count} values, but the program computes {count - 1}" in said, said)

# What a step leaves in memory.
broken = here / "broken"
shutil.rmtree(broken)
shutil.copytree(dumps["one"], broken)
entry = change(broken, 0, lambda index: index["after"][0])
code, said = replay(broken)
check(code == 1 and f"{entry['kind']} {entry['name']} after the step diverges" in said, said)

# What cannot be told.
(broken / "rank-0.json").unlink()
code, said = replay(broken)
check(code == 2 and "rank-0.json" in said, said)
compile(config, "plain", batch=8, seq=16)
done = subprocess.run(["./plain", *flags(dict(RUN, dump="plain.dump"))], capture_output=True, text=True)
check(done.returncode != 0 and "compile it with --replay" in done.stderr, done.stderr)
done = subprocess.run(["./one", *flags(dict(RUN, dump="late.dump", dump_step=3))], capture_output=True, text=True)
check(done.returncode != 0 and "--dump-step 3" in done.stderr, done.stderr)
