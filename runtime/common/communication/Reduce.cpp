//===- Reduce.cpp - element-wise reduction in a fixed order ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/communication/Reduce.h"

#include "common/monitor/Error.h"

#include <type_traits>

using namespace meshwright;

// The accumulator lives on the stack: `output` may alias an input that a later
// step still reads.
// `load` and `store` are part of the type, so that they are inlined and loops are vectorized.
template <typename Stored, typename Accumulated, auto load, auto store>
static void reduceAs(Reduction reduction, const void *const *inputs, int ways, void *output,
                     int64_t count) {
  Accumulated sum[reduceBlockElements];
  const Stored *first = static_cast<const Stored *>(inputs[0]);
  for (int64_t i = 0; i < count; ++i)
    sum[i] = load(first[i]);
  for (int way = 1; way < ways; ++way) {
    const Stored *next = static_cast<const Stored *>(inputs[way]);
    if (reduction == Reduction::Sum) {
      for (int64_t i = 0; i < count; ++i)
        sum[i] = sum[i] + load(next[i]);
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      Accumulated value = load(next[i]);
      sum[i] = sum[i] < value || value != value ? value : sum[i];
    }
  }
  Stored *result = static_cast<Stored *>(output);
  for (int64_t i = 0; i < count; ++i)
    result[i] = store(sum[i]);
}

template <typename T> static T same(T value) { return value; }

void meshwright::reduceBlock(ElementType type, Reduction reduction, const void *const *inputs,
                             int ways, void *output, int64_t count) {
  switch (type) {
  case ElementType::F32:
    return reduceAs<float, float, same<float>, same<float>>(reduction, inputs, ways, output, count);
  case ElementType::F64:
    return reduceAs<double, double, same<double>, same<double>>(reduction, inputs, ways, output,
                                                                count);
  case ElementType::BF16:
    return reduceAs<uint16_t, float, bf16ToFloat, floatToBf16>(reduction, inputs, ways, output,
                                                               count);
  case ElementType::F16:
    return reduceAs<uint16_t, float, f16ToFloat, floatToF16>(reduction, inputs, ways, output,
                                                             count);
  case ElementType::I32:
    if (reduction == Reduction::Max)
      return reduceAs<int32_t, int32_t, same<int32_t>, same<int32_t>>(reduction, inputs, ways,
                                                                      output, count);
    // Unsigned, because signed overflow is undefined.
    return reduceAs<uint32_t, uint32_t, same<uint32_t>, same<uint32_t>>(reduction, inputs, ways,
                                                                        output, count);
  case ElementType::I16:
    fail("halves of numbers are not reduced");
  case ElementType::I8:
    fail("codes of 8 bits are not reduced");
  case ElementType::F8E4M3:
  case ElementType::F8E5M2:
    fail("numbers of 8 bits are not reduced");
  }
}
