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
template <typename Stored, typename Accumulated, typename Load, typename Store>
static void reduceAs(Reduction reduction, const void *const *inputs, int ways, void *output,
                     int64_t count, Load load, Store store) {
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
    return reduceAs<float, float>(reduction, inputs, ways, output, count, same<float>, same<float>);
  case ElementType::F64:
    return reduceAs<double, double>(reduction, inputs, ways, output, count, same<double>,
                                    same<double>);
  case ElementType::BF16:
    return reduceAs<uint16_t, float>(reduction, inputs, ways, output, count, bf16ToFloat,
                                     floatToBf16);
  case ElementType::F16:
    return reduceAs<uint16_t, float>(reduction, inputs, ways, output, count, f16ToFloat,
                                     floatToF16);
  case ElementType::I32:
    if (reduction == Reduction::Max)
      return reduceAs<int32_t, int32_t>(reduction, inputs, ways, output, count, same<int32_t>,
                                        same<int32_t>);
    // Unsigned, because signed overflow is undefined.
    return reduceAs<uint32_t, uint32_t>(reduction, inputs, ways, output, count, same<uint32_t>,
                                        same<uint32_t>);
  case ElementType::I16:
    fail("halves of numbers are not reduced");
  }
}
