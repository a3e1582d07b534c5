//===- Cluster.cpp - devices, and the links between them --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/Cluster.h"
#include "meshwright/Cost/DevicesInUse.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace meshwright::cost;
using llvm::StringRef;

int64_t Cluster::devicesPerUnit(size_t level) const {
  int64_t count = 1;
  for (size_t inner = 0; inner < level; ++inner)
    count *= levels[inner].count;
  return count;
}

int64_t Cluster::periodOfPlaces() const {
  int64_t unit = devicesPerUnit(levels.size() - 1);
  return levels.front().torus ? std::max(unit, levels.front().torus->size()) : unit;
}

double Level::mostBandwidth() const {
  double most = link.bandwidth * (torus ? 2 * double(torus->dimensions.size()) : 1);
  for (const CollectiveAlgorithm &algorithm : algorithms)
    for (const Rate::Point &point : algorithm.bandwidth.getPoints())
      most = std::max(most, point.rate);
  return most;
}

std::optional<int64_t> Cluster::size() const {
  if (levels.back().count == 0)
    return std::nullopt;
  return devicesPerUnit(levels.size());
}

const Device &Cluster::deviceAt(int64_t number) const {
  int64_t end = 0;
  for (const Devices &type : devices) {
    end += type.count;
    if (number < end)
      return type.device;
  }
  return devices.back().device;
}

DevicesInUse::DevicesInUse(const Cluster &cluster, int64_t devices) {
  int64_t first = 0;
  for (const Cluster::Devices &type : cluster.devices) {
    if (first >= devices)
      break;
    bool isLast = &type == &cluster.devices.back();
    int64_t count = isLast ? devices - first : std::min(type.count, devices - first);
    const Device &device = type.device;
    if (device.capacity > 0 && (capacity == 0 || device.capacity < capacity))
      capacity = device.capacity;
    peakF32 += device.peakF32 * double(count) / double(devices);
    peakNarrow += device.peakNarrow * double(count) / double(devices);
    first += count;
  }
}

const Level &Cluster::between(int64_t a, int64_t b) const {
  for (size_t level = levels.size() - 1; level > 0; --level)
    if (a / devicesPerUnit(level) != b / devicesPerUnit(level))
      return levels[level];
  return levels.front();
}

GroupLayout Cluster::layoutOf(llvm::ArrayRef<int64_t> ranks) const {
  GroupLayout layout;
  layout.members = ranks.size();
  int64_t outside = 1;
  // From the outermost level on: how many of its units hold members.
  for (size_t level = levels.size(); level-- > 0;) {
    llvm::SmallSet<int64_t, 16> held;
    for (int64_t rank : ranks)
      held.insert(rank / devicesPerUnit(level));
    int64_t units = std::max<int64_t>(1, held.size() / outside);
    layout.units.insert(layout.units.begin(), units);
    if (outside == 1 && units > 1) {
      layout.level = level;
      layout.membersPerUnit = std::max<int64_t>(1, layout.members / units);
    }
    outside = held.size();
  }
  if (layout.level == 0 && levels.front().torus)
    layout.box = levels.front().torus->boxOf(ranks);
  return layout;
}

MessageWay Cluster::wayOf(llvm::ArrayRef<std::pair<int64_t, int64_t>> messages) const {
  MessageWay slowest;
  slowest.hops = slowest.sharing = 0; // of no message
  slowest.link = levels.front().link;
  llvm::SmallVector<std::pair<int64_t, int64_t>> inTorus;
  for (auto message : messages) {
    auto [from, to] = message;
    if (from == to)
      continue;
    const Level &level = between(from, to);
    if (level.torus)
      inTorus.push_back(message);
    else if (slowest.hops == 0 || level.link.bandwidth < slowest.link.bandwidth)
      slowest = {size_t(&level - levels.data()), level.link};
  }
  // Messages between tori take the slower links of a level outside.
  if (inTorus.empty() || slowest.hops > 0)
    return slowest;
  Torus::Load load = levels.front().torus->loadOf(inTorus);
  return {0, levels.front().link, load.hops, load.sharing};
}

/// Steps of an algorithm, each of which waits for the one before.
static double stepsOf(const CollectiveAlgorithm &algorithm, StringRef collective,
                      const GroupLayout &layout) {
  double rounds = collective == "all_reduce" ? 2 : 1;
  switch (algorithm.pattern) {
  case CollectiveAlgorithm::Pattern::ring:
    return rounds * double(layout.members - 1);
  case CollectiveAlgorithm::Pattern::tree:
    return rounds * std::log2(double(layout.units[layout.level]));
  case CollectiveAlgorithm::Pattern::direct:
    return double(layout.units[layout.level] - 1);
  }
  llvm_unreachable("an unknown pattern");
}

double Cluster::torusSeconds(StringRef collective, double bytes, const GroupLayout &layout) const {
  const Level &level = levels.front();
  // A group that is no box, which no step has, takes at least this.
  if (!layout.box)
    return bytes / level.mostBandwidth();
  if (collective == "all_to_all")
    return level.torus->exchangeSeconds(*layout.box, bytes, level.link);
  double rounds = collective == "all_reduce" ? 2 : 1;
  return rounds * Torus::gatherSeconds(*layout.box, bytes / rounds, level.link);
}

double Cluster::collectiveSeconds(StringRef collective, double bytes,
                                  const GroupLayout &layout) const {
  if (layout.members < 2)
    return 0;
  const Level &outer = levels[layout.level];
  // A message of each member, of which some leave their unit, through one adapter.
  if (!llvm::is_contained(CollectiveAlgorithm::known(), collective))
    return outer.link.seconds(bytes);
  if (outer.torus)
    return torusSeconds(collective, bytes, layout);
  bool isDirect = collective == "all_to_all";
  // A ring passes each boundary of units on as many adapters as there are members in a unit.
  // Of what a member sends to all others, only their part outside its unit leaves it.
  double outside = isDirect ? double(layout.members - layout.membersPerUnit) /
                                  double(layout.members - 1)
                            : 1.0 / double(layout.membersPerUnit);
  // The levels inside carry what stays, and of a ring everything.
  double inside = 0;
  if (layout.level > 0 && layout.membersPerUnit > 1)
    inside = bytes * (isDirect ? 1 - outside : 1) / levels[layout.level - 1].link.bandwidth;
  auto seconds = [&](double latency, double bandwidth) {
    return latency + std::max(bytes * outside / bandwidth, inside);
  };
  std::optional<double> least;
  for (const CollectiveAlgorithm &algorithm : outer.algorithms) {
    if (!llvm::is_contained(algorithm.collectives, collective))
      continue;
    double latency = algorithm.base + algorithm.step * stepsOf(algorithm, collective, layout);
    double time = seconds(latency, algorithm.bandwidth.between(double(layout.members)));
    least = std::min(time, least.value_or(time));
  }
  if (least)
    return *least;
  CollectiveAlgorithm messages;
  messages.pattern = isDirect ? CollectiveAlgorithm::Pattern::direct
                              : CollectiveAlgorithm::Pattern::ring;
  return seconds(outer.link.latency * stepsOf(messages, collective, layout), outer.link.bandwidth);
}
