//===- Constant.h - where differentiation ends --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_CONSTANT_H
#define MESHWRIGHT_TRAIN_CONSTANT_H

#include "llvm/ADT/StringRef.h"

namespace meshwright::train {

/// Of an op whose results differentiation takes for constants.
inline constexpr llvm::StringLiteral constantAttr = "train.constant";

} // namespace meshwright::train

#endif // MESHWRIGHT_TRAIN_CONSTANT_H
