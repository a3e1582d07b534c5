//===- Transfers.cpp - copies to and from offload spaces ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Transfers.h"

#include "common/monitor/Error.h"
#include "cuda/Gpu.h"

using namespace meshwright;

namespace meshwright::cuda {

Transfers::Transfers(CUstream compute) : compute(compute) {
  for (CUstream &stream : streams)
    MW_CUDA(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
}

// The process ends with the run: nothing here may fail any more.
Transfers::~Transfers() {
  for (CUstream stream : streams)
    Driver::load().cuStreamDestroy(stream);
}

void Transfers::beginRun() {
  for (auto &[number, start] : started)
    start.pending = false;
}

void Transfers::copy(void *to, const void *from, size_t bytes, CopyEngine engine, int32_t start) {
  CUstream stream = streams[engine.number()];
  computed.record(compute);
  computed.holdUp(stream);
  if (engine.stores)
    MW_CUDA(cuMemcpyDtoHAsync, to, CUdeviceptr(from), bytes, stream);
  else
    MW_CUDA(cuMemcpyHtoDAsync, CUdeviceptr(to), from, bytes, stream);
  if (start < 0) {
    copied.record(stream);
    copied.holdUp(compute);
    return;
  }
  Start &entry = started[start];
  entry.done.record(stream);
  entry.pending = true;
}

bool Transfers::wait(int32_t start) {
  auto found = started.find(start);
  if (found == started.end() || !found->second.pending)
    return false;
  found->second.done.holdUp(compute);
  found->second.pending = false;
  return true;
}

} // namespace meshwright::cuda

void mw_transfer(MwContext *context, void *to, const void *from, int64_t bytes, int32_t number,
                 int32_t start) {
  CopyEngine engine = CopyEngine::numbered(number);
  auto what = [&] {
    return text("the copy of ", bytes, " bytes ", engine.stores ? "to " : "from ",
                spaceRow(engine.space).text);
  };
  cuda::Gpu::enqueue(context, what, [&](cuda::Gpu &gpu) {
    context->copiedBytes[size_t(number)] += bytes;
    gpu.transfers->copy(to, from, size_t(bytes), engine, start);
  });
}
