//===- RematPolicy.h - how policies of rematerialization are written ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_REMATPOLICY_H
#define MESHWRIGHT_REMATPOLICY_H

#include "meshwright/OptionValues.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// Which values a layer's backward recomputes.
struct RematPolicy {
  /// Layers of which only the first one's input is kept; 0: the square root of their
  /// number.
  int64_t every = 1;
  /// The price of a byte in FLOPs: within a layer, values that cost less are
  /// recomputed. Absent: everything that the backward reads is kept.
  std::optional<double> price;

  /// As parsePolicy reads it.
  std::string str() const;
};

/// Reads none, full, selective, sqrt, every:K, price:P or every:K+price:P.
llvm::Expected<RematPolicy> parsePolicy(llvm::StringRef text);

inline llvm::Error parseOption(llvm::StringRef text, RematPolicy &policy) {
  return parsePolicy(text).moveInto(policy);
}
inline std::string optionText(const RematPolicy &policy) { return policy.str(); }

/// A value of --remat: policies, one for all stages of a pipeline or one for each, or that they
/// are to be found.
struct RematChoice {
  std::vector<RematPolicy> policies = {RematPolicy()};
  bool automatic = false;
  Bytes budget; ///< of an automatic choice, if it names its own
};
/// Reads policies between commas, or auto[:BYTES].
llvm::Error parseOption(llvm::StringRef text, RematChoice &choice);
std::string optionText(const RematChoice &choice);

/// How `every` layers go into a run of `count`: so many layers have groups of `size`, the
/// rest at its end is a shorter group. train-split-layers makes a run of its own of that.
struct LayerGroups {
  int64_t layers, size;
  int64_t tail(int64_t count) const { return count - layers; }
};
LayerGroups groupsOf(int64_t every, int64_t count);

/// The price of `selective`.
inline constexpr double selectivePrice = 16;

} // namespace meshwright

MESHWRIGHT_PASS_OPTION(::meshwright::RematPolicy)

#endif // MESHWRIGHT_REMATPOLICY_H
