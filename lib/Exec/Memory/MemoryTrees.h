//===- MemoryTrees.h - which values share memory ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A tree is one piece of memory and the values that are at some time in it. A
// value's path says where: empty, the whole piece; [L], the slot of loop L's
// current iteration; [L, M], a slot in that slot. Two trees become one when no two
// values with different contents would be in the same place at the same time.
//
// Time: op number k reads its operands at 2k and writes its results at 2k + 1. A
// loop has two numbers, of its op and of its yield; numbers inside lie between
// them. A value made outside a loop and read inside is live to the loop's end.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_MEMORYTREES_H
#define MESHWRIGHT_LIB_EXEC_MEMORYTREES_H

#include "Exec/Exec.h"

#include "llvm/ADT/MapVector.h"

#include <map>
#include <memory>

namespace meshwright::exec {

/// The loops whose iteration numbers lead to a slot, outermost first.
using SlotPath = llvm::SmallVector<LoopOp, 2>;

/// What keeps a place of a tree occupied for a while.
struct Occupant {
  enum Kind {
    Contents, ///< a value
    Done,     ///< slots of a stack that earlier iterations of `loop` wrote
    Remaining ///< slots that later iterations of `loop` will read
  };
  Kind kind;
  mlir::Value value; ///< null for what memory holds when the program starts
  SlotPath path;
  int64_t begin, end;
  unsigned contents; ///< equal numbers, equal contents
  LoopOp loop = {};
};

struct MemoryTree {
  /// What outlives the program: a variable, an input or an output; at most one.
  mlir::StringAttr variable, input, output;
  /// What the caller of a called function gives memory for; both where a result is
  /// computed in the place of an argument.
  std::optional<unsigned> argument, result;
  llvm::SmallVector<Occupant> occupants;
  /// The type of the slots that a path leads to.
  std::map<llvm::SmallVector<mlir::Operation *, 2>, mlir::RankedTensorType> slots;
  /// The largest value that is the whole piece.
  mlir::RankedTensorType type;

  bool isFixed() const { return variable || input || output || argument || result; }
};

class MemoryTrees {
public:
  explicit MemoryTrees(mlir::func::FuncOp function) : function(function) {}

  /// One tree per value, those joined that must be the same memory.
  mlir::LogicalResult build();

  /// Makes one tree of those of `a` and `b` such that both values are in the same
  /// place, unless that would destroy something.
  bool tryMerge(mlir::Value a, mlir::Value b);

  /// Makes `result` of a called function be computed in the place of `argument`,
  /// unless that would destroy something.
  bool tie(unsigned argument, unsigned result);

  MemoryTree &treeOf(mlir::Value value) { return *trees.find(value)->second.first; }
  const SlotPath &pathOf(mlir::Value value) { return trees.find(value)->second.second; }
  /// Whether both begin at the same address.
  bool samePlace(mlir::Value a, mlir::Value b);

  /// Reports places that hold two values at once: a defect of this file.
  mlir::LogicalResult verify();

private:
  struct Join;

  void number(mlir::Block &block);
  mlir::LogicalResult namePorts(mlir::Block &top);
  void addValue(mlir::Value value);
  int64_t lastUse(mlir::Value value);
  unsigned heldBy(mlir::Value value) {
    auto it = held.find(value);
    return it == held.end() ? contents.at(value) : it->second;
  }
  mlir::LogicalResult joinAll(mlir::Block &block);
  void require(mlir::Value a, const SlotPath &path, mlir::Value b);
  bool conflict(const Occupant &a, const SlotPath &pathA, const Occupant &b, const SlotPath &pathB);
  bool mayOverwrite(const Occupant &old, const Occupant &next);
  std::optional<Join> plan(mlir::Value a, const SlotPath &path, mlir::Value b);
  void apply(const Join &join);

  mlir::func::FuncOp function;
  mlir::SymbolTableCollection symbols;
  std::vector<mlir::Operation *> ops; ///< by number
  llvm::DenseMap<mlir::Operation *, int64_t> numbers;
  llvm::DenseMap<mlir::Operation *, int64_t> loopEnds;
  llvm::MapVector<mlir::Value, std::pair<MemoryTree *, SlotPath>> trees;
  std::vector<std::unique_ptr<MemoryTree>> storage;
  llvm::DenseMap<mlir::Value, unsigned> contents;
  /// Of views and copies: the contents of all the memory that they keep occupied.
  llvm::DenseMap<mlir::Value, unsigned> held;
  /// The contents that a slice's contents are part of.
  llvm::DenseMap<unsigned, unsigned> sliceOf;
  unsigned nextContents = 0;
  bool tying = false;
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_MEMORYTREES_H
