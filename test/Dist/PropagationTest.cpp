//===- PropagationTest.cpp - axes spread along factors ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Propagation/Propagation.h"

#include <gtest/gtest.h>

using namespace meshwright;
using namespace meshwright::dist;

namespace {
struct Table : Propagation {
  Table() : Propagation(Mesh{{{"a", 2}, {"b", 2}}}) {}

  void link(const char *name, llvm::StringRef text, llvm::ArrayRef<unsigned> operands,
            llvm::ArrayRef<unsigned> results,
            llvm::ArrayRef<std::pair<llvm::StringRef, int64_t>> known = {}) {
    llvm::SmallVector<int64_t> ranks;
    llvm::SmallVector<llvm::ArrayRef<int64_t>> shapes;
    for (unsigned node : operands) {
      ranks.push_back((*this)[node].shape.size());
      shapes.push_back((*this)[node].shape);
    }
    std::string error;
    ShardingRule rule = *parseShardingRule(text, ranks, error);
    EXPECT_TRUE(succeeded(inferFactorSizes(rule, shapes, known, error))) << error;
    llvm::SmallVector<unsigned> ends(operands);
    ends.append(results.begin(), results.end());
    addLink(name, rule, ends);
  }
  std::string str(unsigned node) { return (*this)[node].sharding.str(getMesh()); }
};
} // namespace

TEST(Propagation, GoesForwardAndBackward) {
  Table t;
  unsigned x = t.addNode("x", {8, 4}), w = t.addNode("w", {6, 4}), y = t.addNode("y", {8, 6});
  t.link("linear", "~b i, ~o i -> b o", {x, w}, {y});
  t.seed(x, {{Axes{0}, Axes{}}, {}, false}, {true, true});
  t.seed(w, {{Axes{1}, Axes{}}, {}, false}, {true, true});
  t.run();
  EXPECT_EQ(t.str(y), "[{a}, {b}]");

  Table back;
  x = back.addNode("x", {8, 4}), w = back.addNode("w", {6, 4}), y = back.addNode("y", {8, 6});
  back.link("linear", "~b i, ~o i -> b o", {x, w}, {y});
  back.seed(y, {{Axes{0}, Axes{1}}, {}, false}, {false, false});
  back.run();
  EXPECT_EQ(back.str(x), "[{a}, {}]");
  EXPECT_EQ(back.str(w), "[{b}, {}]");
}

TEST(Propagation, LeavesClosedDimensionsAlone) {
  Table t;
  unsigned x = t.addNode("x", {8, 4}), w = t.addNode("w", {6, 4}), y = t.addNode("y", {8, 6});
  t.link("linear", "~b i, ~o i -> b o", {x, w}, {y});
  t.seed(x, {{Axes{0}, Axes{1}}, {}, false}, {false, false});
  t.seed(w, Sharding::replicated(2), {false, false});
  t.run();
  EXPECT_EQ(t.str(w), "[{}, {}]");
  EXPECT_EQ(t.str(y), "[{a}, {}]");
}

TEST(Propagation, StopsAtWholeFactors) {
  Table t;
  unsigned x = t.addNode("x", {8, 4}), y = t.addNode("y", {8, 4});
  t.link("norm", "b d! -> b d!", {x}, {y});
  t.seed(x, {{Axes{0}, Axes{1}}, {}, false}, {false, false});
  t.run();
  EXPECT_EQ(t.str(y), "[{a}, {}]");
}

TEST(Propagation, GivesNoTensorAnAxisTwice) {
  Table t;
  unsigned x = t.addNode("x", {8, 8}), y = t.addNode("y", {8, 8}), z = t.addNode("z", {8, 8});
  t.link("add", "+i j, +i j -> i j", {x, y}, {z});
  t.seed(x, {{Axes{0}, Axes{}}, {}, false}, {false, false});
  t.seed(y, {{Axes{}, Axes{0}}, {}, false}, {false, false});
  t.run();
  EXPECT_EQ(t.str(z), "[{a}, {}]") << "of equal costs the first";
}

