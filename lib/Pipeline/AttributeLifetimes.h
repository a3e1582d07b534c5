//===- AttributeLifetimes.h - in which phases attributes may exist -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PIPELINE_ATTRIBUTELIFETIMES_H
#define MESHWRIGHT_PIPELINE_ATTRIBUTELIFETIMES_H

#include "mlir/IR/BuiltinOps.h"

#include "meshwright/Phase.h"

namespace meshwright {

/// Refuses attributes that no pass reads from `phase` on, or that are written only after it: what a
/// file says there would be ignored, or taken for the work of a pass that has yet to run.
mlir::LogicalResult checkAttributeLifetimes(mlir::ModuleOp module, Phase phase);

/// Removes the attributes whose last reader has run when `phase` is reached.
void dropExpiredAttributes(mlir::ModuleOp module, Phase phase);

} // namespace meshwright

#endif // MESHWRIGHT_PIPELINE_ATTRIBUTELIFETIMES_H
