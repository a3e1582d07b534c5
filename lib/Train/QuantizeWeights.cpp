//===- QuantizeWeights.cpp - train-quantize-weights -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FunctionUtils.h"
#include "Train/Passes.h"
#include "Train/Quantize.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINQUANTIZEWEIGHTS
#include "Train/Passes.h.inc"
#include "Train/TensorType.h"
} // namespace meshwright::train

/// A matrix that no step changes, of the model and not of an adapter.
static bool isFrozenMatrix(VariableOp variable) {
  return variable.isParameter() && variable->hasAttr(frozenAttr) && !variable->hasAttr(adapterAttr) &&
         !variable.getExperts() && isa<FloatType>(variable.getTensorType().getElementType()) &&
         variable.getNumbered() == int64_t(variable.getStacked()) &&
         variable.getTensorType().getRank() == variable.getNumbered() + 2;
}

namespace {
class WeightQuantizer {
public:
  explicit WeightQuantizer(ModuleOp module) : module(module), symbols(module), builder(module.getContext()) {}

  /// How many weights it quantizes.
  int64_t run();

private:
  /// An operand of a repetition, which a layer gets as an argument.
  struct Passed {
    RepeatOp repeat;
    unsigned operand;
  };

  void findCandidates();
  /// Whether a layer's argument is a weight of products, and of no router.
  bool isWeight(BlockArgument argument);
  void keepConsistent();
  void quantize(VariableOp variable);
  void quantize(BlockArgument argument, ArrayRef<Passed> passed);

  ModuleOp module;
  SymbolTable symbols;
  OpBuilder builder;
  llvm::MapVector<Operation *, SmallVector<GetOp>> reads; ///< of the weights that are quantized
  DenseMap<Value, Operation *> variables;                 ///< by what reads them
  llvm::MapVector<BlockArgument, SmallVector<Passed>> passed;
  DenseMap<Operation *, DenseSet<Operation *>> routers; ///< by layer
  DenseMap<Value, Value> scales;                        ///< by the codes that they are of
};
} // namespace

void WeightQuantizer::findCandidates() {
  module.walk([&](GetOp get) {
    auto variable = symbols.lookup<VariableOp>(get.getVariable());
    if (!isFrozenMatrix(variable))
      return;
    reads[variable].push_back(get);
    variables[get] = variable;
  });
  module.walk([&](RepeatOp repeat) {
    auto layer = symbols.lookup<func::FuncOp>(repeat.getCallee());
    for (unsigned i = repeat.getCarry().size(); i < repeat.getPassed().size(); ++i)
      passed[layer.getArgument(repeat.getCalleeArgument(i))].push_back({repeat, i});
  });
}

bool WeightQuantizer::isWeight(BlockArgument argument) {
  Operation *layer = argument.getOwner()->getParentOp();
  auto [entry, isNew] = routers.try_emplace(layer);
  if (isNew)
    entry->second = routersIn(cast<func::FuncOp>(layer));
  bool isFactor = false;
  for (OpOperand &use : argument.getUses()) {
    auto product = dyn_cast<LinearOp>(use.getOwner());
    isFactor |= product && use.getOperandNumber() == 1;
    if (isa<RepeatOp, func::ReturnOp>(use.getOwner()) || entry->second.contains(use.getOwner()))
      return false;
  }
  return isFactor;
}

/// A layer that several repetitions call has one type, and so has a weight that several layers read.
void WeightQuantizer::keepConsistent() {
  DenseSet<Value> weights;
  for (auto &[argument, from] : passed)
    if (isWeight(argument))
      weights.insert(argument);
  for (bool changed = true; changed;) {
    changed = false;
    reads.remove_if([&](auto &entry) {
      bool fits = llvm::all_of(entry.second, [&](GetOp get) {
        return llvm::all_of(get->getUses(), [&](OpOperand &use) {
          auto repeat = dyn_cast<RepeatOp>(use.getOwner());
          unsigned number = use.getOperandNumber();
          if (!repeat || number < repeat.getCarry().size() || number >= repeat.getPassed().size())
            return false;
          auto layer = symbols.lookup<func::FuncOp>(repeat.getCallee());
          return weights.contains(layer.getArgument(repeat.getCalleeArgument(number)));
        });
      });
      changed |= !fits;
      return !fits;
    });
    for (auto &[argument, from] : passed) {
      bool fits = llvm::all_of(from, [&](Passed one) {
        return reads.contains(variables.lookup(one.repeat->getOperand(one.operand)));
      });
      changed |= !fits && weights.erase(argument);
    }
  }
  passed.remove_if([&](auto &entry) { return !weights.contains(entry.first); });
}

