//===- DecoderVariables.h - names of what a decoder keeps ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_DECODERVARIABLES_H
#define MESHWRIGHT_RUNTIME_DECODERVARIABLES_H

namespace meshwright::plan {

/// Of a decoder's plan, beside `cachePrefix`: how names of variables begin that hold states of recurrences and the last
/// inputs of convolutions, and what is computed once of a source.
inline constexpr char statePrefix[] = "state.", sourcePrefix[] = "source.";

} // namespace meshwright::plan

#endif // MESHWRIGHT_RUNTIME_DECODERVARIABLES_H
