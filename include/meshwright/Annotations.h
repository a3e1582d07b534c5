//===- Annotations.h - what analyses find, as attributes --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Passes of meshwright-opt alone: each runs an analysis and writes into the IR what it finds, for
// readers and for FileCheck. No other pass reads it.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_ANNOTATIONS_H
#define MESHWRIGHT_ANNOTATIONS_H

namespace meshwright {

void registerAnnotateIndexClasses();
void registerAnnotateMemory();

} // namespace meshwright

#endif // MESHWRIGHT_ANNOTATIONS_H
