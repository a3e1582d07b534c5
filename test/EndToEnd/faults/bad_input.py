#!/usr/bin/env python3
"""Gives the tools what they cannot work with: each ends with status 1, one message, and no output.

  bad_input.py compile|run|disk|files|values GOLDEN WORK

test/Frontend/errors.test has more about configurations, test/Runtime about files and ranks at run time.
"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")
from harness import INPUTS, ROOT, Golden, call, check, compile, flags, fresh, ir

failures = 0


def refuses(command, *words, output="out", **environment):
    """`command` fails with one message that has all of `words`, and leaves no file `output*`."""
    global failures
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
    text = done.stdout + done.stderr
    problems = [f"no '{word}' in the message" for word in words if word not in text]
    if done.returncode != 1:
        problems.append(f"exit status {done.returncode}")
    # mpirun and the compiler name themselves; of the runtime's ranks one speaks.
    if len(re.findall(r"^(?:meshwright: )?error: ", text, re.MULTILINE)) != 1:
        problems.append("not exactly one message")
    left = [file for file in os.listdir() if file.startswith(output)]
    if left:
        problems.append(f"left behind: {left}")
        for file in left:
            os.remove(file)
    if problems:
        failures += 1
        print(f"FAILED: {' '.join(command)}\n  {'; '.join(problems)}\n{text}")


def write(name, text):
    (pathlib.Path.write_bytes if isinstance(text, bytes) else pathlib.Path.write_text)(pathlib.Path(name), text)
    return name


def file_flags(help):
    """The flags of a help text whose value is a file or a folder."""
    found = re.findall(r"^ +(?:-\w, ?)?--([a-z-]+) (?:FILE|DIR)\b", help, re.M)
    check(len(found) > 3, f"no flags of files in\n{help}")
    return found


def one_file(golden):
    """What is read or written already is not overwritten, whatever it is called."""
    text = write("model.json", golden.config.read_text())
    size = flags(dict(batch=1, seq=8))
    os.symlink("model.json", "link.json")
    os.symlink("later", "dangling")
    read_only = ["recipe", "cluster", "load-pass-plugin"]
    for flag in file_flags(call(["meshwright", "compile", "--help"])):
        for name in ("model.json", "link.json", "./nothing/../model.json"):
            if flag not in read_only:
                shown = "-o" if flag == "output" else f"--{flag}"
                refuses(["meshwright", "compile", "model.json", *size, f"--{flag}", name], shown, "would overwrite MODEL model.json")
    write("recipe.toml", 'batch = 1\nseq = 8\nreport = "pages"\n')
    refuses(["meshwright", "compile", "model.json", "--recipe", "recipe.toml", "-o", "recipe.toml"], "overwrite --recipe")
    write("cluster.toml", 'name = "mine"\ntarget = "cpu"\n[[devices]]\nlike = "epyc-9654"\n[[levels]]\nname = "inside"\nlatency = 0\n'
                          'bandwidth = 1\nsource = "a test"\n')
    refuses(["meshwright", "compile", "model.json", "--cluster", "cluster.toml", "-o", "cluster.toml"], "overwrite --cluster")
    refuses(["meshwright", "compile", "model.json", "--recipe", "recipe.toml", "-o", "pages/index.html"], "--report pages would overwrite -o")
    refuses(["meshwright", "compile", "model.json", *size, "-o", "later", "--report", "dangling"], "write to the same file")
    os.makedirs("ir", exist_ok=True)
    write("ir/01-train-autodiff.mlir", "module {}")
    refuses(["meshwright", "compile", "ir/01-train-autodiff.mlir", "--dump-ir", "ir", "-o", "out"], "--dump-ir ir would overwrite MODEL")
    write("curve.jsonl", '{"step": 0, "loss": 1}\n')
    refuses(["meshwright", "plot", "curve.jsonl", "-o", "./curve.jsonl"], "would overwrite")
    schedule = ["meshwright", "schedule", "1f1b", "--stages", 2, "--microbatches", 2]
    refuses([*schedule, "--trace", "curve.jsonl", "-o", "curve.jsonl"], "would overwrite")
    check(pathlib.Path("model.json").read_text() == golden.config.read_text(), "the model was overwritten")
    check(pathlib.Path("curve.jsonl").read_text().startswith("{"), "the metrics were overwritten")

    # Without -o an executable is called after its model, which a config.json's folder is.
    os.makedirs("models/first")
    os.makedirs("others/first")
    os.makedirs("here")
    for folder in ("models/first", "here"):
        write(f"{folder}/config.json", golden.config.read_text())
    for model, name in (("models/first/config.json", "first"), ("models/first/config.json", "first"),
                        ("here/config.json", "here-train"), ("model.json", "model")):
        check(f"{name}: 1 rank" in call(["meshwright", "compile", model, *size]), f"{model} is not called {name}")
    other = json.loads(golden.config.read_text())
    other["layer_norm_epsilon"] = 0.5
    write("others/first/config.json", json.dumps(other))
    refuses(["meshwright", "compile", "others/first/config.json", *size], "'first' is an executable of another model", "-o")
    check("first: 1 rank" in call(["meshwright", "compile", "others/first/config.json", *size, "-o", "first"]), "-o is not obeyed")
    write("model", "a note")
    refuses(["meshwright", "compile", "model.json", *size], "'model' is there already", "-o")
    check(pathlib.Path("model").read_text() == "a note", "a file that nobody named was overwritten")


def bad_compile(golden):
    one_file(golden)
    config = golden.config.read_text()

    def refused(*words, model=golden.config, **options):
        options = {"batch": 8, "seq": 64, **options}
        refuses(["meshwright", "compile", model, "-o", "out", *flags(options)], *words)

    # The model description; test/Frontend/errors.test has the rest.
    refused("nothing.json", "No such file", model="nothing.json")
    refused("nothing.mlir", model="nothing.mlir")
    refused("'folder' has no config.json", model=os.makedirs("folder") or "folder")
    refused("cut.json", "not valid JSON", "truncated", model=write("cut.json", config[:100]))
    refused("bad.json", "not valid JSON", model=write("bad.json", config.replace(":", "=", 1)))
    refused("empty.json", "not valid JSON", model=write("empty.json", ""))
    refused("other.json", "gpt5", "gpt2, gpt_bigcode", model=write("other.json", config.replace("gpt2", "gpt5", 1)))
    refused("model.safetensors", "not valid JSON", model=golden.weights)
    # ... and that of muP's base model.
    refused("nothing.json", "No such file", mup_base="nothing.json")
    refused("--mup-base", "'folder' has no config.json", mup_base="folder")
    refused("cut.json", "not valid JSON", mup_base="cut.json")
    refused("--mup-base", "of family llama, the model of family gpt2", mup_base=INPUTS / "golden/llama-tiny/config.json")
    refused("--mup-base", "no rule is published", "--optimizer muon", "adamw, adam, lion, sgd",
            mup_base=write("narrow.json", json.dumps({**json.loads(config), "n_embd": 32})), optimizer="muon")
    # A choice that asks for nothing is one all the same.
    for flag, values in (("aux-loss", ("hf", "none")), ("aux-loss-coef", (0.1, 0)), ("z-loss", (0.01, 0)), ("router-bias-rate", (0.01, 0))):
        for value in values:
            refused(f"--{flag} ", "leave it out", **{flag.replace("-", "_"): value})
    compile(golden.config, "plain.mlir", emit="train", **golden.size)
    refused("--packed cannot change 'plain.mlir'", "compile the config.json with it", model="plain.mlir", packed=True)
    refused("--aux-scope changes nothing", "leave it out", aux_scope="sequence")
    # Pairs of completions.
    refused("--loss dpo cannot change 'plain.mlir'", "written for loss cross-entropy", model="plain.mlir", loss="dpo")
    refused("--loss-parts 2 changes nothing", "log-probabilities of all chunks of its pair", loss="dpo", loss_parts=2)
    refused("--batch 9 does not divide into pairs of --loss dpo in --microbatches 1", "such as 10", loss="dpo", batch=9)
    refused("batch 4 does not divide by 8", "pairs of 2 sequences times 2 devices along {data} times 2 microbatches", loss="dpo", batch=4, microbatches=2, mesh="data=2")
    refused("with --loss dpo reads one completion in each sequence", "leave out --packed", loss="dpo", packed=True)
    refused("--loss", "other", "cross-entropy", "dpo", loss="other")
    sparse = golden.directory.parent.parent / "golden-more"
    refused("--z-loss is of routers", "no layer of this model has experts", z_loss=0.01)
    refused("--z-loss", "'1.5' must be a number in [0, 1)", model=sparse / "olmoe", seq=16, z_loss=1.5)
    refused("--router-bias-rate is of a bias", "no layer of this model has experts", router_bias_rate=0.01)
    refused("--router-bias-rate is of a bias", "family olmoe has none", "glm4_moe or deepseek_v3", model=sparse / "olmoe", seq=16,
            router_bias_rate=0.01)
    compile(sparse / "olmoe", "t.mlir", batch=8, seq=16, emit="train")
    for flag in ("z_loss", "router_bias_rate"):
        refused(f"--{flag.replace('_', '-')} cannot change 't.mlir'", model="t.mlir", batch=None, seq=None, **{flag: 0.01})
    refuses(["meshwright", "plot", "--experts", write("plain.jsonl", '{"step": 0, "loss": 1}\n')], "no line with expert_tokens",
            "--expert-tokens-every")
    refuses(["meshwright", "plot", "--experts", write("odd.jsonl", '{"step": 0, "expert_tokens": {"0": [1, "x"]}}\n')],
            "'odd.jsonl' line 1", "is no list of counts")
    refuses(["meshwright", "plot", "--experts", "plain.jsonl", "odd.jsonl"], "--experts draws one file", "usage")
    refused("--aux-loss-coef changes nothing", "add --aux-loss hf", model=sparse / "olmoe", seq=16, aux_loss_coef=0.1)
    refused("'expert' = 3 cannot divide 8 experts (num_experts)", "use a divisor of 8", model=sparse / "olmoe", seq=16, batch=12, mesh="expert=3")
    refused("'expert' = 16", "use expert=8 or fewer", model=sparse / "olmoe", seq=16, batch=16, mesh="expert=16")
    for flag in ("expert_capacity", "expert_buffer"):
        for value in ("0", "-1", "nan", "inf"):
            refused(f"--{flag.replace('_', '-')}", f"'{value}' must be a number above 0", model=sparse / "olmoe", seq=16, mesh="expert=2",
                    **{flag: value})
    for value in (0, -1, 17):
        refused(f"--expert-parts {value} must be from 1 to 16", model=sparse / "olmoe", seq=16, mesh="expert=2", expert_parts=value)
    refused("--expert-parts 2 changes nothing: there is no expert parallelism", model=sparse / "olmoe", seq=16, expert_parts=2)
    for value, mesh in ((3, 2), (10, 2), (-1, 2), (4, 3)):
        why = "must be from 0 to 65536" if value < 0 else "cannot divide 8 experts" if mesh == 3 else "use a multiple of 2, at most 8"
        refused(why, model=sparse / "olmoe", seq=16, batch=12, mesh=f"expert={mesh}", redundant_experts=value)
    refused("--redundant-experts 2 changes nothing: there is no expert parallelism", model=sparse / "olmoe", seq=16, redundant_experts=2)
    refused("--redundant-experts does not go with --expert-capacity", model=sparse / "olmoe", seq=16, mesh="expert=2", redundant_experts=2,
            expert_capacity=1)
    refused("--redundant-experts does not go with zero-computation experts", model=sparse / "longcat-flash", seq=16, mesh="expert=2",
            redundant_experts=2)
    refused("--data-sync parameter-server does not go with mesh axis 'expert'", model=sparse / "olmoe", seq=16, mesh="expert=2",
            data_sync="parameter-server")
    refused("batch 6 does not divide by 4", "along {expert}", model=sparse / "olmoe", seq=16, batch=6, mesh="expert=4")
    refused("needs \"rope_scaling\"", "write them out", seq=16,
            model=write("no-scaling.json", re.sub(r',\s*"rope_scaling": \{[^}]*\}', "", (sparse / "gpt-oss/config.json").read_text())))
    for kind in ("hf", "switch", "gshard"):
        refused(f"--aux-loss {kind} is of a softmax", "use --aux-loss sequence", model=sparse / "sparse-deepseek-v3", seq=16, aux_loss=kind)
    refused("--aux-loss sequence adds nothing", "0 without --aux-loss-coef", model=sparse / "sparse-deepseek-v3", seq=16,
            aux_loss="sequence")
    refused("--aux-scope", "--aux-loss sequence is computed per sequence", model=sparse / "sparse-deepseek-v3", seq=16, aux_loss="sequence",
            aux_loss_coef=0.1, aux_scope="microbatch")
    refused("which 2 microbatches do not see together", "--aux-counting-pass", "--aux-scope microbatch", "--aux-scope sequence",
            model=sparse / "mixtral", seq=16, microbatches=2)
    refused("--aux-counting-pass", "one microbatch contains the routing choices", model=sparse / "mixtral", seq=16, aux_counting_pass=True)
    refused("--aux-counting-pass", "load-balancing losses over the whole batch", model=sparse / "mixtral", seq=16, microbatches=2,
            aux_scope="sequence", aux_counting_pass=True)
    refused("--aux-counting-pass changes nothing", "add --aux-loss hf", model=sparse / "olmoe", seq=16, microbatches=2,
            aux_counting_pass=True)
    refused("cut.mlir", "cut.mlir:", model=write("cut.mlir", "module {\n  func.func @loss("), batch=None, seq=None)
    refuses(["meshwright", "compile", "-o", "out"], "no model given", "config.json")

    # Text that nests deeper than a parser that recurses can follow.
    deep = 100000
    refused("deep.json", "nested more than 256 deep", model=write("deep.json", "[" * deep))
    refused("deep.mlir", "nested more than 512 deep", model=write("deep.mlir", "module attributes {a = " + "[" * deep))
    refused("deep.mlir", "nested more than 512 deep", model=write("deep.mlir", "module attributes {a = " + "(() -> " * deep))
    refused("deep.mlir", "more than 512 signs", model=write("deep.mlir", "#m = affine_map<(d0) -> (" + "-" * deep + "d0)>"))
    refuses(["meshwright-opt", "deep.mlir"], "deep.mlir", "more than 512 signs")
    refused("deep.toml", "line 2", "64 parts", recipe=write("deep.toml", "batch = 8\n" + "a." * deep + "a = 1\n"))
    refused("deep.toml", "line 1", "64 parts", recipe=write("deep.toml", "[" + "a." * deep + "a]\n"))
    for end in ("[[[", "[.", "[]", "[[a"):
        refused("end.toml", "line 2", recipe=write("end.toml", "batch = 8\n" + end))
        refused("end.toml", "line 2", cluster=write("end.toml", "[device]\n" + end))
    refuses(["meshwright", "plot", "deep.json"], "deep.json")
    refuses(["meshwright", "schedule", "1f1b", "--stages", 2, "--microbatches", 2, "--trace", "deep.json"], "256 deep")
    write("deep.json", '{"a": ' * deep)
    done = subprocess.run(["meshwright", "diff", "deep.json", "deep.json"], capture_output=True, text=True)
    check(done.returncode == 2 and "256 deep" in done.stderr, f"diff of deep JSON: {done}")
    # Sizes that only the memory of no machine has.
    llama = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 64}
    for changes, *words in (({"num_hidden_layers": 2147483647}, "num_hidden_layers", "from 1 to 16777216"),
                            ({"head_dim": 2147483646}, "head_dim", "65536"),
                            ({"hidden_size": 1 << 30, "num_attention_heads": 1}, "1073741824 elements", "65536"),
                            ({"vocab_size": 2147483647, "hidden_size": 1 << 30, "head_dim": 64}, "too large"),
                            ({"num_hidden_layers": 1048576, "max_position_embeddings": 2147483647}, "too large")):
        options = dict(seq=2147483647, batch=2147483647) if "max_position_embeddings" in changes else {}
        refused(*words, model=write("large.json", json.dumps({**llama, **changes})), **options)
    gpt2 = {**json.loads(config), "n_layer": 100000, "scale_attn_by_inverse_layer_idx": True}
    refused("need 100000 functions", model=write("large.json", json.dumps(gpt2)))
    refused("2147483646 microbatches has more than 1048576 forward tasks", mesh="pipe=2", batch=2147483646,
            microbatches=2147483646, seq=1, emit="schedule")
    refused("with 40000 microbatches has 80000 forward tasks", "use at most 32768 microbatches", mesh="pipe=2", batch=40000,
            microbatches=40000, seq=1, emit="schedule")
    refuses(["meshwright", "schedule", "gpipe", "--stages", 100000, "--microbatches", 100000], "more than 1048576")
    enough = "99999999999999999999GiB"
    for options in (dict(memory_limit=enough), dict(remat=f"auto:{enough}"), {"offload": "optimizer", "offload-buffer": enough},
                    {"assert": f"peak<={enough}"}):
        refused(enough, "less than 2^63 bytes", **options)
    refuses(["meshwright", "fit", golden.config, "--largest", "batch", "--memory-limit", enough], enough, "2^63")

    # Memory spaces.
    for words, value in (("optimizer cannot be kept on 'tape'", "optimizer=tape"), ("parameters cannot be kept on 'device'", "parameters=device"),
                         ("optimizer cannot be kept on ''", "optimizer="), ("names optimizer twice", "optimizer=ssd,optimizer"),
                         ("'ssd' cannot be kept on the host", "ssd=optimizer")):
        refused(words, offload=value)
    refused("which target cuda does not copy from", "--target cpu are possible", offload="optimizer=ssd", target="cuda")

    # Sizes and meshes.
    refused("batch 5", "2 devices along {data}", "is 6", batch=5, mesh="data=2")
    refused("batch 4", "2 microbatches", "is 8", batch=4, mesh="data=4", microbatches=2)
    refused("batch 6", "{replica, data}", "is 8", batch=6, mesh="replica=2,data=2")
    refused("--batch 8", "--microbatches 3", microbatches=3)
    refused("--batch -8", "positive", batch=-8)
    refused("--seq 65", "64 positions", "n_positions", "--seq 64 or less", seq=65)
    refused("--seq -1", "positive", seq=-1)
    refused("--microbatches 0", "at least 1", microbatches=0)
    refused(f"--microbatches {2**63 - 1}", "at most 2147483647", microbatches=2**63 - 1, batch=None, mesh="data=2")
    refused("--microbatches", "'two' is not a whole number", microbatches="two")
    for flag in ("batch", "seq", "microbatches", "zero"):
        for value in (2**63, -2**63 - 1, 2**64 + 8):
            refused(f"--{flag}", f"{value} does not fit into 64 bits", **{flag: value})
        for value in ("8.5", "1e3", "0x10", " 8"):
            refused(f"--{flag}", f"'{value}' is not a whole number", **{flag: value})
    # An empty value is no request for the default.
    for flag in ("output", "recipe", "target", "gpu-arch", "cpu", "mesh", "schedule", "cuts", "remat", "memory-limit",
                 "precision", "dropout", "emit", "dump-ir", "report", "assert", "mup-base", "load-pass-plugin", "insert-pass"):
        for value in ("", " "):
            refuses(["meshwright", "compile", golden.config, "--batch", 8, "--seq", 64, f"--{flag}", value], f"--{flag}")
    refused("'width'", "axes are pipe, replica, data", mesh="width=2")
    for mesh in ("data", "data=", "data=0", "data=-2", "data=two", "data=2x2"):
        refused("'data'", "write it as data=2", mesh=mesh)
    refused("'data'", "twice", mesh="data=2,data=2")
    refused("mesh axis", "unknown", mesh="data=2,,")
    refused("devices", "data=1048577", mesh="data=1048577")
    refused("devices", "4294967296", mesh="data=4294967296,replica=4294967296")
    refused("'data'", "18446744073709551618", "write it as data=2", mesh="data=18446744073709551618")
    refused("'expert' = 2", "finds no experts to divide; use data", mesh="expert=2")
    refused("mesh axis 'context' = 2 divides sequences", "add --context-parallel ring, gather, ulysses or hybrid", mesh="context=2",
            context_parallel="none")
    refused("context=RxU", "e.g. context=2x2", mesh="context=4", context_parallel="hybrid")
    refused("has parts, which --context-parallel hybrid is for", "write context=4", mesh="context=2x2", context_parallel="ulysses")
    refused("mesh axis 'context' has two parts, as 4x2", mesh="context=2x2x2")
    refused("--context-parallel", "add e.g. context=2", mesh="data=2", context_parallel="ulysses")
    refused("4 heads of attention", "the 3 devices", "a number that divides the heads", mesh="context=3", context_parallel="ulysses")
    refused("'rings' is not supported", "none, gather, ring, ulysses", mesh="context=2", context_parallel="rings")
    refused("target stablehlo", "all keys in one call; use gather or ulysses", mesh="context=2", context_parallel="ring", target="stablehlo")
    refused("'stripes' is not supported", "zigzag, striped, none", mesh="context=2", context_balance="stripes")
    for how in ("gather", "ring"):
        refused("--context-balance striped cannot deal out evenly the 6 tokens of each of 4 ranks", "use a --seq of which each rank has a multiple of 4",
                "zigzag", mesh="context=4", context_parallel=how, context_balance="striped", seq=24)
    refused("--context-balance striped", "target stablehlo does not support striped queries; use zigzag or none", mesh="context=2",
            context_parallel="gather", context_balance="striped", target="stablehlo")
    for how in ("gather", "ring", "ulysses"):
        refused("cannot divide sequences of one token", mesh="context=2", context_parallel=how, seq=1)
        refused("mesh axis 'context' = 4", "tokens, 3; use context=3 or fewer", mesh="context=4", context_parallel=how, seq=3)
    for flag in (dict(schedule="gpipe"), dict(schedule="zb-h1"), dict(cuts="1")):
        refused("there are no pipeline stages", "--mesh pipe=2", **flag)
    refused("'nonsense' is no schedule", "1f1b", schedule="nonsense")
    refused("2 layers, fewer than the 3 parts", "2 parts at most", mesh="pipe=3", emit="step")
    refused("--batch 8 cannot be divided into --microbatches 3", "6 or 9", mesh="pipe=2", microbatches=3)
    refused("has 3 policies", "one for each of the 2", mesh="pipe=2", microbatches=2, remat="none,none,none")
    refused("cuts '3': layer 3 cannot begin a stage", mesh="pipe=2", cuts="3", emit="step")
    refused("chunk 1 has none that can wait, as where it has the head alone", mesh="pipe=2", cuts="2", schedule="zb-h1", microbatches=4, emit="schedule")
    refused("cuts '2,2': 2 does not come after 2", mesh="pipe=3", cuts="2,2", emit="step")
    refused("zb-h2 on 2 stages needs 3 microbatches or more; there are 1", mesh="pipe=2", schedule="zb-h2", emit="schedule")
    refused("fewer than the 4 parts", mesh="pipe=2", schedule="interleaved:2", emit="schedule")

    # Strategies that do not fit the mesh or the model.
    refused("mesh axis 'tensor'", "2x2x2x2", mesh="tensor=2x2x2x2")
    refused("tensor of 4 devices", "--tensor-2d", "tensor=4", mesh="tensor=2x2")
    refused("--tensor-2d", "tensor=2x2", mesh="tensor=4", tensor_2d=True)
    refused("--sequence-parallel", "add e.g. tensor=2", mesh="data=2", sequence_parallel=True)
    refused("--zero 4", "0, 1, 2 and 3", zero=4)
    refused("--zero -1", "0, 1, 2 and 3", zero=-1, emit="train")
    refused("--zero 1", "tensor=RxCxD", mesh="tensor=2x1x2", tensor_2d=True, zero=1)
    for mesh in (None, "replica=2", "tensor=2"):
        refused("--zero 3", "the mesh does not have", "add e.g. data=2", mesh=mesh, zero=3)
    refused("batch 8", "3 devices along {data}", "the next batch that does is 9", mesh="data=3")
    refused("batch 8", "4 devices along {replica, data} times 4 microbatches", "is 16", mesh="replica=2,data=2", microbatches=4)
    seeds = 'mesh = "data=2,tensor=2"\n[seeds]\n"h.attn.*" = "[{tensor}, {?}]"\n'
    for line, *words in (
            ('"h.attn.q.weight" = "[{}, {tensor}]"', "contradicts seed", "both are for @h.attn.q.weight", "keep one"),
            ('"h.mlp.*.weight" = "[{rows}, {}]"', "rows"),
            ('"nothing.*" = "[{tensor}, {}]"', "matches no parameter", "h.attn.q.weight")):
        refused("seed", *words, recipe=write("seeds.toml", seeds.replace("h.attn.*", "h.attn.q.weight*") + line + "\n"))
    server = {"data_sync": "parameter-server"}
    refused("--data-sync parameter-server", "--zero 2", mesh="data=2", zero=2, **server)
    refused("--data-sync parameter-server", "tensor=RxCxD", mesh="tensor=2x1x2", tensor_2d=True, **server)
    refused("--data-sync parameter-server", "add e.g. data=2", mesh="tensor=2", **server)

    # Values of flags that are known, but not what this compiler does yet.
    for flag, values, words in (
            ("grad-dtype", ["bf16"], "it goes with --precision bf16 and fp8; with f32 leave it out"),
            ("gpu-arch", ["sm_80"], "--target cuda"),
            ("attention", ["auto", "cudnn"], "--target cuda"),
            ("epilogues", ["auto", "bias"], "--target cuda"),
            ("deterministic", ["on", "off"], "--target cuda"),
            ("emit", ["ptx"], "llvm and object work")):
        for value in values:
            refused(f"--{flag} {value}", words, **{flag: value})
    refused("--gpu-arch sm_90a", "sm_90", target="cuda", emit="object", gpu_arch="sm_90a")
    refused("sm_90 twice", "--gpu-arch", target="cuda", emit="object", gpu_arch="sm_90,sm_90")
    refused("--gpu-arch sm_75 is not supported", "sm_90", target="cuda", emit="ptx", gpu_arch="sm_75")
    refused("--gpu-arch sm_123", "sm_90", target="cuda", emit="ptx", gpu_arch="sm_123")
    refused("--gpu-arch sm_80,sm_90", "name one architecture", target="cuda", emit="ptx", gpu_arch="sm_80,sm_90")
    refused("--cpu znver4 changes nothing", "--target cpu", target="cuda", emit="ptx", cpu="znver4")
    refused("--grad-dtype bf16 is not supported", "with fp16 leave it out", precision="fp16", grad_dtype="bf16")
    # And values nobody knows.
    refused("--grad-reduce-dtype bf16", "--data-sync parameter-server", "use --data-sync all-reduce", mesh="data=2", data_sync="parameter-server", grad_reduce_dtype="bf16")
    refused("--grad-reduce-dtype bf16", "--offload parameters", "use --offload optimizer", mesh="data=2", offload="parameters", grad_reduce_dtype="bf16")
    refused("--grad-reduce-dtype fp8 is not supported by --target cuda", "--grad-reduce-dtype bf16 works", target="cuda", mesh="data=2", grad_reduce_dtype="fp8")
    refused("--grad-reduce-dtype bf16 is not supported by --target stablehlo", "leave it out", target="stablehlo", mesh="data=2", grad_reduce_dtype="bf16")
    adapted = {"lora": "r=2,alpha=4,targets=all-linear", "frozen_weights": "int8"}
    refused("--frozen-weights int8", "--precision fp8", "use --precision bf16", precision="fp8", **adapted)
    refused("--frozen-weights int8 is not supported by --target stablehlo", "use --target cpu", target="stablehlo", **adapted)
    refused("--frozen-weights", "'nf4' is not supported; the choices are precision, int8", **dict(adapted, frozen_weights="nf4"))
    refused("--frozen-weights int8 changes nothing", "give --lora", frozen_weights="int8")
    for other, value, remedy in (("zero", 2, "use --zero 1 or 0"), ("grad-reduce-dtype", "bf16", "leave one of both out"),
                                 ("data-sync", "parameter-server", "use --data-sync all-reduce"), ("offload", "parameters", "use --offload optimizer"),
                                 ("precision", "fp16", "use bf16"), ("precision", "fp8", "use bf16"), ("remat", "every:2", "use another policy"),
                                 ("target", "stablehlo", "leave it out")):
        refused("--grad-compression powersgd:1 does not go with", f"--{'offload parameters' if other == 'offload' else other}", remedy, **{"mesh": "data=2", "grad_compression": "powersgd:1", other.replace("-", "_"): value})
    refused("--grad-compression powersgd:1 does not go with mesh axis 'pipe'", "use data, replica and tensor", mesh="data=2,pipe=2", grad_compression="powersgd:1")
    refused("batch 4 does not divide by 8", mesh="data=2", batch=4, grad_compression="powersgd:1,blocks=8")
    refused("nothing would be compressed at rank 1000", "use a lower rank", mesh="data=2", grad_compression="powersgd:1000")
    refused("--grad-compression topk:0.01 does not go with --zero 2", "use --zero 1 or 0", mesh="data=2", grad_compression="topk:0.01", zero=2)
    refused("--grad-compression onebit does not go with --zero 1", "leave it out", mesh="data=2", grad_compression="onebit", zero=1)
    refused("--grad-compression onebit is not supported by --target cuda", "--grad-compression powersgd:4 works", target="cuda", mesh="data=2", grad_compression="onebit")
    refused("--grad-compression onebit does not go with --optimizer adamw-8bit", "use adamw", mesh="data=2", grad_compression="onebit", optimizer="adamw-8bit")
    for value, word in (("onebit:4", "'onebit:4' must be none"), ("onebit,blocks=x", "'x' of blocks"), ("powersgd", "must be a rank"), ("powersgd:0", "must be a rank"), ("powersgd:4,blocks=0", "'0' of blocks"), ("powersgd:4,rows=2", "or one of these with ,blocks=N"),
                        ("topk", "'' of topk must be the share"), ("topk:0", "above 0 and below 0.5"), ("topk:0.5", "write e.g. topk:0.01"), ("topk:nan", "'nan' of topk")):
        refused("--grad-compression", word, mesh="data=2", grad_compression=value)
    for flag in ("target", "precision", "grad-dtype", "grad-reduce-dtype", "data-sync", "collective-algorithm", "overlap", "emit", "optimizer"):
        refused(f"--{flag}", "nonsense", "meshwright compile --help", **{flag: "nonsense"})
    refused("--nonsense", **{"nonsense": 1})
    refused("nonsense", "processor", cpu="nonsense")
    for rate in ("1", "-0.1", "nan", "much"):
        refused("--dropout", rate, "[0, 1)", dropout=rate)

    # Budgets.
    refused("--assert 'peak<=1MiB' is broken", "bytes", **{"assert": "peak<=1MiB"})
    refused("--assert 'peak>1GiB' is broken", "bytes", **{"assert": "peak>1GiB"})
    for condition, works in (
            ("peak", "peak<=70GiB"), ("peak==1", "peak<=70GiB"), ("peak<=", "a number of bytes a rank"),
            ("peak<=1XB", "kB, MB, GB, KiB, MiB, GiB"), ("speed<2", "flops, recomputed_flops and collectives"), ("speed<=1", "quantities are peak, device, host, ssd, parameter, optimizer, gradient"),
            ("parameter+speed<=1", "'speed' is no quantity"), ("flops<=1GB", "GFLOP, TFLOP"), ("collectives<1GB", "calls a step"),
            ("peak+flops<1", "cannot be added"), ("communication[pipe]<1", "'pipe' is not in the mesh data=2,tensor=2"),
            ("communication[data<1", "is no quantity")):
        refused(f"--assert '{condition}' is not understood", works, mesh="data=2,tensor=2", **{"assert": condition})
    for condition, unit in (("parameter+optimizer<1kB", "bytes a rank"), ("flops<0.0001GFLOP", "floating-point operations a step"),
                            ("collectives<3", "calls a step"), ("communication[data]<1kB", "bytes a rank"), ("communication[tensor,data]<1B", "bytes a rank"),
                            ("communication<1kB", "bytes a rank")):
        refused(f"--assert '{condition}' is broken", unit, mesh="data=2,tensor=2", **{"assert": condition})
    refused("--assert needs the plan", "--emit exec", emit="dist", **{"assert": "peak<1GiB"})
    refused("--report needs the plan", "--emit exec", emit="step", report="report")
    compile(golden.config, "fits", batch=8, seq=64, **{"assert": "peak<=64MiB"})

    # Recipes.
    def recipe(text, *words):
        refused("recipe 'bad.toml'", *words, recipe=write("bad.toml", text))
    recipe("mesh = \n", "line 1")
    recipe("batch = 8\nmesh = \"data=2\n", "line 2")
    recipe("meshes = \"data=2\"\n", "unknown key 'meshes'", "--help")
    recipe("recipe = \"other.toml\"\n", "unknown key 'recipe'")
    recipe("batch = \"eight\"\n", "'batch' must be an integer")
    recipe("batch = 9223372036854775808\n", "line 1")
    recipe("dropout = \"\"\n", "dropout", "empty")
    recipe("batch = 8.5\n", "'batch' must be an integer")
    recipe("tensor-2d = 1\n", "'tensor-2d' must be true or false")
    recipe("mesh = [2]\n", "'mesh' must be a string")
    recipe("model = 3\n", "'model' must be a string")
    recipe("assert = [1]\n", "'assert' must be a list of strings")
    recipe("optimizer = \"adamx\"\n", "'optimizer' is 'adamx'", "adamw, adam, lion, sgd, sgd-momentum, sgd-nesterov, muon, normuon, adafactor, adafactor-scaled, schedule-free-adamw, adamw-8bit")
    refused("recipe 'nothing.toml'", "No such file", recipe="nothing.toml")

    # A state goes wherever its parameter goes.
    compile(golden.config, "state.mlir", batch=8, seq=64, emit="step")
    step = ir("state.mlir")
    uses = "\\n    %state = train.get @state : tensor<7xf32>\\n    train.set @state, %state : tensor<7xf32>"
    step = re.sub(r"(func.func @step\(.*\{)$", r"\1" + uses, step, flags=re.M)
    for owner, words in (("wte.weight", "another shape than its parameter"), ("wte.weight.momentum", "no parameter")):
        state = f'  train.variable @state : tensor<7xf32> init #train.init<"constant", 0.0 : f64> state "momentum" of @{owner}\n'
        refused("@state", f"@{owner}", words, batch=None, seq=None,
                model=write("state.mlir", step.replace("  train.variable", state + "  train.variable", 1)))

    # A model in IR has its sizes already.
    compile(golden.config, "d.mlir", batch=8, seq=64, mesh="data=2", emit="dist")
    for flag, value, found in (("batch", 4, 8), ("seq", 32, 64), ("microbatches", 2, 1), ("optimizer", "sgd", "adamw"),
                               ("mesh", "data=4", "data=2")):
        refused(f"--{flag} {value} cannot change 'd.mlir'", f"written for {flag} {found}", model="d.mlir",
                **{"batch": None, "seq": None, flag: value})
    refused("--data-sync cannot change 'd.mlir'", model="d.mlir", batch=None, seq=None, mesh="data=2", **server)
    # Its mesh too: a tensor axis of parts is the one that has them, or is not said to have any.
    compile(golden.config, "square.mlir", batch=8, seq=64, mesh="tensor=2x2", tensor_2d=True, emit="dist")
    for mesh in ("tensor=2x2", "tensor=4"):
        compile("square.mlir", "again.mlir", mesh=mesh, emit="dist")
    for mesh in ("tensor=4x1", "tensor=2", "tensor=2x2x1"):
        refused(f"--mesh {mesh} cannot change 'square.mlir'", "written for mesh tensor=2x2", model="square.mlir", batch=None,
                seq=None, mesh=mesh)
    refused("--dropout cannot change 'd.mlir'", model="d.mlir", dropout=0.5)
    compile(golden.config, "planned.mlir", batch=8, seq=64, mesh="data=2", emit="exec")
    refused("--overlap cannot change 'planned.mlir'", "assigned already", model="planned.mlir", overlap="on")
    refused("'d.mlir' is already at phase dist, past --emit step", model="d.mlir", emit="step")
    write("s.mlir", pathlib.Path("d.mlir").read_text().replace('phase = "dist"', 'phase = "done"'))
    refused("'done'", "train, step, dist", model="s.mlir")

    # Where to write.
    for emit in ("exe", "exec", "object", "llvm"):
        refuses(["meshwright", "compile", golden.config, "--emit", emit, "-o", "no/out"], "'no/out'", "No such file")
        os.makedirs("directory", exist_ok=True)
        refuses(["meshwright", "compile", golden.config, "--emit", emit, "-o", "directory"], "'directory'",
                "Is a directory", output="directory.")
    refused("'cut.json/ir'", "Not a directory", dump_ir="cut.json/ir")
    refused("'cut.json/report'", "Not a directory", report="cut.json/report")

    # What was probably meant.
    for flag, meant in (("bacth", "--batch"), ("batch_size", "--batch"), ("dp", "--mesh data=2"), ("tp", "--mesh tensor=2"),
                        ("pipeline-parallel-size", "--mesh pipe=2"), ("cp", "--mesh context=2"), ("ep", "--mesh expert=2"),
                        ("fsdp", "--mesh data=2 --zero 3")):
        refuses(["meshwright", "compile", golden.config, f"--{flag}", 2], f"there is no flag --{flag}", f"did you mean {meant}?")
    refused("'bacth'", "did you mean batch?", recipe=write("misspelt.toml", "bacth = 8\n"))
    refused("'tp'", 'did you mean mesh = "tensor=2"?', recipe=write("misspelt.toml", "tp = 2\n"))
    refused("--precision", "'fp4' is not supported; did you mean fp8? The choices are f32, bf16, fp16, fp8", precision="fp4")
    refused("--fp8-recipe", "'rowwise' is not supported; the choices are tensor, block, delayed, mxfp8", precision="fp8", fp8_recipe="rowwise")
    refused("in a sequence, have to be multiples of 128", "use --fp8-recipe mxfp8", precision="fp8", fp8_recipe="block")
    for target in ("cuda", "stablehlo"):
        refused(f"--optimizer adamw-8bit is not supported by --target {target}", "--target cpu has, and --optimizer adamw works", optimizer="adamw-8bit", target=target)
        refused(f"--precision fp8 is not supported by --target {target}", "--target cpu has, and --precision bf16 works", precision="fp8", target=target)
    refused("--precision", "did you mean f32?", precision="fp32")
    refuses(["meshwright", "compile", golden.config, "--batch"], "--batch needs a value, B")
    refuses(["meshwright", "compile", golden.config, "--batch", 2, "--batch", 4], "--batch is given twice")
    refuses(["meshwright", "compile", golden.config, "out"], "'out' is one argument too many")
    refuses(["meshwright", "inspekt", "one"], "did you mean 'inspect'?")
    refuses(["meshwright", "compile", golden.config, "--emit", "object"], "--emit object", "-o FILE")

    # Executables that are none.
    def no_executable(file, *words):
        refuses(["meshwright", "inspect", file], file, *words)
    no_executable("nothing", "No such file")
    no_executable("cut.json", "no whole plan")
    no_executable(write("empty", ""))
    no_executable("/bin/true", "carries no plan", "meshwright compile")
    whole = pathlib.Path("fits").read_bytes()
    no_executable(write("half", whole[:len(whole) // 2]))
    no_executable(write("head", whole[:4000]))
    at = whole.index(b'"arena_bytes"')
    no_executable(write("spoilt", whole[:at] + b"\0" * 40 + whole[at + 40:]), "damaged")
    # A plan of which one digit is another, or only a blank: the hash says so, to the executable, too.
    number = b'"max_positions": '
    at = whole.index(number) + len(number)
    changed = whole[:at] + (b"7" if whole[at:at + 1] != b"7" else b"8") + whole[at + 1:]
    for name, content, said in (("changed", changed, "has the hash"),
                                ("blank", whole.replace(b'"max_positions": ', b'"max_positions" :', 1), "is not as it was written")):
        no_executable(write(name, content), said, "compile the model again")
        done = subprocess.run(["meshwright", "diff", "fits", name], capture_output=True, text=True)
        check(done.returncode == 2 and name in done.stderr and said in done.stderr, f"diff with '{name}':\n{done}")
        os.chmod(name, 0o755)
        refuses([f"./{name}", *flags(dict(golden.data, steps=1))], "plan has the hash", "compile the executable again")
    text = call(["meshwright", "inspect", "fits", "--json"])
    call(["meshwright", "inspect", write("whole.json", text)])
    no_executable(write("changed.json", text.replace('"max_positions": ', '"max_positions": 1')), "no whole plan", "has the hash")

    # An initial value that is not finite, at each floor.
    for floor in ("train", "dist", "local", "schedule", "exec"):
        compile(golden.config, "floor.mlir", emit=floor, **golden.size)
        module = ir("floor.mlir")
        check('init <"constant", 1.000000e+00' in module, f"no initial value of 1 at the floor {floor}")
        write("infinite.mlir", module.replace('init <"constant", 1.000000e+00', 'init <"constant", 1.0e+4096', 1))
        refuses(["meshwright", "compile", "infinite.mlir", "-o", "out"], "begins with the value INF, which is not finite in 'f32'")
    refuses(["meshwright", "inspect"], "no executable given", "usage")
    refuses(["meshwright", "plot", "x.jsonl", "-o", ""], "-o needs a file", "usage")


def safetensors(path):
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8:8 + size]), data[8 + size:]


def bad_run(golden):
    size = dict(golden.size)
    config = json.loads(golden.config.read_text())
    compile(golden.config, "one", **size)
    compile(golden.config, "two", mesh="data=2", **size)
    good = dict(golden.data, steps=1)

    def refused(*words, exe="./one", ranks=1, mpi=False, **options):
        launcher = ["meshwright", "run", *(["--mpi"] if mpi else []), "-n", ranks]
        refuses([*launcher, exe, *flags({**good, **options})], *words, output="out")

    # The number of ranks.
    refused("compiled for 1 rank", "started with 2", ranks=2)
    refused("compiled for 2 ranks (mesh data=2)", "started with 1", "--ranks 2", exe="./two")
    refused("compiled for 2 ranks (mesh data=2)", "started with 3", "--ranks 2", exe="./two", ranks=3)
    refused("compiled for 2 ranks (mesh data=2)", "started with 3", "mpirun -n 2", exe="./two", ranks=3, mpi=True)
    # No processor has AMD's four-operand instructions any more.
    compile(golden.config, "another", cpu="bdver4", **size)
    refused("compiled for a CPU with fma4, xop, which this machine's CPU lacks", "--cpu x86-64-v3", exe="./another")
    refuses(["meshwright", "run", "-n", "0", "./one"], "'-n'", "'0'")
    refuses(["meshwright", "run", "./one"], "'-n'")
    refuses(["meshwright", "run", "-n", "1"], "no executable")
    refuses(["meshwright", "run", "-n", "1", "./nothing"], "'./nothing'", "No such file")
    refuses(["meshwright", "run", "-n", "1", golden.config, "--data", "x"], "Permission denied")

    # Tokens.
    refused("nothing.bin", "No such file", data="nothing.bin")
    refused("empty.bin", data=write("empty.bin", b""))
    refused("short.bin", "65", data=write("short.bin", b"x" * 64))
    text = pathlib.Path(golden.data["data"]).read_bytes()
    wide = struct.pack(f"<{len(text)}H", *text)
    at = 300
    outside = wide[:2 * at] + struct.pack("<H", 256) + wide[2 * at + 2:]
    for exe, ranks, mpi in (("./one", 1, False), ("./two", 2, False), ("./two", 2, True)):
        refused("wild.bin", "256", f"{at}", exe=exe, ranks=ranks, mpi=mpi, tokens="u16",
                data=write("wild.bin", outside))
    refused("odd.bin", "u16", tokens="u16", data=write("odd.bin", wide[:-1]))
    refused("--tokens", "u8|u16|u32", tokens="u64")
    header = struct.pack("<3i", 20240520, 1, len(text)) + b"\0" * (1024 - 12)
    refused("cut.bin", f"{len(text)}", tokens="u16", data=write("cut.bin", header + wide[:1000]))
    # Before the first step, wherever they are.
    refused("last.bin", "256", f"token {len(text) - 1} ", tokens="u16", data=write("last.bin", wide[:-2] + struct.pack("<H", 256)))
    # Files of other kinds.
    refused("array.npy", "is a .npy file", "tofile", data=write("array.npy", b"\x93NUMPY\1\0v\0" + b" " * 118 + text))
    refused("wide.bin", "2 bytes", "--tokens u16", data=write("wide.bin", wide))
    refused("wider.bin", "4 bytes", "--tokens u32", tokens="u16", data=write("wider.bin", struct.pack(f"<{len(text)}I", *text)))
    even = text[:len(text) // 4 * 4]
    for tokens in ("u16", "u32"):
        refused("is text, not", "tokenizer", "--tokens u8", tokens=tokens, data=write("text.bin", even))
    refused("7 sequences", "a batch has 8", "--batch", data=write("few.bin", text[:64 * 7 + 1]))

    # Which tokens count.
    ones = b"\1" * len(text)
    for file, flag in (("data", "loss-mask"), ("eval-data", "eval-loss-mask")):
        given = {file: golden.data["data"]}
        refused(f"--{flag} long.bin: has {len(text) + 1} bytes", f"has {len(text)} tokens", **given, **{flag: write("long.bin", ones + b"\1")})
        for exe, ranks in (("./one", 1), ("./two", 2)):
            refused(f"--{flag} wrong.bin: byte {at} is 49", "1 where it counts", exe=exe, ranks=ranks, **given,
                    **{flag: write("wrong.bin", ones[:at] + b"1" + ones[at + 1:])})
    # None of an epoch; the token before the first sequence's targets is no target itself.
    for exe, ranks in (("./one", 1), ("./two", 2)):
        zeros = write("zeros.bin", b"\1" + bytes(len(text) - 1))
        refused("--loss-mask zeros.bin: no target of the ", "counts, so each loss would be 0", "its byte is 1", exe=exe, ranks=ranks,
                loss_mask=zeros)
        refused("--eval-loss-mask zeros.bin: no target of the ", "counts, so each loss", exe=exe, ranks=ranks,
                eval_data=golden.data["data"], eval_loss_mask=zeros)
    refused("--eval-loss-mask needs --eval-data", eval_loss_mask="long.bin")
    compile(ROOT / "examples" / "parallel-block.mlir", "block")
    encoder = Golden(INPUTS / "golden-more" / "bert")
    compile(encoder.config, "encoder", **encoder.size)
    for exe, words in (("./block", "averages over all targets: compile it from its config.json"), ("./encoder", "compiled with --mlm")):
        refused("--loss-mask", words, exe=exe, loss_mask=write("ones.bin", ones))

    # Where documents begin.
    compile(golden.config, "packed-one", packed=True, **golden.size)
    compile(golden.config, "packed-two", packed=True, **dict(golden.size, mesh="data=2"))
    known = len(text)

    def index(path, *starts):
        return write(path, struct.pack(f"<{len(starts)}Q", *starts))

    bad = ((index("unsorted.bin", 0, 700, 600, 800), "unsorted.bin: start 2 (at byte 16) is 600 after 700", "each above the one before"),
           (index("twice.bin", 5, 5), "twice.bin: start 1 (at byte 8) is 5 after 5", "each above the one before"),
           (index("far.bin", 0, known), f"far.bin: start 1 (at byte 8) is {known}, but", f"has {known} tokens"),
           (write("odd.bin", b"12345"), "odd.bin: has 5 bytes", "numpy.asarray"),
           (write("no-starts.bin", b""), "no-starts.bin: is empty", "a single 0 for one document"),
           (index("each.bin", *range(known)), "each.bin: no target of the ", "some must have two"),
           ("no.bin", "no.bin", "No such file"),
           (9999, "9999: is no token of the model", "give the token that ends documents"))
    for value, words, more in bad:
        for exe, ranks in (("./packed-one", 1), ("./packed-two", 2)):
            refused(f"--documents {words}", more, exe=exe, ranks=ranks, documents=value)
            refused(f"--eval-documents {words}", more, exe=exe, ranks=ranks, documents=0, eval_data=golden.data["data"], eval_documents=value)
    refused("--documents is needed by this executable, compiled with --packed", "or compile without --packed", exe="./packed-one")
    refused("--eval-documents is needed", "or compile without", exe="./packed-one", documents=0, eval_data=golden.data["data"])
    refused("--eval-documents needs --eval-data", exe="./packed-one", documents=0, eval_documents=0)
    refused("--documents is for executables compiled with --packed", "crosses document boundaries", documents=0)
    refused("--eval-documents is for executables compiled with --packed", "leave it out", eval_data=golden.data["data"], eval_documents=0)

    # What is read or written already.
    data = golden.data["data"]
    before = pathlib.Path(data).read_bytes()
    read_only = ["tokenizer", "data", "loss-mask", "documents", "source", "source-documents", "init", "adapter", "resume", "eval-data", "eval-loss-mask",
                 "eval-documents", "eval-source", "eval-source-documents", "reference-log-probs", "eval-reference-log-probs",
                 "expert-loads",
                 "log-probs",  # Of --eval-only alone: EndToEnd/golden/dpo.py has it.
                 "ssd"]  # Of executables that keep something there: ssd.py has it.
    for flag in file_flags(call(["./one", "--help"])):
        if flag not in read_only:
            more = {"save": "saved"} if flag == "buddy" else {}
            refused(f"--{flag} {data} would overwrite --data {data}", **{flag: data}, **more)
            if flag != "metrics":
                refused("write to the same file", metrics="m.jsonl", **{flag: "./m.jsonl"}, **more)
    refused("would overwrite the executable", metrics="one")
    check(pathlib.Path(data).read_bytes() == before, "the data was overwritten")

    # Weights.
    tensors, data = safetensors(golden.weights)

    def weights(name, change):
        changed = json.loads(json.dumps(tensors))
        change(changed)
        head = json.dumps(changed).encode()
        head += b" " * (-len(head) % 8)
        return write(name, struct.pack("<Q", len(head)) + head + data)

    bias = next(name for name in tensors if "ln_2.bias" in name or "post_attention_layernorm.weight" in name)
    for exe, ranks, mpi in (("./one", 1, False), ("./two", 2, True)):
        launch = dict(exe=exe, ranks=ranks, mpi=mpi)
        refused("missing.safetensors", bias.removeprefix("transformer."), **launch,
                init=weights("missing.safetensors", lambda t: t.update(spare=t.pop(bias))))
        refused("shape.safetensors", bias.removeprefix("transformer."), "[8, 8]", "[64]", **launch,
                init=weights("shape.safetensors", lambda t: t[bias].update(shape=[8, 8])))
    refused("beyond.safetensors", init=weights(
        "beyond.safetensors", lambda t: t[bias].update(data_offsets=[len(data), len(data) + 256])))
    refused("type.safetensors", "I8", init=weights("type.safetensors", lambda t: t[bias].update(dtype="I8")))
    whole = golden.weights.read_bytes()
    refused("half.safetensors", init=write("half.safetensors", whole[:len(whole) // 2]))
    refused("head.safetensors", init=write("head.safetensors", whole[:100]))
    refused("none.safetensors", init=write("none.safetensors", b""))
    refused("huge.safetensors", init=write("huge.safetensors", b"\xff" * 8 + whole[8:]))
    refused("nothing.safetensors", "No such file", init="nothing.safetensors")
    refused("config.json", init=golden.config)

    # Where to write, and what to go on from.
    refused("no/metrics", "No such file", metrics="no/metrics")
    refused("one/save", "Not a directory", save="one/save")
    refused("nowhere", resume="nowhere")
    refused("one/trace", "Not a directory", trace="one/trace")

    # A checkpoint of what another executable trains, the same shapes among them.
    call(["./one", *flags(dict(good, save="kept"))])
    compile(golden.config, "sgd", optimizer="sgd", **size)
    refused("kept/step-00000001", "--optimizer adamw", "compiled for sgd", "--init", exe="./sgd", resume="kept")
    compile(golden.config, "short", **dict(size, seq=32))
    refused("kept/step-00000001", "--seq 64", "compiled for 32", "--init", exe="./short", resume="kept")
    key = "layer_norm_epsilon" if "layer_norm_epsilon" in config else "rms_norm_eps"
    write("changed.json", json.dumps({**config, key: 0.125}))
    compile("changed.json", "changed", **size)
    refused(f"{key} = {config[key]}", f"compiled for {key} = 0.125", "compile kept/step-00000001/config.json",
            exe="./changed", resume="kept")
    # One that is damaged, on a mesh that takes parts of it; and no memory for what products need.
    for file in ("model.safetensors", "optimizer.safetensors"):
        path = pathlib.Path("kept/latest") / file
        whole = path.read_bytes()
        path.write_bytes(whole[:-4000] + bytes([whole[-4000] ^ 1]) + whole[-3999:])
        for exe, ranks, mpi in (("./one", 1, False), ("./two", 2, False), ("./two", 2, True)):
            refused(file, "checksum", "damaged", exe=exe, ranks=ranks, mpi=mpi, resume="kept", steps=2)
        path.write_bytes(whole)
    limited = ["bash", "-c", 'ulimit -v 300000; OMP_NUM_THREADS=2 exec "$@"', "bash", "./two", "--ranks", 2, *flags(good)]
    refuses(limited, "matrix products need", "ulimit -v")
    # Other batches and microbatches go on.
    compile(golden.config, "larger", **dict(size, batch=16, microbatches=2))
    check("training continues after 8 sequences" in call(["./larger", *flags(dict(good, resume="kept", steps=2))]), "no note")
    refused("--lr", "fast", lr="fast")
    refused("--lr", "-1", lr=-1)
    refused("--nonsense", nonsense=1)
    refused("--save-every", "--save", save_every=2)


def full_disk(golden):
    """A limit on the size of files stands for a full disk; a small file system, where one can be mounted, is one."""
    size = dict(golden.size)
    command = ["meshwright", "compile", golden.config, *flags(size), "-o", "out"]
    for emit, blocks, words in (("exe", 4096, "linking 'out'"), ("exe", 64, ".o': File too large"),
                                ("object", 16, "'out': File too large"), ("exec", 8, "'out': File too large")):
        limited = ["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "bash", *command, "--emit", emit]
        refuses(limited, words)
    for flag in ("dump-ir", "report"):
        limited = ["bash", "-c", 'ulimit -f 8; exec "$@"', "bash", *command[:-2], "--emit", "exec", "-o", "/dev/null"]
        refuses([*limited, f"--{flag}", "files"], "cannot write 'files/", "File too large")
    compile(golden.config, "exe", **size)
    limited = ["bash", "-c", 'ulimit -f 100; exec "$@"', "bash", "./exe", *flags(dict(golden.data, steps=1, save="dir"))]
    refuses(limited, "dir", "File too large")
    check(not any(pathlib.Path("dir").glob("*")), f"left behind: {os.listdir('dir')}")

    pathlib.Path("small").mkdir()
    mounted = subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0
    if mounted:
        inside = 'mount -t tmpfs -o size=$1 tmpfs small && cd small && shift && "$@"; code=$?; ls; exit $code'
        absolute = [str(word) for word in command]
        done = subprocess.run(["unshare", "-m", "bash", "-c", inside, "bash", "1m", *absolute], capture_output=True,
                              text=True, timeout=60)
        check(done.returncode == 1 and "No space left" in done.stderr and "out" not in done.stdout,
              f"full disk while linking: {done.returncode}\n{done.stdout}{done.stderr}")
        run = [os.path.abspath("exe"), *map(str, flags(dict(golden.data, steps=1, save="out")))]
        done = subprocess.run(["unshare", "-m", "bash", "-c", inside, "bash", "1m", *run], capture_output=True,
                              text=True, timeout=60)
        check(done.returncode == 1 and "bytes, but the file system of out has" in done.stderr and "step 0" not in done.stdout,
              f"no room for a checkpoint: {done.stderr}")
        check("latest" not in done.stdout, "a checkpoint was left that looks whole")


def readers(name, model):
    """Commands that read the file `name`, by what they read it as. `model` is a module's file that is right."""
    os.makedirs(f"dump-{name}", exist_ok=True)
    index = json.dumps({"rank": 0, "ranks": 1, "step": 0, "values": [], "before": [], "after": []})
    places = {"rank-0.json": index, "rank-0.bin": "", "program.mlir": ""}
    replays = {}
    for place in places:
        folder = fresh_folder(f"dump-{name}/{place}")
        for file, text in places.items():
            os.symlink(os.path.abspath(name), f"{folder}/{file}") if file == place else write(f"{folder}/{file}", text)
        replays[f"replay {place}"] = ["meshwright", "replay", folder]
    os.symlink(os.path.abspath(name), f"{name}.mlir")
    os.symlink(os.path.abspath(name), f"{fresh_folder(name + '-folder')}/config.json")
    size = ["--batch", "1", "--seq", "8", "-o", "made"]
    return {"config": ["meshwright", "compile", name, *size], "folder": ["meshwright", "compile", f"{name}-folder", *size],
            "IR": ["meshwright", "compile", f"{name}.mlir", "-o", "made"], "recipe": ["meshwright", "compile", model, "--recipe", name, "-o", "made"],
            "fit": ["meshwright", "fit", name, "--largest", "batch", "--seq", "8", "--memory-limit", "1GiB"],
            "inspect": ["meshwright", "inspect", name], "diff": ["meshwright", "diff", "exe", name],
            "diff first": ["meshwright", "diff", name, "exe"], "plot": ["meshwright", "plot", name],
            "experts": ["meshwright", "plot", "--experts", name],
            "base": ["meshwright", "compile", str(INPUTS / "golden/gpt2-tiny/config.json"), "--mup-base", name, *size],
            "trace": ["meshwright", "schedule", "1f1b", "--stages", "2", "--microbatches", "2", "--trace", name],
            "measured": ["meshwright", "inspect", "exe", "--kernels", "--trace", name], **replays,
            "topology": ["meshwright", "topology", name, "--device", "h100-sxm", "-o", "made.toml"], "opt": ["meshwright-opt", name], "interpret": ["meshwright-interpret", name],
            "compare": ["meshwright-interpret", "--compare", model, name]}


