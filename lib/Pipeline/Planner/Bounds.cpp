//===- Bounds.cpp - what a layout takes at least ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Bounds.h"

#include <algorithm>
#include <cmath>

using namespace meshwright;
using namespace meshwright::planner;
using schedule::ScheduleKind;

static bool isNarrow(const Problem &problem) {
  return problem.options.precision != MixedPrecision::f32;
}

/// Sequences of a microbatch of a rank.
static double rowsOf(const Problem &problem, const Layout &layout) {
  return double(problem.batch) / double(layout.dataRanks()) / double(layout.microbatches);
}

/// The part of a sequence's layer that one device computes.
static double shareOf(const Layout &layout) { return 1 / double(layout.tensor * layout.context); }

/// Ranks that states of ZeRO are sharded over.
static double shardsOf(const Layout &layout, bool ofExperts) {
  return double(layout.data * layout.context) * double(ofExperts ? 1 : layout.expert);
}

//===--- seconds of computing ----------------------------------------------------===//

/// The highest rate of calls of at most `size`, where `at` says what one of that size has.
static double bestRate(const cost::Rate &rate, double size,
                       double (cost::Rate::*at)(double) const) {
  double best = (rate.*at)(size);
  for (const cost::Rate::Point &point : rate.getPoints())
    if (point.size <= size)
      best = std::max(best, point.rate);
  return best;
}

/// Of what is in the precision of the model, and of what stays in f32.
static double bestRate(const cost::RatesByType &rates, double size, bool isNarrow,
                       double (cost::Rate::*at)(double) const) {
  return std::max(bestRate(rates.f32, size, at), isNarrow ? bestRate(rates.narrow, size, at) : 0);
}

double Bounds::secondsOf(const Layout &layout, const Work &work, bool isForward) const {
  double share = rowsOf(problem, layout) * shareOf(layout);
  bool narrow = isNarrow(problem);
  // As the simulation takes them; padding makes sequences longer by less than this.
  auto ofProducts = &cost::Rate::at, ofKeys = &cost::Rate::between;
  double keys = 2 * double(problem.model.sequence);
  double products = 0, grouped = 0, attention = 0;
  for (const cost::Cluster::Devices &type : problem.cluster.devices) {
    const cost::Device &device = type.device;
    // No call has more than all products of a layer together, or the head.
    double rate = bestRate(device.products, problem.model.largestCall * share, narrow, ofProducts);
    products = std::max(products, device.tiles && narrow ? std::max(rate, device.tiles->sustained) : rate);
    grouped = std::max(grouped, rate * device.groupedShare);
    const cost::Rate &small = isForward ? device.smallHeads : device.smallHeadsGrad;
    const cost::RatesByType &large = isForward ? device.attention : device.attentionGrad;
    attention = std::max({attention, narrow ? bestRate(small, keys, ofKeys) : 0,
                          bestRate(large, keys, narrow, ofKeys)});
  }
  return share * (work.products / products + work.grouped / grouped + work.attention / attention);
}

double Bounds::computing(const Layout &layout) const {
  const ModelFacts &model = problem.model;
  double all = secondsOf(layout, model.forward, true) + secondsOf(layout, model.backward, false);
  return all * double(layout.microbatches) / double(layout.pipe);
}

//===--- seconds of communication --------------------------------------------------===//

const cost::GroupLayout &Bounds::groupOf(int64_t members, int64_t stride) {
  auto [entry, isNew] = groups.try_emplace({members, stride});
  if (isNew) {
    llvm::SmallVector<int64_t> ranks;
    for (int64_t member = 0; member < members; ++member)
      ranks.push_back(member * stride);
    entry->second = problem.cluster.layoutOf(ranks);
  }
  return entry->second;
}

double Bounds::gatherSeconds(const Layout &layout) {
  if (layout.tensor == 1)
    return 0;
  const ModelFacts &model = problem.model;
  double bytes = rowsOf(problem, layout) * double(model.sequence * model.hidden) /
                 double(layout.context) * (isNarrow(problem) ? 2 : 4) * double(layout.tensor - 1) /
                 double(layout.tensor);
  const cost::GroupLayout &group = groupOf(layout.tensor, 1);
  return std::min(problem.cluster.collectiveSeconds("all_gather", bytes, group),
                  problem.cluster.collectiveSeconds("reduce_scatter", bytes, group));
}

double Bounds::exchangeSeconds(const Layout &layout) {
  const ModelFacts &model = problem.model;
  if (layout.expert == 1 || model.expertParameters == 0)
    return 0;
  // Each routed token meets each parameter of its expert in one multiplication and one addition.
  double routed = model.forward.grouped / (2 * model.expertParameters / double(model.experts));
  // Devices along `tensor` have parts of each expert, and rows of all tokens.
  double bytes = rowsOf(problem, layout) / double(layout.context) * routed * double(model.hidden) *
                 (isNarrow(problem) ? 2 : 4) * double(layout.expert - 1) / double(layout.expert);
  constexpr double exchanges = 5; // two forward, three backward
  return exchanges * problem.cluster.collectiveSeconds("all_to_all", bytes,
                                                       groupOf(layout.expert, layout.tensor));
}

