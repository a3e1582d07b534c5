//===- ModelFacts.cpp - what is known of a model before layouts are compiled ===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ModelFacts.h"

#include "../DiagnosticCollector.h"
#include "Train/Train.h"
#include "meshwright/Cost/TripCount.h"
#include "meshwright/Pipeline.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::planner;

ModelReader::ModelReader(const CompileOptions &given, MLIRContext &context)
    : options(given), context(context) {
  options.microbatches = 1;
  options.batchRamp = false;
  options.mesh = {};
  options.batch = options.leastBatch();
  options.schedule = {};
  options.sequenceParallel = false;
  options.remat = {};
  options.residuals = ResidualChoice::least;
  options.plan.clear();
}

/// FLOPs of an op and of what it runs, but for what becomes part of kernels.
static Work workOf(Operation *op, SymbolTableCollection &symbols) {
  Work work;
  auto add = [&](Operation *each, double runs) {
    auto cost = dyn_cast<train::CostOpInterface>(each);
    double flops = cost && !isa<train::KernelOpInterface>(each) ? cost.getFlops() : 0;
    if (flops == 0)
      return;
    if (isa<train::AttentionOp, train::AttentionGradOp>(each))
      work.attention += runs * flops;
    else if (isa<train::GroupedLinearOp, train::GroupedLinearGradOp>(each))
      work.grouped += runs * flops;
    else if (flops > train::defaultFlops(each)) // Routing, say, is no product.
      work.products += runs * flops;
  };
  Operation *callee = cost::calleeOf(op, symbols);
  if (!callee && op->getNumRegions() == 0)
    add(op, 1);
  double times = cost::tripCount(op);
  for (Region &region : (callee ? callee : op)->getRegions())
    for (Block &block : region)
      cost::forEachRun(block, cost::Rounds::Expected, symbols,
                       [&](Operation *each, double runs) { add(each, runs * times); });
  return work;
}

static Work workOf(Block &block) {
  SymbolTableCollection symbols;
  Work sum;
  for (Operation &op : block)
    sum.add(workOf(&op, symbols));
  return sum;
}

Work ModelReader::ofSequence(const Work &work) const {
  Work one;
  one.add(work, 1 / double(options.batch));
  return one;
}

OwningOpRef<ModuleOp> ModelReader::runPasses(StringRef last, int64_t chunks) {
  CompileOptions cut = options;
  if (chunks > 1)
    cut.mesh.axes.push_back({"pipe", chunks});
  OwningOpRef<ModuleOp> copy((*model).clone());
  PassManager manager(&context);
  DiagnosticCollector diagnostics(context);
  llvm::Error error = buildPipeline(manager, cut, "train-verify-model", last);
  if (!error && succeeded(manager.run(*copy)))
    return copy;
  llvm::consumeError(std::move(error));
  return nullptr;
}

/// Adapters are parameters, too, and what they adapt is frozen.
static void countTrained(ModuleOp step, ModelFacts &facts) {
  facts.parameters = facts.trained = facts.trainedExperts = 0;
  for (auto variable : step.getOps<train::VariableOp>()) {
    if (!variable.isParameter())
      continue;
    auto count = double(variable.getTensorType().getNumElements());
    facts.parameters += count;
    if (variable.getTensorType().getElementType().isInteger(8))
      facts.codes += count;
    if (variable->hasAttr(train::frozenAttr))
      continue;
    facts.trained += count;
    if (variable.getExperts())
      facts.trainedExperts += count;
  }
}

/// Bytes that loops over layers give to those of the backward.
static double keptBytes(Block &step) {
  double bytes = 0;
  for (auto repeat : step.getOps<train::RepeatOp>())
    for (OpResult result : repeat->getResults().drop_front(repeat.getCarry().size()))
      if (!repeat.getTimes() && llvm::any_of(result.getUsers(), llvm::IsaPred<train::RepeatOp>)) {
        auto type = cast<RankedTensorType>(result.getType());
        bytes += double(type.getNumElements()) * double(type.getElementTypeBitWidth()) / 8;
      }
  return bytes;
}

