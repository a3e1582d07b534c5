//===- QuantizeProducts.cpp - train-quantize-products -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "DelayedScaling.h"
#include "FunctionUtils.h"
#include "Train/Passes.h"
#include "Train/Quantize.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINQUANTIZEPRODUCTS
#include "Train/Passes.h.inc"
#include "Train/TensorType.h"
} // namespace meshwright::train

namespace {
/// How a recipe divides operands.
struct Blocks {
  int64_t length; ///< of a block along what is summed, or 0 for one scale in all
  bool areSquares; ///< of weights
  /// Widths are multiples of it. Matrix units read 8 bits in pieces of 16 elements.
  int64_t multiple() const { return length ? length : 16; }
};
} // namespace

static Blocks blocksOf(Fp8Recipe recipe) {
  switch (recipe) {
  case Fp8Recipe::tensor:
  case Fp8Recipe::delayed:
    return {0, false};
  case Fp8Recipe::block:
    return {128, true};
  case Fp8Recipe::mxfp8:
    return {32, false};
  }
  llvm_unreachable("a recipe");
}

namespace {
struct TrainQuantizeProducts : train::impl::TrainQuantizeProductsBase<TrainQuantizeProducts> {
  using TrainQuantizeProductsBase::TrainQuantizeProductsBase;

