//===- QuantizeProducts.cpp - train-quantize-products -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
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

/// Matrix units read 8 bits in pieces of so many elements.
static constexpr int64_t piece = 16;

namespace {
struct TrainQuantizeProducts : train::impl::TrainQuantizeProductsBase<TrainQuantizeProducts> {
  using TrainQuantizeProductsBase::TrainQuantizeProductsBase;

  void runOnModule() override {
    auto precision = getOperation()->getAttrOfType<StringAttr>(precisionAttr);
    if (!precision || precision.getValue() != "bf16") {
      getOperation().emitError("is not in bf16, of which fp8 is a variant; run train-mixed-precision with precision bf16 before");
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
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
    if (quantized)
      return getOperation()->setAttr(precisionAttr, StringAttr::get(&getContext(), "fp8")), void();
    getOperation().emitError("has no product to quantize: none of a layer's activations and weights in bf16 "
                             "whose widths are multiples of ")
        << piece << "; use --precision bf16";
    signalPassFailure();
  }

private:
  /// Quantizes the products of one layer; how many those are.
  static int64_t quantizeLayer(func::FuncOp layer, const DenseSet<Value> &adapters) {
    DenseSet<Operation *> routers = routersIn(layer);
    SmallVector<LinearOp> products;
    layer.walk([&](LinearOp op) {
      ArrayRef<int64_t> sizes = tensor(op.getWeight()).getShape();
      if (tensor(op.getX()).getElementType().isBF16() && !routers.contains(op) &&
          !adapters.contains(op.getWeight()) &&
          llvm::all_of(sizes, [](int64_t size) { return size % piece == 0; }))
        products.push_back(op);
    });
    // What several products read is quantized once.
    DenseMap<Value, Quantized> known;
    for (LinearOp op : products) {
      OpBuilder b(op);
      auto quantized = [&](Value value) {
        auto [entry, isNew] = known.try_emplace(value);
        if (isNew)
          entry->second =
              quantize(b, value.getLoc(), value, Float8E4M3FNType::get(op.getContext()));
        return entry->second;
      };
      Quantized x = quantized(op.getX()), weight = quantized(op.getWeight());
      std::string rows;
      for (int64_t dim = 0; dim + 1 < tensor(op.getX()).getRank(); ++dim)
        rows += "r" + std::to_string(dim) + " ";
      std::string rule = rows + "i, o i -> " + rows + "o";
      auto product = ScaledContractOp::create(b, op.getLoc(), op.getType(), b.getStringAttr(rule),
                                              x.values, weight.values, x.scale, weight.scale,
                                              Value());
      op.replaceAllUsesWith(product.getResult());
      op.erase();
    }
    return int64_t(products.size());
  }
};
} // namespace
