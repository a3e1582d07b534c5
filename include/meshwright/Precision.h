//===- Precision.h - the values of --precision and of what is about it -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PRECISION_H
#define MESHWRIGHT_PRECISION_H

#include "meshwright/OptionValues.h"

namespace meshwright {

/// How factors of products are scaled in fp8.
enum class Fp8Recipe { tensor, block, delayed, mxfp8 };
inline Names namesOf(Fp8Recipe) {
  static constexpr llvm::StringLiteral names[] = {"tensor", "block", "delayed", "mxfp8"};
  return names;
}

/// The type of weights and activations, and whether layers' products are of 8 bits: fp8 is bf16 but for them.
struct TrainingPrecision {
  enum Choice { f32, bf16, fp16, fp8 } choice = f32;

  TrainingPrecision(Choice choice = f32) : choice(choice) {}
  TrainingPrecision(MixedPrecision stored) : choice(Choice(stored)) {}
  bool isFp8() const { return choice == fp8; }
  operator MixedPrecision() const { return isFp8() ? MixedPrecision::bf16 : MixedPrecision(choice); }
};
static_assert(int(TrainingPrecision::fp16) == int(MixedPrecision::fp16));
inline Names namesOf(TrainingPrecision::Choice) {
  static constexpr llvm::StringLiteral names[] = {"f32", "bf16", "fp16", "fp8"};
  return names;
}
inline llvm::Error parseOption(llvm::StringRef text, TrainingPrecision &precision) {
  return parseOption(text, precision.choice);
}
inline std::string optionText(const TrainingPrecision &precision) {
  return optionText(precision.choice);
}

/// How weights that adapters leave frozen are stored: in the type of --precision, or those of layers' products in 8 bits.
enum class FrozenWeights { precision, int8 };
inline Names namesOf(FrozenWeights) {
  static constexpr llvm::StringLiteral names[] = {"precision", "int8"};
  return names;
}

} // namespace meshwright

MESHWRIGHT_PASS_OPTION(::meshwright::Fp8Recipe)
MESHWRIGHT_PASS_OPTION(::meshwright::TrainingPrecision)

#endif // MESHWRIGHT_PRECISION_H
