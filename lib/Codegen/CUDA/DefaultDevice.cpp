//===- DefaultDevice.cpp - the GPU that an architecture stands for -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/DefaultDevice.h"

#include <utility>

using namespace meshwright;
using llvm::StringRef;

/// By ascending architecture.
static constexpr std::pair<unsigned, llvm::StringLiteral> devices[] = {
    {80, "a100-sxm"}, {86, "a40"}, {89, "l40s"}, {90, "h100-sxm"}, {100, "b200-hgx"}};

StringRef codegen::cuda::deviceOf(StringRef arch) {
  unsigned number = 0;
  arch.consume_front("sm_");
  arch.consumeInteger(10, number);
  StringRef device = devices[0].second;
  for (auto [from, name] : devices)
    if (from <= number)
      device = name;
  return device;
}
