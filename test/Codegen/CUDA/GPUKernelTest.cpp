//===- GPUKernelTest.cpp - PTX of kernels against the reference -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/KernelEmitter.h"
#include "Codegen/CUDA/Lowering.h"
#include "KernelCases.h"
#include "PtxKernels.h"
#include "meshwright/Codegen.h"

#include "mlir/IR/Verifier.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::test;

namespace {
/// A kernel as PTX.
class GPUKernelInput : public KernelInput {
public:
  GPUKernelInput(StringRef text, int64_t chunks)
      : KernelInput(text, codegen::cuda::scheduleLimits, chunks) {
    if (!kernelLoops)
      return;
    auto emitted = codegen::cuda::emitKernels(*module);
    if (succeeded(emitted) && succeeded(verify(**emitted)))
      kernels.emplace(**emitted);
  }
  bool valid() { return kernels.has_value(); }

  /// Runs all loop nests; false, with a failed expectation, if something is wrong.
  bool run(ArrayRef<const Memory *> arguments, ArrayRef<const Memory *> results) {
    PtxRun run(*kernels);
    SmallVector<unsigned> memory;
    for (const Memory *argument : arguments)
      memory.push_back(run.add(argument->data, argument->bytes(), true));
    for (const Memory *result : results) {
      // In place: the same memory.
      auto same =
          llvm::find_if(arguments, [&](const Memory *m) { return m->data == result->data; });
      memory.push_back(same != arguments.end() ? memory[same - arguments.begin()]
                                               : run.add(result->data, result->bytes(), false));
    }
    Memory workspace(kernelLoops->workspace / 4);
    if (kernelLoops->workspace)
      memory.push_back(run.add(workspace.data, workspace.bytes(), false));
    auto name = [&](unsigned nest) {
      return codegen::cuda::loopNestName(getFunction().getName(), nest);
    };
    for (unsigned i = 0; kernels->has(name(i)); ++i)
      if (std::string wrong = run.launch(name(i), memory); !wrong.empty()) {
        ADD_FAILURE() << wrong;
        return false;
      }
    return true;
  }

  std::optional<PtxKernels> kernels;
};
} // namespace

static SmallVector<const Memory *> pointersTo(const std::vector<Memory> &memories) {
  SmallVector<const Memory *> pointers;
  for (const Memory &memory : memories)
    pointers.push_back(&memory);
  return pointers;
}

static void check(const Case &c, Sizes sizes, int64_t chunks, StringRef element = "f32") {
  SCOPED_TRACE(testing::Message() << c.name << " " << sizes.b << "x" << sizes.s << "x" << sizes.d
                                  << " in " << chunks << " chunks " << element.str());
  GPUKernelInput kernel(instantiate(c, sizes, element), chunks);
  ASSERT_TRUE(kernel.valid()) << instantiate(c, sizes, element);
  auto arguments = kernel.makeArguments(7, c.ids);
  makePositive(kernel, arguments);
  auto results = kernel.makeResults();
  ASSERT_TRUE(kernel.run(pointersTo(arguments), pointersTo(results)));
  auto want = kernel.reference(arguments);
  for (unsigned i = 0; i < results.size(); ++i)
    expectClose(results[i], want[i], c.tolerance, "result " + std::to_string(i), c.cancels);
  if (testing::Test::HasFatalFailure())
    return;
  // In place, pair by pair, is the same again.
  for (auto [argument, result] : kernel.getLoops().inplace) {
    std::vector<Memory> inputs = arguments, outputs = kernel.makeResults();
    auto targets = pointersTo(outputs);
    targets[result] = &inputs[argument];
    ASSERT_TRUE(kernel.run(pointersTo(inputs), targets))
        << "argument " << argument << " and result " << result << " in place";
    for (unsigned i = 0; i < results.size(); ++i)
      ASSERT_TRUE(same(results[i], *targets[i]))
          << "result " << i << " differs with argument " << argument << " and result " << result
          << " in place";
  }
}

class GPUKernel : public testing::TestWithParam<Case> {};

TEST_P(GPUKernel, AgreesWithReference) {
  const Case &c = GetParam();
  for (Sizes sizes :
       {Sizes{2, 3, 1}, {1, 1, 7}, {3, 5, 16}, {33, 9, 18}, {4, 3, 768}, {2, 3, 1026}})
    for (int64_t chunks : {0, 3}) {
      if (c.even && sizes.d % 2)
        continue;
      check(c, sizes, chunks);
      if (HasFatalFailure())
        return;
    }
}

