//===- RendezvousTest.cpp - ranks with GPUs that meet, and strangers -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Ranks are threads that meet at this machine's own addresses, while the test connects as
// strangers would, and executables, which need no GPU to get so far.
//
//===----------------------------------------------------------------------===//
#include "cuda/Rendezvous.h"

#include "Process.h"
#include "common/monitor/Error.h"
#include "common/monitor/RankStatus.h"

#include <arpa/inet.h>
#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace meshwright;
using namespace meshwright::cuda;
using namespace testing_process;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

static const std::string job = "0123456789abcdef";

static sockaddr_in loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

static int freePort() {
  int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof(address);
  bind(file, reinterpret_cast<sockaddr *>(&address), length);
  getsockname(file, reinterpret_cast<sockaddr *>(&address), &length);
  close(file);
  return ntohs(address.sin_port);
}

namespace {
/// A connection that a stranger makes to where rank 0 listens, or will in a moment.
struct Stranger {
  explicit Stranger(int port) {
    sockaddr_in address = loopback(port);
    for (int tries = 0; tries < 2000; ++tries) {
      file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connect(file, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0)
        return;
      close(file);
      usleep(5000);
    }
    throw std::runtime_error("nothing listens there");
  }
  Stranger(const Stranger &) = delete;
  ~Stranger() { close(file); }
  void say(const void *data, size_t bytes) const { ::send(file, data, bytes, MSG_NOSIGNAL); }
  template <typename Message> Message hear() const {
    Message message;
    EXPECT_EQ(recv(file, &message, sizeof(message), MSG_WAITALL), ssize_t(sizeof(message)));
    return message;
  }
  bool isClosed() const {
    pollfd entry = {file, POLLIN, 0};
    char byte;
    return poll(&entry, 1, 10000) == 1 && recv(file, &byte, 1, MSG_DONTWAIT) <= 0;
  }
  int file;
};

Hello helloOf(uint32_t rank, uint32_t size, const std::string &plan = job) {
  Hello hello;
  hello.rank = rank;
  hello.size = size;
  plan.copy(hello.plan, sizeof(hello.plan));
  return hello;
}

using Body = std::function<void(Meeting &, RankStatus &)>;

/// Ranks that are started one by one.
class RendezvousTest : public testing::Test {
protected:
  ~RendezvousTest() override { join(); }

  /// Starts a rank that meets the others, does `body` and waits for them at a barrier.
  void start(int rank, int size, const std::string &plan = job, Body body = {}) {
    errors.resize(size_t(size));
    while (statuses.size() < size_t(size))
      statuses.push_back(std::make_unique<RankStatus>(int(statuses.size())));
    threads.emplace_back([this, rank, size, plan, body] {
      std::string error;
      try {
        Meeting meeting = meetAt(master, plan, rank, size, *statuses[size_t(rank)]);
        if (body)
          body(meeting, *statuses[size_t(rank)]);
        meeting.world->barrier();
      } catch (const std::exception &thrown) {
        error = thrown.what();
      }
      errors[size_t(rank)] = error;
    });
  }

  void join() {
    for (std::thread &thread : threads)
      thread.join();
    threads.clear();
  }

  void expectStart() {
    join();
    for (const std::string &error : errors)
      EXPECT_EQ(error, "");
  }

  /// Whom `rank` waits for, as soon as it does.
  std::vector<int> awaitedBy(int rank) {
    for (int tries = 0; tries < 2000; ++tries, usleep(5000))
      if (RankStatus::Wait wait = statuses[size_t(rank)]->wait(); wait.waiting)
        return wait.peers;
    return {};
  }

  MasterAddress master{"127.0.0.1", freePort()};
  std::vector<std::string> errors; ///< by rank
  std::vector<std::unique_ptr<RankStatus>> statuses;
  std::vector<std::thread> threads;
};
} // namespace

TEST_F(RendezvousTest, RanksMeet) {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  addrinfo *found = nullptr;
  bool hasName = getaddrinfo(name, nullptr, nullptr, &found) == 0;
  if (hasName)
    freeaddrinfo(found);
  for (const char *host : {"127.0.0.1", "localhost", "127.0.1.1", hasName ? name : "127.0.0.1"}) {
    master.host = host;
    for (int rank : {2, 0, 3, 1})
      start(rank, 4);
    expectStart();
  }
}

