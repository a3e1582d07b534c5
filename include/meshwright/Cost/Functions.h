//===- Functions.h - what takes several instructions for an element ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_COST_FUNCTIONS_H
#define MESHWRIGHT_COST_FUNCTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace meshwright::cost {

/// The names, without dialect, of the ops of generated kernels that may have a rate of their own
/// (`Device::functions`): those that CallWork counts.
llvm::ArrayRef<llvm::StringRef> functionNames();

} // namespace meshwright::cost

#endif // MESHWRIGHT_COST_FUNCTIONS_H
