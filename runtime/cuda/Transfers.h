//===- Transfers.h - copies to and from offload spaces --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A stream for each copy engine, so that they run at once and beside the stream that
// computes; events tie them together.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_TRANSFERS_H
#define MESHWRIGHT_RUNTIME_CUDA_TRANSFERS_H

#include "cuda/Communication.h"

#include <map>

namespace meshwright::cuda {

class Transfers {
public:
  explicit Transfers(CUstream compute);
  ~Transfers();
  Transfers(const Transfers &) = delete;
  Transfers &operator=(const Transfers &) = delete;

  /// A program begins: nothing has been started.
  void beginRun();
  /// Copies after all that is computed so far and after what the engine copies. What is
  /// computed next waits for it, unless it is only started, as number `start`.
  void copy(void *to, const void *from, size_t bytes, CopyEngine engine, int32_t start);
  /// What is computed next waits for the copy that was started as number `start`; false if
  /// there is none that nothing has waited for.
  bool wait(int32_t start);

private:
  struct Start {
    Event done;
    bool pending = false;
  };

  CUstream compute, streams[copyEngines] = {};
  Event computed, copied;
  std::map<int32_t, Start> started;
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_TRANSFERS_H
