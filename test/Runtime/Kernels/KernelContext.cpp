//===- KernelContext.cpp - what kernels ask of the rank that runs them -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Reference.h"

int mw_context_threads(const MwContext *context) { return context->threads; }
