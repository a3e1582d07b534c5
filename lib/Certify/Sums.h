//===- Sums.h - which terms of a sum over indices devices have ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A product whose summed indices are divided over axes gives each device the term of its
// own blocks: it is partial along them. Where blocks travel, or parts of the result do, a
// device has other terms, and more than one (Summands, Parts.h). These say one as the other.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CERTIFY_SUMS_H
#define MESHWRIGHT_CERTIFY_SUMS_H

#include "Certify/IndexRule.h"

namespace meshwright::certify {

/// The terms of a sum over indices that are divided into blocks, by the position along some of their axes.
/// `summed` are of one expression.
const Expression *termOf(llvm::ArrayRef<SummedIndex> summed, llvm::ArrayRef<unsigned> along,
                         Checker &checker);

/// Says which terms along `axes` a device has of a value that is partial along some of them and has some
/// terms along the others. False, with nothing changed, if these are not known to be of one sum over
/// indices.
bool divideSum(Fact &fact, llvm::ArrayRef<unsigned> axes, Checker &checker);

/// Terms along an axis of which each device has its own alone make a value partial along it, and terms of
/// all along an axis none. A value of which devices have all terms is complete.
void joinTerms(Fact &fact, Checker &checker);

/// The terms along those axes alone along which devices have not all their own block, or `more`.
/// Along the others the value is partial as any is.
std::optional<Summands> withoutOwn(const Summands &all, llvm::ArrayRef<unsigned> more, const Mesh &mesh);

/// Makes terms of factors of a product that are partial along an axis which divides a dimension of another
/// one: each device has its own term of what it has elements of.
void divideFactors(mlir::Operation *op, llvm::MutableArrayRef<Fact> facts, Checker &checker);

/// What is linear in some terms of a sum is the same terms of its result.
llvm::LogicalResult applyToTerms(const IndexRule &rule, mlir::Operation *op,
                                 llvm::MutableArrayRef<Fact> facts, NewFacts &results, Checker &checker,
                                 mlir::Attribute attributes);

} // namespace meshwright::certify

#endif // MESHWRIGHT_CERTIFY_SUMS_H
