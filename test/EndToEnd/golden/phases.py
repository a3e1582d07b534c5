#!/usr/bin/env python3
"""IR taken out at any phase and put in again makes the same executable: phases.py GOLDEN WORK"""
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, check, compile, fresh, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
size = dict(golden.size, mesh="data=2", microbatches=2)
compile(golden.config, "direct", **size)
want = train("./direct", 2, **dict(golden.run, steps=3))
texts = []
for phase in ("train", "step", "dist", "local", "stages", "schedule", "exec"):
    compile(golden.config, f"{phase}.mlir", emit=phase, **size)
    # What is decided at a phase need not be said again.
    compile(f"{phase}.mlir", phase, mesh="data=2" if phase in ("train", "step") else None)
    check(train(f"./{phase}", 2, **dict(golden.run, steps=3)) == want, f"losses of {phase}.mlir differ in a bit")
    # Nor does printing and reading lose anything.
    compile(f"{phase}.mlir", "again.mlir", emit=phase)
    text = open(f"{phase}.mlir").read()
    check(open("again.mlir").read() == text, f"{phase}.mlir changes when it is read and printed")
    check(f'meshwright.phase = "{phase}"' in text or phase == "train", f"{phase}.mlir does not name its phase")
    texts.append(text)
check(len(set(texts)) == len(texts), "two phases print the same")
print(f"{len(texts)} phases, {len(want)} steps")
