//===- CallWork.cpp - what a call's time depends on ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/CallWork.h"

#include "Exec/Exec.h"
#include "meshwright/Cost/MovedBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::cost;

/// The memory that a value is a part of.
static exec::BufferOp bufferOf(Value memory) {
  while (Operation *op = memory.getDefiningOp()) {
    if (auto buffer = dyn_cast<exec::BufferOp>(op))
      return buffer;
    if (!isa<exec::SlotOp, exec::ViewOp, exec::WindowOp>(op))
      return nullptr;
    memory = op->getOperand(0);
  }
  return nullptr;
}

/// Launches of the update read a state, or write a parameter.
static bool isUpdate(exec::LaunchOp launch) {
  auto isOf = [](Value operand, exec::Category category) {
    exec::BufferOp buffer = bufferOf(operand);
    return buffer && buffer.getCategory() == category;
  };
  return llvm::any_of(launch->getOperands(),
                      [&](Value v) { return isOf(v, exec::Category::Optimizer); }) ||
         llvm::any_of(launch.getOutputs(),
                      [&](Value v) { return isOf(v, exec::Category::Parameter); });
}

/// The type of the keys of a call of attention, [b, keys, heads, d]; null for other ops.
static MemRefType keysOf(Operation *op) {
  if (auto call = dyn_cast<exec::AttentionOp>(op))
    return cast<MemRefType>(call.getK().getType());
  if (auto call = dyn_cast<exec::AttentionGradOp>(op))
    return cast<MemRefType>(call.getK().getType());
  return {};
}

/// Counts what the body of a kernel evaluates for each element beside sums and products.
static std::map<std::string, double> functionsOf(func::FuncOp kernel) {
  std::map<std::string, double> functions;
  for (Operation &op : kernel.getBody().front()) {
    bool isFunction = isa_and_nonnull<math::MathDialect>(op.getDialect()) && !isa<math::AbsFOp>(op);
    // The wide product is that of random bits.
    if (!isFunction &&
        !isa<arith::DivFOp, arith::ExtFOp, arith::TruncFOp, arith::MulUIExtendedOp>(op))
      continue;
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    functions[op.getName().stripDialect().str()] += double(type.getNumElements());
  }
  return functions;
}

/// Cross entropy takes exponentials of a matrix of numbers beside classes that inputs name, and gives numbers for
/// rows, gradients of the matrix or both.
static void readLogits(exec::LaunchOp launch, CallWork &work) {
  auto floats = [](Value memory) {
    auto type = dyn_cast<MemRefType>(memory.getType());
    return type && isa<FloatType>(type.getElementType()) ? double(type.getNumElements()) : 0;
  };
  double most = 0, classes = 0;
  for (Value input : launch.getInputs()) {
    most = std::max(most, floats(input));
    if (auto type = dyn_cast<MemRefType>(input.getType()); type && type.getElementType().isInteger(32))
      classes = double(type.getNumElements());
  }
  auto exponentials = work.functions.find("exp");
  if (classes == 0 || 2 * classes > most || exponentials == work.functions.end() ||
      exponentials->second < most)
    return;
  work.logits = most;
  for (Value output : launch.getOutputs())
    if (double size = floats(output))
      (size == most ? work.isGradOfLogits : work.isLossOfLogits) = true;
}

double WorkReader::variablesOf(Operation *op) {
  auto program = op->getParentOfType<ModuleOp>();
  auto [entry, isNew] = variables.try_emplace(program, 0);
  if (isNew)
    program.walk([&](exec::BufferOp buffer) {
      if (buffer.getCategory() == exec::Category::Parameter ||
          buffer.getCategory() == exec::Category::Optimizer)
        entry->second += double(exec::bytesOf(buffer.getType()));
    });
  return entry->second;
}

CallWork WorkReader::of(Operation *op) {
  MovedBytes moved = movedBy(op, symbols);
  CallWork work;
  work.bytes = double(moved.read + moved.written);
  work.reuse = work.bytes;
  work.flops = flops.of(op);
  if (auto launch = dyn_cast<exec::LaunchOp>(op)) {
    if (isUpdate(launch)) {
      work.kind = CallWork::Optimizer;
      work.reuse = std::max(work.bytes, variablesOf(op));
    }
    work.functions = functionsOf(
        symbols.lookupNearestSymbolFrom<func::FuncOp>(op, launch.getKernelAttr()));
    readLogits(launch, work);
  } else if (work.flops > 0) {
    // Library calls say by their first operand what they multiply.
    work.bits = cast<MemRefType>(op->getOperand(0).getType()).getElementTypeBitWidth();
    if (MemRefType keys = keysOf(op)) {
      work.kind = isa<exec::AttentionOp>(op) ? CallWork::Attention : CallWork::AttentionGrad;
      work.keys = keys.getDimSize(1);
      work.headSize = keys.getDimSize(3);
    } else {
      if (auto product = dyn_cast<exec::MatmulOp>(op)) {
        work.rows = product.getM();
        work.sizes = {int64_t(product.getM()), int64_t(product.getN()), int64_t(product.getK()),
                      int64_t(product.getBatch())};
        for (auto [sums, factor] : {std::pair(product.getSumA(), product.getA()),
                                    std::pair(product.getSumB(), product.getB())})
          if (sums)
            work.factorSums = double(exec::bytesOf(cast<MemRefType>(factor.getType())));
        auto result = cast<MemRefType>(product.getC().getType());
        bool isAddedTo = !product.getBeta().isZero() || product.getAddend();
        if (isAddedTo && work.bits < 32 && result.getElementType().isF32())
          work.accumulated = double(result.getNumElements());
      }
      work.kind = isa<exec::GroupedMatmulOp, exec::GroupedMatmulGradOp>(op)
                      ? CallWork::GroupedProduct
                      : CallWork::Product;
    }
  }
  return work;
}

/// FLOPs a second of a call of attention.
static double attentionRate(const CallWork &work, const Device &device) {
  bool isForward = work.kind == CallWork::Attention;
  const Rate &small = isForward ? device.smallHeads : device.smallHeadsGrad;
  bool isSmall = work.bits <= 16 && work.headSize <= 64 && small.peak() > 0;
  const Rate &rate =
      isSmall ? small : (isForward ? device.attention : device.attentionGrad).ofBits(work.bits);
  return rate.between(double(work.keys));
}

double CallWork::seconds(const Device &device) const {
  double moves = std::max(device.memory.seconds(bytes), bytes / device.memory.between(reuse));
  double packs = device.packing.seconds(bits, bytes), evaluates = 0;
  for (auto &[name, count] : functions)
    if (auto known = device.functions.find(name); known != device.functions.end())
      evaluates += count / known->second;
  switch (kind) {
  case Kernel:
  case Optimizer:
    return std::max({device.kernels.seconds(flops), evaluates, moves});
  case Product:
    if (device.tiles && bits <= 16 && sizes.m > 0)
      return device.tiles->seconds(sizes, bytes, device.memory.peak()) +
             factorSums / device.memory.peak();
    return std::max(device.products.ofBits(bits).seconds(flops) + packs, moves);
  case GroupedProduct:
    return std::max(device.products.ofBits(bits).seconds(flops) / device.groupedShare + packs,
                    moves);
  case Attention:
  case AttentionGrad:
    return std::max(flops / attentionRate(*this, device), moves);
  }
  llvm_unreachable("an unknown kind of call");
}
