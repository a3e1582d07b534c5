//===- GradientWire.h - the values of --grad-reduce-dtype --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_GRADIENTWIRE_H
#define MESHWRIGHT_GRADIENTWIRE_H

#include "meshwright/OptionValues.h"

namespace meshwright {

/// The type in which devices send each other gradients to add: that in which they are summed, or a narrower one.
enum class GradientWire { asSummed, bf16, fp8 };
inline Names namesOf(GradientWire) {
  static constexpr llvm::StringLiteral names[] = {"grad-dtype", "bf16", "fp8"};
  return names;
}

} // namespace meshwright

#endif // MESHWRIGHT_GRADIENTWIRE_H
