//===- Passes.h - the passes of floor 1 -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_TRAIN_PASSES_H
#define MESHWRIGHT_LIB_TRAIN_PASSES_H

#include "Train/Optimizer.h"
#include "Train/Train.h"
#include "meshwright/Adapters.h"
#include "meshwright/GradientCompression.h"
#include "meshwright/PhasePass.h"
#include "meshwright/Precision.h"

namespace meshwright::train {
#define GEN_PASS_DECL
#include "Train/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "Train/Passes.h.inc"
} // namespace meshwright::train

#endif // MESHWRIGHT_LIB_TRAIN_PASSES_H
