//===- DefaultDeviceTest.cpp - the devices that targets name -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Exec.h"
#include "meshwright/Cost/CostTable.h"
#include "meshwright/Register.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace meshwright;

namespace {
class DefaultDevice : public testing::Test {
protected:
  DefaultDevice() {
    DialectRegistry registry;
    registerDialects(registry);
    registerPasses();
    context.appendDialectRegistry(registry);
  }
  /// That of a target with the given flags.
  std::string of(StringRef name, const exec::FlagValues &flags = {}) {
    const exec::Target *target = exec::findTarget(name);
    auto parameters = target->parse(flags, context);
    return target->getDefaultDevice(llvm::cantFail(std::move(parameters))).str();
  }

  MLIRContext context;
};
} // namespace

TEST_F(DefaultDevice, IsInTheTableForEveryTarget) {
  for (const std::unique_ptr<exec::Target> &target : exec::getTargets())
    EXPECT_NE(cost::findDevice(of(target->getName())), nullptr) << target->getName().str();
}

TEST_F(DefaultDevice, FollowsTheArchitecture) {
  EXPECT_EQ(of("cpu"), "epyc-9654");
  EXPECT_EQ(of("cuda"), "h100-sxm");
  // That of the last architecture at or before it, and the first one for older ones.
  for (auto [arch, device] : {std::pair("sm_75", "a100-sxm"),
                              {"sm_80", "a100-sxm"},
                              {"sm_86", "a40"},
                              {"sm_87", "a40"},
                              {"sm_89", "l40s"},
                              {"sm_90a", "h100-sxm"},
                              {"sm_100", "b200-hgx"},
                              {"sm_120", "b200-hgx"},
                              {"sm_80,sm_90", "a100-sxm"}})
    EXPECT_EQ(of("cuda", {{"gpu-arch", arch}}), device) << arch;
}
