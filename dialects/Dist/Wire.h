//===- Wire.h - in which type a sum over devices is sent --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIALECTS_DIST_WIRE_H
#define MESHWRIGHT_DIALECTS_DIST_WIRE_H

#include "llvm/ADT/StringRef.h"

namespace meshwright::dist {

/// An attribute of a module until it is partitioned: the type, bf16 or fp8, in which devices send gradients to each other.
inline constexpr llvm::StringLiteral gradientWireAttr = "dist.gradient_wire";

/// An attribute of sums over devices: the type in which terms and sums are sent. They are added in f32.
inline constexpr llvm::StringLiteral wireAttr = "dist.wire";

} // namespace meshwright::dist

#endif // MESHWRIGHT_DIALECTS_DIST_WIRE_H