double Bounds::gradientBytes(const Layout &layout, bool ofExperts) const {
  const ModelFacts &model = problem.model;
  double own = (ofExperts ? model.trainedExperts / double(layout.expert)
                          : model.trained - model.trainedExperts) /
               double(layout.tensor * layout.pipe);
  const CompileOptions &options = problem.options;
  // Factors, or a few elements, take the place of matrices, of almost all parameters in large models.
  if (options.gradCompression)
    return 0;
  bool isHalf = options.gradReduceDtype == GradientWire::bf16 || options.gradDtype == GradientType::bf16;
  return own * (options.gradReduceDtype == GradientWire::fp8 ? 1 : isHalf ? 2 : 4);
}

double Bounds::shardedBytes(const Layout &layout, bool ofExperts) const {
  double shards = shardsOf(layout, ofExperts);
  return gradientBytes(layout, ofExperts) * (shards - 1) / shards;
}

double Bounds::replicaBytes(const Layout &layout, bool ofExperts) const {
  // An all-reduce is a reduce-scatter and an all-gather.
  double replicas = double(layout.replica);
  return 2 * gradientBytes(layout, ofExperts) / shardsOf(layout, ofExperts) * (replicas - 1) / replicas;
}

double Bounds::sentSeconds(const Layout &layout) {
  auto along = [&](double bytes, int64_t members, int64_t stride) {
    if (members == 1)
      return 0.0;
    const cost::GroupLayout &group = groupOf(members, stride);
    // Members of a unit have their adapters together.
    return bytes / double(group.membersPerUnit) / problem.cluster.levels[group.level].mostBandwidth();
  };
  auto shards = int64_t(shardsOf(layout, /*ofExperts=*/false));
  return std::max(along(shardedBytes(layout, /*ofExperts=*/false), shards, layout.tensor),
                  along(replicaBytes(layout, /*ofExperts=*/false), layout.replica, layout.tensor * shards));
}

//===--- seconds of a step -----------------------------------------------------------===//

double Bounds::quickSeconds(const Layout &layout) {
  bool isReduced = problem.options.dataSync == DataSync::allReduce && problem.options.seeds.empty();
  return std::max(computing(layout), isReduced ? sentSeconds(layout) : 0);
}

double Bounds::seconds(const Layout &layout) {
  Layout same = layout;
  same.zero = 0;
  same.remat.clear();
  same.offload.clear();
  auto [known, isNew] = walked.try_emplace(same.str() + " " + layout.schedule.str());
  if (isNew)
    known->second = ofTasks(layout);
  return std::max(known->second, quickSeconds(layout));
}

double Bounds::ofTasks(const Layout &layout) {
  auto cut = problem.model.cuts.find(layout.chunks());
  if (cut == problem.model.cuts.end() || cut->second.empty())
    return 0;
  // A gather and a reduce-scatter in the forward of each layer have nothing beside them, but in
  // loops of --collective-matmul and in pairs of tasks. Seeds may shard otherwise.
  bool isHidden = problem.options.collectiveMatmul == Toggle::on ||
                  layout.schedule.name == ScheduleKind::dualPipeV || !problem.options.seeds.empty();
  double gathers = isHidden ? 0 : 2 * gatherSeconds(layout);
  const Work &forward = problem.model.forward, &backward = problem.model.backward;
  auto share = [](double of, double by) { return by > 0 ? of / by : 0; };
  Work again{share(backward.products, forward.products), share(backward.grouped, forward.grouped),
             share(backward.attention, forward.attention)};
  schedule::TaskCosts costs;
  for (const Chunk &chunk : cut->second) {
    // Gradients of weights are one product for each of the forward; the others are of the inputs.
    // Frozen weights have none.
    Work weight{std::min(1.0, again.products) * chunk.forward.products,
                std::min(1.0, again.grouped) * chunk.forward.grouped, 0};
    Work input{std::max(0.0, again.products - 1) * chunk.forward.products,
               std::max(0.0, again.grouped - 1) * chunk.forward.grouped,
               again.attention * chunk.forward.attention};
    costs.chunks.push_back({secondsOf(layout, chunk.forward, true) + gathers * double(chunk.layers),
                            secondsOf(layout, input, false), secondsOf(layout, weight, false)});
  }
  return walk(layout, costs);
}

