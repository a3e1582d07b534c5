//===- NarrowScatter.h - rows added to a narrow tensor ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_KERNELS_NARROWSCATTER_H
#define MESHWRIGHT_LIB_EXEC_KERNELS_NARROWSCATTER_H

#include "mlir/IR/PatternMatch.h"

namespace meshwright::exec {

/// A pattern that keeps a scatter whose sums are rounded to bf16 or f16 from computing all of
/// its target in f32: the rows of equal ids are summed in f32 first, which takes as many rows
/// as there are ids, and each sum is then added to its row of the target and rounded. It
/// applies where this takes less memory.
void populateNarrowScatterPatterns(mlir::RewritePatternSet &patterns);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_KERNELS_NARROWSCATTER_H
