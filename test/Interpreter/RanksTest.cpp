//===- RanksTest.cpp - ranks that meet, send and wait -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Register.h"
#include "meshwright/Session.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

namespace {
class Ranks : public testing::Test {
protected:
  Ranks() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
      messages += diagnostic.str() + "\n";
      for (Diagnostic &note : diagnostic.getNotes())
        messages += note.str() + "\n";
    });
  }

  /// Runs functions[r] on rank r, whose only argument is [10 r + 1, 10 r + 2, ...].
  LogicalResult run(StringRef text, ArrayRef<StringRef> functions) {
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return failure();
    SmallVector<FunctionOpInterface> programs;
    SmallVector<TensorList> arguments;
    for (auto [rank, name] : llvm::enumerate(functions)) {
      auto function = module->lookupSymbol<func::FuncOp>(name);
      programs.push_back(function);
      Tensor value(function.getArgumentTypes()[0]);
      for (int64_t i = 0; i < value.size(); ++i)
        value.writeFloats()[i] = double(10 * int64_t(rank) + i + 1);
      arguments.push_back({value});
    }
    Interpreter interpreter(*module, int64_t(functions.size()), Precision::F64);
    return interpreter.run(programs, arguments, results);
  }

  std::vector<double> result(int64_t rank) { return results[rank][0].floats().vec(); }

  MLIRContext context;
  std::string messages;
  OwningOpRef<ModuleOp> module;
  SmallVector<TensorList> results;
};
using Numbers = std::vector<double>;
} // namespace

