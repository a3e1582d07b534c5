//===- Reference.cpp - what the kernels must compute, in f64 --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Reference.h"
#include "common/plan/ElementType.h"
#include "meshwright/runtime/Philox.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace meshwright;
using namespace meshwright::test;

std::vector<float> test::randomValues(std::mt19937 &generator, int64_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(generator);
  return values;
}

std::vector<char> test::encode(int32_t type, const std::vector<float> &values) {
  std::vector<char> memory(values.size() * bytesOf(ElementType(type)));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits = type == MW_BF16 ? floatToBf16(values[i]) : floatToF16(values[i]);
    if (type == MW_F32)
      std::memcpy(&memory[4 * i], &values[i], 4);
    else
      std::memcpy(&memory[2 * i], &bits, 2);
  }
  return memory;
}

std::vector<float> test::decode(int32_t type, const std::vector<char> &memory) {
  std::vector<float> values(memory.size() / bytesOf(ElementType(type)));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits = 0;
    if (type == MW_F32)
      std::memcpy(&values[i], &memory[4 * i], 4);
    else
      std::memcpy(&bits, &memory[2 * i], 2);
    if (type != MW_F32)
      values[i] = type == MW_BF16 ? bf16ToFloat(bits) : f16ToFloat(bits);
  }
  return values;
}

double test::relativeError(const std::vector<float> &actual, const std::vector<double> &expected,
                           double floor) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isinf(expected[i]) && actual[i] == expected[i])
      continue;
    if (!std::isfinite(actual[i]))
      return std::numeric_limits<double>::infinity();
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference) / std::max(std::sqrt(norm), floor);
}

std::vector<int32_t> test::someExperts(std::mt19937 &generator, int64_t rows,
                                                   int64_t count) {
  // Now and then one expert gets all rows.
  bool adversarial = generator() % 4 == 0;
  int32_t chosen = int32_t(generator() % uint32_t(count));
  std::vector<int32_t> experts(static_cast<size_t>(rows));
  for (int32_t &expert : experts)
    expert = adversarial ? chosen : int32_t(generator() % uint32_t(count + 4)) - 2;
  auto from = experts.begin();
  for (int64_t parts = 1 + int64_t(generator() % 3); parts > 0; --parts) {
    auto to = from + (experts.end() - from) / parts;
    std::sort(from, to);
    from = to;
  }
  return experts;
}

int64_t test::expertOf(const std::vector<int32_t> &experts, int64_t row, int64_t blocks,
                       int64_t ofBlock) {
  int64_t id = experts[size_t(row)], slots = int64_t(experts.size()) / blocks;
  return id < 0 || id >= ofBlock ? -1 : row / slots * ofBlock + id;
}

AttentionCase::AttentionCase(const MwAttention &sizes, std::mt19937 &generator) : shape(sizes) {
  q = randomValues(generator, shape.batch * shape.queries * shape.heads * shape.headDim);
  k = randomValues(generator, shape.batch * shape.keys * shape.kvHeads * shape.headDim);
  v = randomValues(generator, shape.batch * shape.keys * shape.kvHeads * shape.valueDim);
  dout = randomValues(generator, shape.batch * shape.queries * shape.heads * shape.valueDim);
  if (shape.dropout == 0)
    return;
  key = {int32_t(generator()), int32_t(generator())};
  for (int64_t b = 0; b < shape.batch; ++b)
    sequenceIds.push_back(int32_t(generator() % 1000000));
  shape.key = key.data();
  shape.sequenceIds = sequenceIds.data();
}

void AttentionCase::addSlopes(std::mt19937 &generator) {
  slopes = randomValues(generator, shape.heads);
  for (float &slope : slopes)
    slope = std::abs(slope) * 0.1f;
  shape.slopes = slopes.data();
}

void AttentionCase::addSinks(std::mt19937 &generator) {
  sinks = randomValues(generator, shape.heads);
  shape.sinks = sinks.data();
}

void AttentionCase::addDocuments(std::mt19937 &generator, int64_t most) {
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t t = 0, left = 0, place = 0; t < shape.keys; ++t, ++place, --left) {
      if (left == 0) {
        left = 1 + int64_t(generator() % uint64_t(most));
        place = 0;
      }
      positions.push_back(int32_t(place));
    }
  shape.positions = positions.data();
}

void AttentionCase::addDistances(std::mt19937 &generator) {
  shape.distanceCount = shape.globalQueries + shape.keys - 1;
  distances = randomValues(generator, shape.distanceCount * shape.heads);
  shape.distances = distances.data();
}

void AttentionCase::addLengths(std::mt19937 &generator) {
  for (int64_t b = 0; b < shape.batch; ++b)
    lengths.push_back(int32_t(generator() % uint64_t(shape.keys + 1)));
  shape.lengths = lengths.data();
}