  void runOnModule() override {
    blocks = blocksOf(recipe);
    auto precision = getOperation()->getAttrOfType<StringAttr>(precisionAttr);
    if (!precision || precision.getValue() != "bf16") {
      getOperation().emitError("is not in bf16, of which fp8 is a variant; run train-mixed-precision with precision bf16 before");
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    if (recipe == Fp8Recipe::delayed)
      scaling.emplace(getOperation(), symbols);
    llvm::SetVector<Operation *> layers;
    DenseSet<Value> adapters;
    getOperation().walk([&](RepeatOp repeat) {
      auto callee = symbols.lookup<func::FuncOp>(repeat.getCallee());
      layers.insert(callee);
      for (auto [i, operand] : llvm::enumerate(repeat.getPassed()))
        if (auto get = operand.getDefiningOp<GetOp>();
            get && symbols.lookup(get.getVariable())->hasAttr(adapterAttr))
          adapters.insert(callee.getArgument(repeat.getCalleeArgument(i)));
    });
    int64_t quantized = 0;
    for (Operation *layer : layers)
      quantized += quantizeLayer(cast<func::FuncOp>(layer), adapters);
    if (quantized) {
      if (!left.empty())
        getOperation().emitRemark() << "fp8: products of layers with weights " << llvm::join(left, ", ")
                                    << " stay in bf16; " << dividedText();
      if (scaling && !scaling->left.empty())
        getOperation().emitRemark() << "fp8: products of layers with weights " << llvm::join(scaling->left, ", ")
                                    << " stay in bf16; " << aloneText;
      return getOperation()->setAttr(precisionAttr, StringAttr::get(&getContext(), "fp8")), void();
    }
    if (scaling && !scaling->left.empty() && left.empty()) {
      getOperation().emitError("has no product of a layer's activations and a weight of its own in bf16 to quantize: ")
          << aloneText << "; use --fp8-recipe tensor";
      return signalPassFailure();
    }
    InFlightDiagnostic error = getOperation().emitError("has no product of a layer's activations and weights in bf16 "
                                                        "to quantize: ");
    error << dividedText() << "; use ";
    if (recipe == Fp8Recipe::block)
      error << "--fp8-recipe mxfp8, whose blocks are of 32, or ";
    error << (blocks.length ? "--fp8-recipe tensor" : "--precision bf16");
    signalPassFailure();
  }

private:
  static constexpr StringLiteral aloneText = "delayed scaling needs a weight that one product of one layer alone reads";

  /// What the recipe asks for.
  std::string dividedText() const {
    std::string of = "widths";
    if (blocks.length)
      of += ", and numbers of tokens in a sequence,";
    return of + " have to be multiples of " + std::to_string(blocks.multiple());
  }

  /// Whether the recipe divides what the product and its gradients read: rows of x as well, but not of experts', which
  /// are in no order.
  bool divides(Operation *op) const {
    auto isMultiple = [&](int64_t size) { return size % blocks.multiple() == 0; };
    RankedTensorType x = tensor(op->getOperand(0)), weight = tensor(op->getOperand(1));
    if (!llvm::all_of(weight.getShape().take_back(2), isMultiple))
      return false;
    return !blocks.length || isa<GroupedLinearOp>(op) ||
           (x.getRank() > 1 && isMultiple(x.getDimSize(x.getRank() - 2)));
  }

  /// Quantizes the products of one layer; how many those are.
  int64_t quantizeLayer(func::FuncOp layer, const DenseSet<Value> &adapters) {
    DenseSet<Operation *> routers = routersIn(layer);
    SmallVector<Operation *> products;
    layer.walk([&](Operation *op) {
      // Scales of tensors would be of the rows of a round, of which every mesh has others.
      bool isProduct = isa<LinearOp>(op) || (blocks.length && isa<GroupedLinearOp>(op));
      if (!isProduct || !tensor(op->getOperand(0)).getElementType().isBF16() || routers.contains(op) ||
          adapters.contains(op->getOperand(1)))
        return;
      bool isDivided = divides(op);
      if (isDivided && (!scaling || scaling->take(op)))
        return products.push_back(op);
      ArrayRef<int64_t> sizes = tensor(op->getOperand(1)).getShape().take_back(2);
      std::string text = std::to_string(sizes[0]) + " x " + std::to_string(sizes[1]);
      SmallVector<std::string> &list = isDivided ? scaling->left : left;
      if (!llvm::is_contained(list, text))
        list.push_back(text);
    });
    if (blocks.length)
      llvm::for_each(products, [&](Operation *op) { roundOperands(op); });
    else
      scaleTensors(products);
    return int64_t(products.size());
  }

  /// Operands become what their numbers of 8 bits in blocks stand for, of which products in bf16 are exact.
  void roundOperands(Operation *op) const {
    OpBuilder b(op);
    auto grouped = dyn_cast<GroupedLinearOp>(op);
    auto round = [&](Value value, int64_t rows, bool isTransposed = false) {
      SmallVector<int64_t> block(tensor(value).getRank(), 1);
      block.back() = blocks.length;
      block[block.size() - 2] = rows;
      if (isTransposed)
        std::swap(block.back(), block[block.size() - 2]);
      return roundInBlocks(b, value.getLoc(), value, Float8E4M3FNType::get(op->getContext()), block);
    };
    int64_t rows = blocks.areSquares ? blocks.length : 1;
    op->setOperand(0, round(op->getOperand(0), 1));
    op->setOperand(1, round(op->getOperand(1), rows, grouped && grouped.getTransposed()));
    auto shape = b.getDenseI64ArrayAttr({rows, blocks.length});
    if (grouped)
      grouped.setBlocksAttr(shape);
    else
      cast<LinearOp>(op).setBlocksAttr(shape);
  }

  /// Operands become numbers of 8 bits with a scale each.
  void scaleTensors(ArrayRef<Operation *> products) {
    // What several products read is quantized once.
    DenseMap<Value, Quantized> known;
    for (Operation *each : products) {
      auto op = cast<LinearOp>(each);
      OpBuilder b(op);
      auto quantized = [&](Value value, StringRef role) {
        auto [entry, isNew] = known.try_emplace(value);
        if (!isNew)
          return entry->second;
        auto element = Float8E4M3FNType::get(op.getContext());
        return entry->second = scaling ? quantizeDelayed(b, op, value, element, role)
                                       : quantize(b, value.getLoc(), value, element);
      };
      Quantized x = quantized(op.getX(), observedRoles[0]), weight = quantized(op.getWeight(), observedRoles[1]);
      std::string rows;
      for (int64_t dim = 0; dim + 1 < tensor(op.getX()).getRank(); ++dim)
        rows += "r" + std::to_string(dim) + " ";
      std::string rule = rows + "i, o i -> " + rows + "o";
      auto product = ScaledContractOp::create(b, op.getLoc(), op.getType(), b.getStringAttr(rule),
                                              x.values, weight.values, x.scale, weight.scale,
                                              Value());
      Value result = product;
      if (scaling)
        result = QuantizeGradientOp::create(b, op.getLoc(), result.getType(), result, scaling->amax(op, observedRoles[2]),
                                            TypeAttr::get(Float8E5M2Type::get(op.getContext())));
      op.replaceAllUsesWith(result);
      op.erase();
    }
  }

  /// By the largest magnitude of the last steps.
  Quantized quantizeDelayed(OpBuilder &b, LinearOp product, Value value, FloatType element, StringRef role) {
    Value amax = scaling->amax(product, role);
    Value scale = QuantizationScaleOp::create(b, value.getLoc(), amax, TypeAttr::get(element));
    Value observed = ObserveOp::create(b, value.getLoc(), value.getType(), value, amax);
    Type type = withElementType(value.getType(), element);
    return {QuantizeOp::create(b, value.getLoc(), type, observed, scale, ArrayRef<int64_t>()), scale};
  }

  Blocks blocks;
  std::optional<DelayedScaling> scaling; ///< where the recipe asks for it
  SmallVector<std::string> left; ///< sizes of weights whose products stay in bf16
};
} // namespace
