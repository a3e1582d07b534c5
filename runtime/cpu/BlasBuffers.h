//===- BlasBuffers.h - what OpenBLAS multiplies in ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A product of OpenBLAS packs its factors into a buffer, which is allocated when more
// products are under way than ever before, and kept. Where there is no memory for one,
// OpenBLAS tries for ever. So ranks take all of them when they start.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_BLASBUFFERS_H
#define MESHWRIGHT_RUNTIME_CPU_BLASBUFFERS_H

namespace meshwright::cpu {

/// Takes the buffers of one more rank of this process, one for each of its threads. An Error
/// with the bytes that are missing if the process may not have them.
void reserveBlasBuffers(int threads);

} // namespace meshwright::cpu

#endif // MESHWRIGHT_RUNTIME_CPU_BLASBUFFERS_H
