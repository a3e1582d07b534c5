//===- Spans.h - what the GPU did, for traces -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_SPANS_H
#define MESHWRIGHT_RUNTIME_CUDA_SPANS_H

#include "common/Trace.h"
#include "cuda/Libraries.h"

#include <vector>

namespace meshwright::cuda {

/// The times between events on a stream, one pair for each span of the program.
class Spans {
public:
  explicit Spans(CUstream stream) : stream(stream) {}
  ~Spans();
  Spans(const Spans &) = delete;
  Spans &operator=(const Spans &) = delete;

  void begin();
  void end(Trace &trace, const Trace::Span &span);
  /// Adds what has ended to the trace. The stream has done everything.
  void collect();

private:
  struct Done {
    Trace::Span span;
    CUevent begin, end;
  };
  CUevent record();

  CUstream stream;
  Trace *trace = nullptr;
  std::vector<CUevent> unused, opened;
  std::vector<Done> done;
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_SPANS_H
