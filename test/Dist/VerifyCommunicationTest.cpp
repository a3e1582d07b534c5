//===- VerifyCommunicationTest.cpp - random programs that meet, or do not ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Programs of pipeline stages are made from one random sequence of messages and
// collectives, each device taking what is its own in that order: they meet, with
// any room for messages. Then one op is broken.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <gtest/gtest.h>

#include <random>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace {
enum class Break { Nothing, Drop, Type, Channel, Kind, Circle, Declaration };

class VerifyCommunication : public testing::Test {
protected:
  VerifyCommunication() {
    DialectRegistry registry;
    registry.insert<arith::ArithDialect, func::FuncDialect, train::TrainDialect, DistDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  unsigned pick(unsigned n) { return random() % n; }

  /// Modules for `stages` devices and 2 data ranks each.
  std::string programs(unsigned stages, Break how) {
    std::vector<std::vector<std::string>> ops(stages);
    std::vector<bool> isMessage;
    std::vector<std::pair<unsigned, size_t>> places; // of each op
    auto add = [&](unsigned stage, std::string text, bool message) {
      places.push_back({stage, ops[stage].size()});
      isMessage.push_back(message);
      ops[stage].push_back(std::move(text));
    };
    for (unsigned i = 0, count = 5 + pick(30); i < count; ++i) {
      std::string value = "%x" + std::to_string(pick(2) ? 8 : 4), n = std::to_string(i);
      std::string type = "tensor<" + value.substr(2) + "xf32>";
      switch (pick(4)) {
      case 0: // everybody, or only the data ranks of each stage
        for (unsigned s = 0; s < stages; ++s)
          add(s,
              "%a" + n + " = dist.all_reduce sum " + value + " over <@mesh {" +
                  (i % 2 ? "pipe" : "data, pipe") + "}> : (" + type + ") -> " + type,
              false);
        break;
      case 1:
        for (unsigned s = 0; s < stages; ++s)
          ops[s].push_back("%d" + n + " = dist.all_reduce sum " + value +
                           " over <@mesh {data}> : (" + type + ") -> " + type);
        break;
      default: {
        unsigned from = pick(stages), to = (from + 1 + pick(stages - 1)) % stages;
        std::string rest = " channel " + std::to_string(pick(2)) + " over <@mesh {pipe}> : " + type;
        add(from, "dist.send " + value + " to " + std::to_string(to) + rest, true);
        add(to, "%r" + n + " = dist.recv from " + std::to_string(from) + rest, true);
      }
      }
    }
    // Where the broken op is: some have no op of the kind that is needed.
    std::vector<std::pair<unsigned, size_t>> fitting;
    for (size_t i = 0; i < places.size(); ++i)
      if (how == Break::Drop || isMessage[i] == (how != Break::Kind))
        fitting.push_back(places[i]);
    auto replace = [](std::string &text, const std::string &from, const std::string &to) {
      for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    };
    if (how == Break::Circle) {
      // Both receive before they send: nobody begins.
      for (unsigned s = 0; s < 2; ++s) {
        std::string other = std::to_string(1 - s) + " channel 9 over <@mesh {pipe}> : tensor<8xf32>";
        size_t at = pick(unsigned(ops[s].size() + 1));
        ops[s].insert(ops[s].begin() + at, {"%c = dist.recv from " + other, "dist.send %x8 to " + other});
      }
    } else if (how != Break::Nothing && how != Break::Declaration) {
      if (fitting.empty())
        return "";
      auto [stage, at] = fitting[pick(unsigned(fitting.size()))];
      std::string &op = ops[stage][at];
      bool narrow = op.find("tensor<4x") != std::string::npos;
      if (how == Break::Drop)
        op.clear();
      else if (how == Break::Type) {
        replace(op, narrow ? "tensor<4x" : "tensor<8x", narrow ? "tensor<8x" : "tensor<4x");
        replace(op, narrow ? "%x4" : "%x8", narrow ? "%x8" : "%x4");
      } else if (how == Break::Channel)
        replace(op, "channel ", "channel 3");
      else
        replace(op, "sum", "max");
    }
    std::string mesh =
        "dist.mesh @mesh [\"pipe\" = " + std::to_string(stages) + ", \"data\" = 2]\n";
    std::string text = mesh;
    unsigned declared = how == Break::Declaration ? 1 + pick(stages - 1) : 0;
    for (unsigned s = 0; s < stages; ++s) {
      text += "module @stage" + std::to_string(s) +
              " attributes {dist.coordinates = {pipe = " + std::to_string(s) + " : i64}} {\n" +
              mesh;
      if (declared && s == declared) {
        text += "func.func private @step(tensor<8xf32>, tensor<4xf32>)\n}\n";
        continue;
      }
      // Some of it in a function that is called.
      size_t cut = pick(unsigned(ops[s].size() + 1));
      std::string arguments = "(%x8: tensor<8xf32>, %x4: tensor<4xf32>) {\n";
      text += "func.func private @first" + arguments;
      for (size_t i = 0; i < ops[s].size(); ++i) {
        if (i == cut)
          text += "return }\nfunc.func @step" + arguments +
                  "func.call @first(%x8, %x4) : (tensor<8xf32>, tensor<4xf32>) -> ()\n";
        text += ops[s][i] + "\n";
      }
      if (cut == ops[s].size())
        text += "return }\nfunc.func @step" + arguments +
                "func.call @first(%x8, %x4) : (tensor<8xf32>, tensor<4xf32>) -> ()\n";
      text += "return }\n}\n";
    }
    return text;
  }

  /// Whether the pass accepts `text`; `report` gets what it says.
  bool accepts(const std::string &text, int64_t capacity, std::string &report) {
    unsigned notes = 0;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      report += diagnostic.str() + "\n";
      notes += unsigned(std::distance(diagnostic.getNotes().begin(), diagnostic.getNotes().end()));
      return success();
    });
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << report << text;
    if (!module)
      return false;
    PassManager manager(&context);
    DistVerifyCommunicationOptions options;
    options.capacity = capacity;
    manager.addPass(createDistVerifyCommunication(options));
    bool accepted = succeeded(manager.run(*module));
    if (!accepted) {
      EXPECT_GE(notes, 1u) << "does not show the other place: " << report;
    }
    return accepted;
  }

  MLIRContext context;
  std::mt19937_64 random;
};
} // namespace

