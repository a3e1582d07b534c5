#!/usr/bin/env python3
"""Trains a golden directory's model in bf16 and fp16.

  precision.py GOLDEN WORK losses STRATEGY...    the losses of the float64 run, and the interpreter's
  precision.py GOLDEN WORK parts STRATEGY...     the losses of one rank in the same precision
  precision.py GOLDEN WORK context STRATEGY...   no further from the float64 run than twice what one rank is
  precision.py GOLDEN WORK scaling [STRATEGY]    overflows, growth, and resuming in fp16
  precision.py GOLDEN WORK bytes                 what a parameter takes
  precision.py GOLDEN WORK moments               the losses with moments in bf16, and checkpoints that go there and back
  precision.py GOLDEN WORK masters STRATEGY...   masters of which only the lower halves are kept lose no digit
  precision.py GOLDEN WORK rounds STRATEGY...    gradients of experts, one of a token, are rounded once, in however many rounds their rows go
  precision.py GOLDEN WORK threads               the library of matrix products starts none of its own

A strategy is written as for golden.py.
"""
import array
import filecmp
import json
import math
import os
import pathlib
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")
from compare import largest, read_safetensors
from harness import Golden, call, check, check_traffic, compile, distance, flags, fresh, planned, ranks_of, strategy, train

golden = Golden(sys.argv[1])
sparse = "num_experts_per_tok" in json.load(open(golden.config))
fresh(sys.argv[2])
PRECISIONS = ({"precision": "bf16"}, {"precision": "bf16", "grad_dtype": "bf16"}, {"precision": "fp16"})


def slope(losses):
    """Of the straight line nearest to the losses."""
    middle, mean = (len(losses) - 1) / 2, sum(losses) / len(losses)
    spread = sum((i - middle) ** 2 for i in range(len(losses)))
    return sum((i - middle) * (loss - mean) for i, loss in enumerate(losses)) / spread


def interpreted(options, run):
    """The same run by the interpreter, which rounds as the types say."""
    compile(golden.config, "step.mlir", emit="step", **options)
    judge = ["meshwright-interpret", "step.mlir", "--precision", "f32", "--train", *flags(run)]
    done = subprocess.run(map(str, judge), capture_output=True, text=True, timeout=600)
    check(done.returncode == 0, done.stderr[:1000])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def losses(items):
    want = golden.answers["loss"]
    precisions = PRECISIONS[1:2] if "--few" in items else PRECISIONS
    for item in (item for item in items if item != "--few"):
        for precision in precisions:
            options = dict(golden.size, **strategy(item), **precision)
            mesh, ranks = options["mesh"], ranks_of(options["mesh"])
            compile(golden.config, "exe", **options)
            have = train("./exe", ranks, save="run", **golden.run)
            name = f"{golden.directory.name} {item} {' '.join(precision.values())}"
            off = distance(have, [{"loss": loss} for loss in want])
            check(off <= 2e-2, f"{name}: a loss is off by {off:.1e}")
            parts = golden.answers.get("aux_loss", [])
            check(("aux_loss" in have[0]) == bool(parts), f"{name}: the metrics have {set(have[0])}")
            if parts:
                part = distance(have, [{"aux_loss": part} for part in parts], "aux_loss")
                check(part <= 2e-2, f"{name}: the routers' part of a loss is off by {part:.1e}")
            # Of few steps a slope is mostly noise.
            falls = slope([row["loss"] for row in have]) / slope(want) if len(want) >= 20 else 1
            check(abs(falls - 1) <= 2e-2, f"{name}: the losses fall {falls:.3f} times as fast")
            # What is saved are the masters: more digits than the narrow type has.
            weights = read_safetensors("run/latest/model.safetensors")
            final = {key.removeprefix("transformer."): norm for key, norm in golden.answers["final_norm"].items()}
            worst = largest(abs(math.hypot(*weights[key][1]) - norm) / norm for key, norm in final.items()
                            if not key.endswith("c_attn.bias"))
            check(worst <= 2e-2, f"{name}: the norm of a weight at the end is off by {worst:.1e}")
            digits = array.array("I", weights[sorted(weights)[0]][1].tobytes())
            check(any(bits & 0x1FFF for bits in digits), f"{name}: what is saved has narrow numbers only")
            print(f"{name}: loss {off:.1e}, slope {falls:.4f}, final weights {worst:.1e}", end="")
            if mesh == "":
                check(train("./exe", ranks, **golden.run) == have, f"{name}: the run differs from itself")
                # After an update roundings may decide which expert is chosen, and a token is much of so small a batch.
                steps = 1 if sparse else 4
                judge = interpreted(options, dict(golden.run, steps=steps))
                near = distance(have[:steps], judge)
                check(near <= 2e-3, f"{name}: a loss is {near:.1e} off the interpreter's")
                if parts:  # One choice of another expert is 1e-4 of it, and may be more.
                    part = distance(have[:steps], judge, "aux_loss")
                    # GPUs' attention also rounds its weights, and so may choose otherwise: no further off than the
                    # interpreter is from the float64 run.
                    own = distance(judge, [{"aux_loss": one} for one in parts[:steps]], "aux_loss")
                    bound = max(1e-5, own) if options.get("target") == "cuda" else 1e-5
                    check(part <= bound, f"{name}: the routers' part is {part:.1e} off the interpreter's, allowed {bound:.1e}")
                print(f", from the interpreter {near:.1e}", end="")
            print()
            sys.stdout.flush()