TEST(Propagation, SplitsDimensionsIntoFactors) {
  Table t;
  unsigned x = t.addNode("x", {8}), y = t.addNode("y", {2, 4});
  t.link("reshape", "(h d) -> h d", {x}, {y}, {{"h", 2}});
  Sharding both = Sharding::replicated(1);
  both.dims[0] = {0, 1};
  t.seed(x, both, {false});
  t.run();
  EXPECT_EQ(t.str(y), "[{a}, {b}]");
}

TEST(Propagation, ExplainsEveryAxisBackToItsSeed) {
  Table t;
  unsigned x = t.addNode("x", {8, 4}), y = t.addNode("y", {8, 4}), z = t.addNode("z", {8, 4});
  t.link("first", "i j -> i j", {x}, {y});
  t.link("second", "i j -> i j", {y}, {z});
  t.seed(x, {{Axes{0}, Axes{}}, {}, false}, {false, false});
  t.run();
  EXPECT_EQ(t.explain(z), "z is [{a}, {}]\n"
                          "  dimension 0 along a: from y dimension 0 through second; from x "
                          "dimension 0 through first; by seed");
}

TEST(Propagation, GivesParametersTheAxis) {
  // As sequence parallelism: x wants the axis for its rows, the weight for its own.
  Table t;
  unsigned x = t.addNode("x", {8, 4}), w = t.addNode("w", {6, 4}), y = t.addNode("y", {8, 6}),
           z = t.addNode("z", {8, 6});
  t.link("linear", "~b i, ~o i -> b o", {x, w}, {y});
  t.link("gelu", "b o -> b o", {y}, {z});
  t.seed(x, {{Axes{0}, Axes{}}, {}, false}, {false, false});
  t.seed(w, {{Axes{0}, Axes{}}, {}, false}, {false, false}, 0,
         [](unsigned) { return "tensor parallel"; });
  t.raise(w, Propagation::Parameter);
  t.run();
  EXPECT_EQ(t.str(z), "[{}, {a}]");
  EXPECT_EQ(t.str(x), "[{a}, {}]") << "what it has it keeps; the op's use is resharded";
  EXPECT_EQ(t.explain(y), "y is [{}, {a}]\n"
                          "  dimension 1 along a: from w dimension 0 through linear; by seed: "
                          "tensor parallel\n"
                          "  conflict at linear: a is wanted for b (96 bytes would move), o (64 "
                          "bytes would move); o got it by priority");
}

TEST(Propagation, DecidesByBytesLast) {
  Table t;
  unsigned x = t.addNode("x", {8, 8}), y = t.addNode("y", {8, 8}), z = t.addNode("z", {8, 8});
  unsigned heavy = t.addNode("heavy", {8, 8}, 64);
  t.link("add", "+i j, +i j -> i j", {x, y}, {z});
  t.link("sum", "+i j, +i j -> i j", {heavy, x}, {t.addNode("other", {8, 8})});
  t.seed(x, {{Axes{0}, Axes{}}, {}, false}, {false, false});
  t.seed(heavy, {{Axes{}, Axes{0}}, {}, false}, {false, false});
  t.run();
  EXPECT_EQ(t.str(z), "[{a}, {}]");
  EXPECT_EQ(t.str(4), "[{}, {a}]") << "moving x costs half of moving the other";
}

TEST(Propagation, LeavesReplicatedAxesOut) {
  Table t;
  unsigned x = t.addNode("x", {8, 4}), y = t.addNode("y", {8, 4});
  t.link("gelu", "i j -> i j", {x}, {y});
  t.seed(x, {{Axes{0}, Axes{1}}, {}, false}, {false, false});
  t.seed(y, Sharding::replicated(2), {true, true}, /*replicated=*/1);
  t.run();
  EXPECT_EQ(t.str(y), "[{}, {b}]");
}

TEST(Propagation, TakesTheHeaviestOfListsThatDisagree) {
  Table t;
  unsigned x = t.addNode("x", {8, 8}), heavy = t.addNode("heavy", {8, 8}, 64),
           z = t.addNode("z", {8, 8});
  t.link("add", "+i j, +i j -> i j", {x, heavy}, {z});
  t.seed(x, {{Axes{0}, Axes{}}, {}, false}, {false, false});
  t.seed(heavy, {{Axes{1}, Axes{}}, {}, false}, {false, false});
  t.run();
  EXPECT_EQ(t.str(z), "[{b}, {}]");
}
