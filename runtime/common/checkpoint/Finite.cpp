//===- Finite.cpp - looking for values that are no numbers ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/Finite.h"

#include "common/monitor/Error.h"
#include "common/plan/Sharding.h"

#include <algorithm>
#include <atomic>
#include <cstring>

using namespace meshwright;

/// Whether all exponents of `count` numbers, whose bits are `Bits`, are below `exponent`, that
/// of infinities and of what is no number.
template <typename Bits> static bool areFinite(const char *data, int64_t count, Bits exponent) {
  Bits found = 0;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * int64_t(sizeof(Bits)), sizeof(Bits));
    found |= Bits((bits & exponent) == exponent);
  }
  return !found;
}

bool meshwright::isFinite(ElementType type, const char *data, int64_t count) {
  switch (type) {
  case ElementType::F32:
    return areFinite<uint32_t>(data, count, 0x7f800000);
  case ElementType::F64:
    return areFinite<uint64_t>(data, count, 0x7ff0000000000000);
  case ElementType::BF16:
    return areFinite<uint16_t>(data, count, 0x7f80);
  case ElementType::F16:
    return areFinite<uint16_t>(data, count, 0x7c00);
  case ElementType::F8E4M3:
    return std::none_of(data, data + count, [](char c) { return (uint8_t(c) & 0x7f) == 0x7f; });
  case ElementType::F8E5M2:
    return std::none_of(data, data + count, [](char c) { return (uint8_t(c) & 0x7c) == 0x7c; });
  case ElementType::I16:
  case ElementType::I8:
  case ElementType::I32:
    return true;
  }
  __builtin_unreachable();
}

void meshwright::checkFinite(const Plan &plan, const VariableAddresses &addresses, int64_t rank,
                             int threads) {
  constexpr int64_t block = 1 << 16;
  for (const Variable &variable : plan.variables) {
    if (variable.role == Variable::Tokens)
      continue; // Not saved; they tell of routers that failed.
    int64_t elements = 1;
    for (int64_t size : variable.localShape)
      elements *= size;
    std::atomic<int64_t> first{elements};
#pragma omp parallel for num_threads(threads) if (elements > 8 * block)
    for (int64_t begin = 0; begin < elements; begin += block) {
      const char *data = addresses.of(variable) + begin * bytesOf(variable.type);
      if (isFinite(variable.type, data, std::min(block, elements - begin)))
        continue;
      for (int64_t before = first; begin < before && !first.compare_exchange_weak(before, begin);)
        ;
    }
    if (first == elements)
      continue;
    int64_t bad = first;
    while (isFinite(variable.type, addresses.of(variable) + bad * bytesOf(variable.type), 1))
      ++bad;
    Box box = shardOf(plan, variable, rank);
    int64_t number = 0;
    for (int64_t candidate : tensorsIn(variable, box))
      if (tensorOffset(variable, box, candidate) <= bad)
        number = candidate;
    fail("tensor ", storageName(variable, number), variable.isWeight() ? "" : " of the optimizer",
         " has values on rank ", rank,
         " that are infinite or no numbers: training has diverged; go on from an earlier "
         "checkpoint with a smaller --lr, a longer --warmup or a smaller --grad-clip");
  }
}
