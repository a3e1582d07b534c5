//===- Rates.cpp - rates of a machine from what calls took --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Rates.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace meshwright;
using namespace meshwright::calibrate;
using cost::CallWork;
using cost::Rate;
using llvm::StringRef;
using report::median;
using llvm::Twine;

namespace {
/// A call, and which share of its run it takes.
struct Sample {
  const CallWork *work;
  double seconds, weight;
};
using Samples = std::vector<Sample>;

/// A number at a size, such as a rate.
struct At {
  double size, value;
};
} // namespace

static Samples samplesOf(llvm::ArrayRef<report::MeasuredRun> runs,
                         llvm::function_ref<bool(const CallWork &)> take) {
  Samples samples;
  for (const report::MeasuredRun &run : runs)
    for (const report::MeasuredCall &call : run.calls)
      if (call.seconds > 0 && take(call.work))
        samples.push_back({&call.work, call.seconds, call.seconds * call.runs / run.step});
  return samples;
}

/// A rate by size: the median of the values whose sizes are within the same power of `base`, at the
/// geometric mean of these sizes.
static std::optional<Rate> rateBySize(llvm::ArrayRef<At> values, double base) {
  std::map<int, std::vector<At>> bins;
  for (const At &value : values)
    bins[int(std::floor(std::log(value.size) / std::log(base)))].push_back(value);
  std::vector<Rate::Point> points;
  for (auto &[number, bin] : bins) {
    double logs = 0;
    std::vector<double> of;
    for (const At &value : bin) {
      logs += std::log(value.size);
      of.push_back(value.value);
    }
    points.push_back({std::exp(logs / double(bin.size())), median(std::move(of))});
  }
  if (points.empty())
    return std::nullopt;
  return Rate(points);
}

/// Products of one type, as their FLOPs and the bytes that are packed: products of few rows have more
/// of these. Without such products nothing changes.
static void rateProducts(llvm::ArrayRef<report::MeasuredRun> runs, cost::Device &device, bool narrow) {
  Samples samples = samplesOf(runs, [&](const CallWork &work) {
    return work.kind == CallWork::Product && (work.bits <= 16) == narrow;
  });
  if (samples.empty())
    return;
  Rate &rate = narrow ? device.products.narrow : device.products.f32;
  double &packing = narrow ? device.packing.narrow : device.packing.f32;
  auto put = [&](double tried) {
    packing = tried;
    std::vector<At> rates;
    for (const Sample &sample : samples) {
      double packs = device.packing.seconds(sample.work->bits, sample.work->bytes);
      double computes = std::max(sample.seconds - packs, sample.seconds / 4);
      rates.push_back({sample.work->flops, sample.work->flops / computes});
    }
    rate = *rateBySize(rates, 4);
  };
  double best = 0, least = 0;
  for (double tried : {0.0, 1e9, 2e9, 4e9, 7e9, 1e10, 1.4e10, 2e10, 2.8e10, 4e10, 5.6e10, 8e10, 1.6e11}) {
    put(tried);
    double error = 0;
    for (const Sample &sample : samples)
      error += sample.weight * std::fabs(std::log(sample.work->seconds(device) / sample.seconds));
    if (tried == 0 || error < least) {
      best = tried;
      least = error;
    }
  }
  put(best);
}

/// The fewest rows from which on products reach four fifths of the best rate, whatever their rows.
static int64_t productRows(llvm::ArrayRef<report::MeasuredRun> runs) {
  std::vector<At> rates;
  for (const Sample &sample : samplesOf(runs, [&](const CallWork &work) {
         return work.kind == CallWork::Product && work.bits > 16 && work.rows > 0;
       }))
    rates.push_back({double(sample.work->rows), sample.work->flops / sample.seconds});
  std::optional<Rate> rate = rateBySize(rates, 2);
  double best = 0;
  for (const Rate::Point &point : rate->getPoints())
    best = std::max(best, point.rate);
  double rows = rate->getPoints().back().size;
  for (const Rate::Point &point : llvm::reverse(rate->getPoints())) {
    if (point.rate < 0.8 * best)
      break;
    rows = point.size;
  }
  return std::llround(rows);
}