// What a loop over all ranks' inputs gives; sums in the order of ranks.
TEST_F(RendezvousTest, WhatRanksSay) {
  constexpr int size = 4;
  constexpr int64_t many = 3000; // more than a block of sums
  auto input = [](int rank, int64_t i) { return 1.0f / float(3 + rank * 7 + i % 11); };
  Body body = [&](Meeting &meeting, RankStatus &) {
    RankGroup &world = *meeting.world;
    int self = world.rank();
    ASSERT_EQ(world.size(), size);
    std::vector<float> mine(many), all(size * many), sum(many), wanted(many);
    for (int64_t i = 0; i < many; ++i) {
      mine[size_t(i)] = input(self, i);
      for (int rank = 0; rank < size; ++rank)
        wanted[size_t(i)] = rank ? wanted[size_t(i)] + input(rank, i) : input(rank, i);
    }
    world.allGather(ElementType::F32, mine.data(), all.data(), many);
    for (int64_t i = 0; i < size * many; ++i)
      ASSERT_EQ(all[size_t(i)], input(int(i / many), i % many));
    world.allReduce(ElementType::F32, Reduction::Sum, mine.data(), sum.data(), many);
    EXPECT_EQ(sum, wanted);
    int32_t most = self == 2 ? 9 : self;
    world.allReduce(ElementType::I32, Reduction::Max, &most, &most, 1);
    EXPECT_EQ(most, 9);
    for (int root = 0; root < size; ++root) {
      double value = self == root ? root + 0.5 : 0;
      world.broadcast(ElementType::F64, &value, 1, root);
      EXPECT_EQ(value, root + 0.5);
    }
    // More than a socket holds, in both directions.
    std::vector<int32_t> window(size_t(1) << 21, self);
    if (self != 0) {
      world.send(ElementType::I32, window.data(), int64_t(window.size()), 0);
      world.receive(ElementType::I32, window.data(), int64_t(window.size()), 0);
      EXPECT_EQ(window, std::vector<int32_t>(window.size(), self * 10));
    }
    for (int rank = 1; self == 0 && rank < size; ++rank) {
      world.receive(ElementType::I32, window.data(), int64_t(window.size()), rank);
      EXPECT_EQ(window, std::vector<int32_t>(window.size(), rank));
      std::fill(window.begin(), window.end(), rank * 10);
      world.send(ElementType::I32, window.data(), int64_t(window.size()), rank);
    }
    world.allGather(ElementType::F32, nullptr, nullptr, 0);
  };
  for (int rank = 0; rank < size; ++rank)
    start(rank, size, job, body);
  expectStart();
}

TEST_F(RendezvousTest, BarriersHold) {
  std::atomic<int> arrived{0};
  for (int rank = 0; rank < 4; ++rank)
    start(rank, 4, job, [&](Meeting &meeting, RankStatus &) {
      for (int round = 1; round <= 50; ++round) {
        ++arrived;
        meeting.world->barrier();
        EXPECT_GE(arrived.load(), 4 * round);
      }
    });
  expectStart();
}

TEST_F(RendezvousTest, RanksOutOfStepFail) {
  start(0, 2, job, [](Meeting &meeting, RankStatus &) {
    int32_t words[2];
    meeting.world->receive(ElementType::I32, words, 2, 1);
  });
  start(1, 2, job, [](Meeting &meeting, RankStatus &) {
    int32_t word = 1;
    meeting.world->send(ElementType::I32, &word, 1, 0);
  });
  join();
  EXPECT_THAT(errors[0], HasSubstr("rank 1 sent 4 bytes, but 8 were expected"));
}

