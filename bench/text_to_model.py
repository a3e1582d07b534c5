#!/usr/bin/env python3
"""From text to a model that transformers reads, one command a step: text_to_model.py CONFIG [WORK]

The commands are those of examples/pretrain, with CONFIG (examples/pretrain/llama.json, or gpt2.json) as the model. At the end transformers loads
the checkpoint, and compares with the executable: logits of a batch (those that a dump of a step has), the mean loss of held-out
text, and 40 tokens of greedy continuation. Needs torch and transformers of PyPI.
"""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

import numpy
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
config = pathlib.Path(sys.argv[1]).resolve()
work = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "build/text_to_model")
work.mkdir(parents=True, exist_ok=True)


def run(command):
    begin = time.time()
    done = subprocess.run(["bash", "-c", command], cwd=work, capture_output=True, text=True,
                          env={**os.environ, "PATH": f"{ROOT}/build/bin:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"})
    if done.returncode:
        sys.exit(f"{command}\n{done.stdout}{done.stderr}")
    print(f"$ {command}\n  {time.time() - begin:.1f} s; {done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ''}", flush=True)
    return done.stdout


docs, q = shlex.quote(str(ROOT / "docs")), shlex.quote(str(config))
run("rm -rf tokens held-out run dump eval.jsonl")
run(f"meshwright tokenizer train {docs}/*.md --vocab 1024 -o tokenizer.json")
run(f"meshwright tokenize {docs}/[a-o]*.md --tokenizer tokenizer.json -o tokens")
run(f"meshwright tokenize {docs}/[p-z]*.md --tokenizer tokenizer.json -o held-out")
run(f"meshwright compile {q} --mesh data=2 --batch 16 --seq 128 -o train")
run("meshwright run -n 2 ./train --data tokens --steps 100 --lr 1e-3 --warmup 10 --save run")
evaluated = run("meshwright run -n 2 ./train --eval-only --eval-data held-out --resume run --eval-batches 4 --metrics eval.jsonl")
text = run("./train --generate 'The compiler' --resume run --temperature 0 --tokens 40")

# A step on one rank, whose values are written to a file.
run(f"meshwright compile {q} --batch 16 --seq 128 --replay --loss-parts 1 -o dumping")
run("./dumping --data held-out --tokens u16 --no-shuffle --steps 1 --lr 0 --init run/latest --dump dump")

model = transformers.AutoModelForCausalLM.from_pretrained(work / "run/latest").double().eval()
tokenizer = transformers.AutoTokenizer.from_pretrained(work / "run/latest")
shard = numpy.fromfile(work / "held-out/tokens-00000.bin", numpy.uint16, offset=1024)


def batch(first, count):
    rows = [shard[i * 128:i * 128 + 129].astype(numpy.int64) for i in range(first, first + count)]
    return torch.tensor(numpy.stack([row[:-1] for row in rows])), torch.tensor(numpy.stack([row[1:] for row in rows]))


inputs, _ = batch(0, 16)
with torch.no_grad():
    wanted = model(inputs).logits.numpy()
index, data = json.loads((work / "dump/rank-0.json").read_text()), (work / "dump/rank-0.bin").read_bytes()
size = wanted.size * 4
# Of the values of that size the first are logits.
offset = next(at for _, _, at, count in index["values"] if count == size)
have = numpy.frombuffer(data, numpy.float32, wanted.size, offset).reshape(wanted.shape)
print(f"logits: largest difference {abs(have - wanted).max():.2e}, of logits up to {abs(wanted).max():.2f}")

losses = []
for first in range(0, 64, 16):
    inputs, targets = batch(first, 16)
    with torch.no_grad():
        losses.append(torch.nn.functional.cross_entropy(model(inputs).logits.flatten(0, 1), targets.flatten()).item())
loss = json.loads((work / "eval.jsonl").read_text())["eval_loss"]
print(f"loss of held-out text: {loss:.7f}, transformers {numpy.mean(losses):.7f}, difference {abs(loss - numpy.mean(losses)):.1e}")

ids = tokenizer("The compiler", return_tensors="pt").input_ids
made = tokenizer.decode(model.generate(ids, max_new_tokens=40, do_sample=False)[0], clean_up_tokenization_spaces=False)
print("greedy continuation: " + ("the same 40 tokens" if made.strip() == text.strip() else f"{made!r}, not {text!r}"))
