//===- ClusterFile.cpp - cluster files --------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "TomlReader.h"
#include "meshwright/Cost/Cluster.h"
#include "meshwright/Cost/CostTable.h"
#include "meshwright/Cost/Functions.h"
#include "meshwright/InputFile.h"
#include "meshwright/OptionValues.h"

using namespace meshwright;
using namespace meshwright::cost;
using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

/// What a product of a file without `product_rows` needs to be at its best, as CPUs of the table:
/// with too few the loss would be computed in many small parts.
static constexpr int64_t defaultProductRows = 1024;

/// Devices of a cluster, whose numbers are added up and multiplied.
static constexpr int64_t mostDevices = int64_t(1) << 31;

namespace {
class ClusterReader : public TomlReader {
public:
  using TomlReader::TomlReader;
  Cluster read(const toml::table &table);

private:
  CollectiveAlgorithm algorithm(const toml::table &table);
  Level level(const toml::table &table, bool isLast);
  Torus torus(const toml::node &node);
  Cluster::Devices devices(const toml::table &table, bool isLast);
  /// A positive number; 0 where there is none.
  double positive(const toml::table &table, StringRef key, bool mustBe);
  using Tables = llvm::ArrayRef<const toml::table *>;
  /// Refuses levels of one name, and more devices than there can be.
  void checkLevels(const Cluster &cluster, Tables tables);
  /// Refuses types of devices that are more or fewer than the levels connect. Where no level says how
  /// many there are, the types do.
  void checkCounts(Cluster &cluster, Tables types);
};
} // namespace

double ClusterReader::positive(const toml::table &table, StringRef key, bool mustBe) {
  double value = number(table, key, mustBe);
  if (const toml::node *node = table.get(std::string_view(key)); node && value == 0)
    fail(*node, "'" + key + "' must be positive");
  return value;
}

/// Whether a table has rates of 16 bits.
static bool saysNarrow(const toml::table &table, StringRef key) {
  const toml::node *node = table.get(std::string_view(key));
  const toml::table *rates = node ? node->as_table() : nullptr;
  return rates && rates->get("bf16");
}

llvm::ArrayRef<StringRef> CollectiveAlgorithm::known() {
  static constexpr StringRef known[] = {"all_reduce", "all_gather", "reduce_scatter",
                                        "all_to_all", "broadcast",  "reduce"};
  return known;
}

llvm::ArrayRef<StringRef> cost::functionNames() {
  // The operations of MLIR's dialect math but absf, and four of arith.
  static constexpr StringRef names[] = {
      "absi", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil",
      "clampf", "copysign", "cos", "cosh", "ctlz", "ctpop", "cttz", "divf", "erf", "erfc", "exp",
      "exp2", "expm1", "extf", "floor", "fma", "fpowi", "ipowi", "isfinite", "isinf", "isnan",
      "isnormal", "log", "log10", "log1p", "log2", "mului_extended", "powf", "round", "roundeven",
      "rsqrt", "sin", "sincos", "sinh", "sqrt", "tan", "tanh", "trunc", "truncf"};
  return names;
}

CollectiveAlgorithm ClusterReader::algorithm(const toml::table &table) {
  expectOnly(table, {"name", "collectives", "pattern", "base", "step", "bandwidth", "source"});
  CollectiveAlgorithm algorithm;
  algorithm.name = text(table, "name");
  text(table, "source");
  llvm::ArrayRef<StringRef> known = CollectiveAlgorithm::known();
  if (const toml::node *node = find(table, "collectives", true)) {
    if (const toml::array *array = node->as_array())
      for (auto &&item : *array) {
        std::string name = item.value_or(std::string());
        if (!llvm::is_contained(known, StringRef(name)))
          fail(item, "'collectives' " + notAmong(name, known));
        algorithm.collectives.push_back(name);
      }
    if (algorithm.collectives.empty())
      fail(*node, "'collectives' must be a list of names, such as [\"all_reduce\"]");
  }
  if (std::string pattern = text(table, "pattern"); !pattern.empty()) {
    static const llvm::SmallVector<StringRef> patterns = {"ring", "tree", "direct"};
    if (auto found = llvm::find(patterns, StringRef(pattern)); found != patterns.end())
      algorithm.pattern = CollectiveAlgorithm::Pattern(found - patterns.begin());
    else
      fail(*table.get("pattern"), "'pattern' " + notAmong(pattern, patterns));
  }
  algorithm.base = number(table, "base", false);
  algorithm.step = number(table, "step", false);
  if (std::optional<Rate> bandwidth = rate(table, "bandwidth", true))
    algorithm.bandwidth = *bandwidth;
  return algorithm;
}

Torus ClusterReader::torus(const toml::node &node) {
  Torus torus;
  int64_t devices = 1;
  if (const toml::array *array = node.as_array())
    for (auto &&item : *array) {
      int64_t size = item.is_integer() ? item.value_or(int64_t(0)) : 0;
      if (size < 2 || size > mostDevices / devices) {
        torus.dimensions.clear();
        break;
      }
      devices *= size;
      torus.dimensions.push_back(size);
    }
  if (torus.dimensions.empty())
    fail(node, "'torus' must be a list of sizes from 2 on, such as [4, 4, 8], of at most " +
                   Twine(mostDevices) + " devices");
  return torus;
}

