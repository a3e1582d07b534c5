//===- MaximalUpdate.cpp - muP of a model -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Both models are built by one builder, at the wider one's depth, so a parameter has the same name in
// both, and dimensions that differ are the ones that grow with the width.
//
//===----------------------------------------------------------------------===//
#include "MaximalUpdate.h"

#include "Train/Storage.h"
#include "Train/Widths.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;
using namespace meshwright::train;

//===--- the forward --------------------------------------------------------===//

void meshwright::frontend::checkBase(Config &config, const Model &model, const Model &base) {
  auto check = [&](StringRef key, int64_t of, int64_t ofBase) {
    if (of != ofBase && !config.failed())
      config.error(key) << "--mup-base: \"" << key << "\" is " << ofBase << ", but " << of
                        << " in the model; muP is of models that differ in width alone: in hidden "
                           "size, heads, head dimension and the inner size of MLPs";
  };
  const Family &f = model.family;
  check(f.vocabulary.name, model.vocabulary, base.vocabulary);
  if (!f.positionTable.empty())
    check(f.positions.name, model.positions, base.positions);
  if (!f.typeTable.empty())
    check(f.types.name, model.types, base.types);
  if (!f.relative.table.empty())
    check(f.relative.buckets.name, model.buckets, base.buckets);
  if (f.experts.any()) {
    check(f.experts.count.name, model.experts.count, base.experts.count);
    check(f.experts.chosen.name, model.experts.chosen, base.experts.chosen);
    for (auto [kind, its] : llvm::zip(model.kinds, base.kinds)) {
      check(f.experts.count.name, model.expertsOf(kind).count, base.expertsOf(its).count);
      check(f.experts.chosen.name, model.expertsOf(kind).chosen, base.expertsOf(its).chosen);
    }
  }
  if (model.activation != base.activation && !config.failed())
    config.error(f.activation.name) << "--mup-base: the activation is \"" << base.activation
                                    << "\", but \"" << model.activation << "\" in the model";
}

void meshwright::frontend::scaleForward(Model &model, const Model &base) {
  model.embeddingFactor = base.embeddingFactor;
  model.residualFactor = base.residualFactor;
  // A ratio of 1 leaves every digit as it is.
  model.logitFactor =
      base.logitFactor * (double(base.embeddingWidth) / double(model.embeddingWidth));
  double heads = double(base.headDim) / double(model.headDim);
  for (auto [kind, its] : llvm::zip(model.kinds, base.kinds))
    kind.scoreScale = its.scoreScale * heads;
  if (!model.source)
    return;
  auto source = std::make_shared<Model>(*model.source);
  scaleForward(*source, *base.source);
  model.source = source;
}

//===--- parameters ---------------------------------------------------------===//

/// Which dimensions of a weight are fan-in: its readers sum over them. A rule says that of each op;
/// what changes only the form of a weight (a cast, a reshape) is followed.
static SmallVector<bool> findFanIn(Value weight, SymbolTableCollection &symbols) {
  int64_t rank = cast<RankedTensorType>(weight.getType()).getRank();
  SmallVector<bool> isFanIn(rank, false);
  auto include = [&](ArrayRef<bool> dims, int64_t first) {
    for (auto [d, summed] : llvm::enumerate(dims))
      isFanIn[first + int64_t(d)] |= summed;
  };
  for (OpOperand &use : weight.getUses()) {
    unsigned number = use.getOperandNumber();
    if (auto repeat = dyn_cast<RepeatOp>(use.getOwner())) {
      size_t carried = repeat.getCarry().size(), each = repeat.getEach().size();
      if (number < carried || (repeat.getTimes() && use.get() == repeat.getTimes()))
        continue;
      func::FuncOp callee = repeat.lookupCallee(symbols);
      bool isSlice = number < carried + each;
      include(findFanIn(callee.getArgument(repeat.getCalleeArgument(number)), symbols), isSlice);
      continue;
    }
    auto reader = dyn_cast<ShardingRuleOpInterface>(use.getOwner());
    if (!reader)
      continue;
    ShardingRule rule = reader.getShardingRule();
    SmallVector<bool> ofResult;
    if (reader->getNumOperands() == 1 && reader->getNumResults() == 1)
      ofResult = findFanIn(reader->getResult(0), symbols);
    for (int64_t d = 0; d < rank; ++d)
      for (unsigned factor : rule.operands[number].dims[d]) {
        isFanIn[d] = isFanIn[d] || rule.factors[factor].reduced;
        for (auto [at, summed] : llvm::enumerate(ofResult))
          isFanIn[d] = isFanIn[d] || (summed && llvm::is_contained(rule.results[0].dims[at], factor));
      }
  }
  return isFanIn;
}

