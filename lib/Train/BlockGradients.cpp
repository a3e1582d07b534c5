//===- BlockGradients.cpp - gradients of blocks of the batch ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FunctionUtils.h"
#include "OneBit.h"
#include "PowerSgd.h"
#include "TopK.h"
#include "Train/GradientBlocks.h"
#include "Train/Passes.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINBLOCKGRADIENTS
#include "Train/Passes.h.inc"
} // namespace meshwright::train

/// Whether `contract` is a sum of products over sequences, which are the first dimension of both operands.
static bool isOverSequences(ContractOp contract, int64_t sequences) {
  auto [operands, result] = contract.getRule().split("->");
  auto [lhs, rhs] = operands.split(',');
  StringRef first = lhs.trim().split(' ').first;
  if (contract.getInit() || rhs.trim().split(' ').first != first ||
      llvm::is_contained(llvm::split(result.trim(), ' '), first))
    return false;
  // Of matrices the first dimension may be as long by chance, as of those that adapters are made of.
  return llvm::all_of(contract->getOperands(), [&](Value operand) {
    auto type = cast<RankedTensorType>(operand.getType());
    return type.getRank() >= 3 && type.getDimSize(0) == sequences;
  });
}

namespace {
class GradientBlocks {
public:
  GradientBlocks(ModuleOp module, const GradientCompression &method, int64_t sequences)
      : module(module), symbols(module), method(method), sequences(sequences) {}

  LogicalResult run(func::FuncOp gradients) {
    SmallVector<OpOperand *> found;
    Operation *end = gradients.getBody().front().getTerminator();
    for (OpOperand &use : end->getOpOperands()) {
      auto of = gradients.getResultAttrOfType<FlatSymbolRefAttr>(use.getOperandNumber(), gradientAttr);
      auto parameter = of ? symbols.lookup<VariableOp>(of.getAttr()) : VariableOp();
      if (!parameter || !isWorth(parameter) || !findProduct(use, parameter.getStacked()))
        continue;
      if (int64_t size = parameter.getTensorType().getNumElements(); method.density && size > INT32_MAX)
        return parameter.emitError("@") << parameter.getSymName() << " has " << size
                                        << " elements in all layers, more than the 2147483647 that topk can number; use powersgd";
      found.push_back(&use);
    }
    // Layers that are repeated several times have one function: all of their gradients become blocks, or none.
    llvm::MapVector<Operation *, SmallVector<OpOperand *>> byProduct;
    for (OpOperand *use : found)
      byProduct[product(*use)].push_back(use);
    bool any = false;
    for (auto &[op, uses] : byProduct)
      if (int64_t(uses.size()) == callsOf(op->getParentOfType<func::FuncOp>())) {
        split(cast<ContractOp>(op), uses);
        any = true;
      }
    if (any) {
      gradients.setType(FunctionType::get(module.getContext(), gradients.getArgumentTypes(), end->getOperandTypes()));
      return success();
    }
    if (method.signs)
      return module.emitError("no gradient of a matrix is a product over the batch with rows of a multiple of 8 elements: nothing would be "
                              "compressed; leave compression out");
    if (method.density)
      return module.emitError("no gradient of a matrix is a product over the batch whose elements and their columns at density ")
             << method.density << " are less than it: nothing would be compressed; use a lower density, or leave compression out";
    return module.emitError("no gradient of a matrix is a product over the batch with more than ")
           << 2 * method.rank << " (m + n) elements of m n: nothing would be compressed at rank " << method.rank
           << "; use a lower rank, or leave compression out";
  }

private:
  /// Whether compression makes less of the gradient of `parameter`.
  bool isWorth(VariableOp parameter) {
    return method.signs     ? hasRowsOfSigns(parameter)
           : method.density ? isWorthIds(parameter, method.density)
                            : isWorthFactors(parameter, method.rank);
  }

  /// What computes a gradient that is used for nothing else, in the function of its layer where `stacked`.
  ContractOp findProduct(OpOperand &use, bool stacked) {
    auto contract = product(use);
    if (!contract || !use.get().hasOneUse() || !contract->hasOneUse() ||
        stacked != isa<RepeatOp>(use.get().getDefiningOp()))
      return {};
    return isOverSequences(contract, sequences) ? contract : ContractOp();
  }

