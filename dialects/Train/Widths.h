//===- Widths.h - how much wider parameters are than the base model's --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIALECTS_TRAIN_WIDTHS_H
#define MESHWRIGHT_DIALECTS_TRAIN_WIDTHS_H

#include "Train/Optimizer.h"
#include "Train/Train.h"

namespace meshwright::train {

/// Of a parameter: its width multipliers in muP; without one it is 1.
inline constexpr llvm::StringLiteral fanInAttr = "train.fan_in_multiplier",
                                     fanOutAttr = "train.fan_out_multiplier";

/// The width multipliers of `parameter`, or nothing where muP scales nothing.
inline std::optional<WidthMultipliers> widthsOf(VariableOp parameter) {
  auto in = parameter->getAttrOfType<mlir::FloatAttr>(fanInAttr);
  auto out = parameter->getAttrOfType<mlir::FloatAttr>(fanOutAttr);
  if (!in && !out)
    return std::nullopt;
  return WidthMultipliers{in ? in.getValueAsDouble() : 1, out ? out.getValueAsDouble() : 1};
}

} // namespace meshwright::train

#endif // MESHWRIGHT_DIALECTS_TRAIN_WIDTHS_H
