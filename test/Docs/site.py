#!/usr/bin/env python3
"""Checks the site that mkdocs made of docs/: site.py ROOT SITE. Links between its pages lead somewhere, and every page of docs/ is in its contents."""
import html.parser
import pathlib
import re
import sys
import urllib.parse

root, site = map(pathlib.Path, sys.argv[1:])


class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if attributes.get("id"):
            self.names.add(attributes["id"])


pages = {path: Links(path.read_text()) for path in site.rglob("*.html")}
contents = {path.relative_to(root / "docs").as_posix() for path in (root / "docs").rglob("*.md")}
listed = set(re.findall(r"[\w/-]+\.md", (root / "mkdocs.yml").read_text()))
assert listed == contents, f"mkdocs.yml lacks or has too many of {listed ^ contents}"
wrong = []
for path, page in pages.items():
    for link in page.links:
        url = urllib.parse.urlparse(link)
        # What is outside of docs/ is of the source tree.
        if url.scheme or url.path.startswith(("/", "../..")) or not (url.path.endswith(".html") or not url.path):
            continue
        target = (path.parent / url.path).resolve() if url.path else path
        if target not in pages and site.resolve() in target.parents:
            wrong.append(f"{path.relative_to(site)}: {link}")
        elif target in pages and url.fragment and url.fragment not in pages[target].names:
            wrong.append(f"{path.relative_to(site)}: no {link}")
assert not wrong, "\n".join(wrong)
print(len(pages), "pages")
assert (site / "search" / "search_index.json").exists()
