#!/usr/bin/env python3
"""Files that documentation names in backticks exist: paths.py ROOT"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
folders = {path.name for path in root.iterdir() if path.is_dir() and path.name not in ("build", ".git")}
files = [*root.glob("*.md"), *(path for folder in folders for path in (root / folder).rglob("*"))]
names = {path.name for path in files}


def spelled_out(text):
    """a{b,c} as ab and ac."""
    braces = re.search(r"\{([^{}]*)\}", text)
    return [path for part in braces[1].split(",") for path in spelled_out(text[:braces.start()] + part + text[braces.end():])
            ] if braces else [text]


wrong = []
for page in (path for path in files if path.suffix == ".md"):
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for named in re.findall(r"`([^`\s<>$]+)`", prose):
        for path in spelled_out(named.rstrip("/")):
            if path.split("/")[0] in folders and "/" in path:
                exists = any(root.glob(path)) or any(root.glob(path + ".*"))  # Passes go without an ending.
            else:
                exists = path in names or not re.fullmatch(r"\w+\.(cpp|h|td|py|def)", path)
            if not exists:
                wrong.append(f"{page.relative_to(root)} names {named}, which does not exist")
print("\n".join(wrong))
sys.exit(bool(wrong))
