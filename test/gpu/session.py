"""What a call of `run` knows and has found, and how it goes through its items."""
import collections
import concurrent.futures
import json
import pathlib
import re
import shutil
import signal
import sys
import tarfile
import tempfile
import threading
import time

import fits
import machine
from ranks import Broken, Failed, Skipped

# Of a kind of items: the most seconds one may take, those it is thought to take on an H200, and how many run at
# once. What is measured runs alone.
Kind = collections.namedtuple("Kind", "limit expected at_once", defaults=(1,))
KINDS = {
    "smoke": Kind(120, 6), "device": Kind(90, 20), "rates": Kind(240, 90), "golden": Kind(120, 6, 8), "ptx": Kind(120, 8), "attention": Kind(120, 8),
    "mesh 2": Kind(240, 15, 2), "mesh 4": Kind(240, 30), "bench": Kind(300, 35), "memory": Kind(10, 1), "kernels": Kind(240, 30),
    "torch": Kind(500, 100), "jax": Kind(400, 60), "replay": Kind(120, 8, 4), "killed": Kind(120, 20),
    "offload": Kind(400, 60), "largest": Kind(400, 110), "batch": Kind(300, 40), "batches": Kind(500, 180),
    "graphs": Kind(120, 6, 8), "sanitizer": Kind(400, 60, 4), "tuned": Kind(300, 60), "variant": Kind(300, 35)}
# Of which one is run again when it broke, to find out at which op.
SYNCHRONOUS = ("smoke", "golden", "ptx", "attention", "bench", "batch", "variant", "mesh 2", "mesh 4")
ARCHIVE_BYTES = 15 << 20  # at most, of what is in it; unless a single thing has more
MOST_ARCHIVES = 6  # few files come back, results.json among them
SAME_FAILURES = 2  # of processes, in the same words, after which the rest of a kind is left out

Item = collections.namedtuple("Item", "order name kind action expected")


def words_of(message):
    """A message without what differs between runs."""
    return re.sub(r"\S*\d\S*", "#", message)


