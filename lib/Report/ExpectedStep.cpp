//===- ExpectedStep.cpp - what a simulated step says ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ExpectedStep.h"
#include "meshwright/Cost/DevicesInUse.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace llvm;
using namespace meshwright;

std::string meshwright::timeText(double seconds) {
  auto [factor, unit] = seconds >= 1      ? std::pair(1.0, "s")
                        : seconds >= 1e-3 ? std::pair(1e3, "ms")
                                          : std::pair(1e6, "us");
  return formatv("{0:F3} {1}", seconds * factor, unit).str();
}

StepRates::StepRates(const plan::Plan &plan, const cost::Cluster &cluster, double seconds)
    : ranks(double(ranksOf(plan))),
      tokensPerDevice(double(plan.batch) * double(plan.sequence) / seconds / ranks),
      modelFlops(plan.flops - plan.recomputedFlops) {
  cost::DevicesInUse devices(cluster, int64_t(ranks));
  peakRate = plan.precision == "f32" ? devices.peakF32 : devices.peakNarrow;
  mfu = modelFlops / (ranks * peakRate * seconds);
}

ExpectedStep report::expectedStep(const plan::Plan &plan, const StepTime &step,
                                  const cost::Cluster &cluster) {
  StepRates rates(plan, cluster, step.seconds);
  TimeParts parts = step.mean();
  ExpectedStep expected{cluster.name, step.seconds, rates.tokensPerDevice, rates.mfu, {}, {}};
  parts.forEach([&](StringRef what, double seconds) {
    expected.parts.push_back({what.str(), seconds});
  });
  std::map<std::string, std::set<StringRef>> levels;
  for (auto &[kind, seconds] : parts.communication)
    levels[kind.axes].insert(kind.level);
  for (auto &[axes, links] : levels)
    expected.links[axes] = join(links, ", ");
  return expected;
}