namespace {
/// How a parameter's sizes differ from the base's.
struct Widths {
  WidthMultipliers multipliers;
  bool wider = false;      ///< whether its fan-out differs
  bool readsWider = false; ///< whether its fan-in differs
};
} // namespace

/// The standard deviation of initial weights. A matrix between widths keeps the size of sums over its
/// fan-in. A weight with a fixed fan-out is like that of logits, whose factor 1 / m it has in its
/// numbers: m^-1 times a number of the base's size. What reads no width keeps the base's.
static double initialDeviation(double ofBase, const Widths &widths) {
  if (!widths.readsWider)
    return ofBase;
  return ofBase / (widths.wider ? std::sqrt(widths.multipliers.fanIn) : widths.multipliers.fanIn);
}

LogicalResult meshwright::frontend::scaleParameters(ModuleOp module, ModuleOp base,
                                                    const Model &model, StringRef path) {
  auto error = [&] {
    return emitError(FileLineColLoc::get(module.getContext(), path, 0, 0))
           << "'" << path << "': --mup-base: the base model ";
  };
  for (VariableOp its : base.getOps<VariableOp>())
    if (!module.lookupSymbol<VariableOp>(its.getSymName()))
      return error() << "has a parameter " << storedTensorName(its, 0)
                     << ", which the model does not have; they may differ in widths only";
  llvm::StringMap<SmallVector<bool>> fanIn;
  SymbolTableCollection symbols;
  module.walk([&](GetOp get) {
    SmallVector<bool> &dims = fanIn[get.getVariable()];
    dims.resize(cast<RankedTensorType>(get.getType()).getRank(), false);
    for (auto [d, summed] : llvm::enumerate(findFanIn(get.getResult(), symbols)))
      dims[d] = dims[d] || summed;
  });
  // Logits have a factor of their own, so their matrix is scaled as a table of embeddings, which it may be, too.
  for (StringRef name : {model.family.head, model.family.embedding})
    fanIn.erase((name + ".weight").str());
  Builder builder(module.getContext());
  for (VariableOp variable : module.getOps<VariableOp>()) {
    auto its = base.lookupSymbol<VariableOp>(variable.getSymName());
    if (!its)
      return error() << "has no parameter " << storedTensorName(variable, 0)
                     << ", which the model has; they may differ in widths only";
    ArrayRef<int64_t> shape = variable.getTensorType().getShape();
    ArrayRef<int64_t> ofBase = its.getTensorType().getShape();
    int64_t numbered = variable.getNumbered();
    if (shape.size() != ofBase.size() || shape.take_front(numbered) != ofBase.take_front(numbered))
      return error() << "has " << its.getTensorType() << " for @" << variable.getSymName() << ", the model "
                     << variable.getTensorType() << "; they may differ in widths only";
    SmallVector<bool> isFanIn = fanIn.lookup(variable.getSymName());
    isFanIn.resize(shape.size(), false);
    Widths widths;
    for (size_t d = 0; d < shape.size(); ++d) {
      double ratio = double(shape[d]) / double(ofBase[d]);
      (isFanIn[d] ? widths.multipliers.fanIn : widths.multipliers.fanOut) *= ratio;
      (isFanIn[d] ? widths.readsWider : widths.wider) |= shape[d] != ofBase[d];
    }
    if (widths.readsWider)
      variable->setAttr(fanInAttr, builder.getF64FloatAttr(widths.multipliers.fanIn));
    if (widths.wider)
      variable->setAttr(fanOutAttr, builder.getF64FloatAttr(widths.multipliers.fanOut));
    if (its.getInit().getKind() == "normal") {
      double deviation = initialDeviation(its.getInit().getValue().getValueAsDouble(), widths);
      variable.setInitAttr(InitAttr::get(module.getContext(), "normal", builder.getF64FloatAttr(deviation)));
    }
  }
  return success();
}
