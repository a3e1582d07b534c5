#!/usr/bin/env python3
"""Checks that each name is one type: definitions.py ROOT prints a line for each class, struct, union or enumeration that
several files define in one namespace, and fails if there is one.

Two such types break C++'s rule of one definition, about which no compiler and no linker says a word: of a template's
functions for both, such as those that copy a vector, the linker keeps one, and elements of the other type are copied with
its size. Anonymous namespaces, which other files do not see, may have types of any name. So may specializations. The
compiler links parts of the runtime, so both count as one program.
"""
import collections
import pathlib
import re
import sys

# What is no code, and the ends of what precedes a body: text in quotes may have braces.
PIECES = re.compile(r'(?P<skip>//[^\n]*|/\*.*?\*/|R"(?P<raw>\w*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\''
                    r'|^[ \t]*#(?:\\\n|[^\n])*)|(?P<end>[{};])', re.DOTALL | re.MULTILINE)
NAMESPACE = re.compile(r"\bnamespace\b\s*([\w:]*)\s*$")
TYPE = re.compile(r"\b(?:struct|class|union|enum)\s+(?:\w+\s+)*?(\w+)\s*(?:final\s*)?(?::(?!:).*)?$", re.DOTALL)


def types_of(text):
    """The types that a file defines at namespace scope, with their namespaces."""
    scopes, head, at = [], "", 0
    for piece in PIECES.finditer(text):
        head += text[at:piece.start()] + " "
        at = piece.end()
        if piece["skip"]:
            continue
        if piece["end"] == "{":
            namespace, type = NAMESPACE.search(head), TYPE.search(head)
            names = [name for kind, name in scopes]
            if namespace:
                scopes.append(("namespace", namespace[1]))
            else:
                outside = all(kind == "namespace" and name for kind, name in scopes)
                if type and outside and not re.search(r"\btemplate\s*<", head):
                    yield "::".join([*names, type[1]])
                scopes.append(("body", ""))
        elif piece["end"] == "}" and scopes:
            scopes.pop()
        head = ""


def main():
    root, files = pathlib.Path(sys.argv[1]), collections.defaultdict(set)
    folders = ("dialects", "include", "lib", "python-free-frontend", "runtime", "tools")
    for path in sorted(path for folder in folders for path in (root / folder).rglob("*") if path.suffix in (".h", ".cpp")):
        for name in types_of(path.read_text()):
            files[name].add(str(path.relative_to(root)))
    if len(files) < 100:
        sys.exit(f"definitions.py: finds only {len(files)} types in {root}")
    found = {name: paths for name, paths in files.items() if len(paths) > 1}
    for name, paths in sorted(found.items()):
        print(f"{name} is defined in {' and '.join(sorted(paths))}: give one of them another name, or an anonymous namespace")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