double ModelReader::keptApart(int64_t experts) {
  ModelReader divided(options, context);
  int64_t parts = 2;
  while (experts % parts != 0)
    ++parts;
  divided.options.mesh.axes.push_back({"expert", parts});
  divided.options.batch = divided.options.leastBatch();
  llvm::raw_null_ostream log;
  llvm::Expected<OwningOpRef<ModuleOp>> loaded = loadModel(divided.options, context, log);
  if (!loaded) {
    llvm::consumeError(loaded.takeError());
    return 0;
  }
  divided.model = std::move(*loaded);
  OwningOpRef<ModuleOp> step = divided.runPasses("train-build-optimizer", 1);
  auto whole = step ? (*step).lookupSymbol<func::FuncOp>("step") : func::FuncOp();
  return whole ? keptBytes(whole.getBody().front()) / double(divided.options.batch) : 0;
}

llvm::Expected<ModelFacts> ModelReader::read() {
  std::string notes;
  llvm::raw_string_ostream log(notes);
  llvm::Expected<OwningOpRef<ModuleOp>> loaded = loadModel(options, context, log);
  if (!loaded)
    return loaded.takeError();
  model = std::move(*loaded);
  ModuleOp module = *model;
  auto loss = module.lookupSymbol<func::FuncOp>("loss");
  if (!loss)
    return llvm::createStringError("'" + options.model +
                                   "' is past phase train; a search needs a config.json");
  ModelFacts facts;
  facts.sequence = train::moduleSize(module, train::sequenceAttr).value_or(1);
  for (auto repeat : loss.getOps<train::RepeatOp>())
    if (!repeat.getTimes())
      facts.layers += repeat.getCount();
  for (auto embedding : loss.getOps<train::EmbeddingOp>())
    facts.hidden = cast<RankedTensorType>(embedding.getType()).getShape().back();
  module.walk([&](train::AttentionOp attention) {
    facts.heads = cast<RankedTensorType>(attention.getQ().getType()).getDimSize(2);
  });
  for (auto variable : module.getOps<train::VariableOp>()) {
    if (variable.getOf())
      continue; // A state of a parameter, of counts of tokens.
    auto count = double(variable.getTensorType().getNumElements());
    facts.parameters += count;
    if (!variable.getExperts())
      continue;
    facts.expertParameters += count;
    facts.experts = variable.getTensorType().getDimSize(variable.getStacked() ? 1 : 0);
  }
  facts.forward = ofSequence(workOf(loss.getBody().front()));
  SymbolTableCollection symbols;
  for (Operation &op : loss.getBody().front()) {
    auto repeat = dyn_cast<train::RepeatOp>(op);
    double times = repeat && !repeat.getTimes() ? double(repeat.getCount()) : 1;
    Work work = ofSequence(workOf(&op, symbols));
    facts.largestCall = std::max(facts.largestCall, (work.products + work.grouped) / times);
  }
  // What the passes add for the backward; one that fails here says why when layouts are compiled.
  facts.backward = facts.forward;
  facts.trained = facts.parameters;
  facts.trainedExperts = facts.expertParameters;
  if (OwningOpRef<ModuleOp> step = runPasses("train-build-optimizer", 1))
    if (auto whole = (*step).lookupSymbol<func::FuncOp>("step")) {
      facts.backward = ofSequence(workOf(whole.getBody().front()));
      facts.backward.add(facts.forward, -1);
      facts.kept = keptBytes(whole.getBody().front()) / double(options.batch);
      facts.keptApart = facts.experts > 1 ? keptApart(facts.experts) : facts.kept;
      countTrained(*step, facts);
    }
  return facts;
}

void ModelReader::addCut(ModelFacts &facts, int64_t count) {
  if (facts.cuts.count(count))
    return;
  std::vector<Chunk> &chunks = facts.cuts[count];
  OwningOpRef<ModuleOp> cut;
  if (count > 1 && !(cut = runPasses("train-split-layers", count)))
    return;
  chunks.resize(count);
  SymbolTableCollection symbols;
  int64_t at = 0;
  // What goes before layers is small, and may be on any stage.
  Work behind;
  auto loss = (cut ? *cut : *model).lookupSymbol<func::FuncOp>("loss");
  for (Operation &op : loss.getBody().front()) {
    Work work = ofSequence(workOf(&op, symbols));
    auto repeat = dyn_cast<train::RepeatOp>(op);
    if (!repeat || repeat.getTimes()) {
      behind.add(work);
      continue;
    }
    if (auto number = repeat->getAttrOfType<IntegerAttr>(train::TrainDialect::chunkAttr))
      at = number.getInt();
    chunks[at].forward.add(work);
    if (work.attention > 0)
      chunks[at].layers += repeat.getCount();
    behind = {};
  }
  chunks.back().forward.add(behind);
}
