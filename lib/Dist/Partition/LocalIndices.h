//===- LocalIndices.h - ids and indices of a device's part ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_LOCALINDICES_H
#define MESHWRIGHT_LIB_DIST_LOCALINDICES_H

#include "Dist/Dist.h"

namespace meshwright::dist {

/// Prepares a module whose types still carry shardings for becoming one device's:
/// ids that point into a sharded dimension are shifted to count from where the
/// device's part begins, and ops that depend on global indices
/// (`IndexedOpInterface`) get the index at which it does.
void makeIndicesLocal(mlir::ModuleOp module, MeshOp mesh);

/// Lets ops that repeat sizes in attributes do so again, after types have changed.
void updateSizes(mlir::ModuleOp module);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_LOCALINDICES_H
