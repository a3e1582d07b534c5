//===- MyPasses.h - what this plugin has ------------------------------------===//
#ifndef MYPASSES_H
#define MYPASSES_H

#include "mlir/Pass/Pass.h"

#include <memory>

/// `my-merge-scales`: one multiplication by a constant in place of two.
std::unique_ptr<mlir::Pass> createMergeScales();

/// `my-seed-tables`: shards tables of embeddings by rows.
std::unique_ptr<mlir::Pass> createSeedTables();

namespace meshwright::train {
struct Optimizer;
}
/// `--optimizer signum`.
extern const meshwright::train::Optimizer signum;

#endif // MYPASSES_H
