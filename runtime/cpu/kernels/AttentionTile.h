//===- AttentionTile.h - moving, masking and dropping in a tile -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Compiled once for each instruction set; see Simd.h.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_KERNELS_ATTENTIONTILE_H
#define MESHWRIGHT_RUNTIME_CPU_KERNELS_ATTENTIONTILE_H

#include "AttentionTiling.h"
#include "meshwright/runtime/AttentionMask.h"
#include "Words.h"

namespace meshwright::cpu::MW_ISA {

//===--- moving ------------------------------------------------------------===//

/// Copies rows[rows][columns], `stride` apart, to [paddedRows][depth] with zeros
/// around.
template <typename T>
static inline void copyRows(const T *from, int64_t stride, int64_t rows, int64_t columns, float *to,
                            int64_t paddedRows, int64_t depth) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t d = 0; d < depth; d += kLanes)
      store(to + row * depth + d, loadPadded(from + row * stride + d, columns - d));
  for (int64_t i = rows * depth; i < paddedRows * depth; i += kLanes)
    store(to + i, Floats{});
}

/// Copies rows[rows][columns], `stride` apart, transposed and scaled, to
/// [depth][kTile] with zeros around.
template <typename T>
static inline void packTransposed(const T *from, int64_t stride, int64_t rows, int64_t columns,
                                  float scale, float *to, int64_t depth) {
  for (int64_t row = 0; row < kTile; row += kLanes)
    for (int64_t d = 0; d < depth; d += kLanes) {
      Floats block[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i)
        block[i] = row + i < rows
                       ? loadPadded(from + (row + i) * stride + d, columns - d) * splat(scale)
                       : Floats{};
      transpose(block);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i)
        store(to + (d + i) * kTile + row, block[i]);
    }
}

/// The same as words, [paddedRows][depth / elements of a word].
template <typename T>
static inline void copyWords(const T *from, int64_t stride, int64_t rows, int64_t columns,
                             float *to, int64_t paddedRows, int64_t depth) {
  if constexpr (WordsOf<T>::count == 1) {
    copyRows(from, stride, rows, columns, to, paddedRows, depth);
  } else {
    int64_t words = depth / WordsOf<T>::count;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t word = 0; word < words; word += kLanes) {
        int64_t begin = word * WordsOf<T>::count;
        Floats some = WordsOf<T>::along(from + row * stride + begin, columns - begin);
        __builtin_memcpy(to + row * words + word, &some,
                         smaller(kLanes, words - word) * sizeof(float));
      }
    __builtin_memset(to + rows * words, 0, (paddedRows - rows) * words * sizeof(float));
  }
}

/// packTransposed's as words, [depth / elements of a word][kTile]. Pairs are as they were, not
/// scaled.
template <typename T>
static inline void packWords(const T *from, int64_t stride, int64_t rows, int64_t columns,
                             float scale, float *to, int64_t depth) {
  if constexpr (WordsOf<T>::count == 1) {
    packTransposed(from, stride, rows, columns, scale, to, depth);
  } else {
    int64_t words = depth / WordsOf<T>::count;
    for (int64_t row = 0; row < kTile; row += kLanes)
      for (int64_t word = 0; word < words; word += kLanes) {
        int64_t begin = word * WordsOf<T>::count;
        Floats block[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i)
          block[i] = row + i < rows ? WordsOf<T>::along(from + (row + i) * stride + begin,
                                                        columns - begin)
                                    : Floats{};
        transpose(block);
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i)
          if (word + i < words)
            store(to + (word + i) * kTile + row, block[i]);
      }
  }
}

/// Writes, or adds, scale * from[columns] to `to`.
template <bool Add>
static inline void writeRow(const float *from, float scale, float *to, int64_t columns) {
  int64_t d = 0;
  for (; d + kLanes <= columns; d += kLanes) {
    Floats value = load(from + d) * scale;
    store(to + d, Add ? load(to + d) + value : value);
  }
  for (; d < columns; ++d)
    to[d] = from[d] * scale + (Add ? to[d] : 0.0f);
}

/// ... rounded.
template <typename T>
static inline void writeRow(const float *from, float scale, T *to, int64_t columns) {
  int64_t d = 0;
  for (; d + kLanes <= columns; d += kLanes)
    store(to + d, load(from + d) * scale);
  if (d < columns)
    storeFirst(to + d, loadPadded(from + d, columns - d) * scale, columns - d);
}
static inline void writeRow(const float *from, float scale, float *to, int64_t columns) {
  writeRow<false>(from, scale, to, columns);
}

//===--- slopes ------------------------------------------------------------===//

/// Position of the first query.
static inline int64_t offsetOf(const MwAttention &shape) {
  return shape.queryOffset ? *shape.queryOffset : 0;
}

