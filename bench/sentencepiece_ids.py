#!/usr/bin/env python3
"""Whether `meshwright tokenize` gives the ids of PyPI's sentencepiece: sentencepiece_ids.py WORK [--megabytes N]

Trains a BPE and a unigram model on mixed text (tokenizer_text.py), and compares the ids of all of it. Needs `pip install numpy
sentencepiece==0.1.99`, the version of Debian's library; later ones break ties of unigram scores in another way."""
import argparse
import io
import pathlib
import shutil
import subprocess
import sys

import numpy
import sentencepiece

from tokenizer_text import mixed

parser = argparse.ArgumentParser()
parser.add_argument("work", type=pathlib.Path)
parser.add_argument("--megabytes", type=float, default=5.2)
options = parser.parse_args()
shutil.rmtree(options.work, ignore_errors=True)
(options.work / "text").mkdir(parents=True)

text = mixed(int(options.megabytes * 1e6), 3)
text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
documents = [text[at:at + 60000] for at in range(0, len(text), 60000)]
for number, document in enumerate(documents):
    (options.work / "text" / f"{number:05}.txt").write_bytes(document.encode())
lines = [line[:2000] for line in text[:600000].split("\n") if line.strip()][:6000]
different = False
for kind in ("bpe", "unigram"):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, vocab_size=16000, model_type=kind, byte_fallback=True,
                                             character_coverage=0.98, minloglevel=2, hard_vocab_limit=False)
    file, out = options.work / f"{kind}.model", options.work / kind
    file.write_bytes(model.getvalue())
    subprocess.run(["meshwright", "tokenize", options.work / "text", "--tokenizer", file, "-o", out, "--begin-token", "none", "--end-token", "none"], check=True)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    want = numpy.array([token for document in documents for token in processor.encode(document)])
    have = []
    for shard in sorted(out.glob("*.bin")):
        head = numpy.fromfile(shard, "<u4", 6)
        count = int(numpy.fromfile(shard, "<u8", 1, offset=16)[0])
        have.append(numpy.fromfile(shard, {1: "u1", 2: "<u2", 4: "<u4"}[int(head[2])], count, offset=1024))
    same = numpy.array_equal(numpy.concatenate(have), want)
    different |= not same
    print(f"{kind}: {sum(len(document.encode()) for document in documents):,} bytes, {len(want):,} ids, {'the same' if same else 'others'}", flush=True)
sys.exit(different)
