//===- StartTest.cpp - ranks that are started differently -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Fake.h"

#include <filesystem>

using namespace testing_process;
using testing::HasSubstr;

class StartTest : public FakeTest {
protected:
  /// Runs two ranks, each with its own arguments.
  Result pair(const std::string &first, const std::string &second) {
    std::string exe = std::string(FAKE_PROGRAM) + " --tokens u8 ";
    return run("export FAKE_DATA=2; exec mpirun --allow-run-as-root --oversubscribe -n 1 " + exe +
               first + " : -n 1 " + exe + second);
  }

  std::string data(const std::string &name = "data.bin") const {
    return "--data " + path(name) + " ";
  }
};

TEST_F(StartTest, RanksThatDisagreeSayOnWhat) {
  writeFile(path("copy.bin"), readFile(path("data.bin")));
  std::string changed = readFile(path("data.bin"));
  changed[4000] ^= 1;
  writeFile(path("other.bin"), changed);
  ASSERT_EQ(train("--steps 1 --save " + path("a")).code, 0);
  ASSERT_EQ(train("--steps 2 --save " + path("b")).code, 0);

  using Parts = std::vector<std::string>;
  const std::tuple<std::string, std::string, Parts> cases[] = {
      {data() + "--steps 3 --lr 1e-3", data("other.bin") + "--steps 3 --lr .1 --seed 9",
       {"--data is 5,000 bytes with contents ", " on rank 0 (", "/data.bin)", " on rank 1 (",
        "/other.bin): give every rank the same file"}},
      {data() + "--steps 3 --lr 1e-3", data("copy.bin") + "--steps 3 --lr .1 --seed 9",
       {"--lr is 0.001 on rank 0 but 0.1 on rank 1: start every rank with the same flags"}},
      {data() + "--steps 3", data() + "--steps 4", {"--steps is 3 on rank 0 but 4 on rank 1"}},
      {data() + "--steps 3 --save " + path("c"), data() + "--steps 3",
       {"--save is " + path("c") + " on rank 0 but not given on rank 1"}},
      {data() + "--steps 3 --resume " + path("a"), data() + "--steps 3 --resume " + path("b"),
       {"--resume is step 1, ", " on rank 0 (" + path("a/step-00000001"), "but step 2, "}}};
  for (const auto &[first, second, parts] : cases)
    expectFailure(pair(first, second), parts);
  EXPECT_FALSE(std::filesystem::exists(path("c")));
}

TEST_F(StartTest, WhatMayDifferDoes) {
  writeFile(path("copy.bin"), readFile(path("data.bin")));
  Result result = pair(data() + "--steps 3 --metrics " + path("m"),
                       data("copy.bin") + "--steps 3 --lr 0.0003");
  EXPECT_EQ(result.code, 0) << result.output;
}

// Their peers never come: MESHWRIGHT_TIMEOUT is the limit of this wait too.
TEST_F(StartTest, LonelyRanksEnd) {
  std::string exe = std::string(FAKE_PROGRAM) + " --tokens u8 --steps 1 " + data();
  // What mpirun has started instead of rank 1 never calls MPI.
  Result result = run("export FAKE_DATA=2 MESHWRIGHT_TIMEOUT=1; exec mpirun --allow-run-as-root "
                      "--oversubscribe -n 1 " + exe + " : -n 1 sleep 60");
  expectFailure(result, {"rank 0: waiting for 1 s in the start of MPI; ranks that print no such "
                         "report are missing",
                         "rank 0 waited longer than 1 s for others"});
}

// No processor has AMD's four-operand instructions any more.
TEST_F(StartTest, CodeForAnotherProcessor) {
  std::string steps = "--steps 1";
  EXPECT_EQ(train(steps, 1, 1, Threads, "FAKE_PROCESSOR='sse4.2 popcnt '").code, 0);
  expectFailure(train(steps, 1, 1, Threads, "FAKE_PROCESSOR='sse4.2 fma4 f16c xop '"),
                {"compiled for a CPU with fma4, xop, which this machine's CPU lacks", "--cpu x86-64-v3"});
}
