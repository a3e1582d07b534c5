//===- InFlight.h - asynchronous ops that may still run ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_INFLIGHT_H
#define MESHWRIGHT_LIB_EXEC_INFLIGHT_H

#include "ProgramReader.h"

namespace meshwright::exec {

/// The asynchronous ops that a run has started and not waited for.
class InFlight {
public:
  /// Refuses an op that touches what one of them writes, or writes what one of them reads, unless
  /// both are of one queue. An op counts until a wait with its own token: the plan of memory relies
  /// on no other.
  mlir::LogicalResult visit(const ProgramReader &reader, mlir::Operation *op,
                            llvm::ArrayRef<Access> accesses);
  mlir::LogicalResult checkEnd() const;

  bool operator==(const InFlight &other) const { return started == other.started; }
  /// What may be in flight in one of two runs.
  void join(const InFlight &other);

private:
  struct Started {
    mlir::Operation *op;
    int64_t token;
    Queue queue;
    llvm::SmallVector<Access> accesses;

    bool operator==(const Started &other) const {
      return op == other.op && accesses == other.accesses;
    }
  };
  std::vector<Started> started; ///< in their order
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_INFLIGHT_H
