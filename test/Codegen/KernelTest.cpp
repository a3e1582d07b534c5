//===- KernelTest.cpp - generated kernels against the reference -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "KernelCases.h"
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace meshwright;
using namespace meshwright::test;

static void check(const Case &c, Sizes sizes, int64_t chunks, llvm::StringRef cpu = "",
                  llvm::StringRef element = "f32") {
  SCOPED_TRACE(testing::Message() << c.name << " " << sizes.b << "x" << sizes.s << "x" << sizes.d
                                  << " in " << chunks << " chunks " << cpu.str());
  std::string text = instantiate(c, sizes, element);
  KernelRunner runner(text, chunks, cpu);
  ASSERT_TRUE(runner.valid()) << text;
  auto arguments = runner.makeArguments(7, c.ids);
  makePositive(runner, arguments);
  auto results = runner.run(arguments);
  auto want = runner.reference(arguments);
  for (unsigned i = 0; i < results.size(); ++i) {
    expectClose(results[i], want[i], c.tolerance, "result " + std::to_string(i));
    for (int64_t k = 0; k < 16; ++k)
      ASSERT_EQ(reinterpret_cast<unsigned char *>(results[i].data)[results[i].bytes() + k], 0x55)
          << "written behind the end of result " << i;
  }
  if (testing::Test::HasFatalFailure())
    return;
  // Neither the order of the chunks nor threads change a bit.
  for (auto order : {KernelRunner::Backward, KernelRunner::TwoThreads}) {
    auto again = runner.run(arguments, order);
    for (unsigned i = 0; i < results.size(); ++i)
      ASSERT_TRUE(same(results[i], again[i])) << "result " << i << " depends on the order";
  }
  // In place, pair by pair, is the same again.
  for (auto [argument, result] : runner.getLoops().inplace) {
    std::vector<Memory> inputs = arguments, outputs = runner.makeResults();
    llvm::SmallVector<float *> operands;
    for (Memory &memory : inputs)
      operands.push_back(memory.data);
    for (Memory &memory : outputs)
      operands.push_back(memory.data);
    operands[inputs.size() + result] = inputs[argument].data;
    runner.run(operands);
    for (unsigned i = 0; i < results.size(); ++i)
      ASSERT_TRUE(same(results[i], i == result ? inputs[argument] : outputs[i]))
          << "result " << i << " differs with argument " << argument << " and result " << result
          << " in place";
  }
}

class Kernel : public testing::TestWithParam<Case> {};

TEST_P(Kernel, AgreesWithReference) {
  const Case &c = GetParam();
  for (Sizes sizes :
       {Sizes{2, 3, 1}, {1, 1, 7}, {3, 5, 16}, {2, 7, 34}, {33, 9, 18}, {4, 3, 768}, {2, 3, 130}})
    for (int64_t chunks : {0, 3}) {
      if (c.even && sizes.d % 2)
        continue;
      check(c, sizes, chunks);
      if (HasFatalFailure())
        return;
    }
}

TEST_P(Kernel, LongRows) {
  const Case &c = GetParam();
  // Tables of so long rows would take half a GiB.
  bool isTable = llvm::StringRef(c.name).contains("large_table");
  check(c, {2, 3, isTable ? 5003 : c.even ? 50258 : 50257}, 0);
}

TEST_P(Kernel, OlderProcessors) {
  for (llvm::StringRef cpu : {"x86-64-v3", "x86-64"})
    check(GetParam(), {3, 5, 38}, 2, cpu);
}

TEST_P(Kernel, NarrowTypes) {
  const Case &c = GetParam();
  if (!c.narrow())
    return;
  for (const char *element : {"bf16", "f16"})
    for (const char *cpu : {"", "x86-64-v3", "x86-64"})
      for (Sizes sizes : {Sizes{3, 5, 38}, {2, 7, 130}}) {
        check(c, sizes, sizes.b == 3 ? 2 : 0, cpu, element);
        if (HasFatalFailure())
          return;
      }
}

//===--- 8 bits ---------------------------------------------------------------===//

