//===- Spans.h - what the GPU did, for traces -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_SPANS_H
#define MESHWRIGHT_RUNTIME_CUDA_SPANS_H

#include "common/monitor/Trace.h"
#include "cuda/Libraries.h"

#include <vector>

namespace meshwright::cuda {

/// The times between events on streams, one pair for each span of the program.
class Spans {
public:
  Spans() = default;
  ~Spans();
  Spans(const Spans &) = delete;
  Spans &operator=(const Spans &) = delete;

  void begin(CUstream stream);
  /// The span gets the times between this and the latest begin on the same stream.
  void end(CUstream stream, Trace &trace, const Trace::Span &span);
  /// Adds what has ended to the trace. `stream` has done everything; others may be at work.
  void collect(CUstream stream);

private:
  struct Done {
    Trace::Span span;
    CUevent begin, end;
  };
  CUevent record(CUstream stream);

  Trace *trace = nullptr;
  std::vector<CUevent> unused, opened;
  std::vector<Done> done;
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_SPANS_H
