//===- Plugin.cpp - what --load-pass-plugin finds ----------------------------===//
#include "MyPasses.h"

#include "Train/Optimizer.h"
#include "meshwright/Plugin.h"

static void registerAll() {
  mlir::registerPass(createMergeScales);
  mlir::registerPass(createSeedTables);
  meshwright::train::registerOptimizer(signum);
}

MESHWRIGHT_PLUGIN("MyPasses", registerAll)
