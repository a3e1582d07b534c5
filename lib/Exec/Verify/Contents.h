//===- Contents.h - whose values memory holds --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_CONTENTS_H
#define MESHWRIGHT_LIB_EXEC_CONTENTS_H

#include "ProgramReader.h"

#include <map>
#include <set>

namespace meshwright::exec {

/// Of each byte the buffer or argument that was written there last. Knows nothing of how long
/// buffers live.
class Contents {
public:
  /// Refuses an op that reads one root where another has been written since, or nothing at all, and
  /// one that writes over what it reads or writes of another root.
  mlir::LogicalResult visit(const ProgramReader &reader, mlir::Operation *op,
                            llvm::ArrayRef<Access> accesses);
  /// Refuses a private program that leaves one of its `outs` unwritten.
  mlir::LogicalResult checkEnd(const ProgramReader &reader) const;

  bool operator==(const Contents &other) const {
    return pieces == other.pieces && windows == other.windows;
  }
  /// What bytes hold if they may be left so by either of two runs.
  void join(const Contents &other);

private:
  static constexpr int nothing = -1;
  /// The root written last; two where that depends on the data.
  using Owner = std::pair<int, int>;
  struct Piece {
    int64_t end;
    Owner owner;
    bool operator==(const Piece &other) const { return end == other.end && owner == other.owner; }
  };
  /// By begin; of bytes in no piece nothing is written. Neighbours have different owners.
  using Pieces = std::map<int64_t, Piece>;
  /// Memory of which each rank writes other parts, in the order of their numbers behind its own.
  /// What another root is written over is lost until it is written again.
  struct Window {
    std::set<int64_t> written;
    std::map<int64_t, int> lost; ///< with the root that is there instead
    bool operator==(const Window &other) const {
      return written == other.written && lost == other.lost;
    }
  };

  static void split(Pieces &pieces, int64_t address);
  static void unite(Pieces &pieces, Pieces::iterator from, int64_t end);
  void write(int64_t begin, int64_t end, int root);
  void writeWindows(const ProgramReader &reader, const Access &access);
  /// What is in [begin, end) beside `root`: another root, nothing, or no value.
  std::optional<int> other(int64_t begin, int64_t end, int root) const;
  /// What is where `access` would read a part that another root has been written over.
  std::optional<int> lostPart(const ProgramReader &reader, const Access &access) const;
  mlir::LogicalResult refuse(const ProgramReader &reader, mlir::Operation *op, int read,
                             int written) const;

  Pieces pieces;
  std::map<std::tuple<unsigned, int64_t, int64_t>, Window> windows; ///< by root, begin and end
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_CONTENTS_H
