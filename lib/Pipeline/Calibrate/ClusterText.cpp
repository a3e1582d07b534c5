//===- ClusterText.cpp - a cluster as the text of its file --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ClusterText.h"
#include "../TomlText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace meshwright;
using namespace meshwright::calibrate;
using llvm::StringRef;

static std::string number(double value) {
  return value == 0 ? "0" : llvm::formatv("{0:e3}", value).str();
}

static std::string rate(const cost::Rate &rate) {
  if (rate.getPoints().size() == 1)
    return number(rate.peak());
  auto pairs = llvm::map_range(rate.getPoints(), [](const cost::Rate::Point &point) {
    return "[" + number(point.size) + ", " + number(point.rate) + "]";
  });
  return "[" + llvm::join(pairs, ", ") + "]";
}

static std::string byType(StringRef key, const cost::RatesByType &rates) {
  return (key + ".f32 = " + rate(rates.f32) + "\n" + key + ".bf16 = " + rate(rates.narrow) + "\n")
      .str();
}

static std::string deviceText(const cost::Cluster::Devices &devices, StringRef source) {
  const cost::Device &device = devices.device;
  std::string text = "\n[[devices]]\nname = " + tomlString(device.name) +
                     "\ndescription = " + tomlString(device.description) + "\n";
  if (devices.count)
    text += "count = " + std::to_string(devices.count) + "\n";
  text += "memory = " + number(device.capacity) + "\n" + byType("products", device.products) +
          "product_rows = " + std::to_string(device.productRows) + "\npacking.f32 = " +
          number(device.packing.f32) + "\npacking.bf16 = " + number(device.packing.narrow) +
          "\ngrouped_share = " + number(device.groupedShare) + "\n" +
          byType("attention", device.attention) + byType("attention_grad", device.attentionGrad) +
          "kernels = " + rate(device.kernels) + "\n";
  for (auto &[name, evaluations] : device.functions)
    text += "functions." + name + " = " + number(evaluations) + "\n";
  return text + "memory_bandwidth = " + rate(device.memory) +
         "\nlaunch = " + number(device.launch) +
         "\nhost = {latency = " + number(device.host.latency) +
         ", bandwidth = " + number(device.host.bandwidth) + "}\nsource = " + tomlString(source) +
         "\n";
}

static std::string levelText(const cost::Level &level, StringRef source) {
  static constexpr const char *patterns[] = {"ring", "tree", "direct"};
  std::string text = "\n[[levels]]\nname = " + tomlString(level.name) + "\n";
  if (level.count)
    text += "count = " + std::to_string(level.count) + "\n";
  text += "latency = " + number(level.link.latency) +
          "\nbandwidth = " + number(level.link.bandwidth) + "\n";
  if (level.contention > 0)
    text += "contention = " + number(level.contention) + "\n";
  text += "source = " + tomlString(source) + "\n";
  for (const cost::CollectiveAlgorithm &algorithm : level.algorithms) {
    auto names =
        llvm::map_range(algorithm.collectives, [](StringRef name) { return tomlString(name); });
    text += "\n  [[levels.algorithms]]\n  name = " + tomlString(algorithm.name) +
            "\n  collectives = [" + llvm::join(names, ", ") + "]\n  pattern = \"" +
            patterns[int(algorithm.pattern)] + "\"\n  base = " + number(algorithm.base) +
            "\n  step = " + number(algorithm.step) +
            "\n  bandwidth = " + rate(algorithm.bandwidth) + "\n  source = " + tomlString(source) +
            "\n";
  }
  return text;
}

std::string calibrate::clusterText(const cost::Cluster &cluster, StringRef source) {
  std::string text = "name = " + tomlString(cluster.name) +
                     "\ntarget = " + tomlString(cluster.target) +
                     "\ndescription = " + tomlString(cluster.description) + "\n";
  for (const cost::Cluster::Devices &devices : cluster.devices)
    text += deviceText(devices, source);
  for (const cost::Level &level : cluster.levels)
    text += levelText(level, source);
  return text;
}
