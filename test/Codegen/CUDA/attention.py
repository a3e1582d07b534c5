#!/usr/bin/env python3
"""Attention by cuDNN, and without it, on libraries that only look on: attention.py FOLDER GOLDEN

What each says as it starts, and what is launched then. The fake cuDNN (FakeCudnn.cpp) sees
the graphs of the real frontend and ends the process where an address of theirs is wrong."""
import argparse
import json
import os
import pathlib
import subprocess

import executables


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("golden", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    data = options.folder / "tokens.bin"
    data.write_bytes(bytes(range(64)) * 1024)
    built = pathlib.Path(os.environ["MESHWRIGHT_BUILD"]) / "runtime" / "test"
    # A library without cuDNN's functions, as the machine may have cuDNN.
    broken = options.folder / "broken"
    broken.mkdir(exist_ok=True)
    (broken / "libcudnn.so.9").unlink(missing_ok=True)
    (broken / "libcudnn.so.9").symlink_to(built / "fake_gpu" / "libcuda.so.1")

    def compile(*flags, precision="bf16"):
        path = options.folder / "model"
        subprocess.run(["meshwright", "compile", str(options.golden / "llama-tiny" / "config.json"), "--target", "cuda",
                        "--precision", precision, *flags, "-o", str(path)], check=True, stdout=subprocess.DEVNULL)
        return path

    def run(path, *more, cudnn=built / "fake_cudnn", **environment):
        log = options.folder / "log"
        done = subprocess.run([path, "--data", data, "--tokens", "u8", "--steps", "3", "--lr", "1e-3", *more],
                              capture_output=True, text=True, timeout=300,
                              env={**os.environ, "LD_LIBRARY_PATH": f"{built / 'fake_gpu'}:{cudnn}",
                                   "FAKE_GPU_LOG": str(log), **environment})
        launches = {}
        for line in log.read_text().splitlines() if done.returncode == 0 else []:
            kind, *name, count = line.split(" ")
            if kind == "launch":
                launches[" ".join(name)] = int(count)
        return done, launches

    def generated(launches):
        return {name for name in launches if name.startswith("attention")}

    def plan(path):
        done = subprocess.run(["meshwright", "inspect", "--json", str(path)], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    def rows(path):
        return plan(path)["attentions"]

    # Each call is also made once before the first step.
    path = compile()
    layers = json.loads((options.golden / "llama-tiny" / "config.json").read_text())["num_hidden_layers"]
    # Heads of 8 elements are not for tensor cores.
    assert [(row["op"], row["by"], row["fallback"], row["tensor_cores"]) for row in rows(path)] == \
        [("attention", "cudnn", True, False), ("attention_grad", "cudnn", True, False)], rows(path)
    done, launches = run(path)
    assert done.returncode == 0 and "generated" not in done.stderr, done
    assert "attention by cuDNN 9.19.0 (" in done.stdout, done.stdout
    assert launches["cudnn attention"] == launches["cudnn attention_grad"] == 1 + 3 * layers, launches
    assert not generated(launches), launches
    print("auto: cuDNN", flush=True)

    # The second plan is the fastest, and the third wants more memory than there is.
    tuned = options.folder / "tuned.json"
    tuned.unlink(missing_ok=True)
    done, _ = run(path, "--tune", tuned)
    assert done.returncode == 0 and "tuned 2 calls of attention: for 2 another" in done.stdout, done
    stored = json.loads(tuned.read_text())
    calls = stored["attentions"]
    assert stored["cudnn"] == "9.19.0" and {name.split(" ")[0] for name in calls} == {"attention", "attention_grad"}, stored
    assert all((call["plan"], call["candidate"], call["of"]) == ("eng1", 1, 3) for call in calls.values()), calls
    # With a file of choices calls are made once more before the first step.
    done, launches = run(path, "--tune", tuned)
    assert done.returncode == 0 and "tuned" not in done.stdout + done.stderr and "(eng1)" in done.stdout, done
    assert launches["cudnn attention"] == launches["cudnn attention_grad"] == 2 + 3 * layers, launches
    for words, text, environment in [
            ('its cudnn is "9.19.0", not "9.19.1"; tuning again', json.dumps(stored), {"FAKE_CUDNN_VERSION": "91901"}),
            ("it has no attention ", json.dumps({**stored, "attentions": {}}), {}),
            ("cuDNN has no plan eng9 for attention ", tuned.read_text().replace("eng1", "eng9"), {})]:
        tuned.write_text(text)
        done, _ = run(path, "--tune", tuned, **environment)
        assert done.returncode == 0 and words in done.stderr and "tuned 2 calls" in done.stdout, (words, done)
    print("tuned: the fastest plan that fits, kept while it serves", flush=True)

    done, launches = run(path, FAKE_CUDNN_FIRST=str(1 << 30))
    assert done.returncode == 0 and "generated" not in done.stdout + done.stderr and "(eng1)" in done.stdout, done
    assert launches["cudnn attention"] == launches["cudnn attention_grad"] == 1 + 3 * layers, launches
    print("auto: its first plan wants more memory, the next", flush=True)

    for label, words, environment in [
            ("it refuses", "cuDNN ", {"FAKE_CUDNN_REFUSES": "1"}),
            ("it wants more memory", "asks for 1,0", {"FAKE_CUDNN_WORKSPACE": str(1000 << 20)}),
            ("it is old", "cuDNN 9.1.0 is too old: 9.15.1", {"FAKE_CUDNN_VERSION": "90100"}),
            ("it is another library", "libcudnn.so.9 is no cuDNN 9: Unable to find symbol cudnnGetVersion",
             {"cudnn": broken})]:
        done, launches = run(path, **environment)
        assert done.returncode == 0 and words in done.stderr, (label, done)
        assert done.stderr.count("generated kernels, which are slower, instead of cuDNN's: ") in (1, 2), (label, done)
        assert "attention by generated kernels" in done.stdout, (label, done)
        assert len(generated(launches)) == 3 and not any(name.startswith("cudnn") for name in launches), launches
        print(f"auto: {label}, generated kernels", flush=True)

    path = compile("--attention", "cudnn", "--gpu-arch", "sm_90")
    names = executables.sections(path)["meshwright_kernel_names"].split(b"\0")[:-1]
    assert not any(name.startswith(b"attention") for name in names), names
    done, launches = run(path)
    assert done.returncode == 0 and launches["cudnn attention_grad"] == 1 + 3 * layers, done
    done, _ = run(path, FAKE_CUDNN_REFUSES="1")
    assert done.returncode == 1 and "is to be cuDNN's (--attention cudnn)" in done.stderr, done
    print("cudnn: no generated kernels, refused without it", flush=True)

    path = compile("--attention", "generated")
    assert {(row["by"], row["reason"]) for row in rows(path)} == {("generated", "--attention generated")}, rows(path)
    done, launches = run(path, cudnn=broken)
    assert done.returncode == 0 and len(generated(launches)) == 3 and "cuDNN's" not in done.stderr, done
    print("generated: cuDNN is not looked for", flush=True)

    path = compile(precision="f32")
    assert {row["reason"] for row in rows(path)} == {"elements are f32; cuDNN's are bf16 and f16"}, rows(path)
    print("f32: generated, and why", flush=True)

    sizes, moved = [], []
    for choice in ("on", "off"):
        path = compile("--deterministic", choice)
        call = rows(path)[1]
        assert call["deterministic"] == (choice == "on"), rows(path)
        assert run(path)[0].returncode == 0
        sizes.append(call["workspace_bytes"])
        moved.append(next(row for row in plan(path)["programs"][0]["kernels"] if row["op"] == "attention_grad"))
    assert sizes[0] != sizes[1], sizes
    assert not rows(compile())[1]["deterministic"]
    # The plan counts what is in scratch memory on the way: products of queries and the keys that they see, or dq in f32.
    heads, length = call["batch"] * call["heads"], call["queries"]
    products = heads * -(-length // 64) * 64 * -(-length // 128) * 128 * 2 * (length + 1) // (2 * length)
    for key in ("read_bytes", "written_bytes"):
        difference = moved[0][key] - moved[1][key] - (products - 4 * heads * length * call["head_dim"])
        assert abs(difference) <= 1, (moved, products)
    # Ranks with other sequences compute other gradients.
    path = compile("--mesh", "data=2", "--batch", "2")
    assert not rows(path)[1]["deterministic"], rows(path)
    print("deterministic: on and off", flush=True)


main()
