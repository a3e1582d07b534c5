//===- NcclTopology.cpp - topologies of NCCL, in XML --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// NCCL writes elements with attributes, without text between them: a system of CPUs (NUMA
// nodes), below each a tree of PCI bridges, and as its leaves GPUs and adapters of the network.
//
//===----------------------------------------------------------------------===//
#include "Topology.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

using namespace meshwright::topology;
using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

namespace {
struct Element {
  StringRef name;
  int64_t line = 0, parent = -1;
  int64_t depth = 1; ///< of nesting
  std::map<StringRef, StringRef> attributes;

  StringRef get(StringRef key) const {
    auto found = attributes.find(key);
    return found == attributes.end() ? StringRef() : found->second;
  }
};

/// Elements in their order.
class Reader {
public:
  Reader(StringRef text, StringRef file) : text(text), rest(text), file(file) {}
  llvm::Expected<std::vector<Element>> read();

private:
  Error refuse(const Twine &why) const {
    return createStringError(file + ":" + Twine(lineOf(rest)) + ": " + why);
  }
  int64_t lineOf(StringRef at) const {
    return 1 + int64_t(text.take_front(at.data() - text.data()).count('\n'));
  }
  StringRef word() {
    StringRef name = rest.take_while(
        [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.' || c == ':'; });
    rest = rest.drop_front(name.size());
    return name;
  }
  Error readAttributes(Element &element);

  StringRef text, rest, file;
};
} // namespace

Error Reader::readAttributes(Element &element) {
  while (true) {
    rest = rest.ltrim();
    if (rest.empty() || rest.front() == '>' || rest.starts_with("/>"))
      return Error::success();
    StringRef key = word();
    rest = rest.ltrim();
    if (key.empty() || !rest.consume_front("="))
      return refuse("an attribute is written name=\"value\"");
    rest = rest.ltrim();
    size_t end = rest.starts_with("\"") ? rest.find('"', 1) : StringRef::npos;
    if (end == StringRef::npos)
      return refuse("the value of '" + key + "' must be in double quotes");
    if (!element.attributes.insert({key, rest.slice(1, end)}).second)
      return refuse("<" + element.name + "> has two attributes '" + key + "'");
    rest = rest.drop_front(end + 1);
  }
}

llvm::Expected<std::vector<Element>> Reader::read() {
  // NCCL itself reads 256 elements (2.28.9, NCCL_TOPO_XML_MAX_NODES in src/graph/topo.h), nested as they
  // may be.
  constexpr size_t mostElements = 1 << 16;
  constexpr int64_t deepest = 64;
  std::vector<Element> elements;
  int64_t open = -1;
  for (rest = rest.ltrim(); !rest.empty(); rest = rest.ltrim()) {
    StringRef begin = rest;
    if (!rest.consume_front("<"))
      return refuse("'<' expected");
    if (rest.starts_with("!--") || rest.starts_with("?")) {
      StringRef end = rest.starts_with("?") ? "?>" : "-->";
      size_t at = rest.find(end);
      if (at == StringRef::npos)
        return refuse("'" + end + "' is missing");
      rest = rest.drop_front(at + end.size());
      continue;
    }
    if (rest.consume_front("/")) {
      StringRef name = word();
      rest = rest.ltrim();
      if (open < 0 || name != elements[open].name || !rest.consume_front(">")) {
        rest = begin;
        return refuse("</" + name + "> closes no element that is open" +
                      (open < 0 ? "" : ", which is <" + elements[open].name + "> of line " +
                                           Twine(elements[open].line)));
      }
      open = elements[open].parent;
      continue;
    }
    Element element;
    element.line = lineOf(begin);
    element.parent = open;
    if (open >= 0)
      element.depth = elements[open].depth + 1;
    if (element.depth > deepest) {
      rest = begin;
      return refuse("elements are nested more than " + Twine(deepest) + " deep");
    }
    element.name = word();
    if (element.name.empty())
      return refuse("the name of an element is expected");
    if (Error error = readAttributes(element))
      return std::move(error);
    bool isClosed = rest.consume_front("/");
    if (!rest.consume_front(">"))
      return refuse("'>' of <" + element.name + "> is missing");
    if (elements.size() == mostElements)
      return refuse("more than " + Twine(mostElements) + " elements");
    elements.push_back(std::move(element));
    if (!isClosed)
      open = int64_t(elements.size()) - 1;
  }
  if (open >= 0)
    return createStringError(file + ":" + Twine(elements[open].line) + ": <" + elements[open].name +
                             "> is not closed");
  return elements;
}

namespace {
/// Looks for GPUs, and for what is between them.
class Finder {
public:
  Finder(std::vector<Element> elements, StringRef file) : elements(std::move(elements)), file(file) {}
  llvm::Expected<Machine> find();

private:
  Error refuse(const Element &at, const Twine &why) const {
    return createStringError(file + ":" + Twine(at.line) + ": " + why);
  }
  llvm::Expected<double> numberOf(const Element &at, StringRef key) const;
  llvm::Expected<int64_t> countOf(const Element &at, StringRef key, int64_t most) const;
  Error addGpu(int64_t index);
  Error addNetwork(const Element &net);
  Error addNvlinks();
  /// Bytes a second of a PCI device's link; 0: it is not said.
  llvm::Expected<double> bandwidthOf(const Element &pci) const;
  Link pathBetween(int64_t a, int64_t b) const;

