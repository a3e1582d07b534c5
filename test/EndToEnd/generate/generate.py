#!/usr/bin/env python3
"""Executables generate what transformers does: generate.py WORK MODEL..."""
import json
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from cases import BEAMS, CASES, PROMPT, RECURRENT, SHORT, weights
from harness import INPUTS, check, compile, fresh, most_resident, train

here = pathlib.Path(__file__).resolve().parent
expected = json.loads((here / "expected.json").read_text())
best = json.loads((here / "expected-pairs.json").read_text())["beams"]


def check_short(name):
    """Lines are sequences of their own: a state of the one before would change the tokens behind the next. And an executable
    whose sequences are shorter than what others read at once."""
    lines = [PROMPT, *SHORT, PROMPT]
    pathlib.Path("lines").write_text("".join(" ".join(map(str, line)) + "\n" for line in lines))
    ids = ["--init", "weights.safetensors", "--tokenizer", "ids", "--temperature", "0"]
    done = subprocess.run([f"./{name}", "--generate", "lines", "--lines", *ids, "--tokens", "20"], capture_output=True, text=True, timeout=60)
    rows = [[*line, *expected[f"{name} after {line.decode()}" if line in SHORT else name][:20]] for line in lines]
    have = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
    check(have == rows, f"{name}: lines go on as {have}, not {rows}: {done.stderr}")
    compile("config.json", "few", batch=1, seq=6)
    done = subprocess.run(["./few", "--generate", str(SHORT[0][0]), *ids, "--tokens", "5"], capture_output=True, text=True, timeout=60)
    check([int(word) for word in done.stdout.split()] == rows[1][:6], f"{name}: in 6 positions it makes {done}, not {rows[1][:6]}")


def check_memory():
    """Beams keep a copy of their states each, not one for each token."""
    pathlib.Path("large.json").write_text(json.dumps({"model_type": "mamba2", "vocab_size": 64, "hidden_size": 64, "num_hidden_layers": 2, "num_heads": 16,
                                                      "head_dim": 8, "expand": 2, "n_groups": 1, "state_size": 512, "chunk_size": 8}))
    compile("large.json", "large", batch=1, seq=56)
    pathlib.Path("tokens").write_bytes(bytes(range(64)) * 2)
    train("./large", 1, data="tokens", tokens="u8", steps=1, lr=1e-3, save="run")
    state = 2 * 16 * 8 * 512 * 4
    few, many = (most_resident(["./large", "--generate", "1", "--tokenizer", "ids", "--resume", "run", "--beams", "4", "--tokens", tokens]) for tokens in (8, 48))
    check(many - few < 16 * state, f"beam search of 48 tokens has {many} bytes, of 8 {few}; a state has {state}")


fresh(sys.argv[1])
pathlib.Path("prompt").write_bytes(PROMPT)
for name in sys.argv[2:] or CASES:
    case, want = CASES[name], expected[name]
    check(len(want) >= 20, f"{name} has {len(want)} tokens to compare")
    directory = INPUTS / case["inputs"]
    pathlib.Path("config.json").write_text(json.dumps({**json.loads((directory / "config.json").read_text()), **case["config"]}))
    pathlib.Path("weights.safetensors").write_bytes(weights(case, directory))
    compile("config.json", name, batch=1, seq=len(PROMPT) + case["tokens"])
    done = subprocess.run([f"./{name}", "--generate", "prompt", "--init", "weights.safetensors", "--tokenizer", "bytes",
                           "--temperature", "0", "--tokens", str(len(want))], capture_output=True, timeout=60)
    check(done.returncode == 0, f"{name}: {done.stderr.decode()}")
    have = list(done.stdout[len(PROMPT):-1])
    same = next((i for i, (a, b) in enumerate(zip(have, want)) if a != b), min(len(have), len(want)))
    check(done.stdout.startswith(PROMPT) and have == want, f"{name}: {same} of {len(want)} tokens are those of transformers, then {have[same:same + 5]}, "
                                                           f"not {want[same:same + 5]}")
    if name in BEAMS:
        done = subprocess.run([f"./{name}", "--generate", "prompt", "--init", "weights.safetensors", "--tokenizer", "bytes",
                               "--beams", "4", "--tokens", "20"], capture_output=True, timeout=60)
        check(done.returncode == 0 and list(done.stdout[len(PROMPT):-1]) == best[name],
              f"{name}: beam search finds {list(done.stdout)}, not {best[name]}: {done.stderr.decode()}")
    if name in RECURRENT:
        check_short(name)
    print(f"{name}: {len(want)} tokens", flush=True)
check_memory()
