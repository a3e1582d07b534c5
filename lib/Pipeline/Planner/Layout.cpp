//===- Layout.cpp - ways to spread a training step over devices -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Layout.h"

#include "meshwright/Cost/DevicesInUse.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <set>
#include <tuple>

using namespace meshwright;
using namespace meshwright::planner;
using llvm::StringRef;
using schedule::ScheduleKind;

std::vector<std::pair<llvm::StringRef, int64_t>> Layout::sizes() const {
  return {{"pipe", pipe},       {"replica", replica}, {"data", data},
          {"context", context}, {"expert", expert},   {"tensor", tensor}};
}

std::vector<std::pair<llvm::StringRef, int64_t>> Layout::axes() const {
  auto list = sizes();
  if (!order.empty())
    llvm::transform(order, list.begin(), [&](unsigned axis) { return sizes()[axis]; });
  llvm::erase_if(list, [](auto &axis) { return axis.second == 1; });
  return list;
}

std::vector<std::pair<std::string, std::string>> Layout::flags() const {
  std::vector<std::pair<std::string, std::string>> flags;
  std::string mesh;
  for (auto [name, size] : axes())
    mesh += (mesh.empty() ? "" : ",") + llvm::formatv("{0}={1}", name, size).str();
  if (!mesh.empty())
    flags.push_back({"mesh", mesh});
  if (zero)
    flags.push_back({"zero", std::to_string(zero)});
  if (tensor > 1)
    flags.push_back({"sequence-parallel", "true"});
  if (microbatches > 1)
    flags.push_back({"microbatches", std::to_string(microbatches)});
  if (!isScheduleKept && schedule.name != ScheduleKind::oneFOneB)
    flags.push_back({"schedule", schedule.str()});
  if (!remat.empty())
    flags.push_back({"remat", remat});
  if (!offload.empty())
    flags.push_back({"offload", offload});
  return flags;
}

std::string Layout::str() const {
  std::string text;
  for (auto &[name, value] : flags())
    text += (text.empty() ? "--" : " --") + name + (value == "true" ? "" : " " + value);
  return text.empty() ? "one device" : text;
}

/// Whether an optimizer keeps anything that can be offloaded: states, or master weights.
static bool hasStates(const CompileOptions &options) {
  return !options.optimizer->states.empty() || options.precision != MixedPrecision::f32;
}

std::vector<std::string> planner::waysToOffload(const CompileOptions &options) {
  if (!hasStates(options))
    return {"activations", "parameters", "activations,parameters"};
  return {"optimizer", "optimizer,activations", "optimizer,parameters", "optimizer,activations,parameters"};
}

std::vector<std::string> planner::moreOffload(const CompileOptions &options, StringRef offload) {
  std::vector<std::string> ways;
  Offload more;
  if (!offload.empty())
    llvm::cantFail(parseOption(offload, more));
  if (!isOffload(more.activations)) {
    more.activations = MemorySpace::Host;
    ways.push_back(optionText(more));
  }
  if (offload.empty() && hasStates(options))
    ways.push_back("optimizer");
  return ways;
}

Offload Problem::offloadOf(const Layout &layout) const {
  Offload offload = options.offload;
  if (!layout.offload.empty())
    llvm::cantFail(parseOption(layout.offload, offload));
  return offload;
}

double planner::capacityOf(const CompileOptions &options, const cost::Cluster &cluster, int64_t devices) {
  double limit = options.memoryLimit.text.empty() ? 0 : options.memoryLimit.count;
  double bytes = cost::DevicesInUse(cluster, devices).capacity;
  return limit > 0 && bytes > 0 ? std::min(limit, bytes) : std::max(limit, bytes);
}

/// In ascending order.
static std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> list, large;
  for (int64_t i = 1; i * i <= number; ++i)
    if (number % i == 0) {
      list.push_back(i);
      if (i * i != number)
        large.push_back(number / i);
    }
  list.insert(list.end(), large.rbegin(), large.rend());
  return list;
}

