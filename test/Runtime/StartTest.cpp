//===- StartTest.cpp - ranks that are started differently -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Fake.h"

#include <arpa/inet.h>
#include <filesystem>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace testing_process;
using testing::HasSubstr;

class StartTest : public FakeTest {
protected:
  StartTest() { port = 20000 + int(getpid() % 20000); }

  /// Runs two ranks, each with its own arguments and environment.
  Result pair(Launcher launcher, const std::string &first, const std::string &second,
              const std::string &environment = "", const std::string &other = "") {
    std::string exe = std::string(FAKE_PROGRAM) + " --tokens u8 ";
    if (launcher == Mpi)
      return run("export FAKE_DATA=2; exec mpirun --allow-run-as-root --oversubscribe -n 1 " + exe +
                 first + " : -n 1 " + exe + second);
    std::string variables = "export FAKE_DATA=2 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
                            std::to_string(port++) + "; ";
    return run(variables + other + " RANK=1 " + exe + second + " & " + environment + " RANK=0 " +
               exe + first + "; code=$?; wait $! || code=$?; exit $code");
  }

  std::string data(const std::string &name = "data.bin") const {
    return "--data " + path(name) + " ";
  }

  int port;
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
    expectFailure(pair(Mpi, first, second), parts);
  // No launcher ends rank 1, so that it says the same some seconds later.
  const auto &[first, second, parts] = cases[0];
  Result result = pair(Tcp, first, second);
  EXPECT_EQ(result.code, 1);
  EXPECT_LT(result.seconds, 10);
  for (const std::string &part : parts)
    EXPECT_EQ(occurrences(result.output, part), 2) << part << " in " << result.output;
  EXPECT_FALSE(std::filesystem::exists(path("c")));
}

TEST_F(StartTest, WhatMayDifferDoes) {
  writeFile(path("copy.bin"), readFile(path("data.bin")));
  for (Launcher launcher : {Mpi, Tcp}) {
    Result result = pair(launcher, data() + "--steps 3 --metrics " + path("m"),
                         data("copy.bin") + "--steps 3 --lr 0.0003");
    EXPECT_EQ(result.code, 0) << result.output;
  }
}

TEST_F(StartTest, Secrets) {
  std::string arguments = data() + "--steps 1";
  std::string secret = "MESHWRIGHT_SECRET=0123456789abcdef0123456789abcdef";
  Result good = pair(Tcp, arguments, arguments, secret, secret);
  EXPECT_EQ(good.code, 0) << good.output;
  EXPECT_THAT(good.output, testing::Not(HasSubstr("warning")));

  Result bad = pair(Tcp, arguments, arguments, "timeout 3 env " + secret, secret + "x");
  EXPECT_NE(bad.code, 0);
  EXPECT_THAT(bad.output, HasSubstr("which says it is rank 1, and has another MESHWRIGHT_SECRET"));
  EXPECT_THAT(bad.output, HasSubstr("error: rank 1 calls rank 0 at 127.0.0.1:"));
  EXPECT_THAT(bad.output, testing::Not(HasSubstr("0123456789abcdef")));
  expectFailure(run("RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MESHWRIGHT_SECRET=short " +
                    std::string(FAKE_PROGRAM) + " --tokens u8 " + arguments),
                {"MESHWRIGHT_SECRET has 5 characters", "openssl rand -hex 32"});
}

// Their peers never come: MESHWRIGHT_TIMEOUT is the limit of this wait too.
TEST_F(StartTest, LonelyRanksEnd) {
  std::string variables = "export FAKE_DATA=2 MESHWRIGHT_TIMEOUT=1 WORLD_SIZE=2 "
                          "MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(port) + "; ";
  std::string exe = std::string(FAKE_PROGRAM) + " --tokens u8 --steps 1 " + data();
  expectFailure(run(variables + "RANK=0 exec " + exe),
                {"rank 0 waits at 127.0.0.1:", "for 1 of 2 ranks (1)", "nobody has come for 1 s"});
  expectFailure(run(variables + "RANK=1 exec " + exe),
                {"rank 1 cannot reach rank 0 at 127.0.0.1:", "nobody has come for 1 s"});
  // What mpirun has started instead of rank 1 never calls MPI.
  Result result = run("export FAKE_DATA=2 MESHWRIGHT_TIMEOUT=1; exec mpirun --allow-run-as-root "
                      "--oversubscribe -n 1 " + exe + " : -n 1 sleep 60");
  expectFailure(result, {"rank 0: waiting for 1 s in the start of MPI; those are missing that print "
                         "no such report",
                         "rank 0 waited longer than 1 s for others"});
}

// No processor has AMD's four-operand instructions any more.
TEST_F(StartTest, CodeForAnotherProcessor) {
  std::string steps = "--steps 1";
  EXPECT_EQ(train(steps, 1, 1, Threads, "FAKE_PROCESSOR='sse4.2 popcnt '").code, 0);
  expectFailure(train(steps, 1, 1, Threads, "FAKE_PROCESSOR='sse4.2 fma4 f16c xop '"),
                {"made for a processor with fma4, xop, which this machine's lacks", "--cpu x86-64-v3"});
}

// More connections than a process may have open push out the oldest of those that say nothing.
TEST_F(StartTest, FloodsDoNotEndAJob) {
  std::string exe = std::string(FAKE_PROGRAM) + " --tokens u8 --steps 1 " + data();
  std::string variables = "export FAKE_DATA=2 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
                          std::to_string(port) + "; ";
  Command first(variables + "ulimit -n 40; RANK=0 exec " + exe);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<int> files;
  for (int tries = 0; files.size() < 100 && tries < 10000; ++tries) {
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(file, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0) {
      files.push_back(file);
    } else {
      close(file);
      usleep(1000);
    }
  }
  EXPECT_EQ(files.size(), 100u);
  Result second = run(variables + "RANK=1 exec " + exe);
  EXPECT_EQ(second.code, 0) << second.output;
  EXPECT_LT(second.seconds, 10);
  Result result = first.wait();
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("has not said who it is, to make room"));
  for (int file : files)
    close(file);
}