TEST_F(RendezvousTest, StrangersAreDroppedAndDelayNobody) {
  start(0, 2);
  { Stranger gone(master.port); }
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int i = 0; i < 100; ++i)
    strangers.push_back(std::make_unique<Stranger>(master.port));
  for (const std::string &words :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(sizeof(Hello), '\0'),
        std::string(100000, '\xff')}) {
    strangers.push_back(std::make_unique<Stranger>(master.port));
    strangers.back()->say(words.data(), words.size());
  }
  EXPECT_TRUE(strangers.back()->isClosed());
  // One stops in the middle of saying that it is rank 1.
  Hello hello = helloOf(1, 2);
  strangers.front()->say(&hello, sizeof(hello) - 1);
  auto begin = Clock::now();
  start(1, 2);
  expectStart();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(4));
}

// Of two jobs with one MASTER_PORT the other's rank is sent away, and the place stays free.
TEST_F(RendezvousTest, OthersAreTurnedAway) {
  testing::internal::CaptureStderr();
  start(0, 3);
  auto turnedAway = [&](int rank, int size, const std::string &plan) {
    start(rank, size, plan);
    threads.back().join();
    threads.pop_back();
    std::string error = errors[size_t(rank)];
    errors.resize(3);
    errors[size_t(rank) % 3] = "";
    return error;
  };
  EXPECT_THAT(turnedAway(1, 3, "fedcba9876543210"),
              testing::AllOf(HasSubstr("rank 1 calls rank 0 at 127.0.0.1:"),
                             HasSubstr("with the plan fedcba9876543210, but this job's is " + job),
                             HasSubstr("MASTER_PORT of its own")));
  EXPECT_THAT(turnedAway(1, 4, job), HasSubstr("rank 1 of 4, but there are 3"));
  start(1, 3);
  while (awaitedBy(0) != std::vector<int>{2})
    usleep(1000);
  EXPECT_THAT(turnedAway(1, 3, job), HasSubstr("that rank is there already"));
  start(2, 3);
  expectStart();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("note: rank 0 drops the connection from 127.0.0.1:"));
}

// Its own message says why a rank has gone; the others need not wait for the deadline.
TEST_F(RendezvousTest, ARankThatGoesEndsTheOthers) {
  start(0, 4);
  start(2, 4);
  {
    Stranger one(master.port);
    Hello hello = helloOf(1, 4);
    one.say(&hello, sizeof(hello));
    std::array<char, 256> answer = one.hear<std::array<char, 256>>();
    EXPECT_EQ(answer[8], '\0');
    while (one.hear<uint32_t>() != 1u) {
    }
  }
  join();
  EXPECT_THAT(errors[0], HasSubstr("rank 1 has ended"));
  EXPECT_THAT(errors[2], HasSubstr("rank 0 has ended"));
}

// Later too, be it in a wait or where nobody waits for it.
TEST_F(RendezvousTest, ARankThatEndsIsMissed) {
  for (bool waits : {false, true}) {
    for (int rank : {0, 1})
      start(rank, 3, job, [&](Meeting &meeting, RankStatus &) {
        if (waits)
          return;
        for (int tries = 0; tries < 2000 && meeting.lostPeer() < 0; ++tries)
          usleep(5000);
        throw LostRank(meeting.lostPeer());
      });
    start(2, 3, job, [](Meeting &, RankStatus &) { throw std::runtime_error("on purpose"); });
    join();
    EXPECT_THAT(errors[0], HasSubstr("rank 2 has ended"));
    EXPECT_THAT(errors[1], HasSubstr("rank 0 has ended"));
  }
}

TEST_F(RendezvousTest, WaitsNameWhoIsMissing) {
  start(0, 4);
  start(2, 4);
  while (awaitedBy(0) != std::vector<int>{1, 3})
    usleep(1000);
  EXPECT_EQ(awaitedBy(2), std::vector<int>{0});
  EXPECT_THAT(statuses[0]->activity.load(), HasSubstr("meeting the other ranks at 127.0.0.1:"));
  // Rank 2 waits for rank 0 from its first call on, and learns of the others from the answers.
  auto isSaid = [&] {
    return std::string(statuses[2]->activity).find(", where 2 of 4 are missing") != std::string::npos;
  };
  for (int tries = 0; tries < 2000 && !isSaid(); ++tries)
    usleep(5000);
  EXPECT_THAT(statuses[2]->activity.load(), HasSubstr(", where 2 of 4 are missing"));
  std::atomic<bool> go{false};
  for (int rank : {1, 3})
    start(rank, 4, job, [&](Meeting &, RankStatus &) {
      while (!go)
        usleep(1000);
    });
  // Rank 0 and rank 2 are at the barrier, the others are not.
  while (awaitedBy(0) != std::vector<int>{1, 3} ||
         std::string(statuses[0]->activity).find("meeting") == 0)
    usleep(1000);
  go = true;
  expectStart();
}

