//===- Flops.cpp - floating-point operations of a program -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Flops.h"

#include "Dist/AttentionPairs.h"
#include "Dist/Dist.h"
#include "Dist/Programs.h"
#include "meshwright/LocationText.h"
#include "meshwright/PlanJson.h"
#include "meshwright/runtime/VisiblePairs.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::report;

/// Products over the visible part of queries x keys: so many over elements of q and k, and of v. Of
/// one pair of both:
static double flopsOfPair(const MwAttention &shape, int64_t keys, int64_t values) {
  return 2.0 * double(shape.batch) * double(shape.heads) *
         double(keys * shape.headDim + values * shape.valueDim);
}
static double flopsOfPair(exec::AttentionOp op) { return flopsOfPair(op.getAttention(), 1, 1); }
// The scores again, and two products for each of the two.
static double flopsOfPair(exec::AttentionGradOp op) { return flopsOfPair(op.getAttention(), 3, 2); }

/// On average over devices that divide queries or keys, which share a program.
template <typename Op> static double pairsOf(Op op) {
  MwAttention shape = op.getAttention();
  return shape.partial ? op.getPairs().convertToDouble()
                       : visiblePairs(shape.queries, shape.globalQueries, shape.keys, shape.causal,
                                      shape.window);
}

double FlopCounter::of(Operation *op, Attribute again) {
  Attribute mark = op->getAttr(train::recomputedAttr);
  if (again && mark != again && (mark || !isa<exec::LoopOp, exec::WhenOp, exec::CallOp>(op)))
    return 0;
  // All that is inside of what is marked runs again.
  Attribute inside = mark ? Attribute() : again;
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<exec::LoopOp>([&](auto loop) {
        return double(loop.getCountedIterations()) * of(loop.getBlock(), inside);
      })
      .Case<exec::WhenOp>([&](auto when) {
        return double(when.getEnd() - when.getBegin()) / double(when.getLoop().getCount()) *
               of(when.getBlock(), inside);
      })
      .Case<exec::CallOp>([&](auto call) {
        auto callee =
            symbols.lookupNearestSymbolFrom<exec::ProgramOp>(call, call.getCalleeAttr());
        auto found = callees.find({callee, inside});
        if (found == callees.end()) {
          double sum = of(callee.getBlock(), inside);
          found = callees.try_emplace({callee, inside}, sum).first;
        }
        return found->second;
      })
      .Case<exec::MatmulOp>([](auto op) {
        return 2.0 * double(op.getM()) * double(op.getN()) * double(op.getK()) *
               double(op.getBatch());
      })
      // A row meets one expert's matrix.
      .Case<exec::GroupedMatmulOp, exec::GroupedMatmulGradOp>([](auto op) {
        exec::ProductShape shape = op.getShape();
        return 2.0 * double(shape.m) * double(shape.n) * double(shape.k) *
               op.getFilled().convertToDouble();
      })
      .Case<exec::AttentionOp, exec::AttentionGradOp>(
          [](auto op) { return flopsOfPair(op) * pairsOf(op); })
      .Case<exec::LaunchOp>([](auto op) {
        double elements = 0;
        for (Value out : op.getOutputs())
          elements += double(cast<MemRefType>(out.getType()).getNumElements());
        return elements;
      })
      .Default(0.0);
}

double FlopCounter::of(Block &block, Attribute again) {
  double sum = 0;
  for (Operation &op : block)
    sum += of(&op, again);
  return sum;
}

using CallVisitor = llvm::function_ref<void(Operation *, double)>;

/// Calls `visit(op, times)` for each op that a rank runs in `block`, so many times.
static void forEachCall(Block &block, double times, SymbolTableCollection &symbols,
                        CallVisitor visit) {
  for (Operation &op : block)
    llvm::TypeSwitch<Operation *>(&op)
        .Case([&](exec::LoopOp loop) {
          forEachCall(loop.getBlock(), times * double(loop.getCountedIterations()), symbols, visit);
        })
        .Case([&](exec::WhenOp when) {
          double part = double(when.getEnd() - when.getBegin()) / double(when.getLoop().getCount());
          forEachCall(when.getBlock(), times * part, symbols, visit);
        })
        .Case([&](exec::CallOp call) {
          auto callee =
              symbols.lookupNearestSymbolFrom<exec::ProgramOp>(call, call.getCalleeAttr());
          forEachCall(callee.getBlock(), times, symbols, visit);
        })
        .Default([&](Operation *call) { visit(call, times); });
}

/// ... in a step of the program.
static void forEachCall(ModuleOp program, CallVisitor visit) {
  SymbolTableCollection symbols;
  for (auto step : program.getOps<exec::ProgramOp>())
    if (step.getSymName() == "step")
      forEachCall(step.getBlock(), 1, symbols, visit);
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
                                                 FlopCounter &flops) {
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
    double flops = times * flopsOfPair(op);
    auto pairs = op->template getAttrOfType<DenseI64ArrayAttr>(dist::attentionPairsAttr);
    if (!pairs) {
      shared += flops * pairsOf(op);
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

std::vector<plan::AttentionShare> report::attentionShares(ModuleOp program,
                                                          int64_t microbatches) {
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
    share.queryStride = op.getQueryStride();
    share.keys = shape.keys;
    share.keyStride = op.getKeyStride();
    share.window = shape.window;
    std::string text = llvm::formatv("{0}", plan::toJSON<plan::AttentionShare>(share)).str();
    auto [found, isNew] = known.try_emplace(text, shares.size());
    if (isNew)
      shares.push_back(share);
    // A sequence is in one microbatch, and has these pairs there.
    shares[found->second].flops +=
        times * flopsOfPair(op) / double(shape.batch * microbatches);
  });
  bool divided = llvm::any_of(shares, [](const auto &share) { return !share.axes.empty(); });
  return divided ? shares : std::vector<plan::AttentionShare>();
}
