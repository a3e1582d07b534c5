//===- ProgramReader.h - what each op of a program touches ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_PROGRAMREADER_H
#define MESHWRIGHT_LIB_EXEC_PROGRAMREADER_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// Memory of its own: a buffer, or an argument of a private program.
struct Root {
  mlir::Value memory;
  /// Where it begins on one line of all memory: the arenas of all spaces one after the other, then
  /// the arguments.
  int64_t address;
  int64_t bytes;
  /// Whether it holds something when the program starts. Such memory is shared with no other root.
  bool isGiven;
  bool isWritten = false;

  mlir::Type getType() const { return memory.getType(); }
  std::string name() const;
  /// "the host"
  llvm::StringRef spaceText() const { return spaceRow(spaceOf(getType())).text; }
};

/// Bytes that an op touches when it runs, counted from the beginning of their root.
struct Access {
  unsigned root;
  int64_t begin, end;
  bool reads, writes;
  /// For part of memory of which each rank has another one, all ranks' parts are between `begin`
  /// and `end`, and this is the number of the part behind the rank's own, of `parts`.
  int64_t shift = 0, parts = 1;

  bool operator==(const Access &other) const {
    return std::tie(root, begin, end, reads, writes, shift, parts) ==
           std::tie(other.root, other.begin, other.end, other.reads, other.writes, other.shift,
                    other.parts);
  }
};

/// An operand in memory: where it begins is linear in the slots that iterations of loops have.
struct Use {
  struct Slots {
    unsigned loop;
    int64_t bytes;  ///< between slots
    int64_t sign;   ///< -1 if slots are counted from the loop's other end
    int64_t first;  ///< the slot of iteration 0
    int64_t modulo; ///< slots that are used in turns; 0 if each iteration has its own
  };
  Access fixed; ///< with slot 0 of everything
  llvm::SmallVector<Slots, 1> slots;
};

/// An op with what it touches, or a loop or condition with the ops inside, which run in order.
struct Step {
  mlir::Operation *op;
  llvm::SmallVector<Use, 4> uses;
  unsigned loop = 0; ///< of an exec.loop or exec.when
  std::vector<Step> body;
};

struct Loop {
  int64_t first, last; ///< iterations, in the order in which they run
  int64_t period = 1;  ///< after so many iterations slots that are used in turns are the same
  /// Whether iterations differ in anything else than such slots, conditions and reads of what the
  /// program never writes.
  bool differs = false;
  llvm::SmallVector<int64_t> bounds; ///< of conditions

  int64_t by() const { return first <= last ? 1 : -1; }
  int64_t count() const { return (last - first) * by() + 1; }
};

/// Reads a program whose memory is part of buffers with offsets, or of arguments, and notes once
/// where each operand lies, so that a run has only numbers to add.
class ProgramReader {
public:
  explicit ProgramReader(ProgramOp program);

  /// What `step` touches in the given iterations of the loops around it.
  void accesses(const Step &step, llvm::ArrayRef<int64_t> iterations,
                llvm::SmallVectorImpl<Access> &list) const;

  int64_t begin(const Access &access) const { return roots[access.root].address + access.begin; }
  int64_t end(const Access &access) const { return roots[access.root].address + access.end; }
  bool overlap(const Access &a, const Access &b) const {
    return begin(a) < end(b) && begin(b) < end(a);
  }

  ProgramOp program;
  std::vector<Root> roots;
  std::vector<Loop> loops;
  std::vector<Step> steps;
  bool usesOffloaded = false;

private:
  void addRoots();
  void read(mlir::Block &block, std::vector<Step> &list);
  void readUses(Step &step);
  Use place(mlir::Value memory);
  void findDifferences(llvm::ArrayRef<Step> list);

  llvm::DenseMap<mlir::Value, unsigned> rootNumbers, loopNumbers; ///< of loops by their index
  llvm::DenseMap<mlir::Value, Use> places;
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_PROGRAMREADER_H