/// Every step is exact in f32, but for the rounding to 8 bits, so that results have no tolerance to speak of.
static const Case quantized[] = {
    // Two loop nests: the amax of all rows comes before the first of them is quantized.
    {"amax_scale_quantize", R"(func.func @k(%x: $XD) -> (tensor<$Bx$Sx$Dxf8E4M3FN>, $F) {
       %a = train.amax %x : ($XD) -> $F
       %s = train.quantization_scale %a to f8E4M3FN : ($F) -> $F
       %0 = train.quantize %x by %s : ($XD, $F) -> tensor<$Bx$Sx$Dxf8E4M3FN>
       return %0, %s : tensor<$Bx$Sx$Dxf8E4M3FN>, $F })"},
    // Fused behind what makes the tensor, which others read, too.
    {"quantize_relu", R"(func.func @k(%x: $XD) -> ($XD, tensor<$Bx$Sx$Dxf8E5M2>, $F) {
       %r = train.relu %x : ($XD) -> $XD
       %a = train.amax %r : ($XD) -> $F
       %s = train.quantization_scale %a to f8E5M2 : ($F) -> $F
       %0 = train.quantize %r by %s : ($XD, $F) -> tensor<$Bx$Sx$Dxf8E5M2>
       return %r, %0, %s : $XD, tensor<$Bx$Sx$Dxf8E5M2>, $F })"},
    // Two scales of one tensor, and a sum that is quantized.
    {"quantize_twice", R"(func.func @k(%x: $XD, %y: $XD) -> (tensor<$Bx$Sx$Dxf8E4M3FN>, tensor<$Bx$Sx$Dxf8E5M2>) {
       %z = train.add %x, %y : ($XD, $XD) -> $XD
       %a = train.amax %z : ($XD) -> $F
       %s = train.quantization_scale %a to f8E4M3FN : ($F) -> $F
       %t = train.quantization_scale %a to f8E5M2 : ($F) -> $F
       %0 = train.quantize %z by %s : ($XD, $F) -> tensor<$Bx$Sx$Dxf8E4M3FN>
       %1 = train.quantize %z by %t : ($XD, $F) -> tensor<$Bx$Sx$Dxf8E5M2>
       return %0, %1 : tensor<$Bx$Sx$Dxf8E4M3FN>, tensor<$Bx$Sx$Dxf8E5M2> })"},
    // Numbers of 8 bits are read and written, and moved as they are.
    {"of_8_bits", R"(func.func @k(%x: tensor<$Bx$Sx$Dxf8E4M3FN>, %y: tensor<$Bx$Sx$Dxf8E5M2>)
         -> (tensor<$Bx$Sx$Dxf8E4M3FN>, tensor<$Sx$Bx$Dxf8E4M3FN>, tensor<$Bx$Sx$Dxf8E5M2>) {
       %0 = train.relu %x : (tensor<$Bx$Sx$Dxf8E4M3FN>) -> tensor<$Bx$Sx$Dxf8E4M3FN>
       %1 = train.transpose_blocks %x : (tensor<$Bx$Sx$Dxf8E4M3FN>) -> tensor<$Sx$Bx$Dxf8E4M3FN>
       %2 = train.relu %y : (tensor<$Bx$Sx$Dxf8E5M2>) -> tensor<$Bx$Sx$Dxf8E5M2>
       return %0, %1, %2 : tensor<$Bx$Sx$Dxf8E4M3FN>, tensor<$Sx$Bx$Dxf8E4M3FN>, tensor<$Bx$Sx$Dxf8E5M2> })"},
};

class QuantizedKernel : public testing::TestWithParam<Case> {};

TEST_P(QuantizedKernel, AgreesWithReference) {
  for (const char *element : {"f32", "bf16"})
    for (const char *cpu : {"", "x86-64-v3", "x86-64"})
      for (Sizes sizes : {Sizes{3, 5, 38}, {2, 7, 130}}) {
        check(GetParam(), sizes, sizes.b == 3 ? 2 : 0, cpu, element);
        if (HasFatalFailure())
          return;
      }
}

