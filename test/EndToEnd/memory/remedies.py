#!/usr/bin/env python3
"""Where nothing fits, `--remat auto` names single changes that do, with the bytes of their plans: remedies.py CONFIG WORK"""
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import check, compile, flags, fresh

CONFIG = sys.argv[1]
# The options, a budget, and flags that should be among the remedies.
ROWS = [(dict(mesh="data=2", batch=16, seq=64), 6000000, {"--microbatches 2", "--zero 3"}),
        (dict(mesh="data=2", batch=16, seq=64), 4000000, {"--mesh data=2,tensor=2"}),
        (dict(mesh="pipe=2", batch=8, seq=64, microbatches=2), 3000000, set())]
fresh(sys.argv[2])
for options, budget, wanted in ROWS:
    failed = subprocess.run(["meshwright", "compile", CONFIG, "-o", "exec.mlir", "--emit", "exec",
                             *flags(dict(options, remat="auto", memory_limit=budget))], capture_output=True, text=True)
    print(failed.stderr, end="", flush=True)
    found = re.findall(r"^  (--.*?)(?:, with twice the ranks)?: ([\d,]+) bytes a rank with --remat (\S+)$", failed.stderr, re.M)
    check(failed.returncode == 1 and 1 <= len(found) <= 3, f"expected one to three remedies: {failed.stderr}")
    check(wanted <= {change for change, _, _ in found}, f"expected {wanted}")
    for change, stated, policy in found:
        words = change.split()
        changed = dict(options, **{words[0][2:]: words[1]})
        needs = int(stated.replace(",", ""))
        check(needs <= budget, f"{change} does not fit")
        for remat in (policy, "auto") if found[0][0] == change else (policy,):
            compile(CONFIG, "exec.mlir", emit="exec", remat=remat, memory_limit=budget, **changed)
            # Of the module, its stages and the programs that they call; the rank's is the largest.
            peak = max(int(size) for size in re.findall(r"exec\.arena_bytes = (\d+)", open("exec.mlir").read()))
            check(peak <= budget, f"{change} with --remat {remat} needs {peak}")
            check(remat == "auto" or peak == needs, f"{change} with --remat {remat} needs {peak}, not {needs}")