  std::vector<Element> elements;
  StringRef file;
  Machine machine;
  std::map<int64_t, int64_t> gpus; ///< elements, by number
  std::map<int64_t, int64_t> numbers; ///< of GPUs, by element
  std::map<std::string, int64_t> addresses; ///< numbers of GPUs, by the address of the bus
  std::vector<std::optional<double>> bandwidths; ///< of elements around GPUs
  std::set<std::pair<StringRef, StringRef>> adapters; ///< by name and port
  std::vector<int64_t> toSwitches; ///< NVLinks of each GPU
};
} // namespace

llvm::Expected<double> Finder::numberOf(const Element &at, StringRef key) const {
  StringRef text = at.get(key);
  double value = 0;
  if (text.empty())
    return refuse(at, "<" + at.name + "> needs an attribute '" + key + "'");
  if (text.getAsDouble(value) || !(value >= 0 && value < 1e15))
    return refuse(at, "'" + key + "' of <" + at.name + "> must be a number, found '" + text + "'");
  return value;
}

llvm::Expected<int64_t> Finder::countOf(const Element &at, StringRef key, int64_t most) const {
  StringRef text = at.get(key);
  int64_t value = 0;
  if (text.empty())
    return refuse(at, "<" + at.name + "> needs an attribute '" + key + "'");
  if (text.getAsInteger(10, value) || value < 0 || value > most)
    return refuse(at, "'" + key + "' of <" + at.name + "> must be a whole number up to " +
                          Twine(most) + ", found '" + text + "'");
  return value;
}

Error Finder::addGpu(int64_t index) {
  const Element &gpu = elements[index];
  llvm::Expected<int64_t> dev = countOf(gpu, "dev", mostGpus - 1), sm = countOf(gpu, "sm", 1000);
  if (!dev || !sm)
    return joinErrors(dev.takeError(), sm.takeError());
  if (auto [at, isNew] = gpus.insert({*dev, index}); !isNew)
    return refuse(gpu, "dev " + Twine(*dev) + " is the GPU of line " +
                           Twine(elements[at->second].line) + " already; give the topology of one machine");
  numbers[index] = *dev;
  if (machine.capability && machine.capability != *sm)
    return refuse(gpu, "a GPU of sm " + Twine(*sm) + " beside one of " +
                           Twine(machine.capability) + "; the GPUs of a machine must be of one type");
  machine.capability = *sm;
  const Element *pci = gpu.parent < 0 ? nullptr : &elements[gpu.parent];
  if (!pci || pci->name != "pci")
    return refuse(gpu, "<gpu> must be in the <pci> that it is");
  if (pci->get("busid").empty())
    return refuse(*pci, "<pci> of a <gpu> needs an attribute 'busid'");
  if (auto [at, isNew] = addresses.insert({pci->get("busid").lower(), *dev}); !isNew)
    return refuse(*pci, "busid '" + pci->get("busid") + "' is that of GPU " + Twine(at->second) +
                            " already; each GPU needs its own");
  for (int64_t at = gpu.parent; at >= 0 && !bandwidths[at]; at = elements[at].parent) {
    llvm::Expected<double> bandwidth = bandwidthOf(elements[at]);
    if (!bandwidth)
      return bandwidth.takeError();
    bandwidths[at] = *bandwidth;
  }
  return Error::success();
}

Error Finder::addNetwork(const Element &net) {
  llvm::Expected<double> speed = numberOf(net, "speed");
  if (!speed)
    return speed.takeError();
  if (adapters.insert({net.get("name"), net.get("port")}).second) {
    ++machine.adapters;
    machine.adapterMegabits += *speed;
  }
  return Error::success();
}

llvm::Expected<double> Finder::bandwidthOf(const Element &pci) const {
  StringRef speed = pci.get("link_speed");
  if (pci.name != "pci" || speed.empty() || speed.starts_with("Unknown"))
    return 0;
  double transfers = 0;
  if (speed.split(' ').first.getAsDouble(transfers) || !speed.contains("GT/s") || !(transfers > 0) || transfers > 1e3)
    return refuse(pci, "'link_speed' must be as \"16.0 GT/s PCIe\", found '" + speed + "'");
  llvm::Expected<double> width = numberOf(pci, "link_width");
  if (!width)
    return width.takeError();
  // What NCCL 2.28.9 takes a lane for, in units of 100 Mbit/s (kvDictPciGen in src/graph/topo.cc): 15 and
  // 30 for 2.5 and 5 GT/s, of which line codes take a fifth, and 60, 120, 240 and 480 for 8 to 64 GT/s.
  double ofLane = transfers * (transfers < 8 ? 6 : 7.5) * 1e8 / 8;
  return ofLane * *width;
}

Link Finder::pathBetween(int64_t a, int64_t b) const {
  Link link;
  int64_t ends[] = {elements[a].parent, elements[b].parent}, steps[] = {0, 0};
  auto depthOf = [&](int64_t index) { return index < 0 ? 0 : elements[index].depth; };
  while (ends[0] != ends[1]) {
    // The inner one goes a step outwards.
    int side = depthOf(ends[0]) < depthOf(ends[1]);
    double bandwidth = *bandwidths[ends[side]];
    if (bandwidth > 0 && (link.pcieBandwidth == 0 || bandwidth < link.pcieBandwidth))
      link.pcieBandwidth = bandwidth;
    ends[side] = elements[ends[side]].parent;
    ++steps[side];
  }
  StringRef common = ends[0] < 0 ? StringRef() : elements[ends[0]].name;
  if (common == "pci")
    link.path = steps[0] == 1 && steps[1] == 1 ? Path::Switch : Path::Switches;
  else if (common == "cpu")
    link.path = Path::HostBridge;
  return link;
}

Error Finder::addNvlinks() {
  toSwitches.assign(machine.gpus, 0);
  std::map<std::pair<int64_t, int64_t>, int64_t> direct;
  for (const Element &element : elements) {
    if (element.name != "nvlink")
      continue;
    const Element *gpu = element.parent < 0 ? nullptr : &elements[element.parent];
    if (!gpu || gpu->name != "gpu")
      return refuse(element, "<nvlink> must be in a <gpu>");
    llvm::Expected<int64_t> count = countOf(element, "count", 1024);
    if (!count)
      return count.takeError();
    int64_t from = numbers.at(element.parent);
    // Links to other devices than GPUs and switches, such as CPUs, join no GPUs.
    if (auto target = addresses.find(element.get("target").lower()); target != addresses.end())
      direct[{from, target->second}] += *count;
    else if (element.get("tclass") == "0x068000")
      toSwitches[from] += *count;
  }
  for (int64_t a = 0; a < machine.gpus; ++a)
    for (int64_t b = 0; b < machine.gpus; ++b) {
      // A file may name a link at one of its ends.
      int64_t count = std::min(toSwitches[a], toSwitches[b]) +
                      std::max(direct[{a, b}], direct[{b, a}]);
      if (a != b && count > 0)
        machine.links[a * machine.gpus + b] = {Path::NVLink, count, 0};
    }
  return Error::success();
}

llvm::Expected<Machine> Finder::find() {
  machine.source = "NCCL's topology file";
  if (elements.empty() || elements.front().name != "system")
    return createStringError(file + ": NCCL's topology begins with <system>");
  bandwidths.resize(elements.size());
  for (auto [index, element] : llvm::enumerate(elements)) {
    Error error = element.name == "gpu"   ? addGpu(int64_t(index))
                  : element.name == "net" ? addNetwork(element)
                                          : Error::success();
    if (error)
      return std::move(error);
  }
  machine.gpus = int64_t(gpus.size());
  if (gpus.empty())
    return createStringError(file + ": no <gpu>; NCCL writes a file that has them where NCCL_TOPO_DUMP_FILE says");
  if (gpus.rbegin()->first + 1 != machine.gpus)
    return refuse(elements[gpus.rbegin()->second],
                  "dev " + Twine(gpus.rbegin()->first) + ", but there are " + Twine(machine.gpus) +
                      " GPUs, which must be numbered from 0");
  machine.links.resize(machine.gpus * machine.gpus);
  for (auto [a, one] : gpus)
    for (auto [b, other] : gpus) {
      if (a != b)
        machine.links[a * machine.gpus + b] = pathBetween(one, other);
    }
  if (Error error = addNvlinks())
    return std::move(error);
  return machine;
}

llvm::Expected<Machine> meshwright::topology::readNcclTopology(StringRef text, StringRef file) {
  llvm::Expected<std::vector<Element>> elements = Reader(text, file).read();
  if (!elements)
    return elements.takeError();
  return Finder(std::move(*elements), file).find();
}
