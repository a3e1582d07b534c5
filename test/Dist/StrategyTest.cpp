//===- StrategyTest.cpp - meshes as the user says them ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Strategy/Seeds.h"

#include <gtest/gtest.h>

using namespace meshwright;
using namespace meshwright::dist;

static std::string errorOf(llvm::StringRef text) {
  llvm::Expected<Mesh> mesh = parseMesh(text);
  return mesh ? "" : llvm::toString(mesh.takeError());
}

TEST(ParseMesh, ReadsAxesOutermostFirst) {
  llvm::Expected<Mesh> mesh = parseMesh("pipe=2, data=4,tensor=1");
  ASSERT_TRUE(bool(mesh));
  ASSERT_EQ(mesh->axes.size(), 3u);
  EXPECT_EQ(mesh->axes[0].name, "pipe");
  EXPECT_EQ(mesh->axes[1].size, 4);
  EXPECT_EQ(mesh->size(), 8);
  EXPECT_EQ(parseMesh("")->size(), 1);
}

TEST(ParseMesh, NamesWhatIsWrong) {
  EXPECT_EQ(
      errorOf("dta=2"),
      "mesh axis 'dta' is unknown; did you mean 'data'? The axes are pipe, replica, data, context, "
      "expert, tensor");
  // What other systems call them.
  for (auto [name, meant] : {std::pair("dp", "'data'"),
                             {"tp", "'tensor'"},
                             {"pp", "'pipe'"},
                             {"cp", "'context'"},
                             {"ep", "'expert'"},
                             {"DP", "'data'"},
                             {"fsdp", "'data', with --zero 3"},
                             {"tensor-parallel", "'tensor'"},
                             {"tesnor", "'tensor'"}})
    EXPECT_TRUE(llvm::StringRef(errorOf(std::string(name) + "=2"))
                    .contains("did you mean " + std::string(meant) + "?"))
        << name;
  EXPECT_EQ(
      errorOf("width=2"),
      "mesh axis 'width' is unknown; the axes are pipe, replica, data, context, expert, tensor");
  EXPECT_EQ(errorOf("data=2,data=2"), "mesh axis 'data' is given twice");
  EXPECT_EQ(errorOf("data=0"),
            "mesh axis 'data' needs a number of devices, found '0'; write it as data=2");
  EXPECT_EQ(errorOf("data"),
            "mesh axis 'data' needs a number of devices, found ''; write it as data=2");
}

TEST(Strategy, BatchIsDividedByReplicaAndData) {
  Mesh mesh = *parseMesh("replica=2,pipe=3,data=4");
  EXPECT_EQ(batchAxes(mesh), (Axes{0, 2}));
  EXPECT_EQ(batchParts(mesh), 8);
  EXPECT_EQ(batchParts(*parseMesh("data=1")), 1);
}

TEST(ParseMesh, MakesPartsOfTensor) {
  Mesh mesh = *parseMesh("data=2,tensor=2x4x3");
  ASSERT_EQ(mesh.axes.size(), 4u);
  EXPECT_EQ(mesh.axes[1].name, "tensor.0");
  EXPECT_EQ(mesh.axes[2].name, "tensor.1");
  EXPECT_EQ(mesh.axes[2].size, 4);
  EXPECT_EQ(mesh.named("tensor"), (Axes{1, 2, 3}));
  EXPECT_EQ(meshText(mesh), "data=2,tensor=24");
  EXPECT_EQ(meshText(mesh, /*parts=*/true), "data=2,tensor=2x4x3");
  EXPECT_EQ(batchAxes(mesh), (Axes{0, 3})) << "the third part divides the batch";
  EXPECT_TRUE(llvm::errorToBool(parseMesh("tensor=2x2x2x2").takeError()));
  EXPECT_TRUE(llvm::errorToBool(parseMesh("data=2x2").takeError()));
  EXPECT_TRUE(llvm::errorToBool(parseMesh("tensor=2x").takeError()));
}

TEST(ParseMesh, KnowsAMeshWhoseAxesHaveParts) {
  auto same = [](const char *mesh, const char *asked) {
    return isRefinement(*parseMesh(mesh), *parseMesh(asked));
  };
  EXPECT_TRUE(same("tensor=2x2", "tensor=2x2"));
  EXPECT_TRUE(same("data=2,tensor=2x2", "data=2,tensor=4"));
  EXPECT_FALSE(same("tensor=4", "tensor=2x2"));
  EXPECT_FALSE(same("tensor=4x2", "tensor=2x4"));
  EXPECT_FALSE(same("tensor=2x2", "tensor=8"));
  EXPECT_FALSE(same("tensor=2,data=2", "data=2,tensor=2"));
  EXPECT_FALSE(same("data=2,tensor=2", "data=2"));
  EXPECT_FALSE(same("data=2", "data=2,tensor=1"));
}

TEST(Strategy, NeedsItsAxes) {
  auto refused = [](const DistApplyStrategyOptions &strategy, const char *mesh) {
    return llvm::errorToBool(
        checkStrategy(strategy, *parseMesh(mesh), [](unsigned) { return false; }));
  };
  DistApplyStrategyOptions sequence, square, none;
  sequence.sequenceParallel = true;
  square.tensor2d = true;
  EXPECT_TRUE(refused(sequence, "data=2"));
  EXPECT_FALSE(refused(sequence, "data=2,tensor=1"));
  EXPECT_TRUE(refused(square, "tensor=4"));
  EXPECT_FALSE(refused(square, "tensor=2x2"));
  EXPECT_TRUE(refused(none, "tensor=2x2"));
  EXPECT_FALSE(refused(none, "pipe=2"));
  EXPECT_FALSE(refused(none, "expert=2"));
  DistApplyStrategyOptions server, both;
  server.dataSync = both.dataSync = DataSync::parameterServer;
  both.zero = 1;
  EXPECT_FALSE(refused(server, "data=2,tensor=2"));
  EXPECT_FALSE(refused(server, "replica=2"));
  EXPECT_TRUE(refused(server, "tensor=2"));
  EXPECT_TRUE(refused(server, "data=2,expert=2"));
  EXPECT_TRUE(refused(server, "pipe=2,data=2"));
  EXPECT_TRUE(refused(both, "data=2"));
}
