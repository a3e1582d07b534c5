//===- Targets.cpp - registers the targets of this build ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Codegen.h"

namespace meshwright {

#define MESHWRIGHT_TARGET(folder) void register##folder##Target();
#include "Codegen/Targets.def"
#undef MESHWRIGHT_TARGET

void registerTargets() {
#define MESHWRIGHT_TARGET(folder) register##folder##Target();
#include "Codegen/Targets.def"
#undef MESHWRIGHT_TARGET
}

} // namespace meshwright
