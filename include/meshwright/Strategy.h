//===- Strategy.h - meshes and parallel strategies as the user says them ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_STRATEGY_H
#define MESHWRIGHT_STRATEGY_H

#include "Dist/Sharding.h"
#include "meshwright/OptionValues.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/Error.h"

namespace meshwright::dist {

/// Reads "data=4,tensor=2", outermost first; "" is a mesh of one device. tensor=RxC and
/// tensor=RxCxD make axes tensor.0, over which strategies shard inner indices, tensor.1, over
/// which they shard the residual stream's features, and tensor.2, over which they shard the batch
/// and store parameters once; context=RxU makes context.0, over which attention's queries are
/// sharded, and context.1, over which its heads are. An error names the axis and what is wrong with it.
llvm::Expected<Mesh> parseMesh(llvm::StringRef text);

/// "data=4,tensor=2": the parts of an axis are one again, or, with `parts`, as in
/// tensor=2x4.
std::string meshText(const Mesh &mesh, bool parts = false);

inline llvm::Error parseOption(llvm::StringRef text, Mesh &mesh) {
  return parseMesh(text).moveInto(mesh);
}
inline std::string optionText(const Mesh &mesh) { return meshText(mesh, /*parts=*/true); }

/// Whether `mesh` has the axes of `asked`, each whole or in parts.
bool isRefinement(const Mesh &mesh, const Mesh &asked);

/// The axes that divide the batch, those with one device left out: replica, data and the third
/// part of tensor=RxCxD in mesh order, and expert, which is always the innermost of them.
Axes batchAxes(const Mesh &mesh);

/// The axis `expert`, if it has several devices: it divides experts where there are any, and
/// the batch elsewhere.
Axes expertAxes(const Mesh &mesh);

/// The number of parts into which the mesh divides a batch.
int64_t batchParts(const Mesh &mesh);

/// The axes that some seed of the program names.
llvm::SmallDenseSet<llvm::StringRef> seededAxes(mlir::ModuleOp module);

} // namespace meshwright::dist

MESHWRIGHT_PASS_OPTION(::meshwright::dist::Mesh)

#endif // MESHWRIGHT_STRATEGY_H