/// What an executable says in the environment `variables`.
static Result told(const std::string &variables, double limit = 60) {
  TemporaryDirectory scratch;
  writeFile(scratch.path("data.bin"), std::string(5000, 'a'));
  return run("export FAKE_DATA=4 " + variables + "; exec " + FAKE_PROGRAM_CUDA +
                 " --tokens u8 --steps 1 --data " + scratch.path("data.bin"),
             limit);
}

TEST(RendezvousOfExecutables, LonelyRanksEnd) {
  std::string job = "WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(freePort());
  Result first = told(job + " RANK=0 MESHWRIGHT_TIMEOUT=6");
  EXPECT_EQ(first.code, 1);
  EXPECT_LT(first.seconds, 12);
  EXPECT_THAT(first.output, HasSubstr("note: rank 0 waits at 127.0.0.1:"));
  EXPECT_THAT(first.output, HasSubstr("for 3 of 4 ranks (1, 2, 3)"));
  EXPECT_THAT(first.output, HasSubstr("s in meeting the other ranks at 127.0.0.1:"));
  EXPECT_THAT(first.output, HasSubstr(" for ranks 1 2 3\n"));
  EXPECT_THAT(first.output, HasSubstr("error: rank 0 waited longer than 6 s for others"));
  Result other = told(job + " RANK=1 MESHWRIGHT_TIMEOUT=1");
  EXPECT_EQ(other.code, 1);
  EXPECT_LT(other.seconds, 7);
  EXPECT_THAT(other.output, HasSubstr("(Connection refused) for rank 0"));
  EXPECT_THAT(other.output, HasSubstr("error: rank 1 waited longer than 1 s for others"));
}

// Each rank that comes gives the others as long again, also those that only rank 0 has met.
TEST(RendezvousOfExecutables, RanksThatComeExtendTheDeadline) {
  std::string variables =
      "export FAKE_DATA=4 MESHWRIGHT_TIMEOUT=3 WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
      std::to_string(freePort());
  TemporaryDirectory scratch;
  writeFile(scratch.path("data.bin"), std::string(5000, 'a'));
  std::string exe = std::string(FAKE_PROGRAM_CUDA) + " --tokens u8 --steps 1 --data " + scratch.path("data.bin");
  std::string lines = variables + "; ";
  for (int rank = 0; rank < 4; ++rank)
    lines += "RANK=" + std::to_string(rank) + " " + exe + " & sleep 2; ";
  Result result = run(lines + "wait");
  // They meet and go on to look for a GPU.
  EXPECT_EQ(occurrences(result.output, "time-out"), 0) << result.output;
  EXPECT_THAT(result.output, testing::AnyOf(HasSubstr("libcuda.so.1"), HasSubstr("cuInit")));
}

TEST(RendezvousOfExecutables, EnvironmentsThatSayTooLittle) {
  EXPECT_THAT(told("RANK=0 WORLD_SIZE=4; unset MASTER_ADDR").output, HasSubstr("MASTER_ADDR must be set"));
  EXPECT_THAT(told("RANK=0 WORLD_SIZE=4 MASTER_ADDR=localhost MASTER_PORT=0").output,
              HasSubstr("MASTER_PORT is \"0\""));
  EXPECT_THAT(told("RANK=1 WORLD_SIZE=4 MASTER_ADDR=nowhere.invalid").output,
              HasSubstr("MASTER_ADDR nowhere.invalid: "));
  EXPECT_THAT(told("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=0; unset MASTER_ADDR").output,
              HasSubstr("set MASTER_ADDR"));
}
