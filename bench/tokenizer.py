#!/usr/bin/env python3
"""Tokenizing beside Hugging Face's tokenizers and OpenAI's tiktoken: the same ids, and how fast.

    bench/tokenizer.py [--text FILE] [--megabytes 40] [--vocab 32000] [--threads 2]

Needs `pip install tokenizers tiktoken numpy` and build/bin/meshwright. First `meshwright tokenizer train` makes a tokenizer
of each pattern. With each, 5 MB of mixed text (tokenizer_text.py) must get the same ids from meshwright and tokenizers, and
the text, which is that of this machine's headers, Python modules and manuals unless --text names another, is timed: in MB (10^6
bytes) a second of wall time, and a second of processor time of all threads, which other work on the machine changes less. Of
three tries each the best counts. All encode documents of about 1 MB, in threads; meshwright also reads and writes files.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "bench"))
import tokenizer_text

parser = argparse.ArgumentParser()
parser.add_argument("--text")
parser.add_argument("--megabytes", type=int, default=40)
parser.add_argument("--vocab", type=int, default=32000)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--patterns", default="gpt2,llama3,qwen2,o200k")
given = parser.parse_args()
# Before the libraries' thread pools start.
os.environ["TOKENIZERS_PARALLELISM"] = "true" if given.threads > 1 else "false"
os.environ["RAYON_NUM_THREADS"] = str(given.threads)
import numpy
import tiktoken
from tokenizers import Tokenizer

meshwright = str(root / "build/bin/meshwright")


def machine_text(size):
    """Text that any Linux machine has."""
    parts, length = [], 0
    for folder, pattern in (("/usr/include", "**/*.h"), (os.path.dirname(os.__file__), "**/*.py"), ("/usr/share/doc", "**/*"),
                            ("/usr/share/perl", "**/*.p?")):
        for path in sorted(pathlib.Path(folder).glob(pattern)):
            if not path.is_file() or path.suffix == ".gz" or length >= size:
                continue
            data = path.read_bytes()
            if b"\0" not in data:
                parts.append(data)
                length += len(data)
    return b"\n".join(parts)[:size]


def pieces(data, size=1_000_000):
    """Documents of about that size, cut behind a line."""
    result, begin = [], 0
    while begin < len(data):
        end = data.find(b"\n", begin + size) + 1 or len(data)
        result.append(data[begin:end])
        begin = end
    return result


def timed(act):
    """The best of three in seconds of wall time and of processor time, children's too."""
    def processor():
        return sum(t.ru_utime + t.ru_stime for t in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    best = [float("inf")] * 2
    for _ in range(3):
        wall, used = time.perf_counter(), processor()
        act()
        best = [min(a, b) for a, b in zip(best, (time.perf_counter() - wall, processor() - used))]
    return best


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def tokens_of(folder):
    ids = []
    for path in sorted(pathlib.Path(folder).glob("tokens-*.bin")):
        head = numpy.fromfile(path, "<u4", 6)
        count = int(head[4]) + (int(head[5]) << 32)
        ids.append(numpy.fromfile(path, {1: "u1", 2: "<u2", 4: "<u4"}[int(head[2])], count, offset=1024).astype("i8"))
    return numpy.concatenate(ids)


with tempfile.TemporaryDirectory() as work:
    work = pathlib.Path(work)
    text = pathlib.Path(given.text).read_bytes() if given.text else machine_text(given.megabytes * 10 ** 6)
    documents = work / "documents"
    documents.mkdir()
    (work / "train.txt").write_bytes(text[:20_000_000])
    (work / "mixed.bin").write_bytes(mixed := tokenizer_text.mixed(5_000_000, seed=1))
    # tiktoken and tokenizers take strings.
    strings = [part.decode("utf-8", "replace") for part in pieces(text)]
    for i, each in enumerate(strings):
        (documents / f"{i:05}.txt").write_text(each, newline="")
    size = sum(len(each.encode()) for each in strings)
    print(f"{size / 1e6:.1f} MB in {len(strings)} documents, vocabulary {given.vocab}, {given.threads} threads")
    print("| pattern | ids of 5 MB of mixed text | library | MB/s | MB per processor second |\n|---|---|---|---|---|")
    for pattern in given.patterns.split(","):
        path = work / f"{pattern}.json"
        run(meshwright, "tokenizer", "train", str(work / "train.txt"), "--vocab", str(given.vocab), "--pattern", pattern,
            "-o", str(path))

        def tokenize(*inputs, out):
            subprocess.run(["rm", "-rf", str(out)], check=True)
            run(meshwright, "tokenize", *map(str, inputs), "--tokenizer", str(path), "-o", str(out), "--end-token", "none",
                "--threads", str(given.threads))

        peer = Tokenizer.from_file(str(path))
        tokenize(work / "mixed.bin", out=work / "mixed")
        ours = tokens_of(work / "mixed")
        theirs = numpy.asarray(peer.encode(mixed.decode("utf-8", "replace"), add_special_tokens=False).ids)
        same = len(ours) == len(theirs) and bool((ours == theirs).all())

        spec = json.loads(path.read_text())
        regex = next((step["pattern"]["Regex"] for step in spec["pre_tokenizer"].get("pretokenizers", []) if step["type"] == "Split"),
                     r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
        order = [b for b in range(0x21, 0x7f)] + [b for b in range(0xa1, 0xad)] + [b for b in range(0xae, 0x100)]
        byte_of = {chr(b): b for b in order} | {chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in order)}
        ranks = {bytes(byte_of[c] for c in token): rank for token, rank in spec["model"]["vocab"].items() if token != "<|endoftext|>"}
        tik = tiktoken.Encoding("bench", pat_str=regex, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 0})

        rows = {"meshwright": timed(lambda: tokenize(documents, out=work / "out")),
                "tokenizers": timed(lambda: peer.encode_batch_fast(strings, add_special_tokens=False)),
                "tiktoken": timed(lambda: tik.encode_ordinary_batch(strings, num_threads=given.threads))}
        for name, (wall, used) in rows.items():
            print(f"| {pattern} | {('the same' if same else 'OTHERS') if name == 'meshwright' else ''} | {name} | {size / 1e6 / wall:.1f} | {size / 1e6 / used:.1f} |",
                  flush=True)
        if not same:
            sys.exit(f"{pattern}: other ids than tokenizers")
