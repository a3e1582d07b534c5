#!/usr/bin/env python3
"""Executables generate what transformers does: generate.py WORK MODEL..."""
import json
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from cases import BEAMS, CASES, PROMPT
from harness import INPUTS, check, compile, fresh

here = pathlib.Path(__file__).resolve().parent
expected = json.loads((here / "expected.json").read_text())
best = json.loads((here / "expected-pairs.json").read_text())["beams"]
fresh(sys.argv[1])
pathlib.Path("prompt").write_bytes(PROMPT)
for name in sys.argv[2:] or CASES:
    case, want = CASES[name], expected[name]
    check(len(want) >= 20, f"{name} has {len(want)} tokens to compare")
    directory = INPUTS / case["inputs"]
    pathlib.Path("config.json").write_text(json.dumps({**json.loads((directory / "config.json").read_text()), **case["config"]}))
    compile("config.json", name, batch=1, seq=len(PROMPT) + case["tokens"])
    done = subprocess.run([f"./{name}", "--generate", "prompt", "--init", directory / "model.safetensors", "--tokenizer", "bytes",
                           "--temperature", "0", "--tokens", str(len(want))], capture_output=True, timeout=60)
    check(done.returncode == 0, f"{name}: {done.stderr.decode()}")
    have = list(done.stdout[len(PROMPT):-1])
    same = next((i for i, (a, b) in enumerate(zip(have, want)) if a != b), min(len(have), len(want)))
    check(done.stdout.startswith(PROMPT) and have == want, f"{name}: {same} of {len(want)} tokens are those of transformers, then {have[same:same + 5]}, "
                                                           f"not {want[same:same + 5]}")
    if name in BEAMS:
        done = subprocess.run([f"./{name}", "--generate", "prompt", "--init", directory / "model.safetensors", "--tokenizer", "bytes",
                               "--beams", "4", "--tokens", "20"], capture_output=True, timeout=60)
        check(done.returncode == 0 and list(done.stdout[len(PROMPT):-1]) == best[name],
              f"{name}: beam search finds {list(done.stdout)}, not {best[name]}: {done.stderr.decode()}")
    print(f"{name}: {len(want)} tokens", flush=True)