void WeightQuantizer::quantize(VariableOp variable) {
  RankedTensorType type = variable.getTensorType();
  builder.setInsertionPointAfter(variable);
  auto ofRows = RankedTensorType::get(type.getShape().drop_back(), builder.getF32Type());
  auto scale = VariableOp::create(
      builder, variable.getLoc(), builder.getStringAttr((variable.getSymName() + "." + scaleRole).str()), TypeAttr::get(ofRows),
      variable.getStackedAttr(), IntegerAttr(), InitAttr::get(module.getContext(), "constant", builder.getF64FloatAttr(0)),
      StorageAttr(), FlatSymbolRefAttr::get(variable.getSymNameAttr()), builder.getStringAttr(scaleRole), StringAttr());
  symbols.insert(scale); // which gives it another name if this one is taken
  auto codes = RankedTensorType::get(type.getShape(), builder.getI8Type());
  variable.setType(codes);
  for (GetOp get : reads[variable]) {
    get.getValue().setType(codes);
    builder.setInsertionPointAfter(get);
    scales[get] = GetOp::create(builder, nameLocation(scale.getSymName(), get.getLoc()), ofRows, scale.getSymName());
  }
}

void WeightQuantizer::quantize(BlockArgument argument, ArrayRef<Passed> from) {
  auto layer = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  RankedTensorType type = tensor(argument);
  RepeatOp first = from.front().repeat;
  unsigned eachs = first.getCarry().size() + first.getEach().size();
  bool isEach = from.front().operand < eachs;
  unsigned at = isEach ? eachs : eachs + first.getShared().size();
  auto ofRows = RankedTensorType::get(type.getShape().drop_back(), builder.getF32Type());
  at = first.getCalleeArgument(at);
  (void)layer.insertArgument(at, ofRows, {}, argument.getLoc());
  for (Passed one : from) {
    Value scale = scales.lookup(one.repeat->getOperand(one.operand));
    (isEach ? one.repeat.getEachMutable() : one.repeat.getSharedMutable()).append(scale);
  }
  argument.setType(withElementType(type, builder.getI8Type()));
  Operation *user = *argument.user_begin();
  for (Operation *other : argument.getUsers())
    if (other->isBeforeInBlock(user))
      user = other;
  builder.setInsertionPoint(user);
  Value weight = DequantizeRowsOp::create(builder, argument.getLoc(), type, argument, layer.getArgument(at));
  argument.replaceAllUsesExcept(weight, weight.getDefiningOp());
  layer.setType(builder.getFunctionType(layer.getBody().getArgumentTypes(), layer.getResultTypes()));
}

int64_t WeightQuantizer::run() {
  findCandidates();
  keepConsistent();
  // Operands are found by their numbers, which those that are appended behind change.
  SmallVector<std::pair<BlockArgument, SmallVector<Passed>>> shared, each;
  for (auto &[argument, from] : passed) {
    RepeatOp repeat = from.front().repeat;
    bool isEach = from.front().operand < repeat.getCarry().size() + repeat.getEach().size();
    (isEach ? each : shared).push_back({argument, from});
  }
  for (auto &[variable, gets] : reads)
    quantize(cast<VariableOp>(variable));
  for (auto &list : {shared, each})
    for (auto &[argument, from] : list)
      quantize(argument, from);
  return int64_t(reads.size());
}

namespace {
struct TrainQuantizeWeights : train::impl::TrainQuantizeWeightsBase<TrainQuantizeWeights> {
  using TrainQuantizeWeightsBase::TrainQuantizeWeightsBase;

  void runOnModule() override {
    if (WeightQuantizer(getOperation()).run() > 0)
      return;
    getOperation().emitError("has no weight to store in 8 bits: layers have no product train.linear with a frozen matrix; "
                             "leave --frozen-weights int8 out");
    signalPassFailure();
  }
};
} // namespace
