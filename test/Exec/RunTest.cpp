//===- RunTest.cpp - what a run of a program finds in memory ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Verify/Run.h"

#include "meshwright/Register.h"

#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace {
class Run : public testing::Test {
protected:
  Run() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// What is wrong with a program.
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
    bool fine = succeeded(verifyRun(program));
    EXPECT_EQ(fine, report.empty());
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
    return "%x = exec.buffer \"x\" input input \"x\" offset 0 : " + one + "\n" +
           buffer("y", 65536, one) + buffer("a", 4096, stack) + buffer("b", offset, stack) + loop +
           slot("s", "a") + "  exec.copy %x to %s : memref<16xf32> to memref<16xf32>\n}\n" + loop +
           slot("s", "a") + slot("r", "b") + "  " + op + "\n}\n" + loop + slot("r", "b") +
           "  exec.copy %r to %y : memref<16xf32> to memref<16xf32>\n}\n";
  }

  MLIRContext context;
  const std::string copy = "exec.copy %s to %r : memref<16xf32> to memref<16xf32>";
  const std::string launch = "exec.launch @k ins(%s : memref<16xf32>) outs(%r : memref<16xf32>)";
};
} // namespace

TEST_F(Run, SharesMemoryOfSlotsThatAreReadBeforeItIsFilled) {
  for (int64_t count : {2, 5, 40})
    for (const std::string &op : {copy, launch}) {
      EXPECT_EQ(verify(stacks(count, 4096 - 64, op)), "");
      EXPECT_EQ(verify(stacks(count, 4096 + 64 * count, op)), "");
    }
}

/// Even where a kernel may compute in place: what it reads would be another buffer.
TEST_F(Run, WritesNoMemoryThatTheOpReads) {
  for (const std::string &op : {copy, launch})
    EXPECT_NE(verify(stacks(4, 4096, op)).find("reads 'a' where 'b' has been written over it"),
              std::string::npos);
}

/// In the last iteration alone, or in one of many.
TEST_F(Run, ReadsNothingThatIsOverwritten) {
  for (int64_t slots : {1, 3, 20, 39})
    EXPECT_NE(verify(stacks(40, 4096 + 64 * slots, copy))
                  .find("reads 'a' where 'b' has been written over it"),
              std::string::npos)
        << slots;
  // The last slot of "b" is the first of "a", which is not read any more.
  EXPECT_EQ(verify(stacks(40, 4096 - 64 * 39, copy)), "");
}

