#!/usr/bin/env python3
"""Makes the Nth call of a class fail, shorten or delay in a short run that saves, for many N: inject.py GOLDEN WORK CASES [sharded|uring|threads] [CLASS KIND N]

sharded: each rank writes its own files, which a file `commit` completes.
uring, threads: the optimizer's states are on an SSD, which is read and written by io_uring, or by threads where the kernel refuses that;
the calls are those by which it is.

A run's outcome is one of:
  right    it ends with status 0, and its metrics and checkpoints have the bits of a run without faults
  error    it ends with another status and one message, and every checkpoint that can be seen is whole
  wrong    it ends with status 0 and something else, or a damaged checkpoint can be seen
  hung     it does not end within 60 seconds
  crashed  it ends by a signal or without a message
The last three fail the test. OpenMP's library, which is initialized before the executable's own code, ends the process with a message of its own. Each class and kind gets the same number of cases, evenly over its calls; where there are fewer calls there
is a run for each, and the others get what is left."""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, call, check, compile, flags, fresh, rows

source = pathlib.Path(__file__).resolve().parent / "inject.cpp"
golden = Golden(sys.argv[1])
fresh(sys.argv[2])
cases = int(sys.argv[3])
how = sys.argv.pop(4) if sys.argv[4:5] and sys.argv[4] in ("sharded", "uring", "threads") else ""
is_sharded, is_on_ssd = how == "sharded", how in ("uring", "threads")
# Without a C++ runtime of its own, whose unwinder would mix with the executable's.
call(["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-nodefaultlibs", source,
      "-o", "inject.so", "-lc", "-ldl"])
compile(golden.config, "exe", mesh="data=2", **({"offload": "optimizer=ssd", "offload-buffer": "8KiB"} if is_on_ssd else {}), **golden.size)
os.mkdir("disk")
STEPS = 3
CLASSES = {"uring": ["fail", "short", "delay"]} if how == "uring" else {kind: ["fail", "short", "delay"] for kind in ("read", "write")} if is_on_ssd else {
    "allocate": ["fail"], "open": ["fail", "delay"], "read": ["fail", "short", "delay"], "write": ["fail", "short", "delay"],
           "sync": ["fail", "delay"], "rename": ["fail", "delay"]}


def start(**environment):
    """The exit status and the messages of a run, after which `save` and `m.jsonl` are what it has left."""
    shutil.rmtree("save", ignore_errors=True)
    if os.path.exists("m.jsonl"):
        os.remove("m.jsonl")
    run = flags(dict(golden.data, init=golden.weights, steps=STEPS, metrics="m.jsonl", save="save", save_every=1, async_save=True,
                     **(dict(save_format="sharded", save_commit="file") if is_sharded else dict(ssd="disk") if is_on_ssd else {})))
    if how == "threads":
        environment["FAULT_URING"] = "off"
    try:
        done = subprocess.run(["./exe", "--ranks", "2", *map(str, run)], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, LD_PRELOAD=os.path.abspath("inject.so"), **environment))
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stderr


def files():
    """The bytes of what a run leaves, but for what depends on the clock."""
    latest = pathlib.Path("save/latest")
    return rows("m.jsonl"), {str(path): path.read_bytes() for path in sorted(pathlib.Path("save").glob("step-*/**/*")) if path.is_file()}, \
        latest.read_text() if is_sharded else os.readlink(latest)


code, said = start(FAULT_COUNT="counts")
check(code == 0, said)
right = files()
counts = {name: int(count) for name, count in (line.split() for line in open("counts"))}
print("calls:", ", ".join(f"{name} {count}" for name, count in counts.items() if count))


def outcome(code, said):
    if code is None:
        return "hung"
    # A folder without its commit file is no checkpoint: a rank that ends the run removes it, beside another that may still write there.
    saved = [folder for folder in pathlib.Path("save").glob("step-*") if not is_sharded or (folder / "commit").exists()]
    if saved and subprocess.run(["meshwright", "checkpoint", "verify", *map(str, saved)], capture_output=True, text=True).returncode == 1:
        return "wrong"
    if code == 0:
        try:
            return "right" if files() == right else "wrong"
        except OSError:
            return "wrong"
    return "error" if code > 0 and sum(line.startswith(("error: ", "libgomp: Out of memory")) for line in said.splitlines()) == 1 else "crashed"


kinds = [(name, kind) for name in CLASSES for kind in CLASSES[name]]
if len(sys.argv) > 4:
    chosen = [(sys.argv[4], sys.argv[5], int(sys.argv[6]))]
else:
    chosen, left = [], cases
    for place, (name, kind) in enumerate(sorted(kinds, key=lambda entry: counts[entry[0]])):
        each = min(max(left // (len(kinds) - place), 1), counts[name])
        chosen += [(name, kind, 1 + i * counts[name] // each) for i in range(each)]
        left -= each
table, bad = collections.Counter(), []
for name, kind, number in chosen:
    code, said = start(FAULT_CALL=name, FAULT_KIND=kind, FAULT_AT=str(number))
    found = outcome(code, said)
    if name == "uring" and (found != ("error" if kind == "fail" else "right") or
                            kind == "fail" and not re.search(r"disk/meshwright-ssd-rank\d-\w+: (reading|writing) [\d,]+ bytes at offset [\d,]+: .*\(errno 9\)", said)):
        found = "wrong"
    table[name, kind, found] += 1
    if found in ("wrong", "hung", "crashed"):
        bad.append(f"{name} {kind} {number}: {found}, exit status {code}\n{said[-600:]}")
print(f"{'class':10}{'kind':8}" + "".join(f"{word:>9}" for word in ("right", "error", "wrong", "hung", "crashed")))
for name, kind in kinds:
    if any(table[name, kind, word] for word in ("right", "error", "wrong", "hung", "crashed")):
        print(f"{name:10}{kind:8}" + "".join(f"{table[name, kind, word]:9}" for word in ("right", "error", "wrong", "hung", "crashed")))
check(not bad, f"{len(bad)} of {len(chosen)} cases:\n" + "\n".join(bad[:10]))
check(not os.listdir("disk"), f"left on the disk: {os.listdir('disk')}")
print(f"{len(chosen)} cases, none wrong, hung or crashed")
