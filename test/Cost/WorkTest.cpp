//===- WorkTest.cpp - trip counts and FLOPs of IR of every floor -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Exec.h"
#include "meshwright/Cost/Flops.h"
#include "meshwright/Cost/Functions.h"
#include "meshwright/Register.h"

#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <set>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::cost;

namespace {
class Work : public testing::Test {
protected:
  Work() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  ModuleOp parse(StringRef text) {
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    return *module;
  }
  /// The op that has this attribute.
  Operation *at(StringRef mark) {
    Operation *found = nullptr;
    module->walk([&](Operation *op) {
      if (op->hasAttr(mark))
        found = op;
    });
    EXPECT_TRUE(found) << mark.str();
    return found;
  }
  Block &bodyOf(StringRef name) {
    return SymbolTable::lookupSymbolIn(*module, name)->getRegion(0).front();
  }
  /// "copy x 4" for each op of floor 3 but buffers and slots that a run of `name` comes to.
  std::vector<std::string> runs(StringRef name, Rounds rounds) {
    std::vector<std::string> texts;
    SymbolTableCollection symbols;
    forEachRun(bodyOf(name), rounds, symbols, [&](Operation *op, double runs) {
      if (isa<exec::CopyOp, exec::MatmulOp>(op))
        texts.push_back((op->getName().stripDialect() + " x " + Twine(int64_t(runs))).str());
    });
    return texts;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

constexpr const char *tensors = R"(
func.func private @round(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %y = train.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func private @layer(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %n: tensor<i32>) -> tensor<4x8xf32> {
  %y = train.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = train.repeat @round x 5 times %n carry(%y) each() shared(%w) {rounds} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<i32>) -> tensor<4x8xf32>
  %s = train.add %y, %z : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = train.reshape %s : (tensor<4x8xf32>) -> tensor<32xf32>
  %b = train.reshape %r : (tensor<32xf32>) -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}
func.func @loss(%x: tensor<4x8xf32>, %w: tensor<3x8x8xf32>, %n: tensor<i32>) -> tensor<4x8xf32> {
  %y = train.repeat @layer x 3 carry(%x) each(%w) shared(%n) {layers} : (tensor<4x8xf32>, tensor<3x8x8xf32>, tensor<i32>) -> tensor<4x8xf32>
  %z = func.call @twice(%y) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}
func.func private @twice(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = train.add %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
)";
} // namespace

TEST_F(Work, RepeatsRunAsOftenAsTheySayOrDataDoes) {
  parse(tensors);
  EXPECT_EQ(tripCount(at("layers")), 3);
  EXPECT_EQ(tripCount(at("rounds")), 1); // all that balanced routing needs
  EXPECT_EQ(tripCount(at("rounds"), Rounds::Most), 5);
  EXPECT_EQ(tripCount(&bodyOf("twice").front()), 1);
}

TEST_F(Work, FlopsOfTensorsAreThoseOfCalleesAsOftenAsTheyRun) {
  parse(tensors);
  double product = 2 * 4 * 8 * 8, sum = 4 * 8;
  // Reshapes cost nothing; a round counts once.
  EXPECT_EQ(FlopCounter().of(bodyOf("layer")), 2 * product + sum);
  EXPECT_EQ(FlopCounter().of(bodyOf("loss")), 3 * (2 * product + sum) + sum);
  EXPECT_EQ(FlopCounter(FlopCounter::Products).of(bodyOf("loss")), 3 * 2 * product);
}

TEST_F(Work, OfWhatIsMarkedIsCountedApart) {
  parse(tensors);
  Attribute mark = UnitAttr::get(&context);
  Operation *rounds = at("rounds");
  rounds->setAttr(train::recomputedAttr, mark);
  // All inside of what is marked runs again.
  EXPECT_EQ(FlopCounter().of(bodyOf("loss"), mark), 3 * 2 * 4 * 8 * 8);
  rounds->setAttr(train::recomputedAttr, StringAttr::get(&context, "rounds"));
  EXPECT_EQ(FlopCounter().of(bodyOf("loss"), mark), 0);
}

TEST_F(Work, ConditionsTakeAShareOfTheirLoop) {
  parse(R"(
exec.program @step {
  %x = exec.buffer "x" temporary : memref<8xf32>
  %y = exec.buffer "y" temporary : memref<8xf32>
  exec.loop %i = 6 {
    exec.loop %j = 5 {
      exec.when %i from 1 to 5 {
        exec.copy %x to %y {outer} : memref<8xf32> to memref<8xf32>
        exec.when %i from 3 to 6 {
          exec.copy %x to %y {both} : memref<8xf32> to memref<8xf32>
        }
        exec.when %j from 0 to 2 {
          exec.copy %x to %y {other} : memref<8xf32> to memref<8xf32>
        }
        exec.when %i from 5 to 6 {
          exec.copy %x to %y {never} : memref<8xf32> to memref<8xf32>
        }
      }
    }
  }
})");
  EXPECT_EQ(runsOf(at("outer")), 4 * 5);
  EXPECT_EQ(runsOf(at("both")), 2 * 5); // iterations 3 and 4 of the outer loop
  EXPECT_EQ(runsOf(at("other")), 4 * 2);
  EXPECT_EQ(runsOf(at("never")), 0);
  EXPECT_EQ(runsOf(at("outer")->getBlock()->getParentOp()), 6 * 5);
}

TEST_F(Work, OfMemoryIsThatOfLoopsAndCalls) {
  std::string matmul =
      "exec.matmul %a, %a, %b trans(false, false) sizes(8, 8, 8) ld(8, 8, 8) batch 1 "
      "strides(0, 0, 0) alpha 1.0 beta 0.0 : memref<8x8xf32>, memref<8x8xf32>, "
      "memref<8x8xf32>\n";
  std::string buffers = "%a = exec.buffer \"a\" temporary : memref<8x8xf32>\n"
                        "%b = exec.buffer \"b\" temporary : memref<8x8xf32>\n";
  parse("exec.program private @inner {\n" + buffers + "exec.loop %i = 3 {\n" + matmul +
        "}\n}\nexec.program @step {\n" + buffers +
        "%n = exec.buffer \"n\" temporary : memref<i32>\n" + matmul +
        "exec.loop %i = 4 {\nexec.call @inner\nexec.when %i from 1 to 2 {\n"
        "exec.copy %a to %b : memref<8x8xf32> to memref<8x8xf32>\n}\n}\n"
        // The first of the rounds stands before the loop.
        "exec.loop %r = 7 times(%n : memref<i32>) from 1 {\n" +
        matmul + "}\n}\n");
  double product = 2 * 8 * 8 * 8;
  EXPECT_EQ(FlopCounter().of(bodyOf("step")), (1 + 4 * 3) * product);
  EXPECT_EQ(runs("step", Rounds::Expected),
            (std::vector<std::string>{"matmul x 1", "matmul x 12", "copy x 1"}));
  EXPECT_EQ(runs("step", Rounds::Most),
            (std::vector<std::string>{"matmul x 1", "matmul x 12", "copy x 1", "matmul x 6"}));
}

TEST_F(Work, KnowsTheFunctionsOfGeneratedKernels) {
  std::set<std::string> known, there{"divf", "extf", "truncf", "mului_extended"};
  for (StringRef name : functionNames())
    known.insert(name.str());
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.getDialectNamespace() == "math" && name.stripDialect() != "absf")
      there.insert(name.stripDialect().str());
  EXPECT_EQ(known, there);
}
