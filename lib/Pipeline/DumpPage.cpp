//===- DumpPage.cpp - what each pass changes, as a page ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "DumpPage.h"

#include "LineDiff.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using llvm::StringRef;

namespace meshwright {

std::string dumpPageHead() {
  return R"html(<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>IR after each pass</title>
<style>
:root { color-scheme: light dark; --ink: #1b1f24; --quiet: #57606a; --paper: #fff; --line: #d0d7de; --added: #dafbe1; --removed: #ffebe9; --hit: #fff3b0 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --quiet: #9ea7b3; --paper: #0d1117; --line: #30363d; --added: #12361f; --removed: #4a1418; --hit: #5c4a00 } }
body { margin: 0 auto; max-width: 1400px; padding: 0 1rem 4rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
form { position: sticky; top: 0; background: var(--paper); padding: .6rem 0; border-bottom: 1px solid var(--line); display: flex; flex-wrap: wrap; gap: .6rem; align-items: center }
input[type=search] { font: inherit; flex: 1 1 14rem; min-width: 0; padding: .3rem .5rem }
button { font: inherit }
output { color: var(--quiet); min-width: 9rem }
details { border-bottom: 1px solid var(--line) }
summary { padding: .35rem 0; cursor: pointer; overflow-wrap: anywhere }
summary small, .idle { color: var(--quiet) }
.idle { margin: 0; padding: .35rem 0 .35rem 1.1rem; border-bottom: 1px solid var(--line) }
pre { margin: 0 0 .8rem; font: 13px/1.45 ui-monospace, monospace; overflow-x: auto }
pre > * { display: block; width: max-content; min-width: 100%; text-decoration: none }
ins { background: var(--added) } del { background: var(--removed) }
hr { border: 0; border-top: 1px dashed var(--line); margin: .3rem 0; min-width: 100% }
.hit { outline: 2px solid #bf8700; outline-offset: -2px } a.v { color: inherit; text-decoration: none } a.v:hover { text-decoration: underline }
.same { color: var(--quiet) }
@media print { form { display: none } }
</style>
<script>
addEventListener("DOMContentLoaded", () => {
  const box = document.querySelector("input"), said = document.querySelector("output");
  let hits = [], at = -1;
  const search = () => {
    const wanted = box.value.trim();
    document.querySelectorAll(".hit").forEach(line => line.classList.remove("hit"));
    hits = []; at = -1;
    let passes = 0;
    for (const pass of document.querySelectorAll("details")) {
      const found = wanted ? [...pass.querySelectorAll("ins, del")].filter(line => line.textContent.includes(wanted)) : [];
      const named = wanted && pass.id.includes(wanted);
      pass.hidden = wanted && !found.length && !named;
      pass.open = found.length > 0;
      passes += found.length > 0;
      found.forEach(line => line.classList.add("hit"));
      hits.push(...found);
    }
    document.querySelectorAll(".idle").forEach(line => line.hidden = wanted && !line.id.includes(wanted));
    said.textContent = wanted ? `${hits.length} lines in ${passes} passes` : "";
    history.replaceState(null, "", wanted ? "?" + new URLSearchParams({ q: wanted }) : location.pathname);
  };
  const go = by => {
    if (!hits.length) return;
    at = (at + by + hits.length) % hits.length;
    hits[at].scrollIntoView({ block: "center" });
    said.textContent = `line ${at + 1} of ${hits.length}`;
  };
  box.addEventListener("input", search);
  document.querySelector("form").addEventListener("submit", event => { event.preventDefault(); go(1); });
  document.getElementById("back").addEventListener("click", () => go(-1));
  document.getElementById("all").addEventListener("click", () => {
    const passes = [...document.querySelectorAll("details:not([hidden])")], open = passes.some(pass => !pass.open);
    passes.forEach(pass => pass.open = open);
  });
  // A value or symbol shows the passes that made, changed and removed it.
  document.addEventListener("click", event => {
    const name = event.target.closest("a.v");
    if (!name) return;
    event.preventDefault();
    box.value = name.textContent;
    search();
    scrollTo(0, 0);
  });
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) { box.value = asked; search(); }
});
</script>
<h1>IR after each pass</h1>
<p>Each pass with the lines that it removes and adds. A value's name shows where it came from and what became of it; the file of a pass has all of its IR.</p>
<form><label for="search">Search</label><input type="search" id="search" placeholder="%mlp.gate_proj, train.linear, all_reduce" autocomplete="off">
<button>Next</button><button type="button" id="back">Previous</button><button type="button" id="all">Fold or unfold all</button><output></output></form>
)html";
}

static void escape(StringRef text, llvm::raw_ostream &os) {
  for (char c : text)
    if (c == '&')
      os << "&amp;";
    else if (c == '<')
      os << "&lt;";
    else if (c == '>')
      os << "&gt;";
    else
      os << c;
}

/// A line with its values and symbols as links.
static void writeLine(StringRef line, llvm::raw_ostream &os) {
  auto isName = [](char c) { return llvm::isAlnum(c) || StringRef("_.$-").contains(c); };
  while (!line.empty()) {
    size_t at = line.find_first_of("%@");
    escape(line.take_front(at), os);
    line = line.drop_front(std::min(at, line.size()));
    if (line.empty())
      return;
    size_t length = 1 + line.drop_front().take_while(isName).size();
    if (length == 1)
      os << line.front();
    else
      os << "<a class=v href=#>" << line.take_front(length) << "</a>";
    line = line.drop_front(length);
  }
}

std::string dumpPageSection(StringRef name, StringRef before, StringRef after) {
  constexpr size_t context = 2;
  std::vector<DiffLine> lines = diffLines(before, after);
  size_t added = llvm::count_if(lines, [](const DiffLine &line) { return line.kind == DiffLine::Added; });
  size_t removed = llvm::count_if(lines, [](const DiffLine &line) { return line.kind == DiffLine::Removed; });
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "<details id=\"" << name << "\"><summary>" << name << " <small>"
     << llvm::formatv("{0:N0} lines added, {1:N0} removed", added, removed) << " &middot; <a href=\"" << name
     << ".mlir\">file</a></small></summary><pre>";
  size_t shown = 0; // Lines before this one are written.
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].kind == DiffLine::Kept)
      continue;
    size_t begin = std::max(shown, i - std::min(i, context));
    if (begin > shown || (shown == 0 && begin > 0))
      os << "<hr>";
    size_t end = i;
    for (size_t last = i; end < lines.size() && end <= last + context; ++end)
      if (lines[end].kind != DiffLine::Kept)
        last = end;
    for (const DiffLine &line : llvm::ArrayRef(lines).slice(begin, end - begin)) {
      StringRef tag = line.kind == DiffLine::Added ? "ins" : line.kind == DiffLine::Removed ? "del" : "span";
      os << "<" << tag << (tag == "span" ? " class=same>  " : tag == "ins" ? ">+ " : ">- ");
      writeLine(line.text, os);
      os << "</" << tag << ">";
    }
    shown = end;
    i = end - 1;
  }
  os << "</pre></details>\n";
  return text;
}

std::string dumpPageIdle(StringRef name) {
  return ("<p class=idle id=\"" + name + "\">" + name + " changed nothing</p>\n").str();
}

} // namespace meshwright
