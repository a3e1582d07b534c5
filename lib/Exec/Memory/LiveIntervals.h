//===- LiveIntervals.h - when a memory holds which contents -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_LIVEINTERVALS_H
#define MESHWRIGHT_LIB_EXEC_LIVEINTERVALS_H

#include "Exec/Exec.h"

#include <map>

namespace meshwright::exec {

/// The loops whose iteration numbers lead to a slot, outermost first.
using SlotPath = llvm::SmallVector<LoopOp, 2>;

/// A range of time in which a part of memory must keep its contents.
struct LiveInterval {
  enum Kind {
    Contents, ///< a value
    Done,     ///< slots of a stack that earlier iterations of `loop` wrote
    Remaining ///< slots that later iterations of `loop` will read
  };
  Kind kind;
  mlir::Value value; ///< null for the contents at the start of the program
  SlotPath path;
  int64_t begin, end;
  unsigned contents; ///< equal numbers, equal contents
  LoopOp loop = {};
};

/// The intervals of one memory. An accumulator has some for each microbatch, so those of a time
/// are found without a look at all of them, and merging two sets moves the smaller one.
class LiveIntervals {
public:
  size_t size() const { return count; }
  void insert(LiveInterval *interval);
  /// Changes the end of an interval of this set.
  void setEnd(LiveInterval *interval, int64_t end);
  /// Takes all intervals of `other`.
  void merge(LiveIntervals &other);

  /// In no order.
  llvm::SmallVector<LiveInterval *> all() const;
  /// Whether `which` is true of any interval that overlaps [begin, end] or is next to it.
  bool anyNear(int64_t begin, int64_t end, llvm::function_ref<bool(LiveInterval &)> which) const;

private:
  /// By the number of bits of their length, then by begin. Of one class few are longer than a time
  /// that they are looked up for and yet do not reach it.
  std::map<unsigned, std::multimap<int64_t, LiveInterval *>> byLength;
  size_t count = 0;
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_LIVEINTERVALS_H
