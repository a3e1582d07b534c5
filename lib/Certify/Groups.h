//===- Groups.h - loops over groups of iterations ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A loop over groups of layers is a loop whose body is loops over the layers of a group.
// One of these has the carried values of the loop around it, if there are some, so that both
// together are one loop over all layers, in whose iterations the others run, too. Those
// begin, if they carry values, with what another loop over all layers had carried to the group (a checkpoint).
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CERTIFY_GROUPS_H
#define MESHWRIGHT_CERTIFY_GROUPS_H

#include "Certify/Checker.h"

#include "Train/Train.h"

namespace meshwright::certify {

class Groups {
public:
  /// Those of a loop; none if it is no loop over groups.
  static std::optional<Groups> of(train::RepeatOp outer, mlir::func::FuncOp body);

  /// How many iterations there are in all groups.
  int64_t count() const { return groups * size; }
  /// Whether sliced operand `index` is where groups begin, not a stack of all iterations.
  bool isCheckpoint(unsigned index) const { return checkpoints.count(index); }
  /// The carried value of which result `index` of the body stacks where groups begin.
  std::optional<unsigned> startOf(unsigned index);

  /// A stack by group as one of all iterations, and back.
  std::optional<Fact> merged(const Fact &stack, Checker &checker);
  Fact divided(const Fact &stack, Checker &checker);
  /// A stack of a carried value of `loop` where groups begin.
  Fact starts(const Expression *loop, const Fact &carried, Checker &checker);

  /// Runs one iteration of all loops in the body. `slices` are those of the iteration, and stacks
  /// where groups begin.
  llvm::LogicalResult run(int64_t level, Facts carried, Facts slices, Facts shared,
                          NewFacts &produced, Checker &checker);

private:
  Groups(train::RepeatOp outer, mlir::func::FuncOp body) : outer(outer), body(body) {}
  bool read();
  mlir::Attribute numbers(bool isReverse);
  /// The carried values of a loop that begins with checkpoints, before the iteration, and what must
  /// follow them.
  llvm::LogicalResult resume(train::RepeatOp loop, int64_t level, Facts stacks, NewFacts &before,
                             llvm::SmallVectorImpl<const Expression *> &after,
                             Checker &checker);

  train::RepeatOp outer, main;
  mlir::func::FuncOp body;
  int64_t groups = 0, size = 0;
  std::set<unsigned> checkpoints;
};

} // namespace meshwright::certify

#endif // MESHWRIGHT_CERTIFY_GROUPS_H
