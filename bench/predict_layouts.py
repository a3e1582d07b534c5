#!/usr/bin/env python3
"""How near `meshwright predict` is to published layouts: predict_layouts.py ROWS.csv [--profile P] [--cluster C] [--limit N] [--failed N] [--seed S] [--jobs J] [--json FILE]
predict_layouts.py ROWS.csv --profile FILE --fit products,network --groups 3B:16,1B:128

ROWS.csv has a column for each of model, gpus, dp, tp, pp, mbs, accum, zero, status, tok_s_gpu, mfu, memory_gb and note, as the chart data of Hugging
Face's ultra-scale playbook does: Llama models of 1B to 80B on H100, sequences of 4,096 tokens, 256 a step.

- Step times are judged on rows that ran with an MFU of 20% or more and no note ('failed-once' is none).
- Orders are judged within a model and number of GPUs: of these rows, and of all rows that ran.
- Memory is judged on rows that ran and did not crash, which must fit, and on rows that failed without a note, which must not.

--limit takes N of all rows at random, --failed N of those that failed, --groups those of models on numbers of GPUs, --timed those whose times are judged of those that ran. Layouts that
the compiler refuses are counted and named. --json writes every row with its prediction.

--fit fits constants of the profile, which must be a file, to the step times of the rows: the logarithm of prediction over
measurement is minimized by iteratively reweighted least squares (Huber's weights, with 5% as the limit), with differences for
derivatives. It simulates each row once for each constant and once more, in each of --rounds, and prints the profile with what it found.

--ir keeps compiled programs in a folder and reads those that are there: a prediction with another profile then only simulates. The folder is valid
for one build of the compiler and one cluster."""
import argparse
import collections
import concurrent.futures
import csv
import json
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("rows")
parser.add_argument("--profile", default="nanotron")
parser.add_argument("--cluster", default="dgx-h100")
parser.add_argument("--limit", type=int, default=10**9)
parser.add_argument("--failed", type=int, default=10**9)
parser.add_argument("--groups")
parser.add_argument("--timed", action="store_true")
parser.add_argument("--fit")
parser.add_argument("--rounds", type=int, default=2)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--jobs", type=int, default=1)
parser.add_argument("--json")
parser.add_argument("--ir", type=pathlib.Path)
options = parser.parse_args()

SHAPES = {"1B": (16, 2048, 32, 8192, True), "3B": (28, 3072, 32, 8192, True), "8B": (32, 4096, 32, 14336, False), "80B": (80, 8192, 64, 28672, False)}
TOKENS, SEQ, VOCABULARY = 1048576, 4096, 131072
work = pathlib.Path(tempfile.mkdtemp())
programs = options.ir or work / "ir"
programs.mkdir(parents=True, exist_ok=True)
for name, (layers, hidden, heads, ffn, tied) in SHAPES.items():
    json.dump({"model_type": "llama", "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": heads,
               "intermediate_size": ffn, "vocab_size": VOCABULARY, "tie_word_embeddings": tied, "max_position_embeddings": SEQ, "rms_norm_eps": 1e-5,
               "rope_theta": 10000.0, "hidden_act": "silu"}, open(work / f"{name}.json", "w"))


def ran(row):
    return row["status"] == "ok" and row["note"] != "crashed"


def is_timed(row):
    return row["status"] == "ok" and float(row["mfu"]) >= 20 and row["note"] in ("", "failed-once")


def lacked_memory(row):
    return row["status"] == "failed" and row["note"] == ""


def name_of(row):
    return f"{row['model']} on {row['gpus']} GPUs, " + " ".join(f"{key}={row[key]}" for key in ("dp", "tp", "pp", "mbs", "accum", "zero"))


def nanotron_cuts(row):
    """The first layers of stages after the first as nanotron has them (build_model in src/nanotron/models/base.py): a stage ends with the first of its layers with which all so far weigh its share, where
    the head weighs as much as its matrix. Stages after the head have the loss at most; as ours have a layer each, those before the head give them some.

    The code differs in that what weighs exactly its share does not end the stage, and in that the head is never alone unless layers end a stage before it. Both are our reading of the rows: otherwise one
    stage of 1B on two or four has a layer more than its step takes, and the last of 1B on eight and of 8B on 16 has the head besides layers."""
    layers, hidden, _, ffn, _ = SHAPES[row["model"]]
    stages, layer, head = int(row["pp"]), 4 * hidden**2 + 3 * hidden * ffn, VOCABULARY * hidden
    begins = []
    for number in range(layers):
        if len(begins) < stages - 1 and (number + 1) * layer * stages >= (layers * layer + head) * (len(begins) + 1):
            begins.append(number + 1)
    begins += [layers] * (stages - 1 - len(begins))
    return [min(begin, begins[-1] - stages + 2 + i) for i, begin in enumerate(begins)] if begins else []