/// ... and of the first key.
static inline int64_t firstKeyOf(const MwAttention &shape) {
  return shape.keyOffset ? *shape.keyOffset : 0;
}
/// Positions from one query to the next, and from one key to the next.
static inline int64_t queryStrideOf(const MwAttention &shape) {
  return shape.queryStride ? shape.queryStride : 1;
}
static inline int64_t keyStrideOf(const MwAttention &shape) {
  return shape.keyStride ? shape.keyStride : 1;
}
static inline int64_t allKeysOf(const MwAttention &shape) {
  return shape.globalKeys ? shape.globalKeys : shape.keys;
}

/// What a head's slope adds to the scores of one query, a vector of keys at a time.
struct Bias {
  Bias(const MwAttention &shape, int64_t head, int64_t query, int64_t key)
      : slope(shape.slopes ? shape.slopes[head] : 0.0f),
        distance(float(firstKeyOf(shape) + key * keyStrideOf(shape) -
                       query * queryStrideOf(shape) - offsetOf(shape))),
        stride(float(keyStrideOf(shape))) {}
  float slope, distance; ///< from the query to the first key
  float stride;          ///< from a key to the next

  Floats at(int64_t column) const {
    return slope *
           (__builtin_convertvector(laneNumbers(), Floats) * stride + (distance + float(column) * stride));
  }
};

/// What distances add to the scores of one query, a vector of keys at a time. A tile's queries and keys
/// have 2 kTile - 1 distances, which are gathered once, those of one head behind each other.
struct DistanceTile {
  /// Rows of `shape.distances` from the one of the tile's last query and first key on; zero where there
  /// is none, which is padding.
  void gather(const MwAttention &shape, int64_t head, int64_t query, int64_t key) {
    first = key - (query + kTile - 1 + offsetOf(shape)) + shape.globalQueries - 1;
    for (int64_t i = 0; i < 2 * kTile; ++i) {
      int64_t row = first + i;
      values[i] = row >= 0 && row < shape.distanceCount ? shape.distances[row * shape.heads + head]
                                                        : 0.0f;
    }
  }
  /// Of the tile's query `row`, keys from `column` on.
  Floats at(int64_t row, int64_t column) const { return load(values + kTile - 1 - row + column); }

  /// Adds to the sum of a score's gradients at its distance.
  void add(int64_t row, int64_t column, Floats gradients) {
    float *at = sums + kTile - 1 - row + column;
    store(at, load(at) + gradients);
  }
  /// Adds these sums to those of all distances of a head.
  void addTo(float *gradients, int64_t count) const {
    for (int64_t i = larger(0, -first); i < smaller(2 * kTile - 1, count - first); ++i)
      gradients[first + i] += sums[i];
  }

  int64_t first;
  alignas(64) float values[2 * kTile + kPad];
  alignas(64) float sums[2 * kTile + kPad];
};

//===--- masking -----------------------------------------------------------===//

/// A group's columns of a tile.
struct Span {
  int64_t begin, end;  ///< multiples of kLanes; begin == end if nothing is visible
  int64_t first, past; ///< the columns that some row sees: what products sum over
  bool masked;         ///< whether some (row, column) of it is not visible
};

/// Which keys each query of a sequence sees. Queries and keys are given by their numbers, from 0 on,
/// of those that are here.
struct Mask {
  Mask(const MwAttention &shape, int64_t batch)
      : mask(attentionMaskOf(shape)), keys(allKeysOf(shape)), firstKey(firstKeyOf(shape)),
        offset(offsetOf(shape) - firstKey), queryStride(queryStrideOf(shape)),
        keyStride(keyStrideOf(shape)), here(smaller(shape.keys, keysBefore(keys - firstKey))),
        positions(shape.positions ? shape.positions + batch * keys : nullptr) {
    if (shape.lengths)
      here = larger(0, smaller(here, keysBefore(shape.lengths[batch] - firstKey)));
  }
  const AttentionMask mask;
  int64_t keys;         ///< of all ranks
  int64_t firstKey;     ///< its position
  int64_t offset;       ///< from the first key that is here to the first query
  int64_t queryStride, keyStride;
  int64_t here; ///< keys, without padding
  const int32_t *positions; ///< of all keys in their documents, or null

  /// Of a query, counted from that of the first key that is here.
  int64_t position(int64_t query) const { return offset + query * queryStride; }
  /// Where the document of the query at a position of the sequence begins. Documents follow each other, so this
  /// never falls.
  int64_t document(int64_t query) const {
    int64_t at = smaller(query, keys - 1);
    return positions ? at - positions[at] : 0;
  }
  /// How many keys are before a position, if there are as many as that takes.
  int64_t keysBefore(int64_t position) const {
    if (position <= 0 || keyStride == 1)
      return larger(position, 0);
    return (position + keyStride - 1) / keyStride;
  }
  /// The first query at a position or behind it.
  int64_t firstQuery(int64_t position) const {
    int64_t beyond = position - offset;
    return beyond <= 0 || queryStride == 1 ? beyond : (beyond + queryStride - 1) / queryStride;
  }
  /// The first key that the query sees, and the one after the last; none if they do not follow each
  /// other.
  int64_t begin(int64_t query) const {
    int64_t at = firstKey + position(query);
    return keysBefore(mask.begin(at, document(at)) - firstKey);
  }
  int64_t end(int64_t query) const {
    return smaller(here, keysBefore(mask.end(firstKey + position(query), keys) - firstKey));
  }

