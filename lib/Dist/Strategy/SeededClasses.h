//===- SeededClasses.h - into how many parts seeds shard each index ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_SEEDEDCLASSES_H
#define MESHWRIGHT_LIB_DIST_SEEDEDCLASSES_H

#include "Dist/Strategy/IndexClasses.h"

namespace meshwright::dist {

/// For each class that seeds shard, the number of parts into which it must divide
/// for all of them. An axis goes to the major atom of a dimension until that is
/// used up, then to the next.
llvm::MapVector<unsigned, int64_t> seededClasses(mlir::ModuleOp module, const Mesh &mesh,
                                                 const IndexClasses &classes);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_SEEDEDCLASSES_H
