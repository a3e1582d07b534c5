#!/usr/bin/env python3
"""Do the tests notice? Applies one mutant after the other, builds, runs the tests that name its folder, restores the file,
and prints a table. By hand; `./check` does not run it.

  run.py [-l LIST.toml] [--log FILE] [--part I/N] [PATTERN...]
                        mutants whose file or name has one of the patterns; default: all. With --log a line of JSON for
                        each is added to FILE as it is judged, and those that are there are not judged again. --part takes
                        every Nth of them from the Ith on, for several trees side by side
  run.py --check        only whether each mutant still applies, in seconds

Before the first mutant of a folder its tests must pass as the tree is.

Run it on a clean tree that is built: a mutant is an edit of the working tree, undone when its tests have run. A mutant of
LIST (mutants.toml) says

  file    what it edits
  name    what it does, in a few words
  from    text that is in the file once
  to      what it becomes
  same    why no test can notice, where it is equivalent; it is not run
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIT = ["/usr/lib/llvm-22/bin/lit", "-q", "--max-failures=1", "-j2", "build/test", "--filter"]
COMPILER = ["meshwright", "meshwright-opt", "meshwright-import", "meshwright-interpret"]
GOLDEN = "EndToEnd/.*(golden|random-strategies)"


def lit(pattern):
    return [*LIT, pattern]


def unit(name):
    return [f"build/bin/{name}", "--gtest_brief=1", "--gtest_fail_fast"]


# By folder: what is built, and the tests that name it, the quick ones first. The first line that fits counts.
TESTS = {
    "dialects/Train|lib/Train": (COMPILER + ["InterpreterTests", "CodegenTests"],
                                 [lit("Train/|Dist/pad"), unit("InterpreterTests"), unit("CodegenTests"), lit("Interpreter/|" + GOLDEN)]),
    "dialects/Dist|lib/Dist": (COMPILER + ["DistTest"], [lit("Dist/"), unit("DistTest"), lit(GOLDEN)]),
    "lib/Schedule": (COMPILER + ["ScheduleTest", "DistTest"], [unit("ScheduleTest"), unit("DistTest"), lit("Dist/"), lit(GOLDEN)]),
    "dialects/Exec|lib/Exec": (COMPILER + ["ExecTests"], [lit("Exec/"), unit("ExecTests"), lit(GOLDEN)]),
    "lib/Codegen/CUDA": (COMPILER + ["CUDACodegenTests"], [unit("CUDACodegenTests"), lit("Codegen/CUDA")]),
    "lib/Codegen/StableHLO": (COMPILER, [lit("Codegen/StableHLO")]),
    "lib/Codegen": (COMPILER + ["CodegenTests", "CUDACodegenTests"],
                    [unit("CodegenTests"), lit("Codegen/[^C]"), unit("CUDACodegenTests"), lit(GOLDEN)]),
    "lib/Certify": (COMPILER + ["CertifyTest"], [lit("Certify/"), unit("CertifyTest")]),
    "lib/Interpreter": (COMPILER + ["InterpreterTests"], [unit("InterpreterTests"), lit("Interpreter/")]),
    "lib/Report|lib/Pipeline|include/meshwright/runtime/VisiblePairs":
        (COMPILER, [lit("Pipeline/|Report/|EndToEnd/.*(report|inspect|recipe|effects|plans|diff)"), lit("EndToEnd/.*(fit|remat|replay|bad-compile)")]),
    "python-free-frontend": (COMPILER + ["FrontendTests"], [unit("FrontendTests"), lit("Frontend/"), lit(GOLDEN)]),
    "runtime/cuda": (["runtime"], [lit("Codegen/CUDA/host"), ["ctest", "--test-dir", "build/runtime", "-j2", "--stop-on-failure", "-Q"]]),
    "runtime|include/meshwright/runtime": (["runtime"], [["ctest", "--test-dir", "build/runtime", "-j2", "--stop-on-failure", "-Q"],
                              lit(GOLDEN + "|EndToEnd/.*(resume|kill|bad)|Codegen/CUDA/host")]),
}


def plan_of(file):
    return next(plan for folders, plan in TESTS.items() if re.match(folders, file))


def runs(command):
    """Whether it succeeds. One that hangs notices too."""
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, timeout=900).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def short(command):
    return command[-1] if command[0] == LIT[0] else pathlib.Path(command[0]).name


def judge(mutant):
    """What notices the mutant, or "survives"."""
    path = ROOT / mutant["file"]
    text = path.read_text()
    targets, tests = plan_of(mutant["file"])
    path.write_text(text.replace(mutant["from"], mutant["to"]))
    try:
        if not runs(["ninja", "-C", "build", *targets]):
            return "does not build"
        return next((short(test) for test in tests if not runs(test)), "survives")
    finally:
        path.write_text(text)


def check_baseline(mutant, good=set()):
    """Ends the run if the tests of the mutant's folder fail without it: they would notice anything."""
    targets, tests = plan_of(mutant["file"])
    if not runs(["ninja", "-C", "build", *targets]):
        sys.exit("the tree does not build")
    for test in tests:
        if str(test) not in good and not runs(test):
            sys.exit(f"{' '.join(test)} fails as the tree is")
        good.add(str(test))