TEST_F(VerifyCommunication, AcceptsProgramsThatMeet) {
  for (unsigned seed = 0; seed < 200 && !HasFailure(); ++seed) {
    random.seed(seed);
    std::string report, text = programs(2 + pick(3), Break::Nothing);
    EXPECT_TRUE(accepts(text, seed % 3, report)) << "seed " << seed << "\n" << report << text;
  }
}

TEST_F(VerifyCommunication, RefusesBrokenPrograms) {
  for (Break how : {Break::Drop, Break::Type, Break::Channel, Break::Kind, Break::Circle,
                    Break::Declaration})
    for (unsigned seed = 0; seed < 60 && !HasFailure(); ++seed) {
      random.seed(seed);
      std::string report, text = programs(2 + pick(3), how);
      if (text.empty())
        continue;
      EXPECT_FALSE(accepts(text, seed % 3, report))
          << "seed " << seed << ", break " << int(how) << "\n"
          << text;
    }
}

// A hundred layers, thousands of microbatches and a thousand devices take no time.
TEST_F(VerifyCommunication, IsFastOnLargeMeshes) {
  std::string mesh = "dist.mesh @mesh [\"pipe\" = 16, \"data\" = 64, \"tensor\" = 8]\n";
  std::string text = mesh;
  for (int s = 0; s < 16; ++s) {
    std::string here = std::to_string(s), last = std::to_string(s - 1), next = std::to_string(s + 1);
    std::string type = " channel 0 over <@mesh {pipe}> : tensor<8xf32>\n";
    text += "module @stage" + here + " attributes {dist.coordinates = {pipe = " + here +
            " : i64}} {\n" + mesh +
            "func.func private @layer(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
            "%0 = dist.all_reduce sum %x over <@mesh {tensor}> : (tensor<8xf32>) -> tensor<8xf32>\n"
            "return %0 : tensor<8xf32> }\n"
            "func.func private @microbatch(%x: tensor<8xf32>) -> tensor<8xf32> {\n";
    text += s > 0 ? "%0 = dist.recv from " + last + type
                  : "%0 = train.add %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>\n";
    text += "%1 = train.repeat @layer x 100 carry(%0) each() shared() : (tensor<8xf32>) -> tensor<8xf32>\n";
    text += s < 15 ? "dist.send %1 to " + next + type : "";
    text += "return %1 : tensor<8xf32> }\n"
            "func.func @step(%x: tensor<8xf32>) {\n"
            "%0 = train.repeat @microbatch x 4096 carry(%x) each() shared() : (tensor<8xf32>) -> tensor<8xf32>\n"
            "return }\n}\n";
  }
  std::string report;
  auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(accepts(text, 1, report)) << report;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}
