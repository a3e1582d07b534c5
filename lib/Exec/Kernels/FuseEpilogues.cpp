//===- FuseEpilogues.cpp - exec-fuse-epilogues ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A product grows one reader at a time: the only reader of its result, as long as
// that is something the library does too, in the order in which it does it. Sums of a factor,
// gradients of biases, are left to products that nothing else grew on.
//
//===----------------------------------------------------------------------===//
#include "Contraction.h"
#include "Train/Quantize.h"
#include "Exec/Memory/InsertCopies.h"
#include "Exec/Passes.h"

#include "Dist/Dist.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECFUSEEPILOGUES
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

/// "b i, o i -> b o" of a factor table; nothing where a dimension is not one factor.
static std::optional<std::string> textOf(const ShardingRule &rule) {
  bool plain = true;
  auto text = [&](const TensorFactors &tensor) {
    return llvm::join(llvm::map_range(tensor.dims,
                                      [&](auto &dim) -> std::string {
                                        plain &= dim.size() == 1;
                                        return dim.empty() ? "" : rule.factors[dim[0]].name;
                                      }),
                      " ");
  };
  std::string result = text(rule.operands[0]) + ", " + text(rule.operands[1]) + " -> " +
                       text(rule.results[0]);
  return plain ? std::optional(result) : std::nullopt;
}

/// Whether the target's library can do `epilogue` with such a product, and should.
static bool fuses(TargetAttr target, const Epilogue &epilogue, const ProductShape &product) {
  return target.getTarget().shouldFuse(epilogue.kind, target.getParameters()) &&
         target.getTarget().canFuse(epilogue, product);
}

namespace {
/// A product that becomes one `exec.product`.
class Fusion {
public:
  Fusion(train::ContractionOpInterface op, TargetAttr target) : op(op), target(target) {}

  /// Whether it is a product that the library can do more with.
  bool begin() {
    auto ruled = dyn_cast<train::ShardingRuleOpInterface>(op.getOperation());
    auto accumulating = dyn_cast<train::AccumulatingOpInterface>(op.getOperation());
    if (!ruled || (accumulating && !accumulating.getInitMutable().empty()))
      return false;
    ShardingRule rule = ruled.getShardingRule();
    std::string error;
    auto found = matrixProductOf(rule, error);
    auto text = textOf(rule);
    if (failed(found) || !text || found->batch != 1 || found->n == 1)
      return false;
    product = *found;
    spec = *text;
    value = op->getResult(0);
    return true;
  }

  /// Takes in the reader of `value`, if it can.
  bool grow() {
    if (gelu || slopeAt)
      return false;
    // What gelu is taken of may be kept.
    if (takesGelu())
      return true;
    if (!value.hasOneUse())
      return false;
    Operation *reader = *value.user_begin();
    if (reader->getBlock() != op->getBlock() || reader->getNumResults() != 1 ||
        reader->getResult(0).getType() != op->getResult(0).getType())
      return false;
    if (auto add = dyn_cast<train::AddOp>(reader))
      return takeSum(add);
    if (auto gradient = dyn_cast<train::GeluGradOp>(reader))
      return takeSlope(gradient);
    return false;
  }

  /// Replaces all that the product took in by the product.
  void finish() {
    OpBuilder b(taken.back());
    SmallVector<Type> types{op->getResult(0).getType()};
    if (preactivation)
      types.push_back(types.front());
    SmallVector<Location> locs{op.getLoc()};
    for (Operation *reader : taken)
      locs.push_back(reader->getLoc());
    auto made = ProductOp::create(b, b.getFusedLoc(locs), types[0],
                                  preactivation ? types[1] : Type(), spec, op->getOperand(0),
                                  op->getOperand(1), addend, bias, slopeAt, gelu, IntegerAttr());
    made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    value.replaceAllUsesWith(made.getResult());
    if (preactivation)
      preactivation.replaceUsesWithIf(made.getPreactivation(), [&](OpOperand &use) {
        return !llvm::is_contained(taken, use.getOwner());
      });
    for (Operation *reader : llvm::reverse(taken))
      reader->erase();
    op->erase();
  }

  bool any() const { return !taken.empty(); }

private:
  bool allows(Epilogue::Kind kind, bool tanh = true) const {
    return fuses(target, {kind, tanh}, shapeOf(product, getElementTypeOrSelf(op->getOperand(0)),
                                               getElementTypeOrSelf(op->getResult(0))));
  }

  void take(Operation *reader) {
    taken.push_back(reader);
    value = reader->getResult(0);
  }

  bool takeSum(train::AddOp add) {
    bool isLeft = add.getLhs() == value;
    Value other = isLeft ? add.getRhs() : add.getLhs();
    auto type = cast<RankedTensorType>(other.getType());
    if (other == value)
      return false;
    if (type == value.getType()) {
      if (addend || !allows(Epilogue::Addend))
        return false;
      addend = other;
    } else {
      // Fewer dimensions: the last ones. They must be the row that the library adds to.
      if (!isLeft || bias || type.getNumElements() != product.n || !allows(Epilogue::Bias))
        return false;
      bias = other;
    }
    take(add);
    return true;
  }

