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
  // NCCL itself allows no more than 256.
  constexpr size_t mostElements = 1 << 16;
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
  Error addGpu(int64_t index);
  Error addNetwork(const Element &net);
  Error addNvlinks();
  /// Lanes times GT/s of a PCI device; 0: it is not said.
  llvm::Expected<double> transfersOf(const Element &pci) const;
  llvm::Expected<Link> pathBetween(int64_t a, int64_t b) const;
  /// From a GPU's element outwards.
  std::vector<int64_t> chainOf(int64_t index) const {
    std::vector<int64_t> chain;
    for (; index >= 0; index = elements[index].parent)
      chain.push_back(index);
    return chain;
  }

  std::vector<Element> elements;
  StringRef file;
  Machine machine;
  std::map<int64_t, int64_t> gpus; ///< elements, by number
  std::map<std::string, int64_t> numbers; ///< of GPUs, by the address of the bus
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

Error Finder::addGpu(int64_t index) {
  const Element &gpu = elements[index];
  llvm::Expected<double> dev = numberOf(gpu, "dev"), sm = numberOf(gpu, "sm");
  if (!dev || !sm)
    return joinErrors(dev.takeError(), sm.takeError());
  if (*dev >= double(mostGpus))
    return refuse(gpu, "'dev' of <gpu> must be below " + Twine(mostGpus));
  if (auto [at, isNew] = gpus.insert({int64_t(*dev), index}); !isNew)
    return refuse(gpu, "dev " + Twine(int64_t(*dev)) + " is the GPU of line " +
                           Twine(elements[at->second].line) + " already; give the topology of one machine");
  if (machine.capability && machine.capability != int64_t(*sm))
    return refuse(gpu, "a GPU of sm " + Twine(int64_t(*sm)) + " beside one of " +
                           Twine(machine.capability) + "; the GPUs of a machine must be of one type");
  machine.capability = int64_t(*sm);
  const Element *pci = gpu.parent < 0 ? nullptr : &elements[gpu.parent];
  if (!pci || pci->name != "pci")
    return refuse(gpu, "<gpu> must be in the <pci> that it is");
  numbers[pci->get("busid").lower()] = int64_t(*dev);
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

llvm::Expected<double> Finder::transfersOf(const Element &pci) const {
  StringRef speed = pci.get("link_speed");
  if (pci.name != "pci" || speed.empty() || speed.starts_with("Unknown"))
    return 0;
  double transfers = 0;
  if (speed.split(' ').first.getAsDouble(transfers) || !speed.contains("GT/s") || !(transfers > 0) || transfers > 1e3)
    return refuse(pci, "'link_speed' must be as \"16.0 GT/s PCIe\", found '" + speed + "'");
  llvm::Expected<double> width = numberOf(pci, "link_width");
  if (!width)
    return width.takeError();
  return transfers * *width;
}

llvm::Expected<Link> Finder::pathBetween(int64_t a, int64_t b) const {
  std::vector<int64_t> one = chainOf(elements[a].parent), other = chainOf(elements[b].parent);
  Link link;
  const Element *common = nullptr;
  size_t inside = 0; // elements of the chain of `a` below the common one
  while (inside < one.size() && !llvm::is_contained(other, one[inside]))
    ++inside;
  if (inside < one.size())
    common = &elements[one[inside]];
  size_t outside = common ? size_t(llvm::find(other, one[inside]) - other.begin()) : other.size();
  if (common && common->name == "pci")
    link.path = inside == 1 && outside == 1 ? Path::Switch : Path::Switches;
  else if (common && common->name == "cpu")
    link.path = Path::HostBridge;
  for (auto [chain, count] : {std::pair(&one, inside), {&other, outside}})
    for (int64_t index : llvm::ArrayRef(*chain).take_front(count)) {
      llvm::Expected<double> transfers = transfersOf(elements[index]);
      if (!transfers)
        return transfers.takeError();
      if (*transfers > 0 && (link.pcieGigatransfers == 0 || *transfers < link.pcieGigatransfers))
        link.pcieGigatransfers = *transfers;
    }
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
    llvm::Expected<double> count = numberOf(element, "count");
    if (!count)
      return count.takeError();
    if (*count > 1024)
      return refuse(element, "'count' of <nvlink> must be at most 1024");
    int64_t from = 0;
    (void)gpu->get("dev").getAsInteger(10, from);
    // Links to other devices than GPUs and switches, such as CPUs, join no GPUs.
    if (auto target = numbers.find(element.get("target").lower()); target != numbers.end())
      direct[{from, target->second}] += int64_t(*count);
    else if (element.get("tclass") == "0x068000")
      toSwitches[from] += int64_t(*count);
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
      if (a == b)
        continue;
      llvm::Expected<Link> link = pathBetween(one, other);
      if (!link)
        return link.takeError();
      machine.links[a * machine.gpus + b] = *link;
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
