#!/usr/bin/env python3
"""Executables of encoder-decoder models generate what transformers does, greedily and by beam search: pairs.py WORK MODEL..."""
import json
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from cases import PAIRS, SEARCHES, SOURCE_SEQ, SOURCES, TARGET_SEQ
from harness import INPUTS, check, compile, flags, fresh

expected = json.loads((pathlib.Path(__file__).resolve().parent / "expected-pairs.json").read_text())
fresh(sys.argv[1])
for i, source in enumerate(SOURCES):
    pathlib.Path(f"source{i}").write_bytes(source)
for name in sys.argv[2:] or PAIRS:
    case = PAIRS[name]
    directory = INPUTS / case["inputs"]
    folder = pathlib.Path(f"{name}-model")
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**json.loads((directory / "config.json").read_text()), **case["config"]}))
    if "generation" in case:
        (folder / "generation_config.json").write_text(json.dumps(case["generation"]))
    compile(folder / "config.json", name, batch=1, seq=TARGET_SEQ, source_seq=SOURCE_SEQ)
    for search, asked in SEARCHES.items():
        how = {"temperature": 0} if asked["beams"] == 1 else asked
        for i, want in enumerate(expected[name][search]):
            done = subprocess.run([f"./{name}", "--generate", f"source{i}", "--init", directory / "model.safetensors", "--tokenizer", "bytes", *flags(how)],
                                  capture_output=True, timeout=60)
            check(done.returncode == 0, f"{name} {search}: {done.stderr.decode()}")
            have = list(done.stdout[:-1])
            check(have == want, f"{name} {search}, source {i}: {have} are not the tokens of transformers, {want}")
    print(f"{name}: {len(SEARCHES)} searches for {len(SOURCES)} sources", flush=True)
