//===- IndexClasses.h - which dimensions are one index ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Through a whole program many dimensions of many tensors are one and the same
// index: the rows of the queries' weights, the queries and their gradients all run
// over attention heads. Factor tables, calls, loops and variables say which.
//
// A dimension is a list of atoms, major first: the rows of the queries' weights
// are (groups, heads of a group, elements of a head). A reshape that splits a
// dimension refines its atom everywhere. Atoms that are one index form a class.
// Where two refinements contradict each other (6 as (2, 3) and as (3, 2)) the
// second link is left out. Dimensions of size 1 have no atoms.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_INDEXCLASSES_H
#define MESHWRIGHT_LIB_DIST_INDEXCLASSES_H

#include "Dist/Propagation/ValueBinding.h"

#include "llvm/ADT/MapVector.h"

namespace meshwright::dist {

/// The classes without IR: lists of atoms that are split and joined.
class Atoms {
public:
  using List = llvm::SmallVector<unsigned, 2>;

  /// A new index of `size` elements, as one atom or, when 1, none.
  List make(int64_t size);
  /// Joins two lists into one index, splitting atoms as needed. Returns false and changes
  /// nothing if their splits contradict each other.
  bool join(llvm::ArrayRef<unsigned> a, llvm::ArrayRef<unsigned> b);
  /// The list as the finest atoms known now, each given by the leader of its class.
  List resolve(llvm::ArrayRef<unsigned> list) const;
  int64_t size(unsigned atom) const { return atoms[atom].size; }

private:
  struct Atom {
    int64_t size;
    /// The atom it was joined to, or itself.
    unsigned leader;
    /// What a leader was split into, if it was.
    List parts;
  };
  unsigned leader(unsigned atom) const;
  void resolve(unsigned atom, List &to) const;
  llvm::SmallVector<Atom, 0> atoms;
};

struct IndexClass {
  int64_t size = 0;
  /// The dimensions of parameters that contain the class.
  llvm::SmallVector<std::pair<train::VariableOp, unsigned>> parameters;
  /// Ops that need it whole, with the factor; or a repeat that takes slices along it,
  /// with -1.
  llvm::SmallVector<std::pair<mlir::Operation *, int>> neededWhole;
  /// Whether it is a dimension of an integer input: batch, sequence, microbatches.
  bool inIntegerInputs = false;
  /// Whether it is the rank of an adapter: an index of adapters' parameters alone.
  bool isRank() const;
};

class IndexClasses {
public:
  /// Reports calls that cannot be followed.
  static mlir::FailureOr<IndexClasses> of(mlir::ModuleOp module);

  /// The classes of one dimension, major first.
  Atoms::List of(mlir::Value value, unsigned dim) const;
  Atoms::List of(train::VariableOp variable, unsigned dim) const;
  const IndexClass &operator[](unsigned id) const { return classes.find(id)->second; }
  /// All classes, in the order in which the program has them.
  const llvm::MapVector<unsigned, IndexClass> &all() const { return classes; }

private:
  void build(mlir::ModuleOp module, const Structure &structure);
  const llvm::SmallVector<Atoms::List> &dimsOf(mlir::Value value);
  void joinDims(llvm::ArrayRef<Atoms::List> a, llvm::ArrayRef<Atoms::List> b);

  Atoms atoms;
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<Atoms::List>> ofVariable;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Atoms::List>> ofValue;
  llvm::MapVector<unsigned, IndexClass> classes;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_INDEXCLASSES_H
