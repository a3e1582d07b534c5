//===- Adapters.h - what --lora says ----------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_ADAPTERS_H
#define MESHWRIGHT_ADAPTERS_H

#include "meshwright/OptionValues.h"

namespace meshwright {

/// Low-rank adapters of matrices (LoRA, Hu et al. 2022), and what is trained beside them.
struct Adapters {
  int64_t rank = 0; ///< 0: no adapters
  double alpha = 0;
  std::vector<std::string> targets; ///< names of modules, or all-linear
  bool rankStabilized = false;      ///< rsLoRA: alpha / sqrt(rank) in place of alpha / rank
  double dropout = 0;               ///< of what adapters read
  bool decomposed = false;          ///< DoRA: rows of adapted weights have magnitudes, which are trained
  std::vector<std::string> saved;   ///< names of modules that are trained whole, as PEFT's modules_to_save

  /// What adapters' results are multiplied by.
  double scale() const;
};
llvm::Error parseOption(llvm::StringRef text, Adapters &adapters);
std::string optionText(const Adapters &adapters);

} // namespace meshwright

MESHWRIGHT_PASS_OPTION(::meshwright::Adapters)

#endif // MESHWRIGHT_ADAPTERS_H