  /// What queries [query, query + kGroup) see of keys [key, key + kTile).
  Span span(int64_t query, int64_t key) const {
    int64_t last = query + kGroup - 1;
    int64_t first = larger(begin(query) - key, 0);
    int64_t past = smaller(end(last) - key, kTile);
    if (first >= past)
      return {0, 0, 0, 0, true};
    Span span;
    span.first = first;
    span.past = past;
    span.begin = first / kLanes * kLanes;
    span.end = (past + kLanes - 1) / kLanes * kLanes;
    span.masked = key + span.end > end(query) || key + span.begin < begin(last);
    return span;
  }
};

/// One query's visible columns of a tile, for testing a vector at a time.
struct VisibleColumns {
  VisibleColumns(const Mask &mask, int64_t query, int64_t key)
      : begin(int32_t(smaller(larger(mask.begin(query) - key, 0), kTile))),
        end(int32_t(smaller(larger(mask.end(query) - key, 0), kTile))) {}
  int32_t begin, end;

  Ints at(int64_t column) const {
    Ints columns = laneNumbers() + int32_t(column);
    return (columns >= begin) & (columns < end);
  }
};

//===--- dropping ----------------------------------------------------------===//

/// The dropout mask: meshwright::keeps(meshwright::randomBits(...)) of
/// Philox.h, for kLanes consecutive keys at once.
class Dropout {
public:
  explicit Dropout(const MwAttention &shape) : active(shape.dropout > 0.0f) {
    if (!active)
      return;
    scale = 1.0f / (1.0f - shape.dropout);
    threshold = uint32_t(double(shape.dropout) * 4294967296.0);
    stream = uint32_t(shape.stream);
    stride = uint64_t(keyStrideOf(shape));
    evenLanes = ((Longs)laneNumbers() & 0xFFFFFFFFu) * stride;
    uint32_t key0 = uint32_t(shape.key[0]), key1 = uint32_t(shape.key[1]);
    for (int round = 0; round < kRounds; ++round) {
      keys[round][0] = key0 + uint32_t(round) * 0x9E3779B9u;
      keys[round][1] = key1 + uint32_t(round) * 0xBB67AE85u;
    }
  }

  bool active;
  float scale = 1.0f; ///< of the kept weights

  /// Index of key `key`, of those that are here, for a query.
  static uint64_t indexOf(const MwAttention &shape, int64_t batch, int64_t head, int64_t query,
                          int64_t key) {
    uint64_t globalHead = uint64_t(shape.sequenceIds[batch]) * uint64_t(shape.globalHeads) +
                          (shape.headOffset ? *shape.headOffset : 0) + head;
    uint64_t row = globalHead * shape.globalQueries + offsetOf(shape) + query * queryStrideOf(shape);
    return row * allKeysOf(shape) + firstKeyOf(shape) + key * keyStrideOf(shape);
  }

  /// All ones in the lanes of the elements to keep, `column` keys and more behind that of `index`.
  Ints keep(uint64_t index, int64_t column) const {
    Longs even = evenLanes + (index + column * stride);
    Words bits = (Words)((words(even + stride) << 32) | (words(even) & 0xFFFFFFFFu));
    return (Ints)(bits >= threshold);
  }

private:
  static constexpr int kRounds = 10;
  uint64_t keys[kRounds][2];
  uint32_t threshold, stream;
  uint64_t stride; ///< positions from a key to the next
  Longs evenLanes; ///< positions of keys, from that of lane 0

  /// The first output word for each 64-bit counter, in the low half of its lane;
  /// the high halves hold leftovers, here and in between.
  Longs words(Longs counter) const {
    Longs c0 = counter, c1 = counter >> 32, c2 = Longs{} + stream, c3 = Longs{};
    const Longs m0 = Longs{} + 0xD2511F53u, m1 = Longs{} + 0xCD9E8D57u;
#pragma GCC unroll 10
    for (int round = 0; round < kRounds; ++round) {
      Longs p0 = multiplyLow(c0, m0), p1 = multiplyLow(c2, m1);
      c0 = (p1 >> 32) ^ c1 ^ keys[round][0];
      c1 = p1;
      c2 = (p0 >> 32) ^ c3 ^ keys[round][1];
      c3 = p0;
    }
    return c0;
  }
};

} // namespace meshwright::cpu::MW_ISA

#endif // MESHWRIGHT_RUNTIME_CPU_KERNELS_ATTENTIONTILE_H
