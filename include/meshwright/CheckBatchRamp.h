//===- CheckBatchRamp.h - whether an executable can have a run's batches ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CHECKBATCHRAMP_H
#define MESHWRIGHT_CHECKBATCHRAMP_H

#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace meshwright::interp {

/// An error where steps of an executable for `batch` sequences in `microbatches` parts cannot have the batches that
/// `text`, the value of its --batch-ramp, asks for.
llvm::Error checkBatchRamp(const std::string &text, int64_t batch, int64_t microbatches);

} // namespace meshwright::interp

#endif // MESHWRIGHT_CHECKBATCHRAMP_H
