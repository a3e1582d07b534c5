//===- BufferCoalescing.h - which values share memory -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Buffer coalescing (Boissinot et al. 2009): values share memory unless their live
// intervals conflict. The path of a value says where in the memory it lies: [] is the
// whole memory; [L] the slot of loop L's present iteration; [L, M] a slot in that slot.
// Two memories are merged if no two values with different contents would be live at the
// same address at the same time.
//
// Time: op number k reads its operands at 2k and writes its results at 2k + 1. A
// loop has two numbers, that of its op and that of its yield; the numbers of its body
// lie between them. A value defined outside a loop and read inside is live to the
// loop's end.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_BUFFERCOALESCING_H
#define MESHWRIGHT_LIB_EXEC_BUFFERCOALESCING_H

#include "LiveIntervals.h"

#include "llvm/ADT/MapVector.h"

#include <deque>
#include <map>
#include <memory>

namespace meshwright::exec {

struct CoalescedMemory {
  /// The variable, input or output that outlives the program; at most one.
  mlir::StringAttr variable, input, output;
  /// The argument and the result of a called function for which the caller gives memory;
  /// both if the result is an in-place alias of the argument.
  std::optional<unsigned> argument, result;
  /// The value that it was made for, before others came to it.
  mlir::Value first;
  LiveIntervals intervals;
  /// The type of the slots that a path leads to.
  std::map<llvm::SmallVector<mlir::Operation *, 2>, mlir::RankedTensorType> slots;
  /// The largest value that is the whole memory.
  mlir::RankedTensorType type;

  bool isFixed() const { return variable || input || output || argument || result; }
};

class BufferCoalescing {
public:
  explicit BufferCoalescing(mlir::func::FuncOp function) : function(function) {}

  /// Gives each value its memory, and values that must share memory the same.
  mlir::LogicalResult build();

  /// Merges the memories of `a` and `b` so that both values begin at the same address, unless
  /// live intervals conflict.
  bool tryMerge(mlir::Value a, mlir::Value b);
  /// Whether the value is in a variable's memory.
  bool isInVariable(mlir::Value value) { return bool(memoryOf(value).variable); }

  /// Makes `result` of a called function an in-place alias of `argument`, unless live
  /// intervals conflict.
  bool alias(unsigned argument, unsigned result);

  CoalescedMemory &memoryOf(mlir::Value value) { return *memoryOfValue.find(value)->second.first; }
  const SlotPath &pathOf(mlir::Value value) { return memoryOfValue.find(value)->second.second; }
  /// Whether both begin at the same address.
  bool sameAddress(mlir::Value a, mlir::Value b);

  /// Reports memory that would hold two values at once: a defect of this class.
  mlir::LogicalResult verify();

private:
  struct Join;

  void number(mlir::Block &block);
  mlir::LogicalResult namePorts(mlir::Block &top);
  void addValue(mlir::Value value);
  void addInterval(CoalescedMemory &coalesced, LiveInterval interval);
  /// The interval of a value itself.
  LiveInterval &intervalOf(mlir::Value value) { return *intervals.find(value)->second; }
  void keepForever(mlir::Value value);
  int64_t lastUse(mlir::Value value);
  unsigned heldBy(mlir::Value value) {
    auto it = held.find(value);
    return it == held.end() ? contents.at(value) : it->second;
  }
  mlir::LogicalResult joinAll(mlir::Block &block);
  void require(mlir::Value a, const SlotPath &path, mlir::Value b);
  bool conflict(const LiveInterval &a, const SlotPath &pathA, const LiveInterval &b,
                const SlotPath &pathB);
  bool conflict(const Join &join);
  bool mayOverwrite(const LiveInterval &old, const LiveInterval &next);
  std::optional<Join> findJoin(mlir::Value a, const SlotPath &path, mlir::Value b);
  void apply(const Join &join);

  mlir::func::FuncOp function;
  mlir::SymbolTableCollection symbols;
  std::vector<mlir::Operation *> ops; ///< by number
  llvm::DenseMap<mlir::Operation *, int64_t> numbers;
  llvm::DenseMap<mlir::Operation *, int64_t> loopEnds;
  llvm::MapVector<mlir::Value, std::pair<CoalescedMemory *, SlotPath>> memoryOfValue;
  /// All that there were; those without intervals have become part of others.
  std::vector<std::unique_ptr<CoalescedMemory>> storage;
  std::deque<LiveInterval> intervalStorage;
  llvm::DenseMap<mlir::Value, LiveInterval *> intervals;
  llvm::DenseMap<mlir::Value, unsigned> contents;
  /// Of views and copies: the contents of all the memory that they keep live.
  llvm::DenseMap<mlir::Value, unsigned> held;
  /// The contents that a slice's contents are part of.
  llvm::DenseMap<unsigned, unsigned> sliceOf;
  unsigned nextContents = 0;
  bool aliasing = false;
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_BUFFERCOALESCING_H
