//===- Layout.cpp - ways to spread a training step over devices -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Layout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace meshwright;
using namespace meshwright::planner;

std::vector<std::pair<std::string, std::string>> Layout::flags() const {
  std::vector<std::pair<std::string, std::string>> flags;
  std::string mesh;
  // Heavy axes lie on fast links: the last axis is the innermost.
  for (auto [name, size] : {std::pair("pipe", pipe), {"data", data}, {"context", context},
                            {"expert", expert}, {"tensor", tensor}})
    if (size > 1)
      mesh += (mesh.empty() ? "" : ",") + llvm::formatv("{0}={1}", name, size).str();
  if (!mesh.empty())
    flags.push_back({"mesh", mesh});
  if (zero)
    flags.push_back({"zero", std::to_string(zero)});
  if (tensor > 1)
    flags.push_back({"sequence-parallel", "true"});
  if (microbatches > 1)
    flags.push_back({"microbatches", std::to_string(microbatches)});
  if (!schedule.empty())
    flags.push_back({"schedule", schedule});
  if (!remat.empty())
    flags.push_back({"remat", remat});
  return flags;
}

std::string Layout::str() const {
  std::string text;
  for (auto &[name, value] : flags())
    text += (text.empty() ? "--" : " --") + name + (value == "true" ? "" : " " + value);
  return text.empty() ? "one device" : text;
}

static std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> list;
  for (int64_t i = 1; i <= number; ++i)
    if (number % i == 0)
      list.push_back(i);
  return list;
}

/// How a pipeline may be scheduled: the layout with each.
static std::vector<Layout> schedulesOf(const Layout &layout, const ModelFacts &model) {
  std::vector<Layout> layouts{layout};
  if (layout.pipe == 1)
    return layouts;
  if (layout.microbatches >= layout.pipe) {
    layouts.push_back(layout);
    layouts.back().schedule = "zb-h1";
  }
  if (layout.microbatches % layout.pipe != 0)
    return layouts;
  // Two chunks of layers, and as many as there are layers of a stage.
  int64_t most = std::min<int64_t>(8, model.layers / layout.pipe);
  for (int64_t chunks : {int64_t(2), most})
    if (chunks >= 2 && chunks <= most && layouts.back().chunks != chunks) {
      layouts.push_back(layout);
      layouts.back().chunks = chunks;
      layouts.back().schedule = "interleaved:" + std::to_string(chunks);
    }
  return layouts;
}

std::vector<Layout> planner::layoutsOf(const Problem &problem) {
  const ModelFacts &model = problem.model;
  const CompileOptions &given = problem.options;
  auto isFree = [&](const char *flag) { return !given.given.count(flag); };
  // Tensor parallelism stays on the fast links, or goes one level further at most.
  int64_t fast = problem.cluster.levels.front().count;
  int64_t mostTensor = 2 * (fast ? fast : problem.devices);
  std::vector<Layout> layouts;
  for (int64_t pipe : divisors(problem.devices)) {
    if (pipe > model.layers)
      break;
    for (int64_t tensor : divisors(problem.devices / pipe)) {
      if (tensor > mostTensor || model.heads % tensor != 0 || model.sequence % tensor != 0)
        continue;
      for (int64_t context : divisors(problem.devices / pipe / tensor)) {
        // Chunks of less than 2,048 tokens are smaller than what products need.
        if (context > 1 && (context > 16 || model.sequence / context < 2048))
          continue;
        for (int64_t expert : divisors(problem.devices / pipe / tensor / context)) {
          if (expert > 1 && (model.experts == 0 || model.experts % expert != 0))
            continue;
          Layout layout;
          layout.pipe = pipe, layout.tensor = tensor, layout.context = context;
          layout.expert = expert;
          layout.data = problem.devices / pipe / tensor / context / expert;
          if (problem.batch % layout.dataRanks() != 0)
            continue;
          int64_t rows = problem.batch / layout.dataRanks();
          for (int64_t micro : divisors(rows)) {
            // Few sequences at a time, unless nothing is gained by less.
            if (micro > 8)
              break;
            layout.microbatches = rows / micro;
            if (!isFree("microbatches") && layout.microbatches != given.microbatches)
              continue;
            for (Layout &scheduled : schedulesOf(layout, model))
              for (int64_t zero : {0, 1, 2, 3}) {
                bool shards = layout.data * layout.context > 1;
                if ((zero > 0 && !shards) || (!isFree("zero") && zero != given.zero))
                  continue;
                scheduled.zero = zero;
                layouts.push_back(scheduled);
              }
          }
        }
      }
    }
  }
  if (!isFree("schedule"))
    llvm::erase_if(layouts, [](const Layout &layout) { return !layout.schedule.empty(); });
  return layouts;
}

static bool isNarrow(const Problem &problem) {
  return problem.options.precision != MixedPrecision::f32;
}

double planner::leastComputing(const Problem &problem) {
  const cost::Device &device = problem.cluster.devices.front().device;
  double rate = device.products.ofBits(isNarrow(problem) ? 16 : 32).peak();
  return 3 * problem.model.flops * double(problem.batch) / double(problem.devices) / rate;
}

double planner::leastSeconds(const Problem &problem, const Layout &layout, double computing) {
  const ModelFacts &model = problem.model;
  double busy = computing;
  if (layout.tensor > 1) {
    // An all-gather and a reduce-scatter at attention and at the MLP, forward and backward, beside
    // which nothing runs.
    llvm::SmallVector<int64_t> ranks;
    for (int64_t rank = 0; rank < layout.tensor; ++rank)
      ranks.push_back(rank);
    double tokens = double(problem.batch) / double(layout.dataRanks()) *
                    double(model.sequence) / double(layout.context);
    double bytes = tokens * double(model.hidden) * (isNarrow(problem) ? 2 : 4) *
                   double(layout.tensor - 1) / double(layout.tensor);
    busy += 8 * double(model.layers) / double(layout.pipe) *
            problem.cluster.collectiveSeconds("all_gather", bytes, problem.cluster.layoutOf(ranks));
  }
  double bubble = double(layout.pipe - 1) / double(layout.microbatches);
  bubble /= layout.schedule == "zb-h1" ? 3 : double(layout.chunks);
  return busy * (1 + bubble);
}

double planner::leastBytes(const Problem &problem, const Layout &layout) {
  const ModelFacts &model = problem.model;
  double states = double(problem.options.optimizer->states.size());
  double own = (model.parameters - model.expertParameters) / double(layout.tensor) +
               model.expertParameters / double(layout.tensor) / double(layout.expert);
  own /= double(layout.pipe);
  // A stage of a pipeline may have less than its share, but then another has more.
  double weight = isNarrow(problem) ? 2 : 4, gradient = problem.options.gradDtype == GradientType::bf16 ? 2 : 4;
  double moment = problem.options.momentsDtype == MomentType::bf16 ? 2 : 4;
  double state = states * moment + (isNarrow(problem) ? 2 : 0);
  auto shards = double(layout.data * layout.context);
  return own * (weight / (layout.zero >= 3 ? shards : 1) + gradient / (layout.zero >= 2 ? shards : 1) +
                state / (layout.zero >= 1 ? shards : 1));
}
