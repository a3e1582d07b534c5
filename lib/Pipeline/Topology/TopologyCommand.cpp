//===- TopologyCommand.cpp - the `topology` command ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "../TomlText.h"
#include "Topology.h"

#include "meshwright/AtomicFile.h"
#include "meshwright/Cost/Cluster.h"
#include "meshwright/Cost/CostTable.h"
#include "meshwright/InputFile.h"
#include "meshwright/OptionValues.h"
#include "meshwright/Pipeline.h"
#include "meshwright/runtime/FileArguments.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <optional>

using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace meshwright {
using namespace topology;

static constexpr const char *topologyUsage =
    "usage: meshwright topology FILE --device NAME -o CLUSTER.toml [--network GBITS]\n"
    "                           [--interconnect GBYTES]\n"
    "  Converts the topology of a machine with GPUs into a cluster file for predict, plan and compile\n"
    "  --cluster. FILE is the output of 'nvidia-smi topo -m', or a topology of NCCL in XML, which NCCL\n"
    "  writes where NCCL_TOPO_DUMP_FILE says.\n"
    "  --device NAME          type of the GPUs, whose rates they have: a name of the table of devices\n"
    "                         (docs/clusters.md)\n"
    "  --network GBITS        bandwidth of the network adapters for each GPU in Gbit/s, e.g. 400; 0: the\n"
    "                         cluster is this machine (default: that of the adapters in NCCL's file)\n"
    "  --interconnect GBYTES  bandwidth between NUMA nodes in GB/s, if GPUs communicate across (SYS)\n";

static constexpr InputKind topologyInput{"a topology", 4};

namespace {
struct TopologyArguments {
  std::string input, output;
  const cost::Device *device = nullptr;
  std::optional<double> network, interconnect; ///< Gbit/s of a GPU, GB/s
};

/// Links between the units of a level, as the slowest between any two GPUs of a block of it.
struct Block {
  int64_t gpus;
  Link link;
  int64_t a, b; ///< the GPUs of that link
};
} // namespace

static Expected<TopologyArguments> readTopologyArguments(llvm::ArrayRef<std::string> args) {
  TopologyArguments read;
  std::pair<StringRef, std::optional<double> *> numbers[] = {{"--network", &read.network},
                                                             {"--interconnect", &read.interconnect}};
  for (size_t i = 0; i < args.size(); ++i) {
    StringRef flag = args[i];
    if (flag == "-h" || flag == "--help")
      return llvm::make_error<HelpRequested>(topologyUsage);
    auto *number = llvm::find_if(numbers, [&](auto &entry) { return entry.first == flag; });
    bool isNumber = number != std::end(numbers);
    if (isNumber || flag == "-o" || flag == "--output" || flag == "--device") {
      if (i + 1 == args.size())
        return createStringError("a value is missing after '" + flag + "'\n" + topologyUsage);
      StringRef value = args[++i];
      double count = 0;
      bool mayBeZero = flag == "--network";
      if (isNumber) {
        if (value.getAsDouble(count) || !(mayBeZero ? count >= 0 : count > 0) || count > 1e6)
          return createStringError(flag + " must be a " + (mayBeZero ? "" : "positive ") +
                                   "number up to 1000000, found '" + value + "'");
        *number->second = count;
      } else if (flag != "--device") {
        read.output = value.str();
      } else if (!(read.device = cost::findDevice(value)) || read.device->launch == 0) {
        std::vector<StringRef> names;
        for (const cost::Device &device : cost::getDevices())
          if (device.launch > 0)
            names.push_back(device.name);
        return createStringError("--device " + notAmong(value, names));
      }
    } else if (flag.starts_with("-") || !read.input.empty()) {
      return createStringError(
          (flag.starts_with("-") ? "unknown option '" : "one argument too many: '") + flag + "'\n" +
          topologyUsage);
    } else {
      read.input = flag.str();
    }
  }
  if (read.input.empty())
    return createStringError(Twine("no topology given\n") + topologyUsage);
  if (!read.device)
    return createStringError(
        Twine("--device is missing: a topology does not say how fast GPUs compute\n") + topologyUsage);
  if (!StringRef(read.output).ends_with(".toml"))
    return createStringError(
        "-o must name the cluster file to write, which ends in .toml, found '" + read.output + "'");
  std::vector<FileArgument> files{{"FILE", read.input, FileUse::Input},
                                  {"-o", read.output, FileUse::Output}};
  if (std::string clash = clashOf(files); !clash.empty())
    return createStringError(clash);
  return read;
}

/// Bytes a second of an NVLink in one direction, as NCCL takes it (2.28.9, src/graph/topo.h); 0: the GPU
/// has none.
static double nvlinkBandwidth(int64_t capability) {
  static constexpr std::pair<int64_t, double> table[] = {{100, 40.1e9}, {90, 20.6e9}, {86, 12e9},
                                                         {80, 20e9},    {70, 20e9},   {60, 18e9}};
  if (capability == 89)
    return 0;
  for (auto [least, bandwidth] : table)
    if (capability >= least && (least != 86 || capability == 86))
      return bandwidth;
  return 0;
}

/// NVIDIA's list of compute capabilities, by the beginning of a device's name.
static int64_t capabilityOf(const cost::Device &device) {
  static constexpr std::pair<StringRef, int64_t> table[] = {
      {"a100", 80}, {"a40", 86}, {"l40s", 89}, {"h100", 90}, {"b200", 100}};
  for (auto [name, capability] : table)
    if (StringRef(device.name).starts_with(name))
      return capability;
  return 0;
}

/// Sizes of blocks of neighbouring GPUs, the smallest first: NVLinks in a block of four, say, and PCIe
/// between two such blocks. Each divides the next one, and its slowest link is faster than that of the
/// next one.
static std::vector<Block> blocksOf(const Machine &machine) {
  std::vector<Block> blocks;
  for (int64_t size = machine.gpus; size > 1; --size) {
    if ((blocks.empty() ? machine.gpus : blocks.back().gpus) % size != 0)
      continue;
    std::optional<Block> slowest;
    for (int64_t a = 0; a < machine.gpus; ++a)
      for (int64_t b = a / size * size; b < a; ++b)
        if (!slowest || machine.between(a, b).isSlowerThan(slowest->link))
          slowest = Block{size, machine.between(a, b), b, a};
    if (blocks.empty() || blocks.back().link.isSlowerThan(slowest->link))
      blocks.push_back(*slowest);
  }
  std::reverse(blocks.begin(), blocks.end());
  return blocks;
}

static std::string levelText(StringRef name, int64_t count, double latency, double bandwidth,
                             StringRef source) {
  std::string text = "\n[[levels]]\nname = " + tomlString(name) + "\n";
  if (count)
    text += "count = " + std::to_string(count) + "\n";
  return text + llvm::formatv("latency = {0:e1}\nbandwidth = {1:e3}\nsource = {2}\n", latency,
                              bandwidth, tomlString(source))
                    .str();
}

namespace {
class ClusterWriter {
public:
  ClusterWriter(const TopologyArguments &arguments, const Machine &machine)
      : arguments(arguments), machine(machine), device(*arguments.device) {}
  Expected<std::string> write();

private:
  /// Bytes a second, and where the number is from.
  Expected<std::pair<double, std::string>> bandwidthOf(const Block &block) const;
  Expected<std::pair<double, std::string>> networkBandwidth() const;

  const TopologyArguments &arguments;
  const Machine &machine;
  const cost::Device &device;
};
} // namespace

Expected<std::pair<double, std::string>> ClusterWriter::bandwidthOf(const Block &block) const {
  const Link &link = block.link;
  std::string said = llvm::formatv("{0}: {1} between GPU{2} and GPU{3}; ", machine.source,
                                   link.str(), block.a, block.b)
                         .str();
  if (link.path == Path::NVLink) {
    double each = nvlinkBandwidth(capabilityOf(device));
    if (each == 0)
      return createStringError("GPU" + Twine(block.a) + " and GPU" + Twine(block.b) +
                               " are linked by " + link.str() + ", but --device " + device.name +
                               " has no NVLink; name the device that this machine has");
    said += llvm::formatv("{0:F1} GB/s a link in src/graph/topo.h of NCCL 2.28.9", each / 1e9).str();
    return std::pair(double(link.nvlinks) * each, said);
  }
  double pcie = link.pcieBandwidth > 0 ? link.pcieBandwidth : device.host.bandwidth;
  std::string source =
      said + (link.pcieBandwidth > 0
                  ? "PCIe of the narrowest link between, by the table of speeds in src/graph/topo.cc of "
                    "NCCL 2.28.9"
                  : "PCIe of " + device.description + " in the table of devices");
  if (link.path != Path::System)
    return std::pair(pcie, source);
  if (!arguments.interconnect)
    return createStringError("GPU" + Twine(block.a) + " and GPU" + Twine(block.b) +
                             " are on different NUMA nodes (SYS), and the topology does not say "
                             "how fast the links between these are; add --interconnect GBYTES");
  return std::pair(std::min(pcie, *arguments.interconnect * 1e9), source + "; --interconnect");
}

Expected<std::pair<double, std::string>> ClusterWriter::networkBandwidth() const {
  if (arguments.network)
    return std::pair(*arguments.network * 1e9 / 8, std::string("--network"));
  if (machine.adapters == 0)
    return std::pair(0.0, std::string());
  if (machine.adapterMegabits == 0)
    return createStringError("the machine has " + Twine(machine.adapters) +
                             " network adapters, and the topology does not say how fast they are; "
                             "add --network GBITS, what they give each GPU, or --network 0 for this "
                             "machine alone");
  return std::pair(machine.adapterMegabits * 1e6 / 8 / double(machine.gpus),
                   llvm::formatv("{0}: {1} adapters of {2:F0} Mbit/s in all, for {3} GPUs",
                                 machine.source, machine.adapters, machine.adapterMegabits,
                                 machine.gpus)
                       .str());
}

Expected<std::string> ClusterWriter::write() {
  int64_t capability = capabilityOf(device);
  if (machine.capability && capability && capability != machine.capability)
    return createStringError("the GPUs of the topology are of compute capability " +
                             Twine(machine.capability) + " (sm), but --device " + device.name +
                             " is of " + Twine(capability));
  Expected<std::pair<double, std::string>> network = networkBandwidth();
  if (!network)
    return network.takeError();
  StringRef name = llvm::sys::path::stem(arguments.output);
  std::string text =
      "# meshwright topology, from " + std::string(machine.source) +
      ". Collectives are rings of messages unless [[levels.algorithms]]\n# say how "
      "long they take (docs/clusters.md).\nname = " +
      tomlString(name) + "\ntarget = \"cuda\"\ndescription = " +
      tomlString(
          llvm::formatv("machines of {0} GPUs, each {1}", machine.gpus, device.description).str()) +
      "\n\n[[devices]]\nlike = " + tomlString(device.name) + "\n";
  std::vector<Block> blocks = blocksOf(machine);
  int64_t inside = 1;
  for (const Block &block : blocks) {
    Expected<std::pair<double, std::string>> bandwidth = bandwidthOf(block);
    if (!bandwidth)
      return bandwidth.takeError();
    bool isNvlink = block.link.path == Path::NVLink;
    std::string level = isNvlink ? "NVLink" : "PCIe (" + block.link.str() + ")";
    auto isAlike = [&](const Block &other) { return other.link.path == block.link.path; };
    if (llvm::count_if(blocks, isAlike) > 1)
      level += ", " + std::to_string(block.gpus) + " GPUs";
    text += levelText(level, block.gpus / inside, device.machine.latency, bandwidth->first,
                      bandwidth->second + "; latency as in the table of devices");
    inside = block.gpus;
  }
  if (network->first > 0)
    text += levelText("network", 0, device.network.latency, network->first,
                      network->second + "; latency as in the table of devices");
  else if (blocks.empty())
    return createStringError(
        "one GPU without a network needs no cluster of levels; add --network GBITS");
  return text;
}

/// Says so if there is an NVLink that no block has, since cluster files have neighbours only.
static std::string unusedLink(const Machine &machine) {
  std::vector<Block> blocks = blocksOf(machine);
  for (int64_t a = 0; a < machine.gpus; ++a)
    for (int64_t b = a + 1; b < machine.gpus; ++b) {
      const Link &link = machine.between(a, b);
      auto block =
          llvm::find_if(blocks, [&](const Block &one) { return a / one.gpus == b / one.gpus; });
      if (link.path == Path::NVLink && block->link.path != Path::NVLink)
        return llvm::formatv("{0} between GPU{1} and GPU{2} is not in the file: GPU{3} and GPU{4}, "
                             "in the same block of neighbours, are linked by {5}. Numbers in another "
                             "order (CUDA_VISIBLE_DEVICES) may bring linked GPUs together",
                             link.str(), a, b, block->a, block->b, block->link.str());
    }
  return "";
}

Error convertTopology(llvm::ArrayRef<std::string> args, llvm::raw_ostream &os) {
  Expected<TopologyArguments> read = readTopologyArguments(args);
  if (!read)
    return read.takeError();
  auto file = readInput(read->input, topologyInput);
  if (!file)
    return createStringError("cannot read '" + read->input + "': " + toString(file.takeError()));
  StringRef input = (*file)->getBuffer();
  Expected<Machine> machine = input.ltrim().starts_with("<") ? readNcclTopology(input, read->input)
                                                             : readMatrix(input, read->input);
  if (!machine)
    return machine.takeError();
  Expected<std::string> text = ClusterWriter(*read, *machine).write();
  if (!text)
    return text.takeError();
  // What is written can be read.
  Expected<cost::Cluster> cluster = cost::readCluster(*text, read->output);
  if (!cluster)
    return cluster.takeError();
  if (Error error = writeFileAtomically(*text, read->output))
    return error;
  os << read->output << ": " << cluster->description << "\n";
  for (const cost::Level &level : cluster->levels)
    os << llvm::formatv("  {0}: {1}{2:F1} GB/s\n", level.name,
                        level.count ? std::to_string(level.count) + " units, "
                                    : "any number of units, ",
                        level.link.bandwidth / 1e9);
  if (std::string note = unusedLink(*machine); !note.empty())
    os << "  note: " << note << "\n";
  return Error::success();
}

} // namespace meshwright