  bool takesGelu() {
    train::GeluOp found;
    bool others = false;
    for (Operation *user : value.getUsers()) {
      auto candidate = dyn_cast<train::GeluOp>(user);
      if (candidate && !found && candidate->getBlock() == op->getBlock())
        found = candidate;
      else
        others = true;
    }
    if (!found || addend || !allows(Epilogue::Gelu, found.getTanh()))
      return false;
    // What reads the other result must come after the product, which comes where gelu is.
    for (Operation *user : value.getUsers()) {
      Operation *at = op->getBlock()->findAncestorOpInBlock(*user);
      if (user != found && at->isBeforeInBlock(found))
        return false;
    }
    if (others)
      preactivation = value;
    gelu = true;
    take(found);
    return true;
  }

  bool takeSlope(train::GeluGradOp gradient) {
    if (addend || bias || gradient.getDy() != value || gradient.getX() == value ||
        !allows(Epilogue::GeluGrad, gradient.getTanh()))
      return false;
    slopeAt = gradient.getX();
    take(gradient);
    return true;
  }

  train::ContractionOpInterface op;
  TargetAttr target;
  MatrixProduct product;
  std::string spec;
  Value value; ///< what the product makes so far
  Value addend, bias, slopeAt, preactivation;
  bool gelu = false;
  SmallVector<Operation *> taken;
};

/// A product that also makes the sums of one of its factors over what it sums.
class SumFusion {
public:
  SumFusion(train::ContractionOpInterface op, TargetAttr target) : op(op), target(target) {}

  /// Finds such sums that would otherwise take a pass over memory of their own.
  bool find() {
    auto ruled = dyn_cast<train::ShardingRuleOpInterface>(op.getOperation());
    if (!ruled)
      return false;
    ShardingRule rule = ruled.getShardingRule();
    std::string error;
    auto product = matrixProductOf(rule, error);
    auto text = textOf(rule);
    if (failed(product) || !text)
      return false;
    spec = *text;
    for (factor = 0; factor < 2; ++factor) {
      Epilogue sum{Epilogue::BiasGrad, /*tanh=*/true, product->swapped ? 1 - factor : factor};
      if (!fuses(target, sum, shapeOf(*product, getElementTypeOrSelf(op->getOperand(0)),
                                      getElementTypeOrSelf(op->getResult(0)))))
        continue;
      SmallVector<int64_t> dims = summedDims(rule, factor);
      for (Operation *user : op->getOperand(factor).getUsers())
        if (auto candidate = dyn_cast<train::ReduceOp>(user);
            candidate && candidate.getDims() == ArrayRef(dims) && canTake(candidate)) {
          sums = candidate;
          return true;
        }
    }
    return false;
  }

  void finish() {
    OpBuilder b(op);
    Value init;
    if (auto accumulating = dyn_cast<train::AccumulatingOpInterface>(op.getOperation()))
      if (MutableOperandRange range = accumulating.getInitMutable(); !range.empty())
        init = range[0].get();
    auto made = ProductOp::create(b, b.getFusedLoc({op.getLoc(), sums.getLoc()}),
                                  op->getResult(0).getType(), sums.getType(), spec,
                                  op->getOperand(0), op->getOperand(1), init, Value(), Value(),
                                  /*gelu=*/false, b.getI64IntegerAttr(factor));
    made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    op->getResult(0).replaceAllUsesWith(made.getResult());
    sums.getResult().replaceAllUsesWith(made.getBeside());
    sums->erase();
    op->erase();
  }

private:
  bool canTake(train::ReduceOp reduce) {
    if (reduce.getKind() != train::ReduceKind::Sum || reduce->getBlock() != op->getBlock() ||
        getElementTypeOrSelf(reduce.getType()) != getElementTypeOrSelf(op->getResult(0)) ||
        isInKernels(op->getOperand(factor), reduce))
      return false;
    return llvm::all_of(reduce->getUsers(), [&](Operation *user) {
      return op->isBeforeInBlock(op->getBlock()->findAncestorOpInBlock(*user));
    });
  }

  /// Whether a kernel beside `reduce` makes or reads `value`, and so can sum it for nothing.
  static bool isInKernels(Value value, Operation *reduce) {
    SmallVector<Value> values{viewed(value)};
    if (isa_and_nonnull<train::KernelOpInterface>(values[0].getDefiningOp()))
      return true;
    while (!values.empty())
      for (Operation *user : values.pop_back_val().getUsers()) {
        if (isView(user))
          llvm::append_range(values, user->getResults());
        else if (user != reduce && isa<train::KernelOpInterface>(user))
          return true;
      }
    return false;
  }

  train::ContractionOpInterface op;
  TargetAttr target;
  std::string spec;
  unsigned factor = 0;
  train::ReduceOp sums;
};

struct ExecFuseEpilogues : exec::impl::ExecFuseEpiloguesBase<ExecFuseEpilogues> {
  void runOnModule() override {
    TargetAttr target = targetOf(getOperation());
    for (train::ContractionOpInterface op : products()) {
      Fusion fusion(op, target);
      if (!fusion.begin())
        continue;
      while (fusion.grow())
        ;
      if (fusion.any())
        fusion.finish();
    }
    for (train::ContractionOpInterface op : products())
      if (SumFusion fusion(op, target); fusion.find())
        fusion.finish();
  }

  /// Those that have no epilogue.
  SmallVector<train::ContractionOpInterface> products() {
    SmallVector<train::ContractionOpInterface> found;
    getOperation().walk([&](train::ContractionOpInterface op) {
      // Libraries that multiply 8 bits are called without.
      if (!isa<ProductOp, train::ScaledContractOp>(*op))
        found.push_back(op);
    });
    return found;
  }
};
} // namespace
