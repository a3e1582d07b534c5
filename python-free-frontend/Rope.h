//===- Rope.h - frequencies of rotary positions ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_ROPE_H
#define MESHWRIGHT_FRONTEND_ROPE_H

#include "Config.h"

namespace meshwright::frontend {

/// The headDim/2 frequencies that `config` asks for by rope_theta, rope_scaling
/// or rope_parameters. Empty after an error.
llvm::SmallVector<double> readRopeFrequencies(Config &config, llvm::StringRef family,
                                              int64_t headDim);

} // namespace meshwright::frontend

#endif // MESHWRIGHT_FRONTEND_ROPE_H
