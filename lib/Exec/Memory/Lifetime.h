//===- Lifetime.h - when the bytes of a buffer hold something ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_LIFETIME_H
#define MESHWRIGHT_LIB_EXEC_LIFETIME_H

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace meshwright::exec {

/// From the first to the second, in bytes.
using OffsetRange = std::pair<int64_t, int64_t>;

/// Of a loop's iterations, that in which fewest slots are filled and emptied, or most. What is live
/// at an op of the loop changes by as much from each iteration to the next, so it is most in one
/// of these two.
enum class Iteration { First, Last };

/// In which of the two loops are, by the time at which they begin.
using Iterations = std::map<int64_t, Iteration>;

/// The slots of a stack that a loop fills, or empties, one an iteration.
struct SlotLife {
  int64_t begin, end;    ///< the loop's time
  int64_t when;          ///< in its body, of the op that fills a slot or reads it last
  int64_t offset, bytes; ///< of the lowest slot in the buffer; of each slot
  int64_t count;         ///< slots, and iterations
  bool reverse;          ///< whether the first iteration has the highest slot

  bool isIn(const SlotLife &other) const { return begin == other.begin && end == other.end; }
};

/// A buffer of `size` bytes that is live in [begin, end).
struct Lifetime {
  int64_t size, begin, end;
  /// By the loop at its beginning: a slot holds nothing before its iteration.
  std::optional<SlotLife> filled = std::nullopt;
  /// By the loop at its end: a slot holds nothing after its iteration.
  std::optional<SlotLife> emptied = std::nullopt;

  bool overlaps(const Lifetime &other) const { return begin < other.end && other.begin < end; }

  /// The same that much later.
  Lifetime after(int64_t time) const;

  /// The times at which `bytesAt` may change, in ascending order.
  llvm::SmallVector<int64_t, 10> times() const;

  /// The beginning of the loop that fills or empties it at a time, or -1.
  int64_t loopAt(int64_t time) const;

  /// How many bytes it holds at a time, rounded up to `alignment` where that is the whole buffer
  /// and down where it is slots, so that a sum of these is never more than buffers need.
  int64_t bytesAt(int64_t time, Iteration iteration, int64_t alignment) const;
  int64_t bytesAt(int64_t time, const Iterations &iterations, int64_t alignment) const;

  /// Where `other` may not begin, in bytes from where this begins: at a number between these two,
  /// which are allowed themselves. Nothing if it may begin anywhere.
  std::optional<OffsetRange> forbids(const Lifetime &other) const;
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_LIFETIME_H