bool AttentionCase::visible(int64_t b, int64_t s, int64_t t) const {
  if (shape.lengths && t >= shape.lengths[b])
    return false;
  s = position(s);
  if (shape.positions) {
    // Both in one document: no token between them, nor the later one, begins another.
    const int32_t *of = shape.positions + b * shape.keys;
    for (int64_t between = t + 1; between <= std::min(s, shape.keys - 1); ++between)
      if (of[between] == 0)
        return false;
  }
  if (shape.chunk) {
    // No key between them, nor the later one, begins a chunk, which is counted from the document's begin.
    int64_t begin = 0, last = std::min(s, shape.keys - 1);
    if (shape.positions)
      begin = last - shape.positions[b * shape.keys + last];
    for (int64_t between = t + 1; between <= s; ++between)
      if ((between - begin) % shape.chunk == 0)
        return false;
  }
  return (!shape.causal || t <= s) && (!shape.window || std::abs(s - t) < shape.window);
}

double AttentionCase::mask(int64_t b, int64_t h, int64_t s, int64_t t) const {
  if (shape.dropout == 0)
    return 1;
  uint64_t head = uint64_t(sequenceIds[b]) * uint64_t(shape.globalHeads) +
                  (shape.headOffset ? *shape.headOffset : 0) + h;
  uint64_t index = (head * shape.globalQueries + position(s)) * shape.keys + t;
  uint32_t bits = randomBits({uint32_t(key[0]), uint32_t(key[1])}, uint32_t(shape.stream), index);
  return keeps(bits, shape.dropout) ? 1.0 / (1.0 - double(shape.dropout)) : 0.0;
}

static double dot(const float *a, const float *b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += double(a[i]) * b[i];
  return sum;
}

AttentionReference::AttentionReference(const AttentionCase &test)
    : out(test.dout.size()), lse(test.shape.batch * test.shape.heads * test.shape.queries),
      dq(test.q.size()), dk(test.k.size()), dv(test.v.size()), dsinks(test.sinks.size()),
      ddistances(test.distances.size()) {
  const MwAttention &shape = test.shape;
  int64_t dim = shape.headDim, valueDim = shape.valueDim;
  // Queries of padding have distances that are not there.
  auto rowOf = [&](int64_t s, int64_t t) { return t - test.position(s) + shape.globalQueries - 1; };
  std::vector<double> weights(shape.keys), slopes(shape.keys), masks(shape.keys),
      bends(shape.keys, 1);
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h)
      for (int64_t s = 0; s < shape.queries; ++s) {
        int64_t row = test.queryIndex(b, s, h), outRow = test.outIndex(b, s, h);
        double largest = -std::numeric_limits<double>::infinity(), sum = 0, delta = 0;
        if (shape.sinks)
          largest = shape.sinks[h];
        for (int64_t t = 0; t < shape.keys; ++t) {
          weights[t] = -std::numeric_limits<double>::infinity();
          if (test.visible(b, s, t))
            weights[t] = shape.scale * dot(&test.q[row], &test.k[test.keyIndex(b, t, h)], dim);
          if (shape.cap && test.visible(b, s, t)) {
            double tangent = std::tanh(weights[t] / shape.cap);
            weights[t] = shape.cap * tangent;
            bends[t] = 1 - tangent * tangent;
          }
          if (shape.slopes)
            weights[t] += double(shape.slopes[h]) * double(t - test.position(s));
          if (shape.distances && rowOf(s, t) >= 0)
            weights[t] += shape.distances[rowOf(s, t) * shape.heads + h];
          largest = std::max(largest, weights[t]);
        }
        bool seesAny = std::isfinite(largest);
        for (double &weight : weights)
          sum += weight = seesAny ? std::exp(weight - largest) : 0;
        if (shape.sinks)
          sum += std::exp(shape.sinks[h] - largest);
        lse[(b * shape.heads + h) * shape.queries + s] = largest + std::log(sum);
        if (!seesAny) {
          lse[(b * shape.heads + h) * shape.queries + s] = largest;
          continue;
        }
        for (int64_t t = 0; t < shape.keys; ++t) {
          int64_t at = test.valueIndex(b, t, h);
          weights[t] /= sum;
          masks[t] = weights[t] == 0 ? 0 : test.mask(b, h, s, t);
          slopes[t] = masks[t] * dot(&test.dout[outRow], &test.v[at], valueDim);
          delta += weights[t] * slopes[t];
          for (int64_t d = 0; d < valueDim; ++d) {
            out[outRow + d] += weights[t] * masks[t] * test.v[at + d];
            dv[at + d] += weights[t] * masks[t] * test.dout[outRow + d];
          }
        }
        if (shape.sinks)
          dsinks[h] -= std::exp(shape.sinks[h] - largest) / sum * delta;
        for (int64_t t = 0; t < shape.keys; ++t) {
          int64_t at = test.keyIndex(b, t, h);
          if (shape.distances && rowOf(s, t) >= 0)
            ddistances[rowOf(s, t) * shape.heads + h] += weights[t] * (slopes[t] - delta);
          double slope = shape.scale * bends[t] * weights[t] * (slopes[t] - delta);
          for (int64_t d = 0; d < dim; ++d) {
            dq[row + d] += slope * test.k[at + d];
            dk[at + d] += slope * test.q[row + d];
          }
        }
      }
}
