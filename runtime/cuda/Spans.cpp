//===- Spans.cpp - what the GPU did, for traces ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Spans.h"

namespace meshwright::cuda {

Spans::~Spans() {
  for (const Done &one : done)
    unused.insert(unused.end(), {one.begin, one.end});
  unused.insert(unused.end(), opened.begin(), opened.end());
  for (CUevent event : unused)
    Driver::load().cuEventDestroy(event);
}

CUevent Spans::record(CUstream stream) {
  CUevent event = nullptr;
  if (unused.empty()) {
    MW_CUDA(cuEventCreate, &event, CU_EVENT_DEFAULT); // With its time.
  } else {
    event = unused.back();
    unused.pop_back();
  }
  MW_CUDA(cuEventRecord, event, stream);
  return event;
}

void Spans::begin(CUstream stream) { opened.push_back(record(stream)); }

void Spans::end(CUstream stream, Trace &of, const Trace::Span &span) {
  trace = &of;
  done.push_back({span, opened.back(), record(stream)});
  opened.pop_back();
}

// One event more tells how the GPU's clock stands to the host's.
void Spans::collect(CUstream stream) {
  if (done.empty())
    return;
  CUevent last = record(stream);
  MW_CUDA(cuEventSynchronize, last);
  int64_t now = Trace::now();
  auto timeOf = [&](CUevent event) {
    float before = 0; // milliseconds
    MW_CUDA(cuEventElapsedTime, &before, event, last);
    return now - int64_t(double(before) * 1e6);
  };
  int row = Trace::row;
  std::vector<Done> later;
  for (const Done &one : done) {
    // In the middle of a run collectives may be started that nothing has waited for yet.
    CUresult state = Driver::load().cuEventQuery(one.end);
    if (state == CUDA_ERROR_NOT_READY) {
      later.push_back(one);
      continue;
    }
    check(state, "cuEventQuery");
    Trace::row = one.span.row;
    trace->add(one.span.name, one.span.category, timeOf(one.begin), timeOf(one.end), one.span.index,
               one.span.bytes, one.span.location);
    unused.insert(unused.end(), {one.begin, one.end});
  }
  Trace::row = row;
  unused.push_back(last);
  done = std::move(later);
}

} // namespace meshwright::cuda
