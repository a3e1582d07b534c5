#!/usr/bin/env python3
"""IR taken out at any stage and put in again makes the same executable: stages.py GOLDEN WORK"""
import sys

sys.path.append(sys.path[0] + "/..")
from harness import Golden, check, compile, fresh, train

golden = Golden(sys.argv[1])
fresh(sys.argv[2])
size = dict(golden.size, mesh="data=2", microbatches=2)
compile(golden.config, "direct", **size)
want = train("./direct", 2, **dict(golden.run, steps=3))
texts = []
for stage in ("train", "step", "dist", "local", "stages", "schedule", "exec"):
    compile(golden.config, f"{stage}.mlir", emit=stage, **size)
    # What is decided at a stage need not be said again.
    compile(f"{stage}.mlir", stage, mesh="data=2" if stage in ("train", "step") else None)
    check(train(f"./{stage}", 2, **dict(golden.run, steps=3)) == want, f"losses of {stage}.mlir differ in a bit")
    # Nor does printing and reading lose anything.
    compile(f"{stage}.mlir", "again.mlir", emit=stage)
    text = open(f"{stage}.mlir").read()
    check(open("again.mlir").read() == text, f"{stage}.mlir changes when it is read and printed")
    check(f'meshwright.stage = "{stage}"' in text or stage == "train", f"{stage}.mlir does not name its stage")
    texts.append(text)
check(len(set(texts)) == len(texts), "two stages print the same")
print(f"{len(texts)} stages, {len(want)} steps")