def parts(items):
    """Where weights and states are stored changes what is rounded in no way, and sums in their last digits: whatever
    differs from one rank is in the order of sums, over devices and microbatches."""
    for precision in PRECISIONS:
        if sparse and "grad_dtype" in precision:
            continue  # Sums that are rounded in another order have other choices of experts follow.
        if precision["precision"] == "bf16":  # Half-way cases are rounded as whole masters are, whichever ranks have halves.
            precision = dict(precision, masters="whole")
        compile(golden.config, "one", **golden.size, **precision)
        want = train("./one", save="one-run", **golden.run)
        weights = read_safetensors("one-run/latest/model.safetensors")
        for item in items:
            options = dict(golden.size, **strategy(item), **precision)
            compile(golden.config, "exe", **options)
            ranks = ranks_of(options["mesh"])
            have = train("./exe", ranks, save="run", trace="trace.json", **golden.run)
            check_traffic("./exe", "trace.json", golden.run["steps"])
            name = f"{golden.directory.name} {item} {' '.join(precision.values())}"
            off, norms = distance(have, want), distance(have, want, "grad_norm")
            check(off <= 2e-3, f"{name}: a loss is {off:.1e} off one rank's")
            check(norms <= 1e-2, f"{name}: a gradient norm is {norms:.1e} off one rank's")
            final = read_safetensors("run/latest/model.safetensors")
            check(set(final) == set(weights), f"{name}: other tensors are saved")
            worst = largest(math.dist(final[key][1], value) / math.hypot(*value) for key, (_, value) in weights.items()
                            if not key.endswith("c_attn.bias"))
            check(worst <= 5e-3, f"{name}: a weight at the end is {worst:.1e} off one rank's")
            check(train("./exe", ranks, **golden.run) == have, f"{name}: the run differs from itself")
            print(f"{name}: loss {off:.1e}, grad_norm {norms:.1e}, final weights {worst:.1e}", flush=True)


def context(items):
    """Partial results of attention are merged before they are rounded, so many of them cost no digits."""
    want = [{"loss": loss} for loss in golden.answers["loss"]]
    def errors(item):
        options = dict(golden.size, **strategy(item), precision="bf16")
        compile(golden.config, "exe", **options)
        have = train("./exe", ranks_of(options["mesh"]), **golden.run)
        off = [abs(row["loss"] - one["loss"]) / one["loss"] for row, one in zip(have, want)]
        return max(off), math.sqrt(sum(error * error for error in off) / len(off))
    one = errors("one")
    for item in items:
        have = errors(item)
        print(f"{golden.directory.name} {item}: a loss is off by {have[0]:.1e}, {have[1]:.1e} in the mean, on one rank by {one[0]:.1e} and {one[1]:.1e}",
              flush=True)
        check(all(error <= 2 * alone for error, alone in zip(have, one)), f"{item}: {have} is more than twice {one}")


