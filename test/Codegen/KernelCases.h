//===- KernelCases.h - kernels that every target must get right -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_CODEGEN_KERNELCASES_H
#define MESHWRIGHT_TEST_CODEGEN_KERNELCASES_H

#include "KernelInput.h"

#include <gtest/gtest.h>

namespace meshwright::test {

struct Case {
  const char *name;
  /// Text with $B, $S, $D for sizes.
  const char *text;
  int64_t ids = 8;
  /// Allowed error relative to the largest value of a result.
  double tolerance = 3e-6;
  /// D must be even.
  bool even = false;
  /// Numbers of about 1 cancel, exactly unless products are added without being rounded: errors
  /// on GPUs count against these where nothing is left.
  bool cancels = false;

  /// Whether its ops work on any element type: not those that are written in
  /// arithmetic, or make tensors of scalars and row statistics.
  bool narrow() const;
};
std::ostream &operator<<(std::ostream &out, const Case &c);

struct Sizes {
  int64_t b, s, d;
};

std::vector<Case> kernelCases();

/// $B, $S, $D and $H (half of D) become numbers. With `element`, tensors are of that
/// type instead of f32, but for scalars and row statistics.
std::string instantiate(const Case &c, Sizes sizes, llvm::StringRef element = "f32");

/// Errors count against the largest number, or `scale`.
void expectClose(const Memory &got, const Values &want, double tolerance, const std::string &what,
                 double scale = 0);

bool same(const Memory &a, const Memory &b);

/// Makes arguments positive where a root or a logarithm is taken of them.
void makePositive(KernelInput &input, std::vector<Memory> &arguments);

} // namespace meshwright::test

#endif // MESHWRIGHT_TEST_CODEGEN_KERNELCASES_H
