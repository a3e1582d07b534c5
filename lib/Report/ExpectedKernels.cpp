//===- ExpectedKernels.cpp - how long a plan's kernels take on a device --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"

#include "llvm/ADT/StringRef.h"

using namespace meshwright;
using cost::CallWork;
using llvm::StringRef;

/// The sizes of a product as the plan writes them, "16x32x8" or "16x32x8 x 4"; none if it does not.
static cost::ProductSizes sizesIn(StringRef kind) {
  cost::ProductSizes sizes;
  auto take = [&](StringRef before, int64_t &size) {
    return kind.consume_front(before) && !kind.consumeInteger(10, size);
  };
  if (!take("", sizes.m) || !take("x", sizes.n) || !take("x", sizes.k))
    return {};
  if (!kind.empty() && !take(" x ", sizes.batch))
    return {};
  return sizes;
}

/// As a pass over the IR finds it (cost::WorkReader), but for what rows do not tell: types of operands are
/// the model's, and functions in generated kernels and the sums of bias gradients take no time.
static CallWork workOf(const plan::Plan &plan, const plan::Kernel &row) {
  CallWork work;
  work.bytes = work.reuse = double(row.readBytes) + double(row.writtenBytes);
  work.flops = row.flops;
  if (row.flops == 0)
    return work;
  StringRef op = row.op;
  work.bits = plan.precision == "f32" ? 32 : 16;
  if (op.starts_with("attention")) {
    work.kind = op == "attention" ? CallWork::Attention : CallWork::AttentionGrad;
    // Of several calls, that of the longest sequence.
    for (const plan::Attention &call : plan.attentions.value_or(plan::List<plan::Attention>()))
      if (call.op == row.op && call.keys > work.keys) {
        work.keys = call.keys;
        work.headSize = call.headDim;
      }
  } else if (op.starts_with("grouped")) {
    work.kind = CallWork::GroupedProduct;
  } else {
    work.kind = CallWork::Product;
    work.sizes = sizesIn(row.kind);
  }
  return work;
}

double report::expectedSeconds(const plan::Plan &plan, const plan::Kernel &row,
                               const cost::Device &device) {
  return workOf(plan, row).seconds(device);
}