TEST_F(Ranks, Collectives) {
  // Ranks 0 1 / 2 3: rows along "data", columns along "tensor".
  StringRef text = R"(
    dist.mesh @mesh ["data" = 2, "tensor" = 2]
    func.func @sum(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = dist.all_reduce sum %x over <@mesh {data}> : (tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }
    func.func @max(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = dist.all_reduce max %x over <@mesh {data, tensor}> : (tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }
    func.func @gather(%x: tensor<2x1xf32>) -> tensor<2x2xf32> {
      %y = dist.all_gather %x dim 1 over <@mesh {tensor}> : (tensor<2x1xf32>) -> tensor<2x2xf32>
      return %y : tensor<2x2xf32>
    }
    func.func @scatter(%x: tensor<4xf32>) -> tensor<1xf32> {
      %y = dist.reduce_scatter sum %x dim 0 over <@mesh {data, tensor}> : (tensor<4xf32>) -> tensor<1xf32>
      return %y : tensor<1xf32>
    }
    func.func @exchange(%x: tensor<2x1xf32>) -> tensor<1x2xf32> {
      %y = dist.all_to_all %x split 0 concat 1 over <@mesh {tensor}> : (tensor<2x1xf32>) -> tensor<1x2xf32>
      return %y : tensor<1x2xf32>
    }
    func.func @permute(%x: tensor<1xf32>) -> tensor<1xf32> {
      %y = dist.permute %x from [1, 2, 3, 0] over <@mesh {data, tensor}> : (tensor<1xf32>) -> tensor<1xf32>
      return %y : tensor<1xf32>
    }
    func.func @slice(%x: tensor<4xf32>) -> tensor<2xf32> {
      %y = dist.slice %x dim 0 over <@mesh {data}> : (tensor<4xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }
    func.func @begin(%x: tensor<2xf32>) -> tensor<2xf32> {
      %b = dist.offset 3 over <@mesh {data, tensor}> : tensor<i32>
      %n = arith.sitofp %b : tensor<i32> to tensor<f32>
      %y = train.broadcast %n along [0] : (tensor<f32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    })";
  auto all = [&](StringRef name) {
    LogicalResult done = run(text, SmallVector<StringRef>(4, name));
    EXPECT_TRUE(succeeded(done)) << name.str() << ": " << messages;
    return succeeded(done);
  };
  ASSERT_TRUE(all("sum"));
  EXPECT_EQ(result(0), Numbers({22, 24}));
  EXPECT_EQ(result(1), Numbers({42, 44}));
  EXPECT_EQ(result(2), result(0));
  ASSERT_TRUE(all("max"));
  EXPECT_EQ(result(0), Numbers({31, 32}));
  ASSERT_TRUE(all("gather"));
  EXPECT_EQ(result(2), Numbers({21, 31, 22, 32}));
  EXPECT_EQ(result(3), result(2));
  ASSERT_TRUE(all("scatter"));
  EXPECT_EQ(result(0), Numbers({64}));
  EXPECT_EQ(result(3), Numbers({76}));
  ASSERT_TRUE(all("exchange"));
  EXPECT_EQ(result(0), Numbers({1, 11}));
  EXPECT_EQ(result(1), Numbers({2, 12}));
  ASSERT_TRUE(all("permute"));
  EXPECT_EQ(result(3), Numbers({1}));
  EXPECT_EQ(result(0), Numbers({11}));
  ASSERT_TRUE(all("slice"));
  EXPECT_EQ(result(0), Numbers({1, 2}));
  EXPECT_EQ(result(3), Numbers({33, 34}));
  ASSERT_TRUE(all("begin"));
  EXPECT_EQ(result(0), Numbers({0, 0}));
  EXPECT_EQ(result(3), Numbers({9, 9}));
}

TEST_F(Ranks, Roots) {
  StringRef text = R"(
    dist.mesh @mesh ["data" = 2, "tensor" = 2]
    func.func @broadcast(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = dist.broadcast %x root 1 over <@mesh {data}> : (tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }
    func.func @reduce(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = dist.reduce max %x root 2 over <@mesh {data, tensor}> : (tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }
    func.func @gather(%x: tensor<2x1xf32>) -> tensor<2x2xf32> {
      %y = dist.gather %x dim 1 root 0 over <@mesh {tensor}> : (tensor<2x1xf32>) -> tensor<2x2xf32>
      return %y : tensor<2x2xf32>
    }
    func.func @scatter(%x: tensor<4xf32>) -> tensor<2xf32> {
      %y = dist.scatter %x dim 0 root 1 over <@mesh {data}> : (tensor<4xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }
    func.func @several(%x: tensor<2x1xf32>) -> tensor<6xf32> {
      %z = train.scale %x by 2.0 : (tensor<2x1xf32>) -> tensor<2x1xf32>
      %a:2 = dist.all_gather %x, %z dim [0, 1] over <@mesh {tensor}> : (tensor<2x1xf32>, tensor<2x1xf32>) -> (tensor<4x1xf32>, tensor<2x2xf32>)
      %u = train.reshape %a#0 : (tensor<4x1xf32>) -> tensor<4xf32>
      %v = train.reshape %a#1 : (tensor<2x2xf32>) -> tensor<4xf32>
      %b:2 = dist.all_reduce sum %u, %v over <@mesh {data}> : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      %c:2 = dist.reduce_scatter max %b#0, %b#1 dim [0, 0] over <@mesh {data}> : (tensor<4xf32>, tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
      %d = train.add %c#0, %c#1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %y = train.pad %d rows 6 : (tensor<2xf32>) -> tensor<6xf32>
      return %y : tensor<6xf32>
    })";
  auto all = [&](StringRef name) {
    LogicalResult done = run(text, SmallVector<StringRef>(4, name));
    EXPECT_TRUE(succeeded(done)) << name.str() << ": " << messages;
    return succeeded(done);
  };
  auto poisoned = [&](int64_t rank) {
    return llvm::all_of(result(rank), [](double value) { return std::isnan(value); });
  };
  ASSERT_TRUE(all("broadcast"));
  EXPECT_EQ(result(0), Numbers({21, 22}));
  EXPECT_EQ(result(3), Numbers({31, 32}));
  ASSERT_TRUE(all("reduce"));
  EXPECT_EQ(result(2), Numbers({31, 32}));
  EXPECT_TRUE(poisoned(0) && poisoned(1) && poisoned(3));
  ASSERT_TRUE(all("gather"));
  EXPECT_EQ(result(2), Numbers({21, 31, 22, 32}));
  EXPECT_TRUE(poisoned(1) && poisoned(3));
  ASSERT_TRUE(all("scatter"));
  EXPECT_EQ(result(0), Numbers({21, 22}));
  EXPECT_EQ(result(3), Numbers({33, 34}));
  ASSERT_TRUE(all("several"));
  // Gathered over ranks 0 1 and 2 3, summed over these pairs: [22 24 42 44] and
  // twice [22 42 24 44]; rank 0 has the first half of both.
  EXPECT_EQ(result(0), Numbers({66, 108, 0, 0, 0, 0}));
  EXPECT_EQ(result(3), Numbers({90, 132, 0, 0, 0, 0}));
}

// While an op with regions runs, the table of blocks grows beyond what it first has room for. One of the loops uses no
// value for the last time, the others do.
TEST_F(Ranks, LoopsInsideOfLoops) {
  constexpr int64_t depth = 200;
  std::string text = "func.func @main(%v0: tensor<1xf32>) -> tensor<1xf32> {\n", end;
  auto number = [](int64_t n) { return std::to_string(n); };
  for (int64_t i = 0; i < depth; ++i) {
    text += "%r" + number(i) + " = exec.loop %i" + number(i) + " = 1 carry(%v" + number(i + 1) +
            " = %v" + number(i) + ") : (tensor<1xf32>) -> tensor<1xf32> {\n";
    end = "exec.yield %r" + number(i + 1) + " : tensor<1xf32>\n}\n" + end;
  }
  std::string last = number(depth);
  text += "%r" + last + " = arith.addf %v" + last + ", %v" + last + " : tensor<1xf32>\n" + end +
          "%sum = arith.addf %r0, %v0 : tensor<1xf32>\nreturn %sum : tensor<1xf32>\n}\n";
  ASSERT_TRUE(succeeded(run(text, {"main"}))) << messages;
  EXPECT_EQ(result(0), Numbers{3});
}

TEST_F(Ranks, Messages) {
  StringRef text = R"(
    dist.mesh @mesh ["pipe" = 2]
    func.func @first(%x: tensor<1xf32>) -> tensor<1xf32> {
      %z = train.scale %x by 3.0 : (tensor<1xf32>) -> tensor<1xf32>
      dist.send %x to 1 channel 0 over <@mesh {pipe}> : tensor<1xf32>
      dist.send %z to 1 channel 5 over <@mesh {pipe}> : tensor<1xf32>
      %y = dist.recv from 1 channel 0 over <@mesh {pipe}> : tensor<1xf32>
      return %y : tensor<1xf32>
    }
    func.func @second(%x: tensor<1xf32>) -> tensor<1xf32> {
      %z = dist.recv from 0 channel 5 over <@mesh {pipe}> : tensor<1xf32>
      %y = dist.recv from 0 channel 0 over <@mesh {pipe}> : tensor<1xf32>
      dist.send %x to 0 channel 0 over <@mesh {pipe}> : tensor<1xf32>
      %w = train.scale %z by 100.0 : (tensor<1xf32>) -> tensor<1xf32>
      %s = train.add %w, %y : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
      return %s : tensor<1xf32>
    })";
  ASSERT_TRUE(succeeded(run(text, {"first", "second"}))) << messages;
  EXPECT_EQ(result(0), Numbers({11}));
  EXPECT_EQ(result(1), Numbers({301}));
  EXPECT_FALSE(succeeded(run(text, {"first", "first"})));
  EXPECT_NE(messages.find("names the rank itself as its peer"), std::string::npos) << messages;
}

TEST_F(Ranks, DifferentProgramsMeet) {
  StringRef text = R"(
    dist.mesh @mesh ["data" = 2]
    func.func @a(%x: tensor<1xf32>) -> tensor<1xf32> {
      %y = dist.all_reduce sum %x over <@mesh {data}> : (tensor<1xf32>) -> tensor<1xf32>
      %z = dist.all_reduce sum %y over <@mesh {data}> : (tensor<1xf32>) -> tensor<1xf32>
      return %z : tensor<1xf32>
    }
    func.func @b(%x: tensor<1xf32>) -> tensor<1xf32> {
      %y = dist.all_reduce sum %x over <@mesh {data}> : (tensor<1xf32>) -> tensor<1xf32>
      %z = train.scale %y by 3.0 : (tensor<1xf32>) -> tensor<1xf32>
      %w = dist.all_reduce sum %z over <@mesh {data}> : (tensor<1xf32>) -> tensor<1xf32>
      return %w : tensor<1xf32>
    })";
  ASSERT_TRUE(succeeded(run(text, {"a", "b"}))) << messages;
  EXPECT_EQ(result(0), Numbers({48}));
  EXPECT_EQ(result(1), Numbers({48}));
}

TEST_F(Ranks, DeadlockIsReported) {
  StringRef text = R"(
    dist.mesh @mesh ["data" = 2]
    func.func @a(%x: tensor<1xf32>) -> tensor<1xf32> {
      %y = dist.all_reduce sum %x over <@mesh {data}> : (tensor<1xf32>) -> tensor<1xf32>
      return %y : tensor<1xf32>
    }
    func.func @b(%x: tensor<1xf32>) -> tensor<1xf32> {
      return %x : tensor<1xf32>
    })";
  EXPECT_TRUE(failed(run(text, {"a", "b"})));
  EXPECT_NE(messages.find("deadlock: rank 0 waits here"), std::string::npos) << messages;
  EXPECT_NE(messages.find("rank 1 has ended"), std::string::npos) << messages;
}

TEST_F(Ranks, DifferentCollectivesAreReported) {
  StringRef text = R"(
    dist.mesh @mesh ["data" = 2]
    func.func @a(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = dist.all_reduce sum %x over <@mesh {data}> : (tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }
    func.func @b(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = dist.permute %x from [1, 0] over <@mesh {data}> : (tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    })";
  EXPECT_TRUE(failed(run(text, {"a", "b"})));
  EXPECT_NE(messages.find("of its group is at"), std::string::npos) << messages;
}

TEST_F(Ranks, OtherMeshSizeIsReported) {
  StringRef text = R"(
    dist.mesh @mesh ["data" = 4]
    func.func @a(%x: tensor<1xf32>) -> tensor<1xf32> {
      %y = dist.all_reduce sum %x over <@mesh {data}> : (tensor<1xf32>) -> tensor<1xf32>
      return %y : tensor<1xf32>
    })";
  EXPECT_TRUE(failed(run(text, {"a", "a"})));
  EXPECT_NE(messages.find("use --ranks 4"), std::string::npos) << messages;
}

/// Global tensors go in and come out, whatever the ranks hold.
TEST_F(Ranks, SessionsScatterAndGather) {
  module = parseSourceString<ModuleOp>(R"(
    dist.mesh @mesh ["data" = 2, "tensor" = 2]
    train.variable @w : tensor<2xf32> init <"constant", 1.0 : f64>
        {dist.global = tensor<4xf32, #dist.sharding<@mesh, [ {tensor} ]>>}
    func.func @f(%x: tensor<2x4xf32> {dist.global = tensor<4x4xf32, #dist.sharding<@mesh, [ {data}, {} ]>>})
        -> (tensor<2x2xf32> {dist.global = tensor<4x4xf32, #dist.sharding<@mesh, [ {data}, {tensor} ]>>},
            tensor<f32> {dist.global = tensor<f32, #dist.sharding<@mesh, [], partial = {data, tensor}>>}) {
      %w = train.get @w : tensor<2xf32>
      %part = dist.slice %x dim 1 over <@mesh {tensor}> : (tensor<2x4xf32>) -> tensor<2x2xf32>
      %y = train.mul %part, %w : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
      %total = train.reduce sum %y over [0, 1] : (tensor<2x2xf32>) -> tensor<f32>
      train.set @w, %w : tensor<2xf32>
      return %y, %total : tensor<2x2xf32>, tensor<f32>
    })",
                                       &context);
  ASSERT_TRUE(module) << messages;
  FailureOr<Session> session = Session::create(*module, 0, Precision::F64);
  ASSERT_TRUE(succeeded(session));
  EXPECT_EQ(session->ranks(), 4);
  train::VariableOp variable = session->variables()[0];
  Tensor w(session->globalType(variable)), x(w.elementType(), {4, 4});
  for (int i = 0; i < 4; ++i)
    w.writeFloats()[i] = i + 1;
  double total = 0;
  for (int i = 0; i < 16; ++i) {
    x.writeFloats()[i] = i;
    total += i * (i % 4 + 1);
  }
  session->setVariable(variable, w);
  TensorList out;
  ASSERT_TRUE(succeeded(session->run(session->lookup("f"), {x}, out))) << messages;
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(out[0].floats()[i], i * (i % 4 + 1));
  EXPECT_EQ(out[1].asFloat(), total);
  EXPECT_EQ(session->getVariable(variable)->floats(), w.floats());
  EXPECT_TRUE(failed(Session::create(*module, 2, Precision::F64)));
}
