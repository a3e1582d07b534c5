//===- Expression.h - global values as hash-consed expressions ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// An expression says how a global tensor is computed: an op on expressions, a
// variable, an input, or what a loop makes. Equal expressions are one object, so
// that values are compared by their addresses.
//
// Loops bind by level: inside a loop at depth L, carried value i is `argument (L, i)`,
// and a slice of this iteration is `each (L)` of what is sliced. A loop inside of it
// has level L + 1. So equal loops are equal expressions.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CERTIFY_EXPRESSION_H
#define MESHWRIGHT_CERTIFY_EXPRESSION_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Types.h"
#include "llvm/ADT/FoldingSet.h"
#include "llvm/ADT/SmallVector.h"

#include <deque>

namespace meshwright::certify {

/// The extent of a dimension along which all elements are equal, as of a constant: it fits any
/// tensor that it is combined with.
inline constexpr int64_t anyExtent = -1;

using Shape = llvm::SmallVector<int64_t, 4>;

struct Expression : llvm::FoldingSetNode {
  llvm::StringRef name;       ///< of an op, or of a leaf
  mlir::Attribute attributes; ///< all else that its value depends on; may be null
  llvm::SmallVector<const Expression *, 3> operands;
  unsigned result = 0;
  mlir::Type element;
  Shape shape;
  mlir::Location location; ///< of the first op that computes it
  unsigned number = 0;     ///< in the order of creation

  explicit Expression(mlir::Location location) : location(location) {}
  void Profile(llvm::FoldingSetNodeID &id) const;
};
using Operands = llvm::ArrayRef<const Expression *>;

/// All expressions of one check.
class Expressions {
public:
  /// The expression, made anew if there is none. `name` must outlive the set.
  const Expression *get(mlir::Location location, llvm::StringRef name, mlir::Attribute attributes,
                        Operands operands, unsigned result, mlir::Type element,
                        llvm::ArrayRef<int64_t> shape);
  /// The expression if there is one.
  const Expression *find(mlir::Location location, llvm::StringRef name, mlir::Attribute attributes,
                         Operands operands, unsigned result, mlir::Type element,
                         llvm::ArrayRef<int64_t> shape);

  /// Forgets all but the first ones.
  void shrink(unsigned size);
  unsigned size() const { return storage.size(); }
  const Expression &operator[](unsigned number) const { return storage[number]; }

private:
  std::deque<Expression> storage;
  llvm::FoldingSet<Expression> set;
};

} // namespace meshwright::certify

#endif // MESHWRIGHT_CERTIFY_EXPRESSION_H