static std::optional<Rate> attentionRate(llvm::ArrayRef<report::MeasuredRun> runs,
                                         CallWork::Kind kind, bool narrow) {
  std::vector<At> rates;
  for (const Sample &sample : samplesOf(runs, [&](const CallWork &work) {
         return work.kind == kind && (work.bits <= 16) == narrow;
       }))
    rates.push_back({double(sample.work->keys), sample.work->flops / sample.seconds});
  return rateBySize(rates, 2);
}

//===--- generated kernels ----------------------------------------------------===//

/// Makes each of `parameters` so much larger or smaller as brings `error` down most, by ever
/// smaller factors, until none does.
static void descend(std::vector<double> &parameters, llvm::function_ref<double()> error) {
  double least = error();
  for (double factor = 4; factor > 1.01; factor = std::sqrt(factor)) {
    bool better = true;
    for (int round = 0; better && round < 50; ++round) {
      better = false;
      for (double &parameter : parameters)
        for (double change : {factor, 1 / factor}) {
          double before = parameter;
          parameter *= change;
          if (double now = error(); now < least * (1 - 1e-6)) {
            least = now;
            better = true;
            break;
          }
          parameter = before;
        }
    }
  }
}

/// Of kernels the memory bandwidth by size and the rates of functions together: a kernel takes the
/// longer of both times.
static void rateKernels(llvm::ArrayRef<report::MeasuredRun> runs, cost::Device &device) {
  Samples samples = samplesOf(runs, [](const CallWork &work) {
    return !work.isProduct() && work.bytes > 0;
  });
  // Functions that some kernel spends its time on have a rate; others would be drawn from noise.
  std::set<std::string> names;
  std::vector<At> rates;
  for (const Sample &sample : samples) {
    for (auto &[name, count] : sample.work->functions)
      if (count > 0.01 * sample.work->bytes)
        names.insert(name);
    rates.push_back({sample.work->reuse, sample.work->bytes / sample.seconds});
  }
  std::optional<Rate> first = rateBySize(rates, 4);
  if (!first)
    return;
  std::vector<double> parameters;
  auto put = [&] {
    std::vector<Rate::Point> points(first->getPoints().begin(), first->getPoints().end());
    for (auto [point, rate] : llvm::zip(points, parameters))
      point.rate = rate;
    device.memory = Rate(points);
    size_t next = points.size();
    for (const std::string &name : names)
      device.functions[name] = parameters[next++];
  };
  auto error = [&] {
    put();
    double sum = 0;
    for (const Sample &sample : samples)
      sum += sample.weight * std::fabs(std::log(sample.work->seconds(device) / sample.seconds));
    return sum;
  };
  // The error has local minima, in which slow functions stand for slow memory or the reverse, so the
  // best of several starting points is kept.
  std::vector<double> best;
  double least = 0;
  for (double begin : {1e9, 1e10, 1e11}) {
    parameters.clear();
    for (const Rate::Point &point : first->getPoints())
      parameters.push_back(point.rate);
    parameters.resize(parameters.size() + names.size(), begin);
    descend(parameters, error);
    if (double now = error(); best.empty() || now < least) {
      least = now;
      best = parameters;
    }
  }
  parameters = best;
  put();
}

//===--- devices and links ----------------------------------------------------===//

