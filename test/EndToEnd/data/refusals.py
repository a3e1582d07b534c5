#!/usr/bin/env python3
"""Wrong data and wrong flags are refused before the first step, in one message: refusals.py CONFIG WORK

Each row of the table is a command line, files that it needs, and what the message says: the value, and what would work.
"""
import gzip
import json
import pathlib
import struct
import subprocess
import sys
import zipfile

sys.path.append(sys.path[0] + "/..")
from harness import call, check, compile, fresh

SEQ, BATCH, VOCABULARY = 16, 4, 300
config = {**json.load(open(sys.argv[1])), "vocab_size": VOCABULARY}
fresh(sys.argv[2])


def write(name, content):
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def u16(*tokens):
    return struct.pack(f"<{len(tokens)}H", *tokens)


write("config.json", json.dumps(config))
compile("config.json", "exe", mesh="data=2", batch=BATCH, seq=SEQ)
compile("config.json", "packed", packed=True, batch=BATCH, seq=SEQ)
write("text.txt", "Text that is long enough for some batches. " * 40)
write("chat.jsonl", '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bcd"}]}\n' * 60)
call(["meshwright", "tokenize", "text.txt", "--tokenizer", "bytes", "-o", "tokens"])
good = u16(*(i % 250 for i in range(600)))
write("good.bin", good)
write("short.bin", u16(*range(40)))
write("empty.bin", b"")
write("odd.bin", good + b"x")
write("large.bin", u16(*range(200), 300, *range(200)))
write("wide.bin", struct.pack("<600I", *(i % 250 for i in range(600))))
write("array.npy", b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<u2', 'fortran_order': False, 'shape': (600,), }".ljust(118) + good)
write("data.json", json.dumps({"text": "words " * 300}))
write("data.parquet", b"PAR1" + good + b"PAR1")
write("data.arrow", b"ARROW1\x00\x00" + good)
write("data.h5", b"\x89HDF\r\n\x1a\n" + good)
write("data.txt.gz", gzip.compress(b"words " * 2000, mtime=0))
with zipfile.ZipFile("data.zip", "w") as archive:
    archive.writestr("a.bin", good)
write("nothing/readme", "")
write("mask.bin", bytes(600))
write("mask-short.bin", bytes(10))
write("mask-two.bin", b"\x02" * 600)
damaged = bytearray(pathlib.Path("tokens/tokens-00000.bin").read_bytes())
damaged[1200] ^= 1
write("damaged.bin", bytes(damaged))
write("other.bin", bytes(damaged[:300]) + b"\xff" + bytes(damaged[301:]))
write("starts.bin", struct.pack("<3Q", 0, 20, 10))
write("starts-late.bin", struct.pack("<2Q", 0, 1000))
write("no-weights/model.txt", "")
write("weights.safetensors", struct.pack("<Q", 2) + b"{}")
pathlib.Path("folder.bin").mkdir()

# Flags, which --steps 2 and --data good.bin complete, and what the message says. "packed: " stands before those of an executable
# compiled with --packed.
TABLE = [
    ("--data missing.bin", "missing.bin", "No such file"),
    ("--data nothing", "no file whose name ends in .bin"),
    ("--data 'none*.bin'", "no file of such a name"),
    ("--data folder.bin/x.bin", "folder.bin/x.bin"),
    ("--data empty.bin", "empty.bin"),
    ("--data short.bin", "short.bin", "2 sequences"),
    ("--data odd.bin", "odd.bin", "1201"),
    ("--data large.bin", "large.bin", "300"),
    ("--data wide.bin", "wide.bin", "u32"),
    ("--data good.bin --tokens u64", "u64", "u8|u16|u32"),
    ("--data text.txt", "text.txt", "u8"),
    ("--data array.npy", "array.npy", ".npy"),
    ("--data data.json", "data.json", "meshwright tokenize"),
    ("--data data.parquet", "data.parquet", "Parquet"),
    ("--data data.arrow", "data.arrow", "Arrow"),
    ("--data data.h5", "data.h5", "HDF5"),
    ("--data data.txt.gz", "data.txt.gz", "compressed"),
    ("--data data.zip", "data.zip", "zip"),
    ("--data damaged.bin", "damaged.bin", "tokens"),
    ("--data other.bin", "other.bin"),
    ("--data weights.safetensors", "weights.safetensors"),
    ("--data good.bin:0.5 --data tokens", "has no weight"),
    ("--data good.bin:0 --data tokens:1", "weight", "above 0"),
    ("--data good.bin:half", "half", "such as good.bin:0.3"),
    ("--data good.bin good.bin", "belongs to no flag", "each has a flag"),
    ("--shuffle --no-shuffle", "drop one of them"),
    ("--loss-mask mask.bin", "no target", "counts"),
    ("--loss-mask mask-short.bin", "mask-short.bin", "600"),
    ("--loss-mask mask-two.bin", "mask-two.bin", "2"),
    ("--documents 3", "--documents is for executables compiled with --packed"),
    ("--eval-data a=good.bin --eval-data tokens", "has no name"),
    ("--eval-every 2", "--eval-every needs --eval-data"),
    ("--eval-data short.bin --eval-loss-mask mask.bin", "mask.bin"),
    ("--init no-weights", "no-weights", "model.safetensors"),
    ("--init weights.safetensors", "weights.safetensors"),
    ("--resume nowhere", "nowhere", "no such folder"),
    ("--init weights.safetensors --resume nowhere", "drop one of them"),
    ("--save good.bin", "good.bin", "name another folder for --save"),
    ("--save-every 3", "--save-every needs --save"),
    ("--on-nan rollback", "--save DIR and --save-every K"),
    ("--metrics good.bin", "good.bin", "--data"),
    ("--metrics nowhere/m.jsonl", "nowhere/m.jsonl"),
    ("--lr fast", "fast", "must be a number"),
    ("--lr -1", "at least 0"),
    ("--steps 1.5", "1.5", "whole number"),
    ("--learning-rate 1e-3", "did you mean --lr"),
    ("--lr 1e-3 --min-lr 1e-2 --lr-schedule cosine", "--min-lr", "--lr"),
    ("--beta1 1", "--beta1", "less than 1"),
    ("--ranks 3", "2 ranks"),
    ("--tokenizer bytes", "--tokenizer needs --generate"),
    ("--peak-flops 0", "more than 0"),
    ("packed: --data good.bin", "--documents is needed"),
    ("packed: --data good.bin --documents starts.bin", "starts.bin", "each above the one before"),
    ("packed: --data good.bin --documents starts-late.bin", "starts-late.bin", "1000"),
    ("packed: --data good.bin --documents 300", "300", "vocabulary"),
]

for line, *words in TABLE:
    rest = line.removeprefix("packed: ")
    exe, ranks = ("./exe", 2) if rest == line else ("./packed", 1)
    steps = "" if "--steps" in rest else "--steps 2 "
    data = "" if "--data " in rest.replace("--eval-data", "") else "--data good.bin "
    given = "" if "--ranks" in rest or ranks == 1 else f"--ranks {ranks} "
    done = subprocess.run(["bash", "-c", f"{exe} {given}{steps}{data}{rest}"], capture_output=True, text=True, timeout=60)
    said = done.stderr.splitlines()
    errors = [message for message in said if message.startswith("error: ")]
    check(done.returncode == 1, f"{line}: ended with {done.returncode}\n{done.stdout}{done.stderr}")
    check("step 0" not in done.stdout, f"{line}: a step was made\n{done.stdout}")
    check(len(errors) == 1 and said[-1].strip() and not [message for message in said if message.startswith("warning")],
          f"{line}: not one message\n{done.stderr}")
    check(all(word in done.stderr for word in words), f"{line}: the message lacks one of {words}\n{done.stderr}")
print(f"{len(TABLE)} are refused")

# A mask that is there, but not given, is noted.
write("template.json", json.dumps({"roles": {"user": {"prefix": "U"}, "assistant": {"prefix": "A", "suffix": "."}}}))
call(["meshwright", "tokenize", "chat.jsonl", "--chat", "template.json", "--tokenizer", "bytes", "-o", "chat"])
for mask, count in (([], 1), (["--loss-mask", "chat/*.mask"], 0)):
    said = call(["./exe", "--ranks", 2, "--steps", 1, "--data", "chat", *mask])
    check(said.count("chat/tokens-00000.mask says which of its tokens count as targets, but --loss-mask is not given") == count, said)
