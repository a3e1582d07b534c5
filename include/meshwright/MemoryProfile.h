//===- MemoryProfile.h - what memory a program holds, and when ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_MEMORYPROFILE_H
#define MESHWRIGHT_MEMORYPROFILE_H

#include "Exec/Exec.h"

#include "mlir/IR/BuiltinOps.h"

#include <array>
#include <map>
#include <optional>
#include <vector>

namespace meshwright::exec {

/// Bytes by category, each buffer rounded up to MW_ALIGNMENT.
struct CategoryBytes {
  std::array<int64_t, getMaxEnumValForCategory() + 1> bytes{};

  int64_t &operator[](Category category) { return bytes[unsigned(category)]; }
  int64_t operator[](Category category) const { return bytes[unsigned(category)]; }
  int64_t total() const;
  bool operator==(const CategoryBytes &other) const { return bytes == other.bytes; }
};

/// A buffer that is live at the peak.
struct HeldBuffer {
  BufferOp buffer;
  int64_t bytes = 0;
  /// The op that first writes it, in the program that has the buffer or in a callee; null if an
  /// earlier run or the host wrote it.
  mlir::Operation *writer = nullptr;
  /// The task of a pipeline's schedule that writes or contains it; may be null.
  mlir::StringAttr task;
  /// In how many slices loops have written these bytes, e.g. one a layer; 1 if it is no stack.
  int64_t slices = 1;
};

/// The live bytes of the arena as a step function over the ops of a program in order, without ops
/// that only name memory, and with a loop's body once: as in the first or the last iteration,
/// whichever holds more at an op. A call counts with the bytes of its callee's peak.
struct MemoryProfile {
  struct Point {
    int64_t op; ///< from this op on
    CategoryBytes live;
  };
  std::vector<Point> points;
  /// The ops by their numbers.
  std::vector<mlir::Operation *> at;
  /// The largest buffer that begins to be live at an op, where one does.
  struct Begin {
    BufferOp buffer;
    int64_t bytes = 0;
  };
  std::map<int64_t, Begin> begins;
  /// The first op that writes a variable, from which on the step updates; absent: none does.
  std::optional<int64_t> firstUpdate;
  /// Where tasks of a pipeline's schedule are called.
  std::vector<std::pair<int64_t, mlir::StringAttr>> tasks;
  int64_t ops = 0;

  int64_t peakBytes = 0, peakOp = 0;
  /// The writers of this many buffers are listed; buffers that outlive the step do not count.
  static constexpr size_t attributed = 24;
  /// Largest first.
  std::vector<HeldBuffer> atPeak;
};

/// Of the entry points of one module after `exec-assign-offsets`, by name. The largest of their
/// peaks is the module's `exec.live_bytes`.
std::map<std::string, MemoryProfile> profileMemory(mlir::ModuleOp program);

} // namespace meshwright::exec

#endif // MESHWRIGHT_MEMORYPROFILE_H
