//===- SharedMemoryTest.cpp - reads of memory that is another buffer's -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The walk through a program judges where buffers lie without knowing how long they live: so
// offsets here are such as exec-verify would refuse before the walk.
//
//===----------------------------------------------------------------------===//
#include "Exec/Verify/SharedMemory.h"

#include "meshwright/Register.h"

#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace {
class SharedMemory : public testing::Test {
protected:
  SharedMemory() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// What is wrong with a program that has all of its buffers in shared memory.
  std::string verify(const std::string &body) {
    std::string report;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      report += diagnostic.str();
      return success();
    });
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
        "func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, "
        "exec.inplace = [[0, 0]]}\nexec.program @step {\n" +
            body + "}\n",
        &context);
    if (!module)
      return "does not parse: " + report;
    auto program = *module->getOps<ProgramOp>().begin();
    SmallVector<BufferOp> buffers(program.getBlock().getOps<BufferOp>());
    EXPECT_EQ(succeeded(verifySharedMemory(program, buffers)), report.empty());
    return report;
  }

  /// One that empties "a" and fills "b", at `offset`, upwards in `count` iterations.
  std::string stacks(int64_t count, int64_t offset, std::string op) {
    std::string n = std::to_string(count), stack = "memref<" + n + "x16xf32>";
    auto buffer = [&](std::string name, int64_t at, const std::string &type) {
      return "%" + name + " = exec.buffer \"" + name + "\" temporary offset " + std::to_string(at) +
             " : " + type + "\n";
    };
    auto slot = [&](std::string name, std::string of) {
      return "  %" + name + " = exec.slot %" + of + "[%i] : " + stack + " -> memref<16xf32>\n";
    };
    std::string one = "memref<16xf32>", loop = "exec.loop %i = " + n + " {\n";
    return buffer("x", 0, one) + buffer("a", 4096, stack) + buffer("b", offset, stack) + loop +
           slot("s", "a") + "  exec.copy %x to %s : memref<16xf32> to memref<16xf32>\n}\n" + loop +
           slot("s", "a") + slot("r", "b") + "  " + op + "\n}\n" + loop + slot("r", "b") +
           "  exec.copy %r to %x : memref<16xf32> to memref<16xf32>\n}\n";
  }

  MLIRContext context;
  const std::string copy = "exec.copy %s to %r : memref<16xf32> to memref<16xf32>";
  const std::string launch = "exec.launch @k ins(%s : memref<16xf32>) outs(%r : memref<16xf32>)";
};
} // namespace

TEST_F(SharedMemory, OfSlotsThatAreReadBeforeTheyAreFilled) {
  for (int64_t count : {2, 5, 40})
    for (const std::string &op : {copy, launch}) {
      EXPECT_EQ(verify(stacks(count, 4096 - 64, op)), "");
      EXPECT_EQ(verify(stacks(count, 4096 + 64 * count, op)), "");
    }
}

/// Even where a kernel may compute in place: what it reads would be another buffer.
TEST_F(SharedMemory, IsNotWrittenByWhatReadsIt) {
  for (const std::string &op : {copy, launch})
    EXPECT_NE(verify(stacks(4, 4096, op)).find("reads 'a' where 'b' has been written over it"),
              std::string::npos);
}

/// In the last iteration alone, or in one of many.
TEST_F(SharedMemory, IsNotReadOnceItIsOverwritten) {
  for (int64_t slots : {1, 3, 20, 39})
    EXPECT_NE(verify(stacks(40, 4096 + 64 * slots, copy))
                  .find("reads 'a' where 'b' has been written over it"),
              std::string::npos)
        << slots;
  // The last slot of "b" is the first of "a", which is not read any more.
  EXPECT_EQ(verify(stacks(40, 4096 - 64 * 39, copy)), "");
}

TEST_F(SharedMemory, IsJudgedByPartsOfBuffers) {
  const std::string body = R"(
    %x = exec.buffer "x" temporary offset 0 : memref<8xf32>
    %a = exec.buffer "a" temporary offset 64 : memref<4x8xf32>
    %b = exec.buffer "b" temporary offset 128 : memref<8xf32>
    %part = exec.view %a from FROM : memref<4x8xf32> -> memref<8xf32>
    exec.loop %i = 4 {
      %s = exec.slot %a[%i] : memref<4x8xf32> -> memref<8xf32>
      exec.copy %x to %s : memref<8xf32> to memref<8xf32>
    }
    exec.copy %x to %b : memref<8xf32> to memref<8xf32>
    exec.copy %part to %x : memref<8xf32> to memref<8xf32>
)";
  auto from = [&](std::string element) {
    return verify(std::string(body).replace(body.find("FROM"), 4, element));
  };
  for (std::string element : {"0", "8", "24"})
    EXPECT_EQ(from(element), "") << element;
  for (std::string element : {"9", "16", "23"})
    EXPECT_NE(from(element).find("reads 'a' where 'b' has been written over it"), std::string::npos)
        << element;
}

TEST_F(SharedMemory, OfTheHostIsApart) {
  const std::string buffers = R"(
    %x = exec.buffer "x" temporary offset 0 : memref<16xf32>
    %h = exec.buffer "h" temporary offset 64 : memref<16xf32, "host">
    %g = exec.buffer "g" temporary offset OFFSET : memref<16xf32, "host">
    %y = exec.buffer "y" temporary offset 64 : memref<16xf32>
    exec.copy %x to %h : memref<16xf32> to memref<16xf32, "host">
    exec.copy %x to %g : memref<16xf32> to memref<16xf32, "host">
    exec.copy %h to %y : memref<16xf32, "host"> to memref<16xf32>
    exec.copy %h to %y : memref<16xf32, "host"> to memref<16xf32>
)";
  auto at = [&](std::string offset) {
    return std::string(buffers).replace(buffers.find("OFFSET"), 6, offset);
  };
  EXPECT_EQ(verify(at("128")), "");
  EXPECT_NE(verify(at("64")).find("reads 'h' where 'g' has been written over it"),
            std::string::npos);
}

/// Until the wait, in whichever iteration memory is taken.
TEST_F(SharedMemory, IsReadByAsynchronousOpsUntilTheirWait) {
  const std::string body = R"(
    %x = exec.buffer "x" temporary offset 64 : memref<16xf32>
    %a = exec.buffer "a" temporary offset 128 : memref<16xf32>
    %f = exec.buffer "f" temporary offset OFFSET : memref<40x16xf32>
    %y = exec.buffer "y" temporary offset 4096 : memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    exec.all_reduce sum %x to %a over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
    EARLY
    exec.loop %i = 40 {
      %s = exec.slot %f[%i] : memref<40x16xf32> -> memref<16xf32>
      exec.copy %y to %s : memref<16xf32> to memref<16xf32>
    }
    LATE
)";
  auto with = [&](std::string offset, bool early) {
    std::string text = body;
    auto put = [&](StringRef what, std::string by) {
      text.replace(text.find(what), what.size(), by);
    };
    put("OFFSET", offset);
    put("EARLY", early ? "exec.wait 0" : "");
    put("LATE", early ? "" : "exec.wait 0");
    return verify(text);
  };
  EXPECT_EQ(with("192", false), "");
  // Slots 1 and 2 of "f" are "x" and "a".
  EXPECT_EQ(with("0", true), "");
  EXPECT_NE(with("0", false).find("reads 'x' where 'f' has been written over it"),
            std::string::npos);
}
