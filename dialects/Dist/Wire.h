//===- Wire.h - in which type a sum over devices is sent --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIALECTS_DIST_WIRE_H
#define MESHWRIGHT_DIALECTS_DIST_WIRE_H

#include "llvm/ADT/StringRef.h"

namespace meshwright::dist {

/// An attribute of a module until it is partitioned: the type, bf16 or fp8, in which devices send each other gradients.
inline constexpr llvm::StringLiteral gradientWireAttr = "dist.gradient_wire";

/// An attribute of sums over devices: the type in which they send each other terms and sums. What they add is f32.
inline constexpr llvm::StringLiteral wireAttr = "dist.wire";

} // namespace meshwright::dist

#endif // MESHWRIGHT_DIALECTS_DIST_WIRE_H
