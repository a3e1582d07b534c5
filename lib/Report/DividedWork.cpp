//===- DividedWork.cpp - how ranks divide the work of a step -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "DividedWork.h"

#include "Dist/AttentionPairs.h"
#include "Dist/Dist.h"
#include "Dist/Programs.h"
#include "Exec/Exec.h"
#include "meshwright/LocationText.h"
#include "meshwright/PlanJson.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::report;

/// Calls `visit(op, times)` for each op that a rank runs in a step of the program, so many times.
static void forEachCall(ModuleOp program, llvm::function_ref<void(Operation *, double)> visit) {
  SymbolTableCollection symbols;
  for (auto step : program.getOps<exec::ProgramOp>())
    if (step.getSymName() == "step")
      cost::forEachRun(step.getBlock(), cost::Rounds::Expected, symbols, visit);
}

/// Calls `visit(op, times)` for each call of attention in a step, with `op` of its class.
template <typename Visit> static void forEachAttention(ModuleOp program, Visit visit) {
  forEachCall(program, [&](Operation *op, double times) {
    if (auto call = dyn_cast<exec::AttentionOp>(op))
      visit(call, times);
    else if (auto call = dyn_cast<exec::AttentionGradOp>(op))
      visit(call, times);
  });
}

std::vector<plan::Repeated> report::repeatedWork(ModuleOp program, const dist::Mesh &mesh,
                                                 cost::FlopCounter &flops) {
  auto coordinates = program->getAttrOfType<DictionaryAttr>(dist::coordinatesAttr);
  std::map<std::pair<std::string, std::vector<std::string>>, double> work;
  forEachCall(program, [&](Operation *op, double times) {
    auto named = op->getAttrOfType<ArrayAttr>(dist::repeatedAttr);
    if (!named)
      return;
    std::vector<std::string> axes;
    double copies = 1;
    // A stage's program runs at one coordinate of some axes.
    for (StringAttr axis : named.getAsRange<StringAttr>())
      if (!coordinates || !coordinates.get(axis)) {
        axes.push_back(axis.str());
        copies *= double(mesh.axes[mesh.find(axis)].size);
      }
    if (copies > 1)
      work[{codegen::locationText(op->getLoc()), axes}] += times * flops.of(op) * (1 - 1 / copies);
  });
  std::vector<plan::Repeated> repeated;
  for (auto &[key, count] : work)
    if (count > 0)
      repeated.push_back({key.first, key.second, count});
  return repeated;
}

std::optional<double> report::attentionImbalance(ModuleOp program) {
  SmallVector<double> work; // by rank, beside what all have
  double shared = 0;
  forEachAttention(program, [&](auto op, double times) {
    double flops = times * op.getFlopsOfPair();
    auto pairs = op->template getAttrOfType<DenseI64ArrayAttr>(dist::attentionPairsAttr);
    if (!pairs) {
      shared += flops * op.getVisiblePairs();
      return;
    }
    work.resize(std::max<size_t>(work.size(), pairs.size()));
    for (auto [rank, count] : llvm::enumerate(pairs.asArrayRef()))
      work[rank] += flops * double(count);
  });
  double sum = double(work.size()) * shared + std::accumulate(work.begin(), work.end(), 0.0);
  if (work.empty() || sum == 0)
    return {};
  return (*llvm::max_element(work) + shared) * double(work.size()) / sum;
}

std::vector<plan::AttentionShare> report::attentionShares(ModuleOp program, int64_t microbatches) {
  std::vector<plan::AttentionShare> shares;
  llvm::StringMap<size_t> known; // by what they say beside `flops`
  forEachAttention(program, [&](auto op, double times) {
    if (!op.getPositions())
      return;
    MwAttention shape = op.getAttention();
    plan::AttentionShare share;
    share.firstQueries = {0};
    if (auto queries = op->template getAttrOfType<DenseI64ArrayAttr>(dist::firstQueriesAttr)) {
      share.firstQueries = queries.asArrayRef().vec();
      for (Attribute axis : op->template getAttrOfType<ArrayAttr>(dist::dividedOverAttr))
        share.axes.push_back(cast<StringAttr>(axis).str());
    }
    if (auto keys = op->template getAttrOfType<DenseI64ArrayAttr>(dist::firstKeysAttr))
      share.firstKeys = keys.asArrayRef().vec();
    share.queries = shape.queries;
    share.queryStride = shape.queryStride;
    share.keys = shape.keys;
    share.keyStride = shape.keyStride;
    static_cast<plan::Mask &>(share) = plan::Mask(attentionMaskOf(shape));
    std::string text = llvm::formatv("{0}", plan::toJSON<plan::AttentionShare>(share)).str();
    auto [found, isNew] = known.try_emplace(text, shares.size());
    if (isNew)
      shares.push_back(share);
    // A sequence is in one microbatch, and has these pairs there.
    shares[found->second].flops += times * op.getFlopsOfPair() / double(shape.batch * microbatches);
  });
  bool divided = llvm::any_of(shares, [](const auto &share) { return !share.axes.empty(); });
  return divided ? shares : std::vector<plan::AttentionShare>();
}
