//===- EqualAlong.h - along which axes devices hold the same value ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After partitioning, types no longer say where a value is. The program implies which
// values are replicated over an axis: those that ops compute, alike on all devices, from
// variables and inputs that are not sharded over the axis, and results of collectives along
// the axis.
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

  /// The axes with more than one device over which `value` is replicated. `value` belongs to
  /// the body of `function` or, if there is only one call of it, to that of a callee.
  Axes of(mlir::Value value) const;

private:
  /// The axes along which devices may hold different values, as bits.
  using Mask = uint64_t;
  static constexpr Mask unknown = ~Mask(0);

  void walk(mlir::Block &block);
  void visit(mlir::Operation *op);
  void visit(train::RepeatOp repeat);
  /// All axes for values of which nothing is known.
  Mask maskOf(mlir::Value value) const;
  Mask cutBy(mlir::Attribute globalType) const;
  /// Adds axes to those of a value, which may have several definitions; returns whether any
  /// is new.
  bool join(mlir::Value value, Mask mask);

  Mesh mesh;
  llvm::DenseMap<mlir::Value, Mask> differ;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_EQUALALONG_H
