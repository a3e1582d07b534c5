//===- Plugin.cpp - what --load-pass-plugin finds ----------------------------===//
#include "MyPasses.h"

#include "meshwright/Plugin.h"

static void registerPasses() {
  mlir::registerPass(createMergeScales);
  mlir::registerPass(createSeedTables);
}

MESHWRIGHT_PLUGIN("MyPasses", registerPasses)