class Session:
    def __init__(self, options):
        self.carried, self.out = options.carried.resolve(), options.out.resolve()
        listed = json.loads((self.carried / "runs.json").read_text())
        self.target, self.runs, self.pack = listed["target"], listed["runs"], options.pack
        # Processes without MPI are for ranks with GPUs.
        self.launch = "threads" if self.target == "cpu" else options.launch
        self.python, self.at_once = options.python, options.at_once
        self.out.mkdir(parents=True, exist_ok=True)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="meshwright-gpu-"))
        # With --pack few files may be in OUT, however this ends.
        self.files = self.work / "files" if self.pack else self.out
        (self.files / "logs").mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.carried, self.work, ignore=shutil.ignore_patterns("*.tar.xz"), dirs_exist_ok=True)
        with tarfile.open(self.carried / "executables.tar.xz") as archive:
            archive.extractall(self.work)
        folders = machine.library_folders(self.python) if self.target == "cuda" else []
        self.environment = machine.environment(folders)
        about = machine.describe(self.environment)
        names = (machine.smi("name") or about["gpus"]) if self.target == "cuda" else [machine.processor()]
        self.gpus, self.device = len(about["gpus"]), ", ".join(sorted(set(names))) or "no GPU"
        self.nccl = int(about["versions"].get("nccl", 0))
        if self.target == "cuda" and about.get("free"):
            self.runs = fits.suitable(self.runs, about["free"])
        self.lock, self.numbers, self.here = threading.Lock(), 0, threading.local()
        self.failures = collections.Counter()
        self.end = time.monotonic() + options.minutes * 60
        self.results = {"device": self.device, "versions": about["versions"], "libraries": about["libraries"],
                        "commit": listed["commit"], "date": time.strftime("%Y-%m-%d"), "rows": [], "items": []}
        for path in options.after:
            self.take_over(json.loads(path.read_text()))
        if options.copy_rate:
            self.results["copy_bytes_per_s"] = options.copy_rate
        if options.matmul_rate:
            self.results["matmul_flops_per_s"] = options.matmul_rate
        self.done = {item["item"] for item in self.results["items"]}
        self.before = 0
        self.look_before()

    def take_over(self, earlier):
        """What an earlier call has found; items that it skipped are still to be run."""
        if earlier["device"] != self.device:
            print(f"--after: those results are of {earlier['device']}, not of {self.device}; all items run", flush=True)
            return
        for key, value in earlier.items():
            if key == "items":
                self.results[key] += [item for item in value if item["outcome"] != "skip"]
            elif key == "rows":
                self.results[key] += value
            elif isinstance(value, dict):
                self.results.setdefault(key, {}).update(value)
            else:
                self.results.setdefault(key, value)

    def number(self):
        with self.lock:
            self.numbers += 1
            return self.numbers

    def look_before(self):
        """The memory that others use, before something is measured."""
        if self.target == "cuda":
            self.before = machine.memory_in_use() or 0

    def write(self):
        path = self.out / "results.json"
        path.with_suffix(".tmp").write_text(json.dumps(self.results, indent=1) + "\n")
        path.with_suffix(".tmp").replace(path)

    def keep(self, table, name, value):
        """Puts a number where later items and calls find it."""
        with self.lock:
            self.results.setdefault(table, {})[name] = value

    def kept(self, table, name):
        with self.lock:
            return self.results.get(table, {}).get(name)

    #===--- going through items ---------------------------------------------------===#

    def attempt(self, item):
        """Runs an item: a line that says what became of it, and its entry in the results."""
        began = time.monotonic()
        left = self.end - began
        slug = re.sub(r"[^\w.]+", "-", item.name)
        try:
            if left < max(5, item.expected):
                raise Skipped(f"about {max(5, item.expected)} s are wanted, {max(0, left):.0f} are left of --minutes")
            with self.lock:
                met = [words for (kind, words), times in self.failures.items()
                       if kind == item.kind and times >= SAME_FAILURES]
            if met:
                raise Skipped(f"{SAME_FAILURES} before it ended alike: {met[0][:200]}")
            with open(self.files / "logs" / f"{slug}.log", "w") as log:
                try:
                    outcome, note = "pass", item.action(log, began + min(left, KINDS[item.kind].limit))
                except (Failed, Skipped) as reason:
                    log.write(f"{reason}\n")
                    raise
        except Skipped as reason:
            outcome, note = "skip", str(reason)
        except Failed as reason:
            outcome, note = "fail", str(reason)
            if isinstance(reason, Broken):
                with self.lock:
                    self.failures[item.kind, words_of(note)] += 1
                note += self.again(item, slug)
        except Exception as error:  # Whatever it is, the others still run.
            outcome, note = "fail", f"{type(error).__name__}: {error}"
        seconds = round(time.monotonic() - began, 1)
        with self.lock:
            self.results["items"].append({"item": item.name, "outcome": outcome, "seconds": seconds, "note": note})
            print(f"{outcome} {item.name}: {note} ({seconds} s)", flush=True)
            self.write()

    def again(self, item, slug):
        """What a run that broke says where the host waits for each op, so that the op is named."""
        if self.target != "cuda" or item.kind not in SYNCHRONOUS or self.end - time.monotonic() < 2 * item.expected:
            return ""
        self.here.synchronous = True
        try:
            with open(self.files / "logs" / f"{slug}-synchronous.log", "w") as log:
                item.action(log, time.monotonic() + min(self.end - time.monotonic(), KINDS[item.kind].limit))
                said = "it runs"
        except (Failed, Skipped) as reason:
            said = str(reason)
        finally:
            self.here.synchronous = False
        return f"; with MESHWRIGHT_SYNCHRONOUS=1: {said}"

    def synchronous(self):
        """Whether this thread runs an item again."""
        return getattr(self.here, "synchronous", False)

    def go_through(self, items):
        """In their order; neighbours of one order that are not measured run at once."""
        signal.signal(signal.SIGTERM, self.stop)
        try:
            self.write()
            for group in groups(items):
                at_once = min(KINDS[group[0].kind].at_once, self.at_once)
                if at_once == 1:
                    for item in group:
                        self.attempt(item)
                else:
                    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
                        list(pool.map(self.attempt, group))
        finally:
            self.finish()

    def stop(self, *_):
        """No time is left: those that run beside each other end, the others do not begin."""
        self.end = time.monotonic()
        sys.exit("ended by a signal")

    def finish(self):
        if self.pack:
            # Logs before dumps, of which there may be more than can travel.
            packed = [(folder, number, part) for folder in sorted(self.files.iterdir(), key=lambda path: (path.name != "logs", path))
                      for number, part in enumerate(parts(folder), 1)]
            for folder, number, part in packed[:MOST_ARCHIVES]:
                with tarfile.open(self.out / f"{folder.name}-{number}.tar.xz", "w:xz") as archive:
                    for path in part:
                        archive.add(path, path.relative_to(self.files))
            left = [str(path.relative_to(self.files)) for _, _, part in packed[MOST_ARCHIVES:] for path in part]
            if left:
                self.results["not_packed"] = left
                print(f"more than {MOST_ARCHIVES} archives: left out {', '.join(left)}", flush=True)
        self.write()
        shutil.rmtree(self.work, ignore_errors=True)


def parts(folder):
    """What is in a folder, in lists of not too many bytes."""
    result, total = [], 0
    for path in sorted(folder.iterdir()):
        size = sum(file.stat().st_size for file in [path, *path.glob("**/*")] if file.is_file())
        if not result or total + size > ARCHIVE_BYTES:
            result.append([])
            total = 0
        result[-1].append(path)
        total += size
    return result


def groups(items):
    result = []
    for item in items:
        if result and (result[-1][0].order, result[-1][0].kind) == (item.order, item.kind):
            result[-1].append(item)
        else:
            result.append([item])
    return result


def list_items(items, minutes):
    """Prints what would be run, with the seconds that it is thought to take."""
    total, call = 0.0, 1
    for group in groups(items):
        for item in group:
            seconds = item.expected / KINDS[item.kind].at_once
            if total + seconds > minutes * 60 * call:
                total, call = minutes * 60 * call, call + 1
            total += seconds
            print(f"{total:7.0f} s  call {call}  {item.name} (about {item.expected} s"
                  f"{f', {KINDS[item.kind].at_once} at once' if KINDS[item.kind].at_once > 1 else ''})")
