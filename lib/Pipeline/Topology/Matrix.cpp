//===- Matrix.cpp - what `nvidia-smi topo -m` prints --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Topology.h"

#include "meshwright/OptionValues.h"

#include "llvm/ADT/StringExtras.h"

#include <optional>

using namespace meshwright;
using namespace meshwright::topology;
using llvm::createStringError;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;

static constexpr StringRef pathNames[] = {"NV", "PIX", "PXB", "PHB", "NODE", "SYS"};

std::string Link::str() const {
  return pathNames[int(path)].str() + (path == Path::NVLink ? std::to_string(nvlinks) : "");
}

bool Link::isSlowerThan(const Link &other) const {
  if (path != other.path)
    return path > other.path;
  return path == Path::NVLink ? nvlinks < other.nvlinks
                              : pcieBandwidth < other.pcieBandwidth;
}

/// Terminals get the header underlined.
static std::string withoutEscapes(StringRef text) {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b' && text.substr(at + 1).starts_with("[")) {
      at = std::min(text.find('m', at), text.size());
      continue;
    }
    result += text[at];
  }
  return result;
}

static std::optional<Link> linkNamed(StringRef name) {
  Link link;
  if (StringRef count = name; count.consume_front("NV"))
    return count.getAsInteger(10, link.nvlinks) || link.nvlinks < 1 || link.nvlinks > 1024
               ? std::nullopt
               : std::optional(Link{Path::NVLink, link.nvlinks, 0});
  for (auto [i, known] : llvm::enumerate(pathNames))
    if (name == known)
      return Link{Path(i), 0, 0};
  return std::nullopt;
}

llvm::Expected<Machine> topology::readMatrix(StringRef given, StringRef file) {
  std::string text = withoutEscapes(given);
  Machine machine;
  machine.source = "nvidia-smi topo -m";
  int64_t number = 0, rows = 0;
  auto refuse = [&](const Twine &why) {
    return createStringError(file + ":" + Twine(number) + ": " + why);
  };
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n');
  for (StringRef line : lines) {
    ++number;
    SmallVector<StringRef> words;
    llvm::SplitString(line, words, " \t\r");
    if (words.empty())
      continue;
    if (machine.gpus == 0) {
      // The header: GPUs, adapters of the network, and then what CPUs they are near to.
      if (words.front() != "GPU0")
        continue;
      while (size_t(machine.gpus) < words.size() &&
             words[machine.gpus] == ("GPU" + Twine(machine.gpus)).str())
        ++machine.gpus;
      if (machine.gpus > mostGpus)
        return refuse("more than " + Twine(mostGpus) + " GPUs");
      for (StringRef word : llvm::drop_begin(words, machine.gpus)) {
        if (word == "CPU" || word == "NUMA")
          break;
        if (word.starts_with("GPU"))
          return refuse("'" + word + "' where GPU" + Twine(machine.gpus) +
                        " or an adapter is expected; GPUs are numbered in order");
        ++machine.adapters;
      }
      machine.links.resize(machine.gpus * machine.gpus);
      continue;
    }
    if (rows == machine.gpus)
      break;
    if (words.front() != ("GPU" + Twine(rows)).str())
      return refuse("'" + words.front() + "' where the row of GPU" + Twine(rows) + " is expected");
    if (int64_t(words.size()) <= machine.gpus)
      return refuse("the row of GPU" + Twine(rows) + " has " + Twine(words.size() - 1) +
                    " columns, but there are " + Twine(machine.gpus) + " GPUs");
    for (int64_t column = 0; column < machine.gpus; ++column) {
      StringRef name = words[column + 1];
      if ((name == "X") != (rows == column))
        return refuse("'" + name + "' between GPU" + Twine(rows) + " and GPU" + Twine(column) +
                      "; X is the link of a GPU to itself");
      if (rows == column)
        continue;
      std::optional<Link> link = linkNamed(name);
      if (!link)
        return refuse("'" + name + "' between GPU" + Twine(rows) + " and GPU" + Twine(column) +
                      " is no link; known are NV#, PIX, PXB, PHB, NODE and SYS");
      machine.links[rows * machine.gpus + column] = *link;
      if (const Link &back = machine.between(column, rows);
          column < rows && back.str() != link->str())
        return refuse("GPU" + Twine(rows) + " is linked to GPU" + Twine(column) + " by " +
                      link->str() + ", but in the other direction by " + back.str());
    }
    ++rows;
  }
  if (machine.gpus == 0)
    return createStringError(
        file +
        ": no line begins with GPU0, as that above the matrix of 'nvidia-smi topo -m' does");
  if (rows < machine.gpus)
    return refuse("the row of GPU" + Twine(rows) + " is missing");
  return machine;
}