double Bounds::walk(const Layout &layout, const schedule::TaskCosts &costs) {
  // A walk through more tasks would take longer than it saves.
  constexpr int64_t mostTasks = 10000;
  if (layout.pipe > 1 && layout.chunks() * layout.microbatches <= mostTasks) {
    auto schedule = makeSchedule(layout.schedule, layout.pipe, layout.microbatches);
    auto timeline = schedule ? simulate(*schedule, costs) : schedule.takeError();
    if (timeline)
      return timeline->end();
    llvm::consumeError(timeline.takeError()); // The compiler refuses the layout, and says why.
    return 0;
  }
  // A stage begins after the first forward of all chunks before its own, and backwards of these
  // follow its last task, but for gradients of weights.
  std::vector<double> works(layout.pipe), before(layout.pipe, -1);
  llvm::SmallVector<int64_t> stageOf =
      layout.pipe > 1 ? assignChunks(layout.schedule, layout.pipe) : llvm::SmallVector<int64_t>{0};
  double path = 0, longest = 0;
  for (auto [chunk, stage] : llvm::zip(costs.chunks, stageOf)) {
    if (before[stage] < 0)
      before[stage] = path;
    works[stage] += chunk.forward + chunk.backward + chunk.weight;
    path += chunk.forward;
    if (!layout.schedule.splitsBackward())
      path += chunk.backward + chunk.weight;
  }
  for (auto [work, rest] : llvm::zip(works, before))
    longest = std::max(longest, double(layout.microbatches) * work + rest);
  return longest;
}

Bounds::Activations Bounds::activationsOf(const Layout &layout) const {
  const ModelFacts &model = problem.model;
  auto microbatches = double(layout.microbatches), stages = double(layout.pipe), layers = std::max(1.0, double(model.layers));
  double sequences = rowsOf(problem, layout) * shareOf(layout);
  double held = std::min(stages, microbatches) / stages * sequences *
                (1 + (stages - 1) / stages / double(layout.schedule.chunksPerStage));
  double ofLayers = layout.expert > 1 ? model.keptApart : model.kept;
  // Where a schedule splits the backward, the rows of experts are kept until gradients of weights are computed, in
  // buffers with room for uneven routing: some five times as much for DeepSeek-V3 with zb-h1.
  if (layout.expert > 1 && layout.schedule.splitsBackward())
    ofLayers = 5 * model.kept;
  // With the most activation checkpointing the inputs of layers are kept, and what one layer has.
  double inputs = (isNarrow(problem) ? 2 : 4) * layers * double(model.sequence * model.hidden) * held +
                  ofLayers / layers * sequences;
  Activations activations;
  activations.kept = isOffload(problem.offloadOf(layout).activations) ? inputs : ofLayers * held;
  // Where gradients of weights wait, so does what they are computed from.
  activations.least = layout.schedule.splitsBackward() ? activations.kept : std::min(inputs, activations.kept);
  // The stage with the most layers, what a layer's gradients take until they are added or reduced, at ZeRO 3 the weights
  // of two layers, and a twentieth for libraries and the driver.
  double most = std::ceil(layers / stages) * stages / layers;
  double ofLayer = (gradientBytes(layout, false) + gradientBytes(layout, true)) * stages / layers;
  double passing = layout.zero == 3 ? 2 * ofLayer : layout.microbatches > 1 ? ofLayer : 0;
  activations.room = 0.95 * problem.capacity() - most * bytes(layout) - passing;
  return activations;
}

bool Bounds::expectsRoom(const Layout &layout) const {
  Activations activations = activationsOf(layout);
  return problem.capacity() > 0 && activations.room - activations.least > problem.capacity() / 3;
}

bool Bounds::expectsCheckpointing(const Layout &layout) const {
  Activations activations = activationsOf(layout);
  return problem.capacity() > 0 && activations.room < 0.8 * activations.kept;
}

