//===- Loops.h - what the iterations of a loop compute -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Bodies of loops have levels: how many loops are around the loop. In a body at level l,
// argument(l, i) is carried value i before the iteration, and each(l, stack) what the
// iteration takes of a stack. So an expression of a body is one of the iteration, whichever
// it is.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CERTIFY_LOOPS_H
#define MESHWRIGHT_CERTIFY_LOOPS_H

#include "Certify/Checker.h"

namespace meshwright::certify {

inline constexpr llvm::StringLiteral loopName = "loop", stackName = "stack", eachName = "each",
                                     argumentName = "argument", iterationName = "iteration",
                                     firstName = "first iteration";

/// The level of a loop's body and the number of its iterations.
std::pair<int64_t, int64_t> bodyOf(const Expression *loop);

/// What a loop stacks of `value`, one of its body's. Its carried values at the iterations are stacks of
/// their own: with slices of those, any loop makes the same stack, so that a loop may be two loops.
const Expression *stackOf(const Expression *loop, const Expression *value,
                          llvm::ArrayRef<int64_t> shape, Checker &checker);

/// A value of a loop's body, as an expression of the iteration with the same number of any loop.
const Expression *inIteration(const Expression *loop, const Expression *value, Checker &checker);

/// The part that iteration i, at level `level`, takes of a stack.
const Expression *sliceOf(const Expression *stack, int64_t level, int64_t count,
                          llvm::ArrayRef<int64_t> shape, mlir::Location location,
                          Checker &checker);

/// The same elements in row-major order, in another shape.
const Expression *reshaped(const Expression *x, llvm::ArrayRef<int64_t> shape, Checker &checker);

/// Whether an expression differs between iterations of the loop at `level`.
bool dependsOn(int64_t level, const Expression *x);

} // namespace meshwright::certify

#endif // MESHWRIGHT_CERTIFY_LOOPS_H