/// Rows that do not fit into the registers of a block.
TEST_P(GPUKernel, LongRows) {
  const Case &c = GetParam();
  check(c, {2, 3, c.even ? 10002 : 10001}, 0);
  // Tables of longer rows would take half a GiB.
  if (!StringRef(c.name).contains("large_table"))
    check(c, {1, 3, 20480}, 2);
}

static const codegen::LoopNest *reducing(const codegen::KernelLoops &kernelLoops) {
  for (const codegen::LoopNest &nest : kernelLoops.nests)
    if (!codegen::rowReductions(nest).empty())
      return &nest;
  return nullptr;
}

/// A row that threads hold is read for its maximum, then for the sum of exponentials; of a
/// longer one both are found at once, however long.
TEST(GPUKernelShape, PairsReductions) {
  for (const Case &c : kernelCases()) {
    if (StringRef(c.name) != "softmax" && StringRef(c.name) != "cross_entropy")
      continue;
    for (int64_t width : {8192, 8200, 40000}) {
      GPUKernelInput kernel(instantiate(c, {1, 2, width}), 0);
      ASSERT_TRUE(kernel.valid());
      const codegen::LoopNest *nest = reducing(kernel.getLoops());
      ASSERT_TRUE(nest);
      int64_t pairs = llvm::count_if(nest->nodes, [](auto &node) { return node->greatest; });
      EXPECT_EQ(pairs, width > 8192) << c.name << " " << width;
      unsigned loops = 0;
      for (codegen::Node *reduce : codegen::rowReductions(*nest))
        loops = std::max(loops, reduce->depth);
      EXPECT_EQ(loops, width > 8192 ? 1u : 2u) << c.name << " " << width;
    }
    check(c, {1, 2, 40000}, 0);
    check(c, {1, 3, 65600}, 0, "f32");
  }
}

/// So many elements that threads take several vectors; the last block has fewer.
TEST(GPUKernelShape, SeveralVectors) {
  for (const Case &c : kernelCases())
    if (StringRef(c.name) == "bias_gelu")
      check(c, {2, 515, 1028}, 0, "bf16");
}

TEST_P(GPUKernel, NarrowTypes) {
  const Case &c = GetParam();
  if (!c.narrow())
    return;
  for (const char *element : {"bf16", "f16"})
    for (Sizes sizes : {Sizes{3, 5, 38}, {2, 7, 512}}) {
      check(c, sizes, sizes.b == 3 ? 2 : 0, element);
      if (HasFatalFailure())
        return;
    }
}

/// So many partial results that the warps of a block share them.
TEST(GPUKernelShape, SharesPartialResults) {
  for (const Case &c : kernelCases())
    if (StringRef(c.name) == "reduce_columns")
      for (int64_t chunks : {12, 37})
        check(c, {33, 9, 18}, chunks);
}

/// What is no number stays none: its exponential, and the greatest of its row.
TEST(GPUKernelNumbers, KeepNaN) {
  GPUKernelInput kernel(
      "func.func @k(%x: tensor<3x40xf32>) -> (tensor<3x40xf32>, tensor<3xf32>) { "
      "%0 = math.exp %x : tensor<3x40xf32> "
      "%1 = train.reduce max %x over [1] : (tensor<3x40xf32>) -> tensor<3xf32> "
      "return %0, %1 : tensor<3x40xf32>, tensor<3xf32> }",
      0);
  ASSERT_TRUE(kernel.valid());
  auto arguments = kernel.makeArguments(7, 1);
  arguments[0].set(45, NAN);
  auto results = kernel.makeResults();
  ASSERT_TRUE(kernel.run(pointersTo(arguments), pointersTo(results)));
  for (int64_t i = 0; i < 120; ++i)
    EXPECT_EQ(std::isnan(results[0].get(i)), i == 45) << i;
  for (int64_t row = 0; row < 3; ++row)
    EXPECT_EQ(std::isnan(results[1].get(row)), row == 1) << row;
}

/// What is done to many tensors is launched once.
TEST(GPUKernelShape, LaunchesTogether) {
  for (const Case &c : kernelCases()) {
    bool updates = StringRef(c.name) == "many_updates";
    if (!updates && StringRef(c.name) != "many_square_sums")
      continue;
    GPUKernelInput kernel(instantiate(c, {3, 5, 16}), 0);
    ASSERT_TRUE(kernel.valid());
    EXPECT_EQ(kernel.kernels->getNames().size(), updates ? 1u : 2u) << c.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, GPUKernel, testing::ValuesIn(kernelCases()),
                         [](const auto &info) { return std::string(info.param.name); });