Level ClusterReader::level(const toml::table &table, bool isLast) {
  expectOnly(table,
             {"name", "count", "torus", "latency", "bandwidth", "contention", "source", "algorithms"});
  Level level;
  level.name = text(table, "name");
  text(table, "source");
  if (const toml::node *node = find(table, "torus", false)) {
    level.torus = torus(*node);
    level.count = level.torus->size();
    for (StringRef key : {"count", "algorithms"})
      if (const toml::node *other = find(table, key, false))
        fail(*other, "'" + key + "' of a torus: its dimensions say how many devices it connects, and "
                     "collectives go along them");
  } else {
    level.count = count(table, "count", !isLast);
  }
  level.link = {number(table, "latency"), positive(table, "bandwidth", true)};
  level.contention = number(table, "contention", false);
  if (level.contention > 1)
    fail(*table.get("contention"), "'contention' must be a part of a collective's time, from 0 to 1");
  for (const toml::table *entry : tables(table, "algorithms", false))
    level.algorithms.push_back(algorithm(*entry));
  return level;
}

Cluster::Devices ClusterReader::devices(const toml::table &table, bool isLast) {
  expectOnly(table, {"name", "like", "count", "memory", "products", "attention", "attention_grad",
                     "product_rows", "packing", "grouped_share", "kernels", "functions", "memory_bandwidth", "launch", "host",
                     "ssd", "peak", "spread", "description", "source"});
  // Without a row to take it from, everything must be said.
  std::string like = text(table, "like", false);
  const Device *row = like.empty() ? nullptr : findDevice(like);
  if (!like.empty() && !row)
    fail(*table.get("like"), "'like' " + notAmong(like, llvm::map_to_vector(
                                 getDevices(), [](const Device &d) { return StringRef(d.name); })));
  if (!row)
    for (StringRef key : {"name", "memory", "products", "memory_bandwidth", "launch", "host",
                          "source"})
      find(table, key, true);
  Cluster::Devices devices{row ? *row : getDevices().front()};
  Device &device = devices.device;
  if (std::string name = text(table, "name", false); !name.empty())
    device.name = name;
  if (std::string description = text(table, "description", false); !description.empty())
    device.description = description;
  else if (!row)
    device.description = device.name;
  text(table, "source", false);
  devices.count = count(table, "count", !isLast);
  if (double bytes = positive(table, "memory", false))
    device.capacity = bytes;
  rates(table, "products", device.products, /*complete=*/!row);
  // What a row has of tiles was measured with its own products.
  if (saysNarrow(table, "products"))
    device.tiles.reset();
  if (!row) {
    device.attention = device.attentionGrad = device.products;
    device.kernels = device.products.f32;
    device.productRows = defaultProductRows;
  }
  rates(table, "attention", device.attention);
  rates(table, "attention_grad", device.attentionGrad);
  // What a row has of small heads was measured with its other rates.
  if (saysNarrow(table, "attention"))
    device.smallHeads = Rate(0);
  if (saysNarrow(table, "attention_grad"))
    device.smallHeadsGrad = Rate(0);
  if (const toml::node *node = find(table, "packing", false)) {
    if (const toml::table *types = node->as_table()) {
      expectOnly(*types, {"f32", "bf16"});
      device.packing.f32 = number(*types, "f32", false);
      device.packing.narrow = number(*types, "bf16", false);
    } else {
      fail(*node, "'packing' must be a table with rates of f32 and bf16");
    }
  }
  if (int64_t rows = count(table, "product_rows", false))
    device.productRows = rows;
  if (double share = positive(table, "grouped_share", false))
    device.groupedShare = share;
  if (const toml::node *node = find(table, "functions", false)) {
    device.functions.clear();
    if (const toml::table *functions = node->as_table())
      for (auto &&[name, value] : *functions) {
        StringRef function(name.data(), name.length());
        if (!llvm::is_contained(functionNames(), function))
          fail(value, "'functions' " + notAmong(function, functionNames()));
        double evaluations = value.is_number() ? value.value_or(0.0) : 0;
        if (!(evaluations > 0 && evaluations < 1e30))
          fail(value, "'" + Twine(name.str()) + "' must be a positive number of evaluations a second");
        device.functions[std::string(name.str())] = evaluations;
      }
    else
      fail(*node, "'functions' must be a table of evaluations a second by the names of ops");
  }
  if (std::optional<Rate> kernels = rate(table, "kernels"))
    device.kernels = *kernels;
  if (std::optional<Rate> memory = rate(table, "memory_bandwidth"))
    device.memory = *memory;
  if (table.get("launch"))
    device.launch = number(table, "launch");
  device.spread = number(table, "spread", false);
  if (device.spread > 1)
    fail(*table.get("spread"), "'spread' must be a part of the mean speed, from 0 to 1");
  for (auto [key, link] : {std::pair<StringRef, Link *>{"host", &device.host}, {"ssd", &device.ssd}}) {
    const toml::node *node = find(table, key, false);
    if (!node)
      continue;
    const toml::table *numbers = node->as_table();
    if (!numbers) {
      fail(*node, "'" + key + "' must be a table with latency and bandwidth");
    } else {
      expectOnly(*numbers, {"latency", "bandwidth"});
      *link = {number(*numbers, "latency"), positive(*numbers, "bandwidth", true)};
    }
  }
  // Where nothing says what is promised, the most that was measured counts.
  RatesByType promised{row ? device.peakF32 : device.products.f32.peak(),
                       row ? device.peakNarrow : device.products.narrow.peak()};
  rates(table, "peak", promised);
  device.peakF32 = promised.f32.peak();
  device.peakNarrow = promised.narrow.peak();
  return devices;
}

