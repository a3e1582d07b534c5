#!/usr/bin/env python3
"""Checks that layers hold: layers.py ROOT prints a line for each include, and each library that CMake links or
source that it compiles, that lib/README.md does not allow, and fails if there is one.

    layers   A library includes and links only those before it; LAYERS has their order.
    private  Headers under lib/X are for lib/X (and tests). What others include is in include/meshwright.
    runtime  The runtime and the compiler share include/meshwright/runtime and nothing else.
    options  include/meshwright/Options.h includes no library.
"""
import pathlib
import re
import sys

# Folders, or names of CMake targets where a folder makes several; those of one line know nothing of each other.
LAYERS = [
    ["lib/Support"],
    ["lib/Schedule", "lib/Tokenizer"],
    ["MeshwrightCost"],
    ["dialects/Train"],
    ["MeshwrightWork", "python-free-frontend"],
    ["lib/Train"],
    ["dialects/Dist"],
    ["lib/Certify"],
    ["lib/Dist"],
    ["dialects/Exec"],
    ["MeshwrightMovedBytes", "lib/Kernels"],
    ["lib/Exec"],
    ["MeshwrightCodegen"],
    ["lib/Codegen"],
    ["lib/Interpreter"],
    ["lib/Report"],
    ["MeshwrightOptions"],
    ["lib/Pipeline"],
    ["tools"],
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# What may stay, and why: (what includes or links, what it includes or links).
ALLOWED = {
    ("lib/Pipeline", "lib/Train/Passes.h"): "the order of passes makes them with their options",
    ("lib/Pipeline", "lib/Dist/Passes.h"): "the order of passes makes them with their options",
    ("lib/Pipeline", "lib/Exec/Passes.h"): "the order of passes makes them with their options",
    ("lib/Interpreter", "runtime/common"): "reads and writes files as executables do, by the same code",
    ("lib/Pipeline", "runtime/common"): "replay reads dumps by the element types of executables",
    ("runtime", "lib/Tokenizer/Core"): "executables encode prompts; it knows no LLVM",
    ("lib/Codegen", "runtime/cpu/kernels"): "plans the workspaces that the kernels of processors ask for",
}

SOURCES = {".h", ".cpp", ".td", ".def", ".in"}


def owner(path):
    """The library that a file belongs to: its two first folders."""
    parts = path.split("/")
    return parts[0] if parts[0] in ("python-free-frontend", "runtime", "tools") else "/".join(parts[:2])


class Check:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.found = []
        self.used = set()
        self.makers = {}  # by target: the folder of its CMakeLists.txt
        self.targets = {}  # by source: its target
        self.behind = {}  # by header in include/meshwright: the source that defines what it declares

    def say(self, path, line, text):
        self.found.append(f"{path}:{line}: {text}")

    def excused(self, library, what):
        for entry in ALLOWED:
            if library == entry[0] and (what == entry[1] or what.startswith(entry[1] + "/")):
                self.used.add(entry)
                return True
        return False

    def read_headers(self):
        """A source first includes the header of its name; so a public header has a library."""
        for path, text in self.files({".cpp"}):
            first = re.search(r'^#include "meshwright/([^"]+)"', text, re.M)
            if first and pathlib.Path(path).stem == pathlib.Path(first[1]).stem and first.start() == text.find('#include "'):
                self.behind.setdefault(f"include/meshwright/{first[1]}", path)

    def files(self, suffixes):
        for top in ("dialects", "include", "lib", "python-free-frontend", "runtime", "tools"):
            for path in sorted((self.root / top).rglob("*")):
                if path.suffix in suffixes and path.is_file():
                    yield path.relative_to(self.root).as_posix(), path.read_text()

    def exists(self, path):
        return (self.root / path).exists()

    def resolve(self, source, include):
        """The file of the tree that `source` includes, found as the compiler finds it; None for others."""
        roots = [pathlib.PurePosixPath(source).parent.as_posix()]
        roots += ["runtime"] if source.startswith("runtime/") else []
        for root in roots + ["include", "dialects", "lib", "runtime"]:
            parts = []
            for part in f"{root}/{include}".split("/"):
                if part == "..":
                    parts and parts.pop()
                elif part != ".":
                    parts.append(part)
            # What TableGen writes belongs to the folder of its description.
            path = "/".join(parts)
            if self.exists(path) or (path.endswith(".inc") and self.exists("/".join(parts[:-1])) and root != "include"):
                return path
        return None

    def rank(self, name):
        """The layer of a CMake target, or of a folder."""
        return RANK.get(name, RANK.get(self.makers.get(name, name)))

    def read_cmake(self):
        """Libraries and what they compile and link, of lines meshwright_library(NAME sources LINK libraries)."""
        calls = []
        for top in ("dialects", "lib", "python-free-frontend", "tools"):
            for path in sorted((self.root / top).rglob("CMakeLists.txt")):
                folder, text = path.relative_to(self.root).parent.as_posix(), path.read_text()
                variables = dict(re.findall(r"set\((\w+) (\S+)\)", text))
                text = re.sub(r"\$\{(\w+)\}", lambda m: variables.get(m[1], m[0]), text)
                text = text.replace("${CMAKE_SOURCE_DIR}/", "")
                for call in re.finditer(r"^(?:meshwright_library|target_link_libraries)\((\w[\w-]*)([^)]*)\)", text, re.M):
                    words = re.sub(r"#.*", "", call[2]).split()
                    line = text[:call.start()].count("\n") + 1
                    link = words.index("LINK") if "LINK" in words else len(words)
                    sources, libraries = words[:link], words[link + 1:]
                    if call[0].startswith("target"):
                        sources, libraries = [], [w for w in words if w not in ("PUBLIC", "PRIVATE", "INTERFACE")]
                    self.makers[call[1]] = owner(folder + "/x") if folder != "tools" else folder
                    calls.append((f"{folder}/CMakeLists.txt", line, call[1], sources, libraries))
                    for source in sources:
                        if source.endswith(".cpp"):
                            self.targets[source if source.startswith("runtime/") else f"{folder}/{source}"] = call[1]
        return calls

    def check_links(self):
        for path, line, target, sources, libraries in self.read_cmake():
            library = self.makers[target]
            for source in sources:
                if source.startswith("runtime/") and not self.excused(library, source):
                    self.say(path, line, f"{target} compiles {source}, which is the runtime's")
        for path, line, target, sources, libraries in self.read_cmake():
            own = self.rank(target)
            for other in libraries:
                rank = self.rank(other)
                if rank is None or self.makers.get(other) == self.makers.get(target):
                    continue
                if own is not None and rank >= own:
                    self.say(path, line, f"{target} links {other}, which is not before it")

    def check_include(self, source, line, included):
        source_of = self.behind.get(source, source)
        library = owner(source_of)
        if source.startswith("runtime/"):
            if not included.startswith(("runtime/", "include/meshwright/runtime/")) and not self.excused("runtime", included):
                self.say(source, line, f"the runtime includes {included}; what both share is in include/meshwright/runtime")
            return
        if included.startswith("runtime/"):
            if not self.excused(library, included):
                self.say(source, line, f"the compiler includes {included} of the runtime; what both share is in "
                                       "include/meshwright/runtime")
            return
        if source.startswith("include/meshwright/runtime/") and not included.startswith("include/meshwright/runtime/"):
            self.say(source, line, f"is for the runtime too, but includes {included}")
            return
        defined = self.behind.get(included, included)
        other = owner(defined)
        if other == library or other == "include/meshwright":
            return
        if included.startswith("lib/"):
            if source == "include/meshwright/Options.h":
                self.say(source, line, f"Options.h includes {included} of a library")
            elif not self.excused(library, included):
                self.say(source, line, f"includes {included}, which is private to {other}; what others need is in "
                                       "include/meshwright")
            return
        own, rank = (self.rank(self.targets.get(path, owner(path))) for path in (source_of, defined))
        if own is not None and rank is not None and rank >= own:
            self.say(source, line, f"includes {included}, but {other} is not before {library}")

    def run(self):
        self.read_headers()
        self.check_links()
        for path, text in self.files(SOURCES):
            for number, line in enumerate(text.splitlines(), 1):
                found = re.match(r'(?:#include|include) "([^"]+)"', line)
                included = found and self.resolve(path, found[1])
                if included:
                    self.check_include(path, number, included)
        for entry in sorted(ALLOWED.keys() - self.used):
            self.found.append(f"layers.py: nothing needs that {entry[0]} may use {entry[1]} any more")
        return self.found


if __name__ == "__main__":
    problems = Check(sys.argv[1]).run()
    print("\n".join(problems))
    sys.exit(bool(problems))
