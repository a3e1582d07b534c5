//===- Generate.h - text from a trained model -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_GENERATE_H
#define MESHWRIGHT_RUNTIME_COMMON_GENERATE_H

#include "common/launch/Options.h"

namespace meshwright {

/// Writes --generate's prompt and what the model makes of it to the standard output, as it comes.
void generate(const Options &options);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_GENERATE_H