  ContractOp product(OpOperand &use) {
    auto repeat = use.get().getDefiningOp<RepeatOp>();
    if (!repeat)
      return use.get().getDefiningOp<ContractOp>();
    unsigned i = cast<OpResult>(use.get()).getResultNumber();
    if (i < repeat.getCarry().size())
      return {};
    auto layer = symbols.lookup<func::FuncOp>(repeat.getCallee());
    return layer.getBody().front().getTerminator()->getOperand(i).getDefiningOp<ContractOp>();
  }

  int64_t callsOf(func::FuncOp function) {
    int64_t calls = 0;
    module.walk([&](RepeatOp repeat) { calls += repeat.getCallee() == function.getSymName(); });
    return std::max<int64_t>(calls, 1);
  }

  RankedTensorType withBlocks(RankedTensorType type, int64_t dim) {
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(shape.begin() + dim, method.blocks);
    return type.clone(shape);
  }

  /// Makes the blocks an index of the product.
  void split(ContractOp contract, ArrayRef<OpOperand *> uses) {
    OpBuilder b(contract);
    Location loc = contract.getLoc();
    auto parts = [&](Value x) -> Value {
      auto type = cast<RankedTensorType>(x.getType());
      SmallVector<int64_t> shape{method.blocks, type.getDimSize(0) / method.blocks};
      llvm::append_range(shape, type.getShape().drop_front());
      return ReshapeOp::create(b, x.getLoc(), type.clone(shape), x);
    };
    auto [operands, result] = contract.getRule().split("->");
    auto [lhs, rhs] = operands.split(',');
    std::string index = "blocks ";
    std::string rule = index + lhs.trim().str() + ", " + index + rhs.trim().str() + " -> " + index + result.trim().str();
    auto type = withBlocks(cast<RankedTensorType>(contract.getType()), 0);
    Value product = ContractOp::create(b, loc, type, b.getStringAttr(rule), parts(contract.getLhs()),
                                       parts(contract.getRhs()), Value());
    contract.getResult().replaceAllUsesWith(product);
    auto function = contract->getParentOfType<func::FuncOp>();
    function.setType(FunctionType::get(module.getContext(), function.getArgumentTypes(),
                                       function.getBody().front().getTerminator()->getOperandTypes()));
    contract.erase();
    for (OpOperand *use : uses)
      if (use->get().getDefiningOp<RepeatOp>())
        use->get().setType(withBlocks(cast<RankedTensorType>(use->get().getType()), 1));
  }

  ModuleOp module;
  SymbolTable symbols;
  const GradientCompression &method;
  int64_t sequences;
};

struct TrainBlockGradients : train::impl::TrainBlockGradientsBase<TrainBlockGradients> {
  using TrainBlockGradientsBase::TrainBlockGradientsBase;

  void runOnModule() override {
    ModuleOp module = getOperation();
    auto gradients = module.lookupSymbol<func::FuncOp>("loss.gradients");
    std::optional<int64_t> batch = moduleSize(module, batchAttr);
    int64_t microbatches = moduleSize(module, microbatchesAttr).value_or(1);
    GradientCompression method = this->method;
    method.blocks = std::max<int64_t>(1, method.blocks);
    if (!gradients || !batch) {
      module.emitError("needs @loss.gradients, which train-autodiff makes, and the module's attribute ") << batchAttr;
      return signalPassFailure();
    }
    if (!method) {
      module.emitError("needs a method of compression, e.g. method=powersgd:4,blocks=2");
      return signalPassFailure();
    }
    // The two sequences of a pair are in one block.
    int64_t parts = microbatches * method.blocks, together = module->hasAttr(dpoBetaAttr) ? 2 : 1;
    if (microbatches < 1 || *batch % (parts * together) != 0) {
      auto error = module.emitError("batch ") << *batch << " does not divide by " << parts * together << " (" << microbatches
                                              << " microbatches times " << method.blocks << " blocks of the gradient";
      error << (together == 2 ? " times 2 sequences of a pair)" : ")");
      return signalPassFailure();
    }
    if (failed(GradientBlocks(module, method, *batch / microbatches).run(gradients)))
      return signalPassFailure();
    module->setAttr(gradientBlocksAttr, OpBuilder(&getContext()).getI64IntegerAttr(method.blocks));
  }
};
} // namespace