def compiled(row):
    """The file of the program of a layout, and why there is none."""
    file = programs / ("-".join(row[key] for key in ("model", "gpus", "dp", "tp", "pp", "mbs", "accum", "zero")) + ".mlir")
    if file.exists():
        return file, None
    mesh = ",".join(f"{axis}={row[key]}" for axis, key in (("pipe", "pp"), ("data", "dp"), ("tensor", "tp")) if int(row[key]) > 1)
    command = ["meshwright", "compile", work / f"{row['model']}.json", "--cluster", options.cluster, "--emit", "exec", "-o", file,
               "--precision", "bf16", "--batch", TOKENS // SEQ, "--seq", SEQ, "--microbatches", row["accum"]]
    command += ["--mesh", mesh] if mesh else []
    command += ["--cuts", ",".join(map(str, nanotron_cuts(row)))] if pathlib.Path(options.profile).stem == "nanotron" and 1 < int(row["pp"]) <= SHAPES[row["model"]][0] else []
    command += ["--zero", row["zero"]] if int(row["dp"]) > 1 else []
    command += ["--sequence-parallel"] if int(row["tp"]) > 1 else []
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    return file, done.stderr.strip().splitlines()[-1] if done.returncode else None


def predict(row, profiles=(options.profile,)):
    """What is predicted with each profile; the program is compiled once."""
    file, refused = compiled(row)
    if not refused:
        command = ["meshwright", "predict", file, "--cluster", options.cluster, "--json"]
        done = subprocess.run(command + [word for profile in profiles for word in ("--profile", profile)], capture_output=True, text=True)
        if not options.ir and not options.fit:
            file.unlink()
        if done.returncode == 0:
            predictions = json.loads(done.stdout)
            return predictions if len(profiles) > 1 else [predictions]
        refused = done.stderr.strip().splitlines()[-1]
    return [{"refused": refused}] * len(profiles)


def ranks(values):
    """Ranks by size; equal values share their mean rank."""
    order = sorted(values)
    return [order.index(value) + (order.count(value) - 1) / 2 for value in values]


def correlation(rows):
    if len(rows) < 5:
        return None
    return statistics.correlation(ranks([row["measured_s"] for row in rows]), ranks([row["predicted_s"] for row in rows]))


def solve(rows):
    """The solution of linear equations, each a row of coefficients and the right-hand side."""
    rows = [list(row) for row in rows]
    for i in range(len(rows)):
        rows[i:] = sorted(rows[i:], key=lambda row: -abs(row[i]))
        for other in range(len(rows)):
            if other != i:
                rows[other] = [a - b * rows[other][i] / rows[i][i] for a, b in zip(rows[other], rows[i])]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def fit(rows, keys):
    said = pathlib.Path(options.profile).read_text()
    values = [float(re.search(rf"^{key} = ([0-9.e+-]+)", said, re.M)[1]) for key in keys]

    def with_values(values):
        text = said
        for key, value in zip(keys, values):
            text = re.sub(rf"^({key} = )[0-9.e+-]+", rf"\g<1>{value:.4g}", text, flags=re.M)
        return text

    def errors(all_values):
        """Of each of several sets of values, the error of each row."""
        profiles = [work / f"profile-{number}.toml" for number in range(len(all_values))]
        for profile, values in zip(profiles, all_values):
            profile.write_text(with_values(values))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as executor:
            steps = list(executor.map(lambda row: [prediction["step_s"] for prediction in predict(row, profiles)], rows))
        return [[math.log(step * int(row["gpus"]) * float(row["tok_s_gpu"]) / TOKENS) for row, step in zip(rows, column)] for column in zip(*steps)]

    def show(errors):
        print(f"{len(rows)} steps: mean error {statistics.mean(abs(math.exp(e) - 1) for e in errors):.2%}, bias {statistics.mean(errors):+.2%}; "
              + ", ".join(f"{key} = {value:.4g}" for key, value in zip(keys, values)), flush=True)

    for _ in range(options.rounds):
        at, *moved = errors([[value * 1.05 if i == key else value for i, value in enumerate(values)] for key in range(-1, len(keys))])
        show(at)
        slopes = [[(b - a) / math.log(1.05) for a, b in zip(at, with_more)] for with_more in moved]
        step = [0] * len(keys)
        for _ in range(50):
            left = [a + sum(d * s[row] for d, s in zip(step, slopes)) for row, a in enumerate(at)]
            weights = [min(1, 0.05 / max(abs(e), 1e-9)) for e in left]
            step = solve([[sum(w * a * b for w, a, b in zip(weights, slopes[i], column)) for column in slopes]
                          + [-sum(w * a * e for w, a, e in zip(weights, slopes[i], at))] for i in range(len(keys))])
        values = [v * math.exp(d) for v, d in zip(values, step)]
    show(*errors([values]))
    print(with_values(values))


def text(value, form=".3f"):
    return "-" if value is None else format(value, form)


with open(options.rows) as file:
    rows = [row for row in csv.DictReader(line for line in file if not line.startswith("#")) if ran(row) or lacked_memory(row)]
random.Random(options.seed).shuffle(rows)
if options.groups:
    rows = [row for row in rows if f"{row['model']}:{row['gpus']}" in options.groups.split(",")]
failed = set(map(id, [row for row in rows if lacked_memory(row)][options.failed:]))
rows = [row for row in rows if id(row) not in failed][:options.limit]
if options.timed:
    rows = [row for row in rows if is_timed(row) or lacked_memory(row)]
if options.fit:
    fit([row for row in rows if is_timed(row)], options.fit.split(","))
    sys.exit()
with concurrent.futures.ThreadPoolExecutor(options.jobs) as executor:
    for row, [prediction] in zip(rows, executor.map(predict, rows)):
        row["refused"] = prediction.get("refused")
        row["predicted_s"], row["peak_bytes"], row["fits"] = (prediction.get(key) for key in ("step_s", "peak_bytes", "fits"))
        row["measured_s"] = TOKENS / (int(row["gpus"]) * float(row["tok_s_gpu"])) if row["status"] == "ok" else None
refused = [row for row in rows if row["refused"]]
rows = [row for row in rows if not row["refused"]]
for row in refused:
    print(f"refused: {name_of(row)} ({row['status']}): {row['refused']}")

groups = collections.defaultdict(list)
for row in rows:
    if ran(row):
        groups[row["model"], int(row["gpus"])].append(row)
summary = []
for (model, gpus), group in sorted(groups.items()):
    timed = [row for row in group if is_timed(row)]
    errors = [row["predicted_s"] / row["measured_s"] - 1 for row in timed]
    chosen = min(timed, key=lambda row: row["predicted_s"], default=None)
    summary.append({"model": model, "gpus": gpus, "timed": len(timed), "ran": len(group),
                    "mean_error": statistics.mean(map(abs, errors)) if errors else None, "bias": statistics.mean(errors) if errors else None,
                    "rank_correlation": correlation(timed), "rank_correlation_of_all": correlation(group),
                    "best_slower": chosen["measured_s"] / min(row["measured_s"] for row in timed) - 1 if len(timed) >= 5 else None})
    last = summary[-1]
    print(f"{model:>4} on {gpus:4} GPUs: {last['timed']:3} timed of {last['ran']:3}, mean error {text(last['mean_error'], '.1%'):>5}, bias {text(last['bias'], '+.1%'):>6}, "
          f"rank correlation {text(last['rank_correlation'])}, of all {text(last['rank_correlation_of_all'])}, "
          f"the layout predicted fastest is {text(last['best_slower'], '.1%')} slower than the fastest", flush=True)

timed = [row for row in rows if is_timed(row)]
errors = [abs(row["predicted_s"] / row["measured_s"] - 1) for row in timed]


def mean(key):
    values = [group[key] for group in summary if group[key] is not None]
    return statistics.mean(values) if values else math.nan


best = [group["best_slower"] for group in summary if group["best_slower"] is not None]
fit, unfit = [row for row in rows if ran(row)], [row for row in rows if lacked_memory(row)]
for row in sorted(timed, key=lambda row: -abs(row["predicted_s"] / row["measured_s"] - 1))[:8]:
    print(f"worst: {name_of(row)}: measured {row['measured_s']:.3f} s, predicted {row['predicted_s']:.3f} s ({row['predicted_s'] / row['measured_s'] - 1:+.1%})")
errors = errors or [math.nan]
print(f"{len(timed)} layouts as {options.profile} on {options.cluster}: mean error {statistics.mean(errors):.1%}, median {statistics.median(errors):.1%}, worst {max(errors):.1%}; "
      f"mean rank correlation {mean('rank_correlation'):.3f}, of all that ran {mean('rank_correlation_of_all'):.3f}; fastest within 3% in {sum(b <= 0.03 for b in best)} of {len(best)} groups")
print(f"memory: {sum(row['fits'] for row in fit)} of {len(fit)} layouts that ran are predicted to fit, {sum(not row['fits'] for row in unfit)} of {len(unfit)} that failed not to; {len(refused)} refused")
if options.json:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=pathlib.Path(__file__).parent).stdout.strip()
    json.dump({"profile": options.profile, "cluster": options.cluster, "commit": commit, "seed": options.seed, "groups": summary,
               "rows": [{key: row[key] for key in ("model", "gpus", "dp", "tp", "pp", "mbs", "accum", "zero", "status", "note", "mfu", "memory_gb", "measured_s", "predicted_s", "peak_bytes", "fits", "refused")}
                        for row in rows + refused]}, open(options.json, "w"), indent=1)