def fresh_folder(name):
    os.makedirs(name)
    return name


def bad_files(golden):
    """What is no regular file is refused by all tools, as a reader of a pipe waits for ever and one of /dev/zero has no end; and
    what is far too large for what it is read as."""
    compile(golden.config, "exe", batch=1, seq=8)
    compile(golden.config, "model.mlir", batch=1, seq=8, emit="train")
    os.mkfifo("pipe")
    os.symlink("/dev/zero", "zero")
    write("huge", "")
    os.truncate("huge", 1 << 36)
    for name, words in (("pipe", "it is a pipe or a device; name a regular file"), ("zero", "it is a pipe or a device"),
                        ("huge", f"it has {1 << 36} bytes, but ")):
        for what, command in readers(name, "model.mlir").items():
            if name == "huge" and what.endswith(".bin"):  # Dumps are as large as they are, and are mapped.
                continue
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=30)
            except subprocess.TimeoutExpired:
                check(False, f"{what} of a {name}: no end in 30 s")
            check(done.returncode in (1, 2) and words in done.stderr and name in done.stderr,
                  f"{what} of a {name}: {done.returncode}, {done.stdout[:1000]}{done.stderr[:1000]}")
    # Which of two formats a topology has, its first bytes say.
    for name, begin in (("huge.xml", "<system>"), ("huge.txt", "\tGPU0\tGPU1\n")):
        write(name, begin)
        os.truncate(name, 1 << 36)
        refuses(readers(name, "model.mlir")["topology"], name, f"it has {1 << 36} bytes, but ", output="made.toml")
    with open("model.mlir") as model:
        check("train.variable" in subprocess.run(["meshwright-opt"], stdin=model, capture_output=True, text=True, timeout=60).stdout,
              "meshwright-opt does not read its standard input")
    with open("model.mlir") as model:
        done = subprocess.run(["meshwright-interpret", "-"], stdin=model, capture_output=True, text=True, timeout=60)
        check(done.returncode == 0, f"meshwright-interpret does not read its standard input: {done.stderr}")