def applies(mutant):
    """What keeps it from being applied, or nothing."""
    path = ROOT / mutant["file"]
    if not path.exists():
        return "no such file"
    count = path.read_text().count(mutant["from"])
    return "" if count == 1 else f"its text is there {count} times"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-l", "--list", type=pathlib.Path, default=ROOT / "test/mutation/mutants.toml")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--log", type=pathlib.Path)
    parser.add_argument("--part", default="1/1", metavar="I/N")
    parser.add_argument("patterns", nargs="*")
    arguments = parser.parse_args()
    mutants = tomllib.loads(arguments.list.read_text())["mutant"]
    mutants = [mutant for mutant in mutants
               if not arguments.patterns or any(p in mutant["file"] + " " + mutant["name"] for p in arguments.patterns)]
    part, parts = map(int, arguments.part.split("/"))
    mutants = mutants[part - 1::parts]
    stale = [f"{mutant['file']}: {mutant['name']}: {why}" for mutant in mutants if (why := applies(mutant))]
    if stale or arguments.check:
        print("\n".join(stale) or f"{len(mutants)} mutants apply")
        sys.exit(bool(stale))
    dirty = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no"], cwd=ROOT, capture_output=True, text=True)
    if dirty.stdout:
        sys.exit(f"the tree has changes, which a mutant would mix with:\n{dirty.stdout}")
    known = {}
    if arguments.log and arguments.log.exists():
        known = {(row["file"], row["name"]): row["result"] for row in map(json.loads, arguments.log.read_text().splitlines())}
    results = []
    for mutant in mutants:
        begin, key = time.monotonic(), (mutant["file"], mutant["name"])
        if "same" in mutant:
            result = "equivalent: " + mutant["same"]
        elif key in known:
            result = known[key]
        else:
            check_baseline(mutant)
            begin = time.monotonic()
            result = judge(mutant)
            if arguments.log:
                with open(arguments.log, "a") as log:
                    print(json.dumps({"file": key[0], "name": key[1], "result": result}), file=log)
        results.append(result)
        print(f"{mutant['file']:45} {mutant['name']:60} {result} ({time.monotonic() - begin:.0f} s)", flush=True)
    subprocess.run(["ninja", "-C", "build"], cwd=ROOT, capture_output=True)
    equivalent = sum(result.startswith("equivalent") for result in results)
    invalid = results.count("does not build")
    killed = len(results) - equivalent - invalid - results.count("survives")
    counted = len(results) - equivalent - invalid
    print(f"\n{len(results)} mutants: {equivalent} equivalent, {invalid} do not build; of the other {counted} "
          f"{killed} are noticed ({100 * killed / max(counted, 1):.0f}%)")


if __name__ == "__main__":
    main()