TEST_F(Run, CountsBytes) {
  const std::string body = R"(
    %x = exec.buffer "x" input input "x" offset 0 : memref<8xf32>
    %y = exec.buffer "y" temporary offset 1024 : memref<8xf32>
    %a = exec.buffer "a" temporary offset 64 : memref<4x8xf32>
    %b = exec.buffer "b" temporary offset 128 : memref<8xf32>
    %part = exec.view %a from FROM : memref<4x8xf32> -> memref<8xf32>
    exec.loop %i = 4 {
      %s = exec.slot %a[%i] : memref<4x8xf32> -> memref<8xf32>
      exec.copy %x to %s : memref<8xf32> to memref<8xf32>
    }
    exec.copy %x to %b : memref<8xf32> to memref<8xf32>
    exec.copy %part to %y : memref<8xf32> to memref<8xf32>
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

TEST_F(Run, KeepsMemoryOfTheHostApart) {
  const std::string buffers = R"(
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
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
TEST_F(Run, ReadsInAsynchronousOpsUntilTheirWait) {
  const std::string body = R"(
    %in = exec.buffer "in" input input "in" offset 8192 : memref<16xf32>
    %x = exec.buffer "x" temporary offset 64 : memref<16xf32>
    %a = exec.buffer "a" temporary offset 128 : memref<16xf32>
    %f = exec.buffer "f" temporary offset OFFSET : memref<40x16xf32>
    exec.copy %in to %x : memref<16xf32> to memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    exec.all_reduce sum %x to %a over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
    EARLY
    exec.loop %i = 40 {
      %s = exec.slot %f[%i] : memref<40x16xf32> -> memref<16xf32>
      exec.copy %in to %s : memref<16xf32> to memref<16xf32>
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
  EXPECT_NE(with("0", false).find("touches memory of collective 0, which may still run"),
            std::string::npos);
}

/// Iterations are left out only where they do the same with the same memory.
TEST_F(Run, FindsTheOneIterationThatDiffers) {
  const std::string body = R"(
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %a = exec.buffer "a" temporary offset 64 : memref<16xf32>
    %b = exec.buffer "b" temporary offset OFFSET : memref<16xf32>
    %y = exec.buffer "y" temporary offset 192 : memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    exec.loop %i = 1000 ORDER {
      exec.copy %a to %y : memref<16xf32> to memref<16xf32>
      exec.when %i from 500 to 501 {
        exec.copy %x to %b : memref<16xf32> to memref<16xf32>
      }
    }
)";
  for (std::string order : {"", "reverse"})
    for (bool apart : {false, true}) {
      std::string text = body;
      text.replace(text.find("OFFSET"), 6, apart ? "128" : "64");
      text.replace(text.find("ORDER"), 5, order);
      EXPECT_EQ(verify(text).find("reads 'a' where 'b' has been written over it") ==
                    std::string::npos,
                apart);
    }
}

/// The third iteration of a loop that uses two slots in turns writes what the first one sends.
TEST_F(Run, KeepsTurnsApart) {
  const std::string body = R"(
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %g = exec.buffer "g" temporary offset 64 : memref<SLOTSx16xf32>
    %y = exec.buffer "y" temporary offset 1024 : memref<16xf32>
    exec.loop %i = 1000 {
      %turn = exec.shift %i by BY modulo SLOTS
      %mine = exec.slot %g[%turn] : memref<SLOTSx16xf32> -> memref<16xf32>
      WAIT
      exec.copy %x to %mine : memref<16xf32> to memref<16xf32>
      exec.all_reduce sum %mine to %mine over ["data"] {exec.async_token = 0 : i64} : memref<16xf32> to memref<16xf32>
    }
    exec.wait 0
)";
  for (std::string by : {"0", "1", "-1"})
    for (bool waits : {false, true}) {
      std::string text = body;
      auto put = [&](StringRef what, StringRef with) {
        for (size_t at; (at = text.find(what)) != std::string::npos;)
          text.replace(at, what.size(), with);
      };
      put("SLOTS", "3");
      put("BY", by);
      put("WAIT", waits ? "exec.wait 0" : "");
      EXPECT_EQ(verify(text).find("touches memory of collective 0") == std::string::npos, waits);
    }
}

/// Data may end a loop before it writes, and after.
TEST_F(Run, EndsALoopWithTimesAnywhere) {
  const std::string body = R"(
    %x = exec.buffer "x" input input "x" offset 0 : memref<16xf32>
    %n = exec.buffer "n" input input "n" offset 64 : memref<i32>
    %a = exec.buffer "a" temporary offset 128 : memref<16xf32>
    %b = exec.buffer "b" temporary offset OFFSET : memref<16xf32>
    %y = exec.buffer "y" temporary offset 256 : memref<16xf32>
    exec.copy %x to %a : memref<16xf32> to memref<16xf32>
    exec.loop %i = 4 times(%n : memref<i32>) {
      exec.copy %x to %b : memref<16xf32> to memref<16xf32>
    }
    exec.copy %READ to %y : memref<16xf32> to memref<16xf32>
)";
  auto with = [&](std::string offset, std::string read) {
    std::string text = body;
    text.replace(text.find("OFFSET"), 6, offset);
    text.replace(text.find("READ"), 4, read);
    return verify(text);
  };
  EXPECT_EQ(with("192", "a"), "");
  EXPECT_NE(with("192", "b").find("reads 'b' before anything is written there"),
            std::string::npos);
  EXPECT_NE(with("128", "a").find("reads 'a' where 'b' has been written over it"),
            std::string::npos);
  EXPECT_NE(with("128", "b").find("reads 'b' where 'a' has been written over it"),
            std::string::npos);
}

/// Parts of which each rank has another one: what is written between them is over any of them.
TEST_F(Run, LosesARanksPartsToOtherMemory) {
  const std::string body = R"(
    %x = exec.buffer "x" input input "x" offset 0 : memref<8xf32>
    %a = exec.buffer "a" temporary offset 64 : memref<16xf32>
    %b = exec.buffer "b" temporary offset OFFSET : memref<8xf32>
    %y = exec.buffer "y" temporary offset 256 : memref<16xf32>
    %own = exec.window %a over ["data"] : memref<16xf32> -> memref<8xf32>
    %next = exec.window %a shift 1 over ["data"] : memref<16xf32> -> memref<8xf32>
    exec.loop %i = 3 {
      exec.copy %x to %own : memref<8xf32> to memref<8xf32>
      FIRST
      exec.copy %x to %next : memref<8xf32> to memref<8xf32>
      exec.copy %a to %y : memref<16xf32> to memref<16xf32>
      LAST
    }
)";
  auto with = [&](std::string offset, bool last) {
    std::string text = body;
    const std::string write = "exec.copy %x to %b : memref<8xf32> to memref<8xf32>";
    text.replace(text.find("OFFSET"), 6, offset);
    text.replace(text.find("FIRST"), 5, last ? "" : write);
    text.replace(text.find("LAST"), 4, last ? write : "");
    return verify(text);
  };
  EXPECT_EQ(with("128", false), "");
  EXPECT_EQ(with("64", true), "");
  EXPECT_NE(with("64", false).find("reads 'a' where 'b' has been written over it"),
            std::string::npos);
}
