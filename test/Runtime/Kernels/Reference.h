//===- Reference.h - what the kernels must compute, in f64 ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_KERNELS_REFERENCE_H
#define MESHWRIGHT_TEST_RUNTIME_KERNELS_REFERENCE_H

#include "common/launch/Threads.h"
#include "meshwright/runtime/ABI.h"

#include <random>
#include <vector>

/// The tests' rank: nothing but a number of threads.
struct MwContext {
  int threads;
};

namespace meshwright::test {

std::vector<float> randomValues(std::mt19937 &generator, int64_t count);

/// Values in memory as `type` (MW_F32, MW_BF16 or MW_F16): rounded, and back.
std::vector<char> encode(int32_t type, const std::vector<float> &values);
std::vector<float> decode(int32_t type, const std::vector<char> &memory);

/// |actual - expected| / max(|expected|, floor) in the 2-norm; infinite where
/// something is not finite that should be.
double relativeError(const std::vector<float> &actual, const std::vector<double> &expected,
                     double floor = 1e-30);

/// Experts of rows, some of them outside [0, count) at both ends, as they are on a device that has a
/// part of the experts: ascending in each of several parts, as they come from several devices.
std::vector<int32_t> someExperts(std::mt19937 &generator, int64_t rows, int64_t count);
/// The expert of a row among those of all blocks; -1: none.
int64_t expertOf(const std::vector<int32_t> &experts, int64_t row, int64_t blocks, int64_t ofBlock);

/// One attention call's tensors, and what they should be.
struct AttentionCase {
  MwAttention shape{};
  std::vector<int32_t> key, sequenceIds, positions, lengths;
  std::vector<float> q, k, v, dout, slopes, sinks, distances;

  AttentionCase(const MwAttention &sizes, std::mt19937 &generator);
  AttentionCase(const AttentionCase &) = delete;

  int64_t queryIndex(int64_t b, int64_t s, int64_t h) const {
    return ((b * shape.queries + s) * shape.heads + h) * shape.headDim;
  }
  int64_t keyIndex(int64_t b, int64_t t, int64_t h) const {
    int64_t kvHead = h / (shape.heads / shape.kvHeads);
    return ((b * shape.keys + t) * shape.kvHeads + kvHead) * shape.headDim;
  }
  int64_t outIndex(int64_t b, int64_t s, int64_t h) const {
    return queryIndex(b, s, h) / shape.headDim * shape.valueDim;
  }
  int64_t valueIndex(int64_t b, int64_t t, int64_t h) const {
    return keyIndex(b, t, h) / shape.headDim * shape.valueDim;
  }
  /// Gives each head a slope, and a sink.
  void addSlopes(std::mt19937 &generator);
  void addSinks(std::mt19937 &generator);
  /// Divides each sequence into documents of random lengths.
  void addDocuments(std::mt19937 &generator, int64_t most);
  /// Of a query in its sequence.
  int64_t position(int64_t s) const { return s + (shape.queryOffset ? *shape.queryOffset : 0); }
  /// Gives each distance of a query and a key something to add to their score.
  void addDistances(std::mt19937 &generator);
  /// Makes the last keys of each sequence padding, of some all of them.
  void addLengths(std::mt19937 &generator);
  bool visible(int64_t b, int64_t s, int64_t t) const;
  /// 0 for a dropped weight, else what it is scaled by.
  double mask(int64_t b, int64_t h, int64_t s, int64_t t) const;
};

struct AttentionReference {
  std::vector<double> out, lse, dq, dk, dv, dsinks, ddistances;
  explicit AttentionReference(const AttentionCase &test);
};

} // namespace meshwright::test

#endif // MESHWRIGHT_TEST_RUNTIME_KERNELS_REFERENCE_H