cost::Device calibrate::rateDevice(llvm::ArrayRef<report::MeasuredRun> runs) {
  cost::Device device{};
  // Nothing is known of memory yet, which bounds nothing until it is.
  device.products = {Rate(1.0), Rate(1.0)};
  device.memory = Rate(1e30);
  rateProducts(runs, device, /*narrow=*/false);
  device.products.narrow = device.products.f32;
  device.packing.narrow = device.packing.f32;
  rateProducts(runs, device, /*narrow=*/true);
  auto attention = [&](CallWork::Kind kind) {
    cost::RatesByType rates{attentionRate(runs, kind, false).value_or(device.products.f32), Rate(0.0)};
    rates.narrow = attentionRate(runs, kind, true).value_or(rates.f32);
    return rates;
  };
  device.attention = attention(CallWork::Attention);
  device.attentionGrad = attention(CallWork::AttentionGrad);
  // A kernel's sums and products take no longer than those of a product, whose rate bounds them.
  device.kernels = Rate(device.products.f32.peak());
  device.memory = device.kernels;
  // How many rounds of experts have rows depends on the data. Calls that did less than the program
  // expects seem to be faster than a matrix product can be, and are left out.
  std::vector<double> shares;
  for (const Sample &sample :
       samplesOf(runs, [](const CallWork &work) { return work.kind == CallWork::GroupedProduct; }))
    if (double packs = device.packing.seconds(sample.work->bits, sample.work->bytes),
        share = device.products.ofBits(sample.work->bits).seconds(sample.work->flops) /
                std::max(sample.seconds - packs, sample.seconds / 4);
        share < 1.2)
      shares.push_back(share);
  device.groupedShare = shares.empty() ? 1 : median(shares);
  rateKernels(runs, device);
  std::vector<double> launches;
  for (const report::MeasuredRun &run : runs)
    launches.push_back(run.between / run.launches);
  device.launch = median(launches);
  device.productRows = productRows(runs);
  return device;
}

/// Seconds of a call and bytes a second of so many, which come nearest to what calls took.
static cost::Link linkOf(llvm::ArrayRef<const report::MeasuredCollective *> calls) {
  std::vector<double> parameters{1e-6, 1e10};
  auto link = [&] { return cost::Link{parameters[0], parameters[1]}; };
  descend(parameters, [&] {
    double sum = 0;
    for (const report::MeasuredCollective *call : calls)
      sum += std::fabs(std::log(link().seconds(call->bytes) / call->seconds));
    return sum;
  });
  return link();
}

cost::Level calibrate::rateLinks(llvm::ArrayRef<report::MeasuredRun> runs,
                                 const cost::Device &device) {
  std::map<std::string, std::vector<const report::MeasuredCollective *>> byName;
  for (const report::MeasuredRun &run : runs)
    for (const report::MeasuredCollective &collective : run.collectives)
      if (collective.seconds > 0 && collective.bytes > 0)
        byName[collective.name].push_back(&collective);
  cost::Level level;
  // A message is a copy at least.
  level.link = {0, device.memory.peak() / 2};
  if (auto messages = byName.find("permute"); messages != byName.end())
    level.link = linkOf(messages->second);
  for (StringRef name : cost::CollectiveAlgorithm::known()) {
    auto calls = byName.find(name.str());
    if (calls == byName.end())
      continue;
    cost::Link link = linkOf(calls->second);
    cost::CollectiveAlgorithm algorithm;
    algorithm.name = (name + " between " + Twine(calls->second.front()->members) + " ranks").str();
    algorithm.collectives = {name.str()};
    algorithm.base = link.latency;
    algorithm.bandwidth = Rate(link.bandwidth);
    level.algorithms.push_back(algorithm);
  }
  return level;
}

double calibrate::contention(const report::MeasuredRun &overlapped,
                             const report::MeasuredRun &apart) {
  if (overlapped.beside <= 0)
    return 1;
  double hidden = apart.step - overlapped.step;
  return std::clamp(1 - hidden / overlapped.beside, 0.0, 1.0);
}

std::vector<Misfit> calibrate::misfits(llvm::ArrayRef<report::MeasuredRun> runs,
                                       const cost::Device &device) {
  static const std::pair<const char *, std::vector<CallWork::Kind>> kinds[] = {
      {"products", {CallWork::Product}},
      {"products of experts", {CallWork::GroupedProduct}},
      {"attention", {CallWork::Attention, CallWork::AttentionGrad}},
      {"kernels", {CallWork::Kernel}},
      {"optimizer", {CallWork::Optimizer}}};
  std::vector<Misfit> all;
  for (const auto &entry : kinds) {
    double error = 0, weight = 0;
    for (const Sample &sample : samplesOf(runs, [&](const CallWork &work) {
           return llvm::is_contained(entry.second, work.kind);
         })) {
      error += sample.weight * std::fabs(std::log(sample.work->seconds(device) / sample.seconds));
      weight += sample.weight;
    }
    if (weight > 0)
      all.push_back({entry.first, weight / double(runs.size()), error / weight});
  }
  return all;
}