/// How the pipeline of a layout may be scheduled.
static std::vector<ScheduleKind> schedulesOf(const Problem &problem, const Layout &layout) {
  // The number of microbatches of a pipeline is fixed.
  if (layout.pipe > 1 && problem.options.batchRamp)
    return {};
  const ScheduleKind &kept = problem.options.schedule;
  int64_t most = problem.model.layers / layout.pipe;
  if (problem.isKept("schedule")) {
    bool isDefault = kept.name == ScheduleKind::oneFOneB;
    bool can = layout.pipe == 1 ? isDefault
                                : kept.chunksPerStage <= most &&
                                      layout.microbatches >= kept.leastMicrobatches(layout.pipe) &&
                                      (kept.name != ScheduleKind::interleaved ||
                                       layout.microbatches % layout.pipe == 0);
    return can ? std::vector{kept} : std::vector<ScheduleKind>();
  }
  std::vector<ScheduleKind> kinds{{ScheduleKind::oneFOneB, 1}};
  if (layout.pipe == 1)
    return kinds;
  if (layout.microbatches >= layout.pipe)
    kinds.push_back({ScheduleKind::zbH1, 1});
  // Two chunks of layers, and as many as there are layers of a stage.
  most = std::min<int64_t>(8, most);
  if (layout.microbatches % layout.pipe == 0)
    for (int64_t chunks : {int64_t(2), most})
      if (chunks >= 2 && chunks <= most && kinds.back().chunksPerStage != chunks)
        kinds.push_back({ScheduleKind::interleaved, chunks});
  return kinds;
}

/// The numbers of microbatches of `rows` sequences of a rank.
static std::vector<int64_t> microbatchesOf(const Problem &problem, int64_t rows) {
  int64_t kept = problem.options.microbatches, together = problem.options.sequencesTogether();
  if (problem.isKept("microbatches"))
    return kept > 0 && rows % (kept * together) == 0 ? std::vector{kept} : std::vector<int64_t>();
  // Few sequences at a time, unless nothing is gained by less.
  std::vector<int64_t> numbers;
  for (int64_t sequences = together; sequences <= 8; sequences += together)
    if (rows % sequences == 0 && !(problem.options.batchRamp && rows == sequences))
      numbers.push_back(rows / sequences);
  return numbers;
}

/// A mesh with all microbatches, schedules and ZeRO levels.
static void addLayouts(const Problem &problem, Layout layout, std::vector<Layout> &layouts) {
  if (problem.batch % layout.dataRanks() != 0)
    return;
  bool shards = layout.data * layout.context * layout.expert > 1;
  layout.isScheduleKept = problem.isKept("schedule");
  for (int64_t microbatches : microbatchesOf(problem, problem.batch / layout.dataRanks())) {
    layout.microbatches = microbatches;
    for (const ScheduleKind &schedule : schedulesOf(problem, layout)) {
      layout.schedule = schedule;
      for (int64_t zero : {0, 1, 2, 3}) {
        layout.zero = zero;
        bool isWanted = !problem.isKept("zero") || zero == problem.options.zero;
        // Without shards, `replica` is plain data parallelism under another name.
        bool isNew = zero > 0 ? shards : layout.replica == 1 || problem.keptAxes.count("replica");
        if (isWanted && isNew)
          layouts.push_back(layout);
      }
    }
  }
}

/// How the groups along the axes, and those that reduce gradients, lie in the cluster; pipeline stages
/// send to the next one.
static std::vector<cost::GroupLayout> placesOf(const Problem &problem, const Layout &layout) {
  std::map<StringRef, std::pair<int64_t, int64_t>> axes; // size, and distance of neighbours
  int64_t stride = 1;
  auto list = layout.axes();
  for (auto [name, size] : llvm::reverse(list)) {
    axes[name] = {size, stride};
    stride *= size;
  }
  std::vector<cost::GroupLayout> groups;
  for (std::vector<StringRef> kind : std::initializer_list<std::vector<StringRef>>{
           {"pipe"}, {"replica"}, {"data"}, {"context"}, {"expert"}, {"tensor"}, {"data", "context"},
           {"data", "expert"}, {"data", "context", "expert"}}) {
    llvm::SmallVector<int64_t> ranks{0};
    for (StringRef name : kind) {
      auto [size, distance] = axes.count(name) ? axes[name] : std::pair<int64_t, int64_t>(1, 1);
      for (size_t i = 0, known = ranks.size(); i < known; ++i)
        for (int64_t member = 1; member < size; ++member)
          ranks.push_back(ranks[i] + member * distance);
    }
    groups.push_back(problem.cluster.layoutOf(ranks));
  }
  return groups;
}

