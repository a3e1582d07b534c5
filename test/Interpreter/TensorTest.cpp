//===- TensorTest.cpp - the interpreter's values ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Tensor.h"
#include "common/plan/ElementType.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

TEST(Tensor, RoundsToNearestEven) {
  MLIRContext context;
  Builder b(&context);
  FloatType bf16 = b.getBF16Type(), f16 = b.getF16Type(), f32 = b.getF32Type();
  EXPECT_EQ(roundTo(f32, 1 + 0x1p-24), 1);
  EXPECT_EQ(roundTo(f32, 1 + 0x3p-24), 1 + 0x1p-22);
  EXPECT_EQ(roundTo(bf16, 1 + 0x1p-8), 1);
  EXPECT_EQ(roundTo(bf16, 1 + 0x3p-8), 1 + 0x1p-6);
  // Rounding to f32 first would make this a tie, and 1 of it.
  EXPECT_EQ(roundTo(bf16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(roundTo(f16, 65519), 65504);
  EXPECT_EQ(roundTo(f16, 65520), INFINITY);
  EXPECT_EQ(roundTo(f16, -1e6), -INFINITY);
  EXPECT_EQ(roundTo(f16, 0x1.8p-24), 0x1p-23); // Subnormal tie.
  EXPECT_EQ(roundTo(f16, 0x1p-26), 0);
  EXPECT_TRUE(std::isnan(roundTo(bf16, NAN)));
}

/// Numbers that f32 has are rounded as the runtime's bit operations round them.
TEST(Tensor, RoundsLikeTheRuntime) {
  MLIRContext context;
  Builder b(&context);
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    auto bits = uint32_t(random());
    float value = bitsAs<float>(bits);
    if (std::isnan(value))
      continue;
    EXPECT_EQ(roundTo(b.getBF16Type(), value), bf16ToFloat(floatToBf16(value))) << value;
    EXPECT_EQ(roundTo(b.getF16Type(), value), f16ToFloat(floatToF16(value))) << value;
  }
}

/// Types of 8 bits, of f64 in one step, as LLVM rounds them.
TEST(Tensor, RoundsTo8Bits) {
  MLIRContext context;
  Builder b(&context);
  EXPECT_EQ(roundTo(b.getType<Float8E4M3FNType>(), 464), 448);
  EXPECT_TRUE(std::isnan(roundTo(b.getType<Float8E4M3FNType>(), 465)));
  EXPECT_EQ(roundTo(b.getType<Float8E5M2Type>(), 61440), INFINITY);
  EXPECT_EQ(roundTo(b.getType<Float8E5M2Type>(), -61439), -57344);
  for (FloatType type : {FloatType(b.getType<Float8E4M3FNType>()), FloatType(b.getType<Float8E5M2Type>())}) {
    std::mt19937_64 random(8);
    for (int i = 0; i < 200000; ++i) {
      // From far below the least number to beyond the largest; some with few digits, among which are ties.
      double digits = double(1 + random() % (i % 2 ? 63 : uint64_t(1) << 52));
      double value = std::ldexp(i % 4 < 2 ? digits : -digits, int(random() % 45) - 26 - std::ilogb(digits));
      llvm::APFloat number(value);
      bool lossy;
      number.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lossy);
      double want = number.convertToDouble(), have = roundTo(type, value);
      ASSERT_TRUE(std::isnan(want) ? std::isnan(have) : have == want) << value << " becomes " << have << ", not " << want;
    }
  }
}

TEST(Tensor, CopiesShareUntilWritten) {
  MLIRContext context;
  Tensor a(Float32Type::get(&context), {2, 3});
  a.writeFloats()[0] = 5;
  Tensor copy = a;
  EXPECT_EQ(copy.floats().data(), a.floats().data());
  copy.writeFloats()[0] = 6;
  EXPECT_EQ(a.floats()[0], 5);
  EXPECT_EQ(copy.floats()[0], 6);
}

TEST(Tensor, BoxesReachOverTheEdge) {
  MLIRContext context;
  Tensor a(IntegerType::get(&context, 32), {3, 4});
  for (int i = 0; i < 12; ++i)
    a.writeIntegers()[i] = i + 1;
  Tensor box = a.box({2, 2}, {2, 3});
  EXPECT_EQ(box.integers(), ArrayRef<int64_t>({11, 12, 0, 0, 0, 0}));
  Tensor back(a.elementType(), a.shape());
  back.setBox({2, 2}, box);
  EXPECT_EQ(back.integers(), ArrayRef<int64_t>({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11, 12}));
  EXPECT_EQ(a.slice(1).integers(), ArrayRef<int64_t>({5, 6, 7, 8}));
}
