//===- StagedPass.td - passes that know their stage --------*- tablegen -*-===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_STAGEDPASS_TD
#define MESHWRIGHT_STAGEDPASS_TD

include "mlir/Pass/PassBase.td"

/// A pass over modules on the way to `stage`; it refuses IR that is past it.
class StagedPass<string argument, string stage>
    : PassBase<argument, "::meshwright::StagedPass<::meshwright::Stage::" # stage # ">">;

#endif // MESHWRIGHT_STAGEDPASS_TD
