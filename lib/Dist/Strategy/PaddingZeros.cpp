//===- PaddingZeros.cpp - where padding is known to be zero -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// One bit for each padded dimension of a value: it is zero there, or, of ids,
// points nowhere. A fixed point from above: all are zero until an op or a
// binding contradicts.
//
//===----------------------------------------------------------------------===//
#include "PaddingZeros.h"
#include "Train/TensorType.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;
using train::tensor;

static bool isIds(Value value) { return tensor(value).getElementType().isInteger(32); }

namespace {
class PaddingZeros {
public:
  PaddingZeros(const Structure &structure, const LogicalShapes &logical)
      : structure(structure), logical(logical) {}

  LogicalResult run() {
    for (func::FuncOp function : structure.functions)
      function.walk([&](Operation *op) {
        if (op != function)
          ops.push_back(op);
      });
    for (auto &[value, shape] : logical)
      zero[value].resize(shape.size(), true);
    for (Operation *op : llvm::to_vector(ops)) {
      if (auto neutral = dyn_cast<train::NeutralPaddingOpInterface>(op))
        for (OpOperand &use : op->getOpOperands())
          maskAll(use, neutral.getNeutralPadding(use.getOperandNumber()));
      if (auto finite = dyn_cast<train::FinitePaddingOpInterface>(op))
        maskAll(op->getOpOperand(0), finite.getFinitePadding());
    }
    while (step())
      ;
    for (Operation *op : ops)
      if (auto ruled = dyn_cast<train::ShardingRuleOpInterface>(op))
        if (failed(maskOperands(ruled)))
          return failure();
    for (const ValueBinding &h : structure.bindings)
      if (h.variable)
        for (int64_t d = 0; d < tensor(h.use->get()).getRank(); ++d)
          if (isPadded(h.use->get(), d) && !isZero(h.use->get(), d))
            mask(*h.use, d, 0);
    return success();
  }

private:
  bool isPadded(Value value, int64_t dim) const {
    auto it = logical.find(value);
    return it != logical.end() && it->second[dim] != tensor(value).getDimSize(dim);
  }
  bool isZero(Value value, int64_t dim) const {
    auto it = zero.find(value);
    return it != zero.end() && it->second[dim];
  }

  /// The dimension of `tensor` whose major factor is `factor`, or -1: padding is at
  /// the end of the major one.
  static int64_t dimOf(const ShardingRule &rule, const TensorFactors &tensor, unsigned factor) {
    for (auto [d, dim] : llvm::enumerate(tensor.dims)) {
      auto major = llvm::find_if(dim, [&](unsigned f) { return rule.factors[f].size > 1; });
      if (major != dim.end() && *major == factor)
        return d;
    }
    return -1;
  }

  /// What operands say about an index that they have: are the ones that the op is
  /// linear in zero there, all of them, do ids point nowhere.
  struct Facts {
    bool linear = false, additive = true, anyAdditive = false, all = true, any = false,
         nowhere = false;
  };
  Facts factsOf(Operation *op, const ShardingRule &rule, unsigned factor) const {
    Facts facts;
    for (auto [operand, factors] : llvm::zip(op->getOperands(), rule.operands)) {
      int64_t d = dimOf(rule, factors, factor);
      bool here = d >= 0 && isZero(operand, d);
      facts.anyAdditive |= factors.additive;
      facts.additive &= !factors.additive || here;
      if (d < 0)
        continue;
      facts.any = true;
      facts.linear |= factors.linear && here;
      facts.nowhere |= isIds(operand) && here;
      facts.all &= here;
    }
    return facts;
  }

  bool isZeroResult(train::ShardingRuleOpInterface op, const ShardingRule &rule, unsigned result,
                    int64_t dim) const {
    if (auto fill = dyn_cast<train::FillOp>(*op))
      return fill.getValue().isZero();
    auto major = llvm::find_if(rule.results[result].dims[dim],
                               [&](unsigned f) { return rule.factors[f].size > 1; });
    if (major == rule.results[result].dims[dim].end())
      return false;
    if (auto mask = dyn_cast<train::MaskOp>(*op); mask && int64_t(mask.getDim()) == dim)
      return mask.getValue().isZero() &&
             int64_t(mask.getBelow()) <= logical.find(op->getResult(0))->second[dim];
    // What padding itself adds: zeros, or ids that point nowhere.
    if (auto pad = dyn_cast<train::PadOp>(*op)) {
      int64_t value = pad.getValue();
      bool empty = isIds(pad.getX()) ? value < 0 : value == 0;
      return empty &&
             ((int64_t(pad.getDim()) == dim && pad.getFrom() == 0) || isZero(pad.getX(), dim));
    }
    if (isNeutral(op, rule, *major))
      return true;
    Facts facts = factsOf(op, rule, *major);
    if (facts.linear || (facts.anyAdditive && facts.additive))
      return true;
    auto preserving = dyn_cast<train::ZeroPreservingOpInterface>(*op);
    return preserving &&
           (facts.nowhere || (facts.any && facts.all && preserving.preservesZero(result)));
  }

  /// Whether an operand holds along an index what makes results 0 there.
  static bool isNeutral(Operation *op, const ShardingRule &rule, unsigned factor) {
    auto neutral = dyn_cast<train::NeutralPaddingOpInterface>(op);
    return neutral && llvm::any_of(op->getOpOperands(), [&](OpOperand &use) {
             int64_t d = dimOf(rule, rule.operands[use.getOperandNumber()], factor);
             auto mask = use.get().getDefiningOp<train::MaskOp>();
             auto value = neutral.getNeutralPadding(use.getOperandNumber());
             return d >= 0 && mask && value && int64_t(mask.getDim()) == d &&
                    mask.getValue().convertToDouble() == *value;
           });
  }

