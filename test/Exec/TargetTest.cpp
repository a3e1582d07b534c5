//===- TargetTest.cpp - a target that only this file knows -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A target is one object: a model compiled for this one reaches the planned program with its
// alignment, its limits and its scratch memory, though no other file has heard of it.
//
//===----------------------------------------------------------------------===//
#include "Exec/Exec.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Register.h"

#include "mlir/Support/DebugStringHelper.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace {
class ToyTarget : public Target {
public:
  StringRef getName() const override { return "toy"; }
  StringRef getDefaultDevice(Parameters) const override { return "a100-sxm"; }
  ScheduleLimits getScheduleLimits() const override { return {/*maxChunks=*/3, 1, INT64_MAX}; }
  int64_t getRowAlignment() const override { return 64; }
  unsigned getMostLaunchOperands() const override { return 24; }
  int64_t getProductWorkspace(const ProductShape &) const override { return 4096; }
};
} // namespace

TEST(Target, OfATestReachesThePlannedProgram) {
  registerTarget(std::make_unique<ToyTarget>());
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("toy", "json", path));
  std::error_code error;
  llvm::raw_fd_ostream(path, error) << R"({"model_type": "gpt2", "vocab_size": 257, "n_positions": 8,
    "n_embd": 32, "n_layer": 1, "n_head": 2, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0})";
  DialectRegistry registry;
  registerDialects(registry);
  registerPasses();
  MLIRContext context(registry);
  CompileOptions options;
  options.model = path.str().str();
  options.target = findTarget("toy");
  options.batch = 2;
  options.sequence = 8;
  auto module = compileTo(Phase::exec, options, context, llvm::nulls());
  llvm::sys::fs::remove(path);
  ASSERT_TRUE(bool(module)) << toString(module.takeError());

  TargetAttr target = targetOf(**module);
  EXPECT_EQ(target.getName(), "toy");
  // 257 rows of f32 are padded to a multiple of 64 bytes: 272.
  auto embedding = (*module)->lookupSymbol<train::VariableOp>("wte.weight");
  ASSERT_TRUE(embedding);
  EXPECT_EQ(cast<RankedTensorType>(embedding.getType()).getDimSize(0), 272);
  unsigned products = 0, most = 0, launches = 0;
  (*module)->walk([&](Operation *op) {
    if (auto product = dyn_cast<MatmulOp>(op)) {
      ++products;
      EXPECT_EQ(bytesOf(product.getWorkspace().getType()), 4096);
    } else if (auto launch = dyn_cast<LaunchOp>(op)) {
      ++launches;
      unsigned operands = launch.getInputs().size() + launch.getOutputs().size();
      EXPECT_LE(operands, 24u) << mlir::debugString(launch);
      most = std::max(most, operands);
    } else if (auto chunks = op->getAttrOfType<DenseI64ArrayAttr>(chunksAttr)) {
      for (int64_t count : chunks.asArrayRef())
        EXPECT_LE(count, 3);
    }
  });
  EXPECT_GT(products, 0u);
  EXPECT_GT(launches, 0u);
  EXPECT_GT(most, 12u) << "updates of several parameters share a launch";
}
