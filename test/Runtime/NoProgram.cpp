//===- NoProgram.cpp - the names of a program ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Files of the runtime call what the compiler writes. Tests that run no program link these instead.
//
//===----------------------------------------------------------------------===//
#include "meshwright/runtime/ABI.h"

#include <cstdlib>

extern "C" {
const char meshwright_plan[] = "";
const uint64_t meshwright_plan_size = 0;
void meshwright_step(MwContext *, char *) { abort(); }
void meshwright_eval(MwContext *, char *) { abort(); }
}