INSTANTIATE_TEST_SUITE_P(Ops, QuantizedKernel, testing::ValuesIn(quantized),
                         [](const auto &info) { return std::string(info.param.name); });

/// Codes of blocks, each of which is a row, are those of the nearest numbers.
TEST(KernelBlocks, AgreesWithReference) {
  const Case blocks{"blocks", R"(func.func @k(%x: $XD, %v: $XD {test.positive}) -> ($XD, $XD, $XR, $XR) {
       %a = train.block_amax %x of $D : ($XD) -> $XR
       %b = train.block_amax %v of $D : ($XD) -> $XR
       %i = train.quantize_blocks signed %x by %a : ($XD, $XR) -> tensor<$Bx$Sx$Dxi8>
       %j = train.quantize_blocks %v by %b : ($XD, $XR) -> tensor<$Bx$Sx$Dxi8>
       %0 = train.dequantize_blocks signed %i by %a : (tensor<$Bx$Sx$Dxi8>, $XR) -> $XD
       %1 = train.dequantize_blocks %j by %b : (tensor<$Bx$Sx$Dxi8>, $XR) -> $XD
       return %0, %1, %a, %b : $XD, $XD, $XR, $XR })"};
  for (const char *cpu : {"", "x86-64-v3", "x86-64"})
    for (Sizes sizes : {Sizes{3, 5, 38}, {2, 7, 256}})
      check(blocks, sizes, 0, cpu, "f32");
}

/// The greatest of a row with something that is no number is none.
TEST(KernelNumbers, MaximumKeepsNaN) {
  for (const char *cpu : {"", "x86-64-v3", "x86-64"})
    for (int64_t width : {7, 130}) {
      std::string x = "tensor<2x" + std::to_string(width) + "xf32>";
      KernelRunner runner("func.func @k(%x: " + x + ") -> tensor<2xf32> { %0 = train.reduce max %x over [1] : (" +
                              x + ") -> tensor<2xf32> return %0 : tensor<2xf32> }",
                          0, cpu);
      ASSERT_TRUE(runner.valid());
      for (int64_t at : {int64_t(0), width - 1}) {
        std::vector<Memory> in = runner.makeArguments(7, 1);
        in[0].set(width + at, NAN);
        auto out = runner.run(in);
        EXPECT_TRUE(std::isfinite(out[0].get(0)) && std::isnan(out[0].get(1))) << cpu << " " << width;
      }
    }
}

/// A row with something that is no finite number sends NaN, to a column of its own.
TEST(KernelNumbers, SparsifySendsNaN) {
  for (const char *cpu : {"", "x86-64-v3", "x86-64"})
    for (float wrong : {NAN, INFINITY, -INFINITY}) {
      KernelRunner runner("func.func @k(%x: tensor<2x8xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>, tensor<2x8xf32>) { %0, %1, %2 = train.sparsify %x : "
                          "(tensor<2x8xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>, tensor<2x8xf32>) return %0, %1, %2 : tensor<2x2xf32>, "
                          "tensor<2x2xi32>, tensor<2x8xf32> }",
                          0, cpu);
      ASSERT_TRUE(runner.valid());
      std::vector<Memory> in = runner.makeArguments(7, 1);
      in[0].set(8 + 5, wrong);
      auto out = runner.run(in);
      EXPECT_TRUE(std::isfinite(out[0].get(0)) && std::isfinite(out[0].get(1))) << cpu << " " << wrong;
      EXPECT_TRUE(std::isnan(out[0].get(2)) || std::isnan(out[0].get(3))) << cpu << " " << wrong;
      for (int64_t i = 0; i < 4; ++i)
        EXPECT_TRUE(out[1].get(i) >= 0 && out[1].get(i) < 8) << cpu << " " << wrong << ": " << out[1].get(i);
    }
}

INSTANTIATE_TEST_SUITE_P(Ops, Kernel, testing::ValuesIn(kernelCases()),
                         [](const auto &info) { return std::string(info.param.name); });
