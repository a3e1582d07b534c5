//===- Passes.h - the passes of floor 2 -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_PASSES_H
#define MESHWRIGHT_LIB_DIST_PASSES_H

#include "meshwright/Cost/CostTable.h"
#include "Dist/Dist.h"
#include "meshwright/PipelineSchedule.h"
#include "meshwright/RematPolicy.h"
#include "meshwright/PhasePass.h"
#include "meshwright/Strategy.h"

namespace meshwright::dist {
#define GEN_PASS_DECL
#include "Dist/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_PASSES_H
