//===- ExchangeKernelTest.cpp - what exchanges add, as PTX ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Lowering.h"
#include "Exec/Exec.h"
#include "PtxKernels.h"
#include "meshwright/Codegen.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::test;

namespace {
/// The kernels of an exchange that adds tensors of `element`.
class ExchangeKernel {
public:
  ExchangeKernel(StringRef kind, StringRef element) {
    std::string text = llvm::formatv(R"(
module attributes {{exec.target = #exec.target<"cuda">} {{
  exec.program private @step ins() outs(%x: memref<8x{1}>, %w: memref<{2}xi8>) {{
    exec.exchange reducing {0} %x pieces 2 length 1 to [1, 0] send [1, 0] from [1, 0] receive [0, 1]
        over ["data"] workspace(%w : memref<{2}xi8>) : memref<8x{1}>
    exec.exchange %x pieces 2 length 1 to [1, 0] send [0, 1] from [1, 0] receive [1, 0]
        over ["data"] : memref<8x{1}>
  }
})", kind, element, element == "f32" ? 16 : 8);
    kernels = PtxKernels::ofProgram(text);
  }

  bool isThere() { return kernels && kernels->getNames().size() == 1; }

  /// Combines `count` elements of each; what is wrong, or nothing.
  template <typename T>
  std::string run(std::vector<T> &to, std::vector<T> &from, int64_t count) {
    PtxRun run(*kernels);
    unsigned tensors[] = {run.add(to.data(), to.size() * sizeof(T), true),
                          run.add(from.data(), from.size() * sizeof(T), true)};
    return run.launch(kernels->getNames()[0], tensors, count);
  }

private:
  std::unique_ptr<PtxKernels> kernels;
};

TEST(ExchangeKernel, AddsSoMany) {
  ExchangeKernel kernel("sum", "f32");
  ASSERT_TRUE(kernel.isThere());
  // More than there are threads, and a rest that is left alone.
  std::vector<float> to(70000), from(70000);
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = float(i), from[i] = 0.5f * float(i % 7);
  std::vector<float> want = to;
  for (size_t i = 0; i < 69999; ++i)
    want[i] += from[i];
  EXPECT_EQ(kernel.run(to, from, 69999), "");
  EXPECT_EQ(to, want);
}

TEST(ExchangeKernel, TakesMaxima) {
  ExchangeKernel kernel("max", "f32");
  ASSERT_TRUE(kernel.isThere());
  std::vector<float> to{1, -2, 3}, from{0, -1, 5};
  EXPECT_EQ(kernel.run(to, from, 3), "");
  EXPECT_EQ(to, (std::vector<float>{1, -1, 5}));
}

TEST(ExchangeKernel, RoundsOnce) {
  ExchangeKernel kernel("sum", "bf16");
  ASSERT_TRUE(kernel.isThere());
  auto bits = [](float value) {
    APFloat number(value);
    bool exact;
    number.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &exact);
    return uint16_t(number.bitcastToAPInt().getZExtValue());
  };
  std::vector<uint16_t> to{bits(1), bits(256)}, from{bits(0.0078125f), bits(3)};
  EXPECT_EQ(kernel.run(to, from, 2), "");
  EXPECT_EQ(to, (std::vector<uint16_t>{bits(1.0078125f), bits(259)}));
}
} // namespace
