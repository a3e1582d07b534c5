//===- Progress.cpp - which op of a program a GPU is at ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Progress.h"

#include "common/monitor/Error.h"

#include <utility>

namespace meshwright::cuda {

Progress::Progress(int interval, RankStatus &status) : interval(interval), status(status) {
  void *memory = nullptr;
  MW_CUDA(cuMemHostAlloc, &memory, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP);
  word = static_cast<volatile uint32_t *>(memory);
  *word = 0;
  MW_CUDA(cuMemHostGetDevicePointer, &wordOnGpu, memory, 0);
  status.setDevice([this] { return location(); });
}

Progress::~Progress() {
  status.setDevice(nullptr);
  Driver::load().cuMemFreeHost(const_cast<uint32_t *>(word));
}

void Progress::mark(CUstream stream, const char *name, const char *location) {
  if (ops++ % interval)
    return;
  uint32_t number = 0;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto [entry, isNew] = numbers.try_emplace({name, location}, uint32_t(known.size()));
    if (isNew)
      known.push_back(entry->first);
    number = entry->second;
  }
  // Any graph takes it, as not every driver's takes writes that are no work of a kernel.
  MW_CUDA(cuMemsetD32Async, wordOnGpu, ++marks << 16 | (number + 1) % (1 << 16), 1, stream);
}

bool Progress::moved() {
  uint32_t now = *word;
  return std::exchange(seen, now) != now;
}

std::string Progress::location() const {
  uint32_t number = *word % (1 << 16);
  std::lock_guard<std::mutex> lock(mutex);
  if (number == 0 || number > known.size())
    return "";
  auto [name, location] = known[size_t(number - 1)];
  std::string op = text(name, " (at ", location, ")");
  return interval == 1 ? text("the GPU is at ", op)
                       : text("the GPU is at ", op, " or one of the ", interval - 1,
                              " ops behind it; MESHWRIGHT_SYNCHRONOUS=1 finds out which");
}

} // namespace meshwright::cuda