def long_values(golden):
    """Of a long value 80 bytes are quoted, wherever it was given."""
    compile(golden.config, "exe", batch=1, seq=8)
    config = json.loads(golden.config.read_text())
    size = ["--batch", 1, "--seq", 8]
    large, argument = 15_000_000, 100_000  # Linux takes arguments of up to 128 KiB.
    long = "ä" + "x" * large
    cases = [(long, ["meshwright", "compile", write(f"{i}.json", json.dumps({**config, **change}, ensure_ascii=False)), *size])
             for i, change in enumerate(({"model_type": long}, {"activation_function": long}, {long: 1}))]
    long = "ä" + "x" * 3_000_000  # Recipes may have 4 MiB.
    cases += [(long, ["meshwright", "compile", golden.config, "--recipe", write(f"{i}.toml", text)])
              for i, text in enumerate((f"precision = '{long}'", f"mesh = '{long}'", f"{long[1:]} = 1"))]
    long = "ä" + "x" * argument
    compiling, training = ["meshwright", "compile", golden.config, *size], ["./exe", *flags(dict(golden.data, steps=1))]
    cases += [(long, [*compiling, f"--{flag}", long]) for flag in ("mesh", "zero", "precision", "remat", "schedule", "cuts", "cpu")]
    cases += [(long, [*training, f"--{flag}", long]) for flag in ("lr", "seed")]
    cases += [(long, ["meshwright", long]), (long, ["meshwright", "schedule", long, "--stages", 2, "--microbatches", 2])]
    for value, command in cases:
        command = [str(word) for word in command]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        shown = [word[:40] for word in command if len(word) < 1000]
        runs = [len(run) for run in re.findall("x{20,}", done.stderr)]
        check(done.returncode == 1 and len(done.stderr) < 6000, f"{shown}: {done.returncode}, {len(done.stderr)} characters of a message")
        check(runs and max(runs) <= 80, f"{shown}: quotes {runs} characters: {done.stderr[:400]}")


tests = {"compile": bad_compile, "run": bad_run, "disk": full_disk, "files": bad_files, "values": long_values}
model = Golden(sys.argv[2])
fresh(sys.argv[3])
tests[sys.argv[1]](model)
check(failures == 0, f"{failures} of the above")
