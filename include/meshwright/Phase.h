//===- Phase.h - phases of IR ------------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PHASE_H
#define MESHWRIGHT_PHASE_H

#include "llvm/ADT/StringRef.h"

namespace meshwright {

/// Where IR can be taken out and put in again, in the order of the passes.
enum class Phase { train, step, dist, local, stages, schedule, exec };

inline constexpr llvm::StringLiteral phaseAttr = "meshwright.phase";
/// The pass after which --dump-ir wrote the IR. It is between phases then, so that no compile can
/// start from it.
inline constexpr llvm::StringLiteral dumpedAfterAttr = "meshwright.dumped_after";
inline constexpr llvm::StringLiteral phaseNames[] = {"train",  "step",     "dist", "local",
                                                     "stages", "schedule", "exec"};

} // namespace meshwright

#endif // MESHWRIGHT_PHASE_H
