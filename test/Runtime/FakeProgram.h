//===- FakeProgram.h - sizes and places of a hand-written program ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A small model that stands in for the compiler's output in tests of the runtime:
// each token has a row of `table`; row + bias should be the target token divided by
// the vocabulary's size, and the stacked `query` and `key` should be zero.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_FAKEPROGRAM_H
#define MESHWRIGHT_TEST_RUNTIME_FAKEPROGRAM_H

#include <cstdint>

namespace fake {

// The vocabulary and the width do not divide by 2 and 4: shards are padded.
constexpr int64_t vocabulary = 251, width = 13, layers = 3, batch = 8, sequence = 16;

/// Places of a parameter, its momentum and variance, and its gradient.
struct Parameter {
  int64_t offset[3], gradient, elements;
};

struct Sizes {
  int64_t data, tensor, microbatches, arenaBytes = 0;
  Parameter table, query, key, bias;
  int64_t tokens, targets, loss, gradNorm, scratch;
  /// lr, beta1, beta2, eps, weight_decay, grad_clip, bias_correction1, 2.
  int64_t scalars[8];
};
Sizes &sizes();

/// The number in the environment variable `name`.
int64_t setting(const char *name, int64_t otherwise);

} // namespace fake

#endif // MESHWRIGHT_TEST_RUNTIME_FAKEPROGRAM_H