  /// Masks all of the padding of an operand, if `value` is one.
  void maskAll(OpOperand &use, std::optional<double> value) {
    for (int64_t d = 0; value && d < tensor(use.get()).getRank(); ++d)
      if (isPadded(use.get(), d)) {
        mask(use, d, *value);
        ops.push_back(use.get().getDefiningOp());
      }
  }

  bool step() {
    bool changed = false;
    auto limit = [&](Value value, int64_t dim, bool stays) {
      auto it = zero.find(value);
      if (stays || it == zero.end() || !it->second[dim])
        return;
      it->second[dim] = false;
      changed = true;
    };
    for (Operation *op : ops) {
      auto ruled = dyn_cast<train::ShardingRuleOpInterface>(op);
      if (!ruled || llvm::none_of(op->getResults(), [&](Value v) { return zero.contains(v); }))
        continue;
      ShardingRule rule = ruled.getShardingRule();
      for (OpResult result : op->getResults())
        for (int64_t d = 0; d < tensor(result).getRank(); ++d)
          if (isPadded(result, d) && isZero(result, d))
            limit(result, d, isZeroResult(ruled, rule, result.getResultNumber(), d));
    }
    for (const ValueBinding &h : structure.bindings) {
      if (!h.to)
        continue;
      for (int64_t d = std::max(0, h.leading); d < tensor(h.use->get()).getRank(); ++d)
        if (isPadded(h.use->get(), d))
          limit(h.to, d - h.leading, isZero(h.use->get(), d));
    }
    for (auto [argument, result] : structure.carried)
      for (int64_t d = 0; d < tensor(argument).getRank(); ++d) {
        limit(argument, d, isZero(result, d));
        limit(result, d, isZero(argument, d));
      }
    return changed;
  }

  void mask(OpOperand &use, int64_t dim, double value) {
    OpBuilder b(use.getOwner());
    Value x = use.get();
    SmallVector<int64_t> shape = logical.lookup(x);
    SmallVector<bool> zeros = zero.lookup(x);
    Value masked = train::MaskOp::create(b, use.getOwner()->getLoc(), x, Value(), dim, shape[dim],
                                         APFloat(value));
    zeros[dim] = value == 0;
    logical[masked] = shape;
    zero[masked] = zeros;
    use.set(masked);
  }

  LogicalResult maskOperands(train::ShardingRuleOpInterface op) {
    ShardingRule rule = op.getShardingRule();
    for (unsigned f = 0; f < rule.factors.size(); ++f) {
      bool kept = llvm::all_of(rule.results, [&](const TensorFactors &tensor) {
        return llvm::any_of(tensor.dims,
                            [&](const auto &dim) { return llvm::is_contained(dim, f); });
      });
      // Rows that only ids choose are never chosen in the padding.
      bool chosen = llvm::any_of(rule.operands, [&](const TensorFactors &tensor) {
        return tensor.indexes == int(f);
      });
      SmallVector<std::pair<OpOperand *, int64_t>> padded;
      for (OpOperand &use : op->getOpOperands()) {
        int64_t d = dimOf(rule, rule.operands[use.getOperandNumber()], f);
        if (d >= 0 && isPadded(use.get(), d))
          padded.push_back({&use, d});
      }
      if (kept || chosen || padded.empty())
        continue;
      Facts facts = factsOf(op, rule, f);
      auto zeros = dyn_cast<train::ZeroPreservingOpInterface>(*op);
      bool preserving = zeros && llvm::all_of(llvm::seq(0u, op->getNumResults()), [&](unsigned r) {
                          return zeros.preservesZero(r);
                        });
      // Zeros neither change sums nor the maximum of what is not negative.
      bool isMax = rule.max && !preserving;
      if (!isMax && (facts.linear || facts.nowhere || (preserving && facts.all)))
        continue;
      // One factor of a product is enough, the smaller one.
      auto isLinear = [&](auto &entry) {
        return rule.operands[entry.first->getOperandNumber()].linear;
      };
      llvm::stable_sort(padded, [](auto &a, auto &b) {
        return tensor(a.first->get()).getNumElements() < tensor(b.first->get()).getNumElements();
      });
      auto linear = llvm::find_if(padded, isLinear);
      if (isMax) {
        mask(*padded[0].first, padded[0].second, -INFINITY);
      } else if (linear != padded.end()) {
        mask(*linear->first, linear->second, 0);
      } else if (preserving) {
        for (auto [use, d] : padded)
          if (!isZero(use->get(), d))
            mask(*use, d, 0);
      } else {
        return op->emitOpError("sums over ")
               << describe(padded[0].first->get()) << ", whose dimension " << padded[0].second
               << " is padded, in a way that zeros do not take out; shard it into parts that "
                  "divide";
      }
    }
    return success();
  }

  const Structure &structure;
  LogicalShapes logical; ///< of masks, too
  SmallVector<Operation *> ops;
  llvm::DenseMap<Value, SmallVector<bool>> zero;
};
} // namespace

LogicalResult dist::maskPadding(ModuleOp module, const LogicalShapes &logical) {
  FailureOr<Structure> structure = structureOf(module);
  if (failed(structure))
    return failure();
  return PaddingZeros(*structure, logical).run();
}