std::vector<Layout> planner::placementsOf(const Problem &problem, const Layout &layout) {
  auto isAlike = [](const cost::GroupLayout &a, const cost::GroupLayout &b) {
    return std::tie(a.units, a.level, a.membersPerUnit, a.box) == std::tie(b.units, b.level, b.membersPerUnit, b.box);
  };
  std::vector<Layout> placements;
  std::vector<std::vector<cost::GroupLayout>> known{placesOf(problem, layout)};
  std::set<std::string> meshes{layout.str()};
  Layout other = layout;
  for (other.order = {0, 1, 2, 3, 4, 5}; std::next_permutation(other.order.begin(), other.order.end());) {
    if (!meshes.insert(other.str()).second)
      continue; // Axes of one device have changed places.
    auto groups = placesOf(problem, other);
    bool isKnown = llvm::any_of(known, [&](auto &its) { return llvm::equal(its, groups, isAlike); });
    if (isKnown)
      continue;
    known.push_back(std::move(groups));
    placements.push_back(other);
  }
  return placements;
}

std::vector<Layout> planner::layoutsOf(const Problem &problem) {
  const ModelFacts &model = problem.model;
  // Sizes of an axis that divide `devices`, or the one that is kept.
  auto sizesOf = [&](const char *axis, int64_t devices, auto &&isSensible) {
    auto kept = problem.keptAxes.find(axis);
    return llvm::to_vector(llvm::make_filter_range(divisors(devices), [&](int64_t size) {
      return kept == problem.keptAxes.end() ? size == 1 || isSensible(size) : size == kept->second;
    }));
  };
  // Tensor parallelism stays on the fast links, or goes one level further at most.
  int64_t fast = problem.cluster.levels.front().count;
  int64_t mostTensor = 2 * (fast ? fast : problem.devices);
  auto isStages = [&](int64_t size) { return size <= model.layers; };
  auto isTensor = [&](int64_t size) {
    return size <= mostTensor && model.heads % size == 0 && model.sequence % size == 0;
  };
  // Chunks of less than 2,048 tokens are smaller than what products need.
  auto isContext = [&](int64_t size) { return size <= 16 && model.sequence / size >= 2048; };
  auto isExpert = [&](int64_t size) { return model.experts > 0 && model.experts % size == 0; };
  auto isAny = [](int64_t) { return true; };
  // Shards of ZeRO stay on the links of one level, and replicas are its units (hybrid sharding).
  auto isUnit = [&](int64_t devices) {
    return llvm::any_of(llvm::seq(problem.cluster.levels.size()), [&](size_t level) {
      return problem.cluster.devicesPerUnit(level) == devices;
    });
  };
  std::vector<Layout> layouts;
  for (int64_t pipe : sizesOf("pipe", problem.devices, isStages))
    for (int64_t tensor : sizesOf("tensor", problem.devices / pipe, isTensor))
      for (int64_t context : sizesOf("context", problem.devices / pipe / tensor, isContext)) {
        int64_t others = problem.devices / pipe / tensor / context;
        for (int64_t expert : sizesOf("expert", others, isExpert))
          for (int64_t data : sizesOf("data", others / expert, isAny)) {
            auto isReplica = [&](int64_t) { return data > 1 && isUnit(tensor * context * expert * data); };
            for (int64_t replica : sizesOf("replica", others / expert / data, isReplica)) {
              if (replica * data * expert != others)
                continue;
              Layout layout;
              layout.pipe = pipe, layout.tensor = tensor, layout.context = context;
              layout.expert = expert, layout.data = data, layout.replica = replica;
              addLayouts(problem, layout, layouts);
            }
          }
      }
  return layouts;
}