def scaling(where="data=2"):
    compile(golden.config, "exe", precision="fp16", **golden.size, **strategy(where))
    run = dict(golden.run, steps=12)
    good = train("./exe", 2, **run)
    check([row["loss_scale"] for row in good] == [65536] * 12, "the scale changes without a cause")
    check(not any(row["skipped"] for row in good), "a step is skipped")

    # So large that gradients overflow: nothing is updated until the scale has come down. Two overflows are needed
    # before it falls, then each halves it.
    huge = dict(run, initial_loss_scale=2.0**34)
    first = train("./exe", 2, save="first", **dict(huge, steps=1))
    check(first[0]["skipped"] and first[0]["grad_norm"] is None, "the first step does not overflow")
    before, after = read_safetensors(golden.weights), read_safetensors("first/latest/model.safetensors")
    check(all(list(after[key][1]) == list(value) for key, (_, value) in before.items()), "a skipped step changes weights")
    states = read_safetensors("first/latest/optimizer.safetensors")
    check(not any(any(value) for _, value in states.values()), "a skipped step changes an optimizer state")
    have = train("./exe", 2, **dict(huge, steps=40))
    skipped = [row["skipped"] for row in have]
    count = sum(skipped)
    check(2 <= count < 30 and skipped == [True] * count + [False] * (40 - count), f"skipped: {skipped}")
    scales = [row["loss_scale"] for row in have]
    check(scales == [2.0**34] * 2 + [2.0 ** (33 - i) for i in range(count - 1)] + [2.0 ** (35 - count)] * (39 - count),
          f"scales: {scales}")
    check(have[-1]["loss"] < have[count]["loss"], "it does not train after that")
    # Steps that were skipped do not count in AdamW's bias corrections: the interpreter does the same.
    options = dict(golden.size, precision="fp16")
    near = interpreted(options, dict(huge, steps=count + 3))
    check([row["loss_scale"] for row in near] == scales[:count + 3], "the interpreter scales otherwise")
    check(distance(have[count:count + 3], near[count:]) <= 2e-3, "the interpreter trains otherwise after skipped steps")

    # A scale that cannot fall is no excuse.
    floor = dict(huge, min_loss_scale=2.0**33, steps=20)
    done = subprocess.run(["meshwright", "run", "-n", "2", "./exe", *flags(floor)], capture_output=True, text=True)
    check(done.returncode != 0 and "training has diverged" in done.stderr, f"at the least scale:\n{done.stderr}")

    # Growth, and a run that stops in the middle of a window is the run that does not.
    grows = dict(run, initial_loss_scale=256, loss_scale_window=3, min_loss_scale=1, hysteresis=1)
    whole = train("./exe", 2, metrics="whole.jsonl", save="whole", save_every=5, **grows)
    check([row["loss_scale"] for row in whole] == [256.0 * 2 ** (i // 3) for i in range(12)], "growth")
    more = {key: value for key, value in grows.items() if key not in ("init", "initial_loss_scale")}
    rest = train("./exe", 2, metrics="rest.jsonl", save="rest", resume="whole/step-00000005", **more)
    check(rest == whole[5:], "the resumed steps differ")
    for file in ("model.safetensors", "optimizer.safetensors", "state.json"):
        check(filecmp.cmp(f"rest/latest/{file}", f"whole/latest/{file}", shallow=False), f"{file} differs in a bit")

    # The flags are for fp16, and a checkpoint has its own scale.
    for exe, options, words in (("./f32", {"loss_scale_window": 5}, "--precision fp16"),
                                ("./exe", {"resume": "whole", "initial_loss_scale": 2}, "--initial-loss-scale")):
        if exe == "./f32":
            compile(golden.config, "f32", mesh="data=2", **golden.size)
        bare = {key: value for key, value in run.items() if key != "init"}
        done = subprocess.run(["meshwright", "run", "-n", "2", exe, *flags(dict(bare, **options))], capture_output=True,
                              text=True)
        check(done.returncode != 0 and words in done.stderr, f"{options}:\n{done.stderr}")
    print(f"{count} steps skipped from 2^34")


def moments():
    """AdamW's moments in bf16 under weights in f32, so that nothing else is rounded; and runs that change how they are kept."""
    want = [{"loss": loss} for loss in golden.answers["loss"]]
    options = dict(golden.size, moments_dtype="bf16")
    compile(golden.config, "narrow", **options)
    compile(golden.config, "wide", **golden.size)
    have = train("./narrow", metrics="whole.jsonl", save="whole", **golden.run)
    off = distance(have, want)
    check(1e-7 < off <= 1e-4, f"a loss is off by {off:.1e}")
    near = distance(have[:4], interpreted(options, dict(golden.run, steps=4)))
    check(near <= 1e-5, f"a loss is {near:.1e} off the interpreter's")

    # Files have f32.
    states = read_safetensors("whole/latest/optimizer.safetensors")
    check(all(not bits & 0xFFFF for _, value in states.values() for bits in array.array("I", value.tobytes())),
          "a moment has more digits than bf16")
    # A run goes on from its own file to the last bit, with wide moments, and from theirs.
    half = golden.run["steps"] // 2
    more = {key: value for key, value in golden.run.items() if key != "init"}
    for exe in ("narrow", "wide"):
        train(f"./{exe}", save=f"{exe}-half", **dict(golden.run, steps=half))
    check(train("./narrow", metrics="rest.jsonl", save="rest", resume="narrow-half", **more) == have[half:],
          "the resumed steps differ")
    for first, then in (("narrow", "wide"), ("wide", "narrow")):
        rest = train(f"./{then}", metrics="other.jsonl", save="other", resume=f"{first}-half", **more)
        change = distance(rest, want[half:])
        check(change <= 1e-4, f"{first}, then {then}: a loss is off by {change:.1e}")
    print(f"moments in bf16: loss {off:.1e}, from the interpreter {near:.1e}")


def with_numbers(source, target, bits):
    """Copies a safetensors file with `bits` as its first numbers in f32."""
    data = bytearray(pathlib.Path(source).read_bytes())
    first = 8 + int.from_bytes(data[:8], "little")
    data[first:first + 4 * len(bits)] = array.array("I", bits).tobytes()
    pathlib.Path(target).write_bytes(data)


def masters(items):
    """Without a step what is saved are the very bits that were read, whichever way and wherever masters are kept; with steps
    both ways differ in half-way cases alone, and a run goes on from files of the other."""
    given = {key.removeprefix("transformer."): value for key, value in read_safetensors(golden.run["init"]).items()}
    check(any(bits & 0xFFFF for _, value in given.values() for bits in array.array("I", value.tobytes())),
          "the first weights are numbers of bf16")
    half = golden.run["steps"] // 2
    more = {key: value for key, value in golden.run.items() if key != "init"}
    for item in items:
        have = {}
        for kept in ("halves", "whole"):
            options = dict(golden.size, **strategy(item), precision="bf16", masters=kept)
            ranks = ranks_of(options["mesh"])
            compile(golden.config, kept, **options)
            plan = json.loads(call(["meshwright", "inspect", kept, "--json"]))
            types = {v["type"] for v in plan["variables"] if v["role"] == "master"}
            # Of ZeRO 1 and 2 a rank updates parts of what it gathers.
            halved = kept == "halves" and options.get("zero") not in ("1", "2")
            check(types == {"i16" if halved else "f32"}, f"{item} {kept}: masters are {types}")
            train(f"./{kept}", ranks, save=f"{kept}-same", **dict(golden.run, steps=1, lr=0))
            same = read_safetensors(f"{kept}-same/latest/model.safetensors")
            check(all(value.tobytes() == given[key.removeprefix("transformer.")][1].tobytes() for key, (_, value) in same.items()),
                  f"{item} {kept}: what is saved is not what was read")
            have[kept] = train(f"./{kept}", ranks, save=f"{kept}-run", **golden.run)
            train(f"./{kept}", ranks, save=f"{kept}-half", **dict(golden.run, steps=half))
        # Below the normal numbers halves would not fit where a processor rounds them to zero.
        tiny = [0x000AE398, 0x800AE398, 0x00008000, 0x0000FFFF]
        with_numbers(golden.run["init"], "tiny.safetensors", tiny)
        train("./halves", ranks, save="tiny", **dict(golden.run, init="tiny.safetensors", steps=2, lr=0))
        values = [bits for _, value in read_safetensors("tiny/latest/model.safetensors").values() for bits in array.array("I", value.tobytes())]
        halved = options.get("zero") not in ("1", "2")
        check(set(values).isdisjoint(tiny) == halved, f"{item}: masters below the normal numbers are not zeros")
        off = distance(have["halves"], have["whole"])
        check(off <= 1e-3, f"{item}: a loss is {off:.1e} off that with whole masters")
        for first, then in (("halves", "halves"), ("halves", "whole"), ("whole", "halves")):
            rest = train(f"./{then}", ranks, metrics="rest.jsonl", save="rest", resume=f"{first}-half", **more)
            change = distance(rest, have[then][half:])
            check(change <= (0 if first == then else 1e-3), f"{item} {first}, then {then}: a loss is off by {change:.1e}")
        print(f"{item}: halves and whole masters {off:.1e} apart", flush=True)


def rounds(items):
    """A token with one expert is of one round, so that sums over rounds are of experts' gradients alone. Summed in f32 and
    rounded after the last round they are those of one round, but where the order of sums decides a half-way case."""
    for item in items:
        have = {}
        for buffer in (8, 0.1):
            compile(golden.config, "exe", precision="bf16", grad_dtype="bf16", optimizer="sgd", expert_buffer=buffer,
                    **golden.size, **strategy(item))
            run = train("./exe", ranks_of(strategy(item)["mesh"]), save="run", init=golden.weights, lr=128, grad_clip=0, steps=1, **golden.data)
            have[buffer] = read_safetensors("run/latest/model.safetensors")
        check(run[0]["expert_rounds"] > 5, f"{item}: {run[0].get('expert_rounds')} rounds are few")
        numbers = other = 0
        for key, (_, value) in have[8].items():
            other += sum(a != b for a, b in zip(value, have[0.1][key][1]))
            numbers += len(value)
        print(f"{item}, {run[0]['expert_rounds']} rounds: {other} of {numbers} weights differ from those of one round", flush=True)
        check(other <= numbers / 1000, f"{item}: {other} of {numbers} weights differ from those of one round")


def bytes_each():
    """With two microbatches of one token parameters and all gradients are there when memory is fullest."""
    config = dict(json.load(open(golden.config)), n_embd=256, n_head=4, n_layer=3, vocab_size=1024)
    json.dump(config, open("config.json", "w"))
    for options, state in (({}, 16), ({"precision": "bf16", "grad_dtype": "bf16", "masters": "whole"}, 16),
                           ({"precision": "bf16", "masters": "whole"}, 18), ({"precision": "fp16"}, 18), ({"moments_dtype": "bf16"}, 12),
                           ({"precision": "bf16"}, 16), ({"precision": "bf16", "grad_dtype": "bf16"}, 14),
                           ({"precision": "bf16", "grad_dtype": "bf16", "moments_dtype": "bf16"}, 10),
                           ({"precision": "bf16", "grad_dtype": "bf16", "optimizer": "sgd"}, 6)):
        plan = planned("config.json", batch=2, seq=1, microbatches=2, **options)
        lines = {line["category"]: line["bytes"] for line in plan["memory"]}
        count = sum(math.prod(v["shape"]) for v in plan["variables"] if v["role"] == "parameter")
        each = (lines["parameter"] + lines["optimizer"] + lines["gradient"]) / count
        print(f"{options}: {each:.3f} bytes a parameter")
        check(abs(each - state) < 0.01, f"{options}: {each} bytes a parameter, expected {state}")
        if options == {"precision": "bf16", "grad_dtype": "bf16"}:
            # With one, a gradient takes the place of its parameter: the update reads the master.
            one = planned("config.json", batch=1, seq=1, **options)["arena_bytes"]
            check(one < 15 * count, f"{one / count:.3f} bytes a parameter in all")
        precision = options.get("precision", "f32")
        check(plan["precision"] == precision and plan["grad_dtype"] == options.get("grad_dtype", "f32"), "the plan's types")


def threads_of(exe, blas):
    """The threads of a run that is training, with what other programs may leave in the environment of OpenBLAS."""
    pathlib.Path("run.jsonl").unlink(missing_ok=True)
    run = dict(golden.run, steps=10**6, lr=0, metrics="run.jsonl")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": str(blas)}
    process = subprocess.Popen([exe, *flags(run)], env=environment, stdout=subprocess.DEVNULL)
    try:
        while process.poll() is None and not (os.path.exists("run.jsonl") and os.path.getsize("run.jsonl")):
            time.sleep(0.01)
        check(process.poll() is None, f"{exe} has ended")
        return len(os.listdir(f"/proc/{process.pid}/task"))
    finally:
        process.kill()
        process.wait()


def threads():
    for precision in ({}, *PRECISIONS):
        compile(golden.config, "exe", **golden.size, **precision)
        counts = [threads_of("./exe", blas) for blas in (1, 64)]
        print(f"{precision}: {counts[1]} threads")
        check(counts[0] == counts[1], f"{precision}: {counts[1]} threads, with OPENBLAS_NUM_THREADS=1 {counts[0]}")


{"losses": losses, "parts": parts, "moments": lambda items: moments(), "masters": masters, "context": context,
 "rounds": rounds, "scaling": lambda items: scaling(*items),
 "bytes": lambda items: bytes_each(), "threads": lambda items: threads()}[sys.argv[3]](sys.argv[4:])