void ClusterReader::checkLevels(const Cluster &cluster, Tables tables) {
  int64_t devices = 1;
  for (size_t i = 0; i < cluster.levels.size(); ++i) {
    const Level &level = cluster.levels[i];
    for (const Level &inside : llvm::ArrayRef(cluster.levels).take_front(i))
      if (inside.name == level.name)
        fail(*tables[i]->get("name"), "there is a level '" + Twine(level.name) + "' already");
    if (level.count > mostDevices / devices)
      return fail(*tables[i]->get("count"), "with this 'count' there are more than " +
                                                Twine(mostDevices) + " devices");
    devices *= std::max<int64_t>(1, level.count);
  }
}

void ClusterReader::checkCounts(Cluster &cluster, Tables types) {
  int64_t counted = 0;
  for (const Cluster::Devices &type : cluster.devices)
    counted += type.count;
  const toml::table &last = *types.back();
  bool takesRest = cluster.devices.back().count == 0;
  std::optional<int64_t> size = cluster.size();
  if (!size && !takesRest) {
    int64_t unit = cluster.devicesPerUnit(cluster.levels.size() - 1);
    if (counted % unit != 0)
      return fail(*last.get("count"), "the " + Twine(counted) +
                                          " devices of all types are no multiple of the " +
                                          Twine(unit) + " that the levels connect");
    cluster.levels.back().count = counted / unit;
  } else if (size && (takesRest ? counted >= *size : counted != *size)) {
    fail(last, "'count': the types have " + Twine(counted) + " devices" +
                   (takesRest ? " without the last type, which has no 'count'" : "") +
                   ", but the levels connect " + Twine(*size));
  }
}

Cluster ClusterReader::read(const toml::table &table) {
  expectOnly(table, {"name", "description", "target", "devices", "levels"});
  Cluster cluster;
  cluster.name = text(table, "name");
  cluster.target = text(table, "target");
  cluster.description = text(table, "description", false);
  auto types = tables(table, "devices", true), links = tables(table, "levels", true);
  for (const toml::table *entry : links) {
    cluster.levels.push_back(level(*entry, entry == links.back()));
    if (cluster.levels.back().torus && cluster.levels.size() > 1)
      fail(*entry->get("torus"), "'torus': only the first of the levels, which connects devices, may be one");
  }
  if (!failed())
    checkLevels(cluster, links);
  for (const toml::table *entry : types) {
    cluster.devices.push_back(devices(*entry, entry == types.back()));
    if (failed())
      break;
    // Passes know two links: inside a machine and between machines.
    cluster.devices.back().device.machine = cluster.levels.front().link;
    cluster.devices.back().device.network = cluster.levels.back().link;
  }
  if (!failed())
    checkCounts(cluster, types);
  return cluster;
}

llvm::Expected<Cluster> cost::readCluster(StringRef text, StringRef file) {
  ClusterReader reader(file);
  Cluster cluster;
  if (Error error = reader.parse(text, [&](auto &table) { cluster = reader.read(table); }))
    return std::move(error);
  return cluster;
}

Error cost::parseOption(StringRef text, ClusterChoice &choice) {
  choice.text = text.str();
  auto keep = [&](llvm::Expected<Cluster> cluster) -> Error {
    if (!cluster)
      return cluster.takeError();
    choice.cluster = std::make_shared<const Cluster>(std::move(*cluster));
    return Error::success();
  };
  for (const NamedCluster &known : getClusters())
    if (known.name == text)
      return keep(readCluster(known.text, text));
  if (!text.ends_with(".toml") && !text.contains('/'))
    return createStringError(notAmong(text, llvm::map_to_vector(getClusters(), [](auto &known) {
                               return known.name;
                             })) +
                             "; a file's name ends in .toml");
  auto file = readInput(text, clusterInput);
  if (!file)
    return createStringError("cannot read '" + text + "': " + toString(file.takeError()));
  return keep(readCluster((*file)->getBuffer(), text));
}