double Bounds::expectedSeconds(const Layout &layout, double computing) {
  const ModelFacts &model = problem.model;
  auto microbatches = double(layout.microbatches), stages = double(layout.pipe);
  // A gather and a reduce-scatter at attention and at the MLP, forward and backward. Attention of
  // parts of a sequence is slower.
  double busy = computing * (1 + 0.1 * (1 - 1 / double(layout.context))) +
                8 * microbatches * double(model.layers) / stages * gatherSeconds(layout);
  double bubble = (stages - 1) / microbatches / double(layout.schedule.chunksPerStage);
  if (layout.schedule.splitsBackward())
    bubble /= 3;
  if (layout.schedule.name == ScheduleKind::naive)
    bubble *= microbatches;
  // ZeRO 3 gathers weights twice and reduces gradients in each microbatch, beside what is computed.
  // ZeRO 2 reduces them beside backwards, others beside the last one; both gather weights at the
  // end.
  double layers = std::max(1.0, double(model.layers) / stages), gradients = 0, weights = 0;
  auto addSynchronization = [&](bool ofExperts, int64_t stride) {
    auto shards = int64_t(shardsOf(layout, ofExperts));
    auto ofLayers = [&](const char *collective, double bytes, const cost::GroupLayout &group) {
      if (group.members < 2)
        return 0.0;
      // As large as `dist-optimize-collectives` makes buckets.
      double bucket = std::max(double(25 << 20), problem.cluster.devices.front().device.network.bytesOfLongCall(group.members));
      double calls = layers * std::ceil(bytes / layers / bucket);
      return calls > 0 ? calls * problem.cluster.collectiveSeconds(collective, bytes / calls, group) : 0;
    };
    double bytes = shardedBytes(layout, ofExperts);
    const cost::GroupLayout &group = groupOf(shards, stride);
    gradients += layout.zero > 0 ? ofLayers("reduce_scatter", bytes, group) : ofLayers("all_reduce", 2 * bytes, group);
    gradients += ofLayers("all_reduce", replicaBytes(layout, ofExperts), groupOf(layout.replica, stride * shards));
    weights += layout.zero > 0 ? ofLayers("all_gather", isNarrow(problem) ? bytes / 2 : bytes, group) : 0;
  };
  addSynchronization(/*ofExperts=*/false, layout.tensor);
  if (model.trainedExperts > 0)
    addSynchronization(/*ofExperts=*/true, layout.tensor * layout.expert);
  busy += microbatches * layers * exchangeSeconds(layout);
  // Rounds of experts have collectives of their own, so little else is hidden behind their products.
  Work forward = model.forward, backward = model.backward;
  forward.grouped = backward.grouped = 0;
  double hiding = computing * (secondsOf(layout, forward, true) + secondsOf(layout, backward, false)) /
                  (secondsOf(layout, model.forward, true) + secondsOf(layout, model.backward, false));
  // A layer waits for the collectives of tensor parallelism, which queue behind these.
  if (layout.tensor > 1)
    hiding /= 2;
  double exposed = 0;
  if (layout.zero == 3)
    exposed = std::max(0.0, microbatches * (2 * weights + gradients) - 0.8 * hiding);
  else if (layout.zero == 2)
    exposed = weights + std::max(0.0, microbatches * gradients - 0.5 * hiding);
  else
    exposed = weights + std::max(0.0, gradients - 0.5 * hiding / microbatches);
  // Where the activations of all layers have no room, a forward runs again.
  Activations activations = activationsOf(layout);
  if (problem.capacity() > 0 && activations.room < activations.least)
    exposed += 4 * busy; // There is hardly a chance.
  else if (problem.capacity() > 0 && activations.room < activations.kept)
    busy += computing / 3;
  return busy * (1 + bubble) + exposed;
}

//===--- bytes -------------------------------------------------------------------------===//

double Bounds::bytes(const Layout &layout) const {
  const ModelFacts &model = problem.model;
  const CompileOptions &options = problem.options;
  const Offload offload = problem.offloadOf(layout);
  bool narrow = isNarrow(problem);
  // Embeddings stay, which need not be large.
  double weight = isOffload(offload.parameters) ? 0 : narrow ? 2 : 4;
  double fewer = model.codes * (weight - std::min(weight, 1.0)); // of weights in 8 bits
  if (!options.seeds.empty()) // They may shard weights over every axis.
    return (model.parameters * weight - fewer) / double(layout.devices());
  double moment = options.momentsDtype == MomentType::bf16 ? 2 : 4;
  double states = double(options.optimizer->states.size()) * moment;
  if (narrow)
    states += options.precision == MixedPrecision::bf16 &&
                      options.masters == MasterStorage::halves && !options.replay
                  ? 2
                  : 4;
  if (isOffload(offload.optimizer))
    states = 0;
  // Sums over microbatches live as long as the step. Gradients of a single one are reduced as they
  // come from ZeRO 1 on, and narrow ones take the place of their weights.
  bool isSummed = layout.microbatches > 1;
  double gradient = options.gradDtype == GradientType::bf16 ? 2 : 4;
  if ((!isSummed && narrow) || isOffload(offload.parameters))
    gradient = 0;
  // A stage may have less than its share, but then another has more.
  double stage = double(layout.tensor * layout.pipe);
  auto of = [&](double parameters, double trained, bool ofExperts) {
    double shards = shardsOf(layout, ofExperts);
    auto from = [&](int64_t level) { return layout.zero >= level ? shards : 1; };
    return (parameters * weight - (ofExperts ? 0 : fewer)) / from(3) +
           trained * (gradient / from(isSummed ? 2 : 1) + states / from(1));
  };
  return of(model.parameters - model.expertParameters, model.trained - model.trainedExperts, false) /
             stage +
         of(model.expertParameters, model.trainedExperts, true) / stage / double(layout.expert);
}
