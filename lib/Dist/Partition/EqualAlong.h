//===- EqualAlong.h - along which axes devices hold the same value ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After partitioning types do not say any more where a value is. What devices along an
// axis must have alike follows from the program: it comes from variables and inputs
// that are not cut over the axis, through ops that do the same everywhere, or out of
// a collective along it.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_EQUALALONG_H
#define MESHWRIGHT_LIB_DIST_EQUALALONG_H

#include "Dist/Dist.h"

#include "llvm/ADT/DenseMap.h"

namespace meshwright::dist {

class EqualAlong {
public:
  explicit EqualAlong(MeshOp mesh) : mesh(mesh.getMesh()) {}

  /// Looks at `function` and the functions that its repeats call.
  void add(mlir::func::FuncOp function);

  /// The axes with more than one device along which all hold the same `value`, which is
  /// of `function`'s body or, if that is called once only, of a callee's.
  Axes of(mlir::Value value) const;

private:
  /// Axes as bits: those along which devices may differ.
  using Mask = uint64_t;
  static constexpr Mask unknown = ~Mask(0);

  void walk(mlir::Block &block);
  void visit(mlir::Operation *op);
  void visit(train::RepeatOp repeat);
  /// Along all axes where nothing is known.
  Mask maskOf(mlir::Value value) const;
  Mask cutBy(mlir::Attribute globalType) const;
  /// A value may come by several ways; returns whether that is news.
  bool join(mlir::Value value, Mask mask);

  Mesh mesh;
  llvm::DenseMap<mlir::Value, Mask> differ;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_EQUALALONG_H
