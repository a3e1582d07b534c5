//===- Progress.cpp - which op of a program a GPU is at ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Progress.h"

#include "common/Error.h"

#include <utility>

namespace meshwright::cuda {

Progress::Progress(int interval) : interval(interval) {
  void *memory = nullptr;
  MW_CUDA(cuMemHostAlloc, &memory, sizeof(uint64_t), CU_MEMHOSTALLOC_DEVICEMAP);
  word = static_cast<volatile uint64_t *>(memory);
  *word = 0;
  MW_CUDA(cuMemHostGetDevicePointer, &wordOnGpu, memory, 0);
}

Progress::~Progress() { Driver::load().cuMemFreeHost(const_cast<uint64_t *>(word)); }

void Progress::mark(CUstream stream, const char *name, const char *location) {
  if (ops++ % interval)
    return;
  uint64_t number = 0;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto [entry, isNew] = numbers.try_emplace({name, location}, known.size());
    if (isNew)
      known.push_back(entry->first);
    number = entry->second;
  }
  ++marks;
  MW_CUDA(cuStreamWriteValue64, stream, wordOnGpu, marks << 32 | (number + 1), 0);
}

bool Progress::moved() {
  uint64_t now = *word;
  return std::exchange(seen, now) != now;
}

std::string Progress::place() const {
  uint64_t number = *word & 0xFFFFFFFFu;
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
