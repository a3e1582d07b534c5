//===- ForeignMemory.h - memory as another system would have it -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FOREIGNMEMORY_H
#define MESHWRIGHT_FOREIGNMEMORY_H

#include "meshwright/Cost/Profile.h"
#include "meshwright/runtime/PlanSchema.h"

#include "mlir/IR/BuiltinOps.h"

namespace meshwright {

/// Bytes that `program` of a module at phase exec allocates itself, if the system of `profile` ran it; `entry` is
/// what the plan says of it.
double foreignArena(mlir::ModuleOp program, const plan::Program &entry,
                    const cost::Profile &profile);

} // namespace meshwright

#endif // MESHWRIGHT_FOREIGNMEMORY_H
