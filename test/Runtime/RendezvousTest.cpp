//===- RendezvousTest.cpp - ranks that meet, and strangers -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Ranks are threads that meet by TCP on this machine's own addresses, while the
// test calls them as strangers and impostors would.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/RankStatus.h"
#include "cpu/Handshake.h"
#include "cpu/MessageCommunicator.h"
#include "cpu/TcpTransport.h"

#include <cerrno>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <thread>
#include <unistd.h>

using namespace meshwright;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

static const std::string secret = "sixteen characters at least";
static const std::string otherSecret = "sixteen characters at most.";

static Deadline soon() { return Clock::now() + std::chrono::seconds(20); }

static SocketAddress at(const char *host, int port) { return Socket::resolve(host, port)[0]; }

/// A connection to where something listens, or will in a moment.
static Socket connectTo(const SocketAddress &address) {
  for (Deadline end = soon(); Clock::now() < end;) {
    int error = 0;
    Socket socket = Socket::connect(address, error);
    pollfd entry = {socket.descriptor(), POLLOUT, 0};
    poll(&entry, 1, 5000);
    if (error == 0 && socket.error() == 0)
      return socket;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  throw std::runtime_error("nothing listens at " + address.text());
}

static bool isRefused(const SocketAddress &address) {
  int error = 0;
  Socket socket = Socket::connect(address, error);
  pollfd entry = {socket.descriptor(), POLLOUT, 0};
  poll(&entry, 1, socket.isOpen() ? 5000 : 0);
  return (error ? error : socket.error()) == ECONNREFUSED;
}

template <typename Message> static void tell(Socket &socket, const Message &message) {
  socket.sendAll(&message, sizeof(message), soon(), "telling");
}

template <typename Message> static Message hear(Socket &socket) {
  Message message;
  socket.receiveAll(&message, sizeof(message), soon(), "hearing");
  return message;
}

static bool isClosed(Socket &socket) {
  pollfd entry = {socket.descriptor(), POLLIN, 0};
  char byte;
  return poll(&entry, 1, 10000) == 1 && socket.receive(&byte, 1) == -1;
}

/// Has one end of a conversation run to its end.
static Handshake::State finish(Handshake &talk, Socket &socket) {
  Handshake::State state;
  for (Deadline end = soon(); (state = talk.advance(socket)) == Handshake::Talking;) {
    pollfd entry = {socket.descriptor(), short(talk.wantsToSend() ? POLLOUT : POLLIN), 0};
    poll(&entry, 1, 100);
    if (Clock::now() > end)
      break;
  }
  return state;
}

/// The job of all ranks here.
static Handshake::Job jobOf(int size, const std::string &own = "") {
  return {own, "0123456789abcdef", size};
}

static Hello helloOf(uint32_t from, uint32_t size, bool hasSecret) {
  Hello hello;
  hello.from = from;
  hello.size = size;
  hello.hasSecret = hasSecret;
  jobOf(0).plan.copy(hello.plan.data(), hello.plan.size());
  return hello;
}

namespace {
/// Ranks that are started one by one.
class RendezvousTest : public testing::Test {
protected:
  RendezvousTest() {
    master.port = Socket::listen(at("127.0.0.1", 0)).local().port();
    address = at("127.0.0.1", master.port);
  }
  ~RendezvousTest() override { join(); }

  /// Starts a rank that meets the others and then waits for them at a barrier.
  void start(int rank, int size, const std::string &own = "",
             const std::string &plan = jobOf(0).plan) {
    errors.resize(size_t(size), "never ended");
    TcpAddress mine = master;
    mine.secret = own;
    mine.plan = plan;
    threads.emplace_back([this, rank, size, mine] {
      try {
        RankStatus status(rank);
        MessageCommunicator world(openTcpTransport(rank, size, mine), status);
        world.barrier();
        errors[size_t(rank)] = "";
      } catch (const std::exception &error) {
        errors[size_t(rank)] = error.what();
      }
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

  TcpAddress master{"127.0.0.1", 0, 20};
  SocketAddress address;
  std::vector<std::string> errors; ///< by rank
  std::vector<std::thread> threads;
};
} // namespace

TEST(Reachable, RanksOfRankZerosMachineAreFoundFromOthers) {
  SocketAddress master = at("10.0.0.7", 29500);
  EXPECT_EQ(reachable(at("10.0.0.9", 0), 5000, master).text(), "10.0.0.9:5000");
  for (const char *own : {"127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1"})
    EXPECT_EQ(reachable(at(own, 0), 5000, master).text(), "10.0.0.7:5000");
  // On that machine itself the address it was seen at is where it listens.
  EXPECT_EQ(reachable(at("127.0.0.1", 0), 5000, at("127.0.1.1", 29500)).text(), "127.0.0.1:5000");
  EXPECT_EQ(reachable(at("::1", 0), 5000, at("127.0.0.1", 29500)).text(), "[::1]:5000");
}

// A name that a machine looks up to itself alone is another address elsewhere.
TEST(Reachable, NamesOfThisMachine) {
  auto isOther = [](const char *host, const char *found, bool oneMachine = false) {
    TcpAddress master{host, 29500};
    master.oneMachine = oneMachine;
    return isOtherElsewhere(master, {at(found, 29500)});
  };
  EXPECT_TRUE(isOther("node1", "127.0.1.1"));
  EXPECT_FALSE(isOther("node1", "127.0.1.1", /*oneMachine=*/true));
  EXPECT_FALSE(isOther("node1", "10.0.0.7"));
  EXPECT_FALSE(isOther("127.0.0.1", "127.0.0.1"));
  EXPECT_FALSE(isOther("::1", "::1"));
  EXPECT_FALSE(isOther("localhost", "127.0.0.1"));
}

TEST_F(RendezvousTest, RanksMeet) {
  for (const char *host : {"127.0.0.1", "localhost", "127.0.1.1"})
    for (const std::string &known : {std::string(), secret}) {
      master.host = host;
      for (int rank : {2, 0, 3, 1})
        start(rank, 4, known);
      expectStart();
    }
}

// Be it found at 127.0.1.1, as on Debian's machines, or at an address that others reach.
TEST_F(RendezvousTest, RanksMeetAtTheNameOfTheirMachine) {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  master.host = name;
  try {
    Socket::resolve(name, 0);
  } catch (const std::exception &) {
    GTEST_SKIP() << "this machine does not know its own name";
  }
  for (int rank : {2, 0, 1})
    start(rank, 3);
  expectStart();
}

TEST_F(RendezvousTest, RankZeroListensWhereItWasAsked) {
  start(0, 2);
  connectTo(address);
  EXPECT_TRUE(isRefused(at("127.0.0.2", master.port)));
  start(1, 2);
  expectStart();
}

TEST_F(RendezvousTest, AnAddressOfAnotherMachineIsRefused) {
  master.host = "198.51.100.77"; // for documentation: nobody has it
  start(0, 2);
  join();
  EXPECT_THAT(errors[0], HasSubstr("cannot listen at MASTER_ADDR 198.51.100.77"));
  EXPECT_THAT(errors[0], HasSubstr("MESHWRIGHT_SECRET"));
}

TEST_F(RendezvousTest, GarbageIsDropped) {
  for (const std::string &known : {std::string(), secret}) {
    start(0, 2, known);
    connectTo(address); // and gone again
    std::vector<Socket> strangers;
    for (const std::string &words :
         {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(12, '\1'), std::string(sizeof(Hello), '\0'),
          std::string(100000, '\xff'), std::string("\xa1\xc0\x57\x4d\x09\0\0\0\0\0\0\0", 12)}) {
      strangers.push_back(connectTo(address));
      strangers.back().send(words.data(), words.size());
    }
    EXPECT_TRUE(isClosed(strangers[2]));
    start(1, 2, known);
    expectStart();
  }
}

// Five seconds each they took once.
TEST_F(RendezvousTest, SilentConnectionsDelayNobody) {
  start(0, 2);
  std::vector<Socket> strangers;
  for (int i = 0; i < 100; ++i)
    strangers.push_back(connectTo(address));
  // One stops in the middle.
  tell(strangers[3], helloOf(1, 2, false));
  auto begin = Clock::now();
  start(1, 2);
  expectStart();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(4));
}

TEST_F(RendezvousTest, LonelyRanksSayWhomTheyWaitFor) {
  master.timeout = 0.5;
  start(0, 3);
  join();
  EXPECT_THAT(errors[0], HasSubstr("waits at 127.0.0.1"));
  EXPECT_THAT(errors[0], HasSubstr("2 of 3 ranks (1, 2), and nobody has come for 0.5 s"));
  EXPECT_THAT(errors[0], HasSubstr("MESHWRIGHT_TIMEOUT"));
  start(1, 3);
  join();
  EXPECT_THAT(errors[1], HasSubstr("cannot reach rank 0 at 127.0.0.1"));
  EXPECT_THAT(errors[1], HasSubstr("Connection refused"));
}

/// What `action` writes on stderr.
template <typename Action> static std::string stderrOf(Action action) {
  testing::internal::CaptureStderr();
  action();
  return testing::internal::GetCapturedStderr();
}

TEST_F(RendezvousTest, LongWaitsAreTold) {
  master.noteAfter = 0.2;
  std::string said = stderrOf([&] {
    start(0, 3);
    start(2, 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(800));
    start(1, 3);
    expectStart();
  });
  EXPECT_THAT(said, HasSubstr("note: rank 0 waits at 127.0.0.1:"));
  EXPECT_THAT(said, HasSubstr("for 1 of 3 ranks (1); it goes on for 20 s"));
}

// Each rank that comes gives the others as long again, also those that only rank 0 has met.
TEST_F(RendezvousTest, RanksThatComeExtendTheDeadline) {
  master.timeout = 2;
  start(0, 4);
  auto begin = Clock::now();
  for (int rank : {1, 2, 3}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    start(rank, 4);
  }
  expectStart();
  EXPECT_GT(Clock::now() - begin, std::chrono::milliseconds(3500));
}

// Its own message says why it has gone; the others need not wait for the deadline.
TEST_F(RendezvousTest, ARankThatGoesEndsTheOthers) {
  for (int stage : {0, 1}) {
    auto begin = Clock::now();
    start(0, 4);
    {
      Socket socket = connectTo(address);
      Handshake talk(jobOf(4), 1, 0, 1);
      EXPECT_EQ(finish(talk, socket), Handshake::Met);
      EXPECT_EQ(hear<uint32_t>(socket), 2u);
      if (stage == 1) {
        start(2, 4); // It meets rank 0 alone, which rank 0 tells.
        EXPECT_EQ(hear<uint32_t>(socket), 1u);
      }
    }
    join();
    EXPECT_THAT(errors[0], HasSubstr("rank 1 has ended"));
    if (stage == 1) {
      EXPECT_THAT(errors[2], HasSubstr("rank 0 has ended"));
    }
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
  }
}

// Two jobs with one MASTER_PORT: the other's rank is sent away, and the place stays free.
TEST_F(RendezvousTest, RanksOfAnotherPlanAreSentAway) {
  for (const std::string &known : {std::string(), secret}) {
    std::string said = stderrOf([&] {
      start(0, 2, known);
      start(1, 2, known, "fedcba9876543210");
      threads.back().join();
      threads.pop_back();
      EXPECT_THAT(errors[1], HasSubstr("is of a job with another plan than this rank's, fedcba98"));
      EXPECT_THAT(errors[1], HasSubstr("MASTER_PORT of its own"));
      start(1, 2, known);
      expectStart();
    });
    EXPECT_THAT(said, HasSubstr("says it is rank 1 of the plan fedcba9876543210, but this job's is "
                                "0123456789abcdef"));
  }
}

TEST_F(RendezvousTest, TheWrongSecretIsRefused) {
  for (const std::string &wrong : {std::string(), otherSecret, secret + "."}) {
    start(0, 2, secret);
    start(1, 2, wrong);
    threads.back().join();
    threads.pop_back();
    EXPECT_THAT(errors[1], HasSubstr("MESHWRIGHT_SECRET"));
    EXPECT_THAT(errors[1], testing::Not(HasSubstr(secret)));
    start(1, 2, secret);
    expectStart();
  }
  // Nor does a rank that has a secret talk to others that have none.
  start(0, 2);
  start(1, 2, secret);
  threads.back().join();
  threads.pop_back();
  EXPECT_THAT(errors[1], HasSubstr("has no MESHWRIGHT_SECRET"));
  start(1, 2);
  expectStart();
}

// Two processes with one RANK: the second says so, and rank 0 goes on with the first.
TEST_F(RendezvousTest, ARankThatIsThereIsNotTakenTwice) {
  start(0, 3);
  {
    Socket first = connectTo(address), second = connectTo(address);
    Handshake talk(jobOf(3), 1, 0, 1), again(jobOf(3), 1, 0, 1);
    EXPECT_EQ(finish(talk, first), Handshake::Met);
    EXPECT_EQ(finish(again, second), Handshake::Refused);
    EXPECT_THAT(again.reason(),
                HasSubstr("has met another rank 1: give every process another RANK"));
    EXPECT_EQ(hear<uint32_t>(first), 1u); // Rank 2 is missing.
    EXPECT_EQ(errors[0], "never ended");
  }
  join();
  EXPECT_THAT(errors[0], HasSubstr("rank 1 has ended"));
}

TEST_F(RendezvousTest, ImpostorsAreDropped) {
  start(0, 3);
  for (auto [from, size, refusal] : {std::tuple(0u, 3u, Refusal::Rank), {3u, 3u, Refusal::Rank},
                                     {~0u, 3u, Refusal::Rank}, {1u, 9u, Refusal::Size}}) {
    Socket socket = connectTo(address);
    tell(socket, helloOf(from, size, false));
    hear<Challenge>(socket);
    tell(socket, Proof());
    EXPECT_EQ(hear<Verdict>(socket).refusal, refusal);
    EXPECT_TRUE(isClosed(socket));
  }
  start(2, 3);
  start(1, 3);
  expectStart();
}

// Proofs are good for one conversation, and for one end of it.
TEST_F(RendezvousTest, ReplayedProofsAreRefused) {
  start(0, 2, secret);
  Hello hello = helloOf(1, 2, true);
  Challenge before;
  before.hasSecret = true;
  before.nonce.fill(7);
  Proof replayed = prove(secret, "caller", hello, before);
  for (const char *end : {"before", "called"}) {
    Socket socket = connectTo(address);
    tell(socket, hello);
    auto challenge = hear<Challenge>(socket);
    EXPECT_NE(challenge.nonce, before.nonce);
    before = challenge;
    tell(socket, strcmp(end, "called") ? replayed : prove(secret, end, hello, challenge));
    auto verdict = hear<Verdict>(socket);
    EXPECT_EQ(verdict.refusal, Refusal::Secret);
    EXPECT_EQ(verdict.proof, Proof()); // It learns nothing that it could use.
    EXPECT_EQ(verdict.size, 0u);
    replayed = prove(secret, "caller", hello, challenge);
  }
  start(1, 2, secret);
  expectStart();
}

TEST_F(RendezvousTest, ACalledRankProvesItselfToo) {
  Socket listener = Socket::listen(address);
  start(1, 2, secret);
  Socket socket;
  while (!socket.isOpen())
    socket = listener.accept();
  hear<Hello>(socket);
  Challenge challenge;
  challenge.hasSecret = true;
  tell(socket, challenge);
  hear<Proof>(socket);
  tell(socket, Verdict());
  join();
  EXPECT_THAT(errors[1], HasSubstr("has another MESHWRIGHT_SECRET than this rank"));
}

/// A test in the place of rank 0 of three that know the secret, called by rank 1.
static int meetRankOne(Socket &listener, Socket &rank1, char family) {
  while (!rank1.isOpen())
    rank1 = listener.accept();
  Handshake talk(jobOf(3, secret), 0, [](uint32_t) { return Refusal::None; });
  EXPECT_EQ(finish(talk, rank1), Handshake::Met);
  // That nobody is missing, and where ranks are: nothing in it says how much is to come.
  tell(rank1, uint32_t(0));
  std::string table(size_t(3) * 24, '\0');
  for (size_t rank = 1; rank < 3; ++rank)
    table[rank * 24 + 1] = family;
  rank1.sendAll(table.data(), table.size(), soon(), "table");
  return int(talk.caller().port);
}

// A rank is called by others in the same way as rank 0, where rank 0 has seen it.
TEST_F(RendezvousTest, ConnectionsBetweenOtherRanksAreAsSafe) {
  Socket listener = Socket::listen(address), rank1;
  start(1, 3, secret);
  int port = meetRankOne(listener, rank1, 4);
  EXPECT_TRUE(isRefused(at("127.0.0.2", port)));
  Socket silent = connectTo(at("127.0.0.1", port));
  for (const std::string &known : {std::string(), otherSecret}) {
    Socket socket = connectTo(at("127.0.0.1", port));
    Handshake impostor(jobOf(3, known), 2, 1, 1);
    EXPECT_EQ(finish(impostor, socket), Handshake::Refused) << known;
  }
  Socket socket = connectTo(at("127.0.0.1", port));
  Handshake rank2(jobOf(3, secret), 2, 1, 1);
  EXPECT_EQ(finish(rank2, socket), Handshake::Met);
  rank1 = Socket(); // Ends its barrier.
  join();
  EXPECT_THAT(errors[1], HasSubstr("rank 0 has ended"));
}

TEST_F(RendezvousTest, TablesOfNoSenseAreRefused) {
  Socket listener = Socket::listen(address), rank1;
  start(1, 3, secret);
  meetRankOne(listener, rank1, 7);
  join();
  EXPECT_THAT(errors[1], HasSubstr("where rank 1 is in a way that is not understood"));
}

// Nobody may have a rank allocate more than a message can have.
TEST_F(RendezvousTest, LengthsAreLimited) {
  for (int64_t bytes : {int64_t(1) << 33, int64_t(-1), INT64_MAX, Transport::maxMessageBytes + 1}) {
    start(0, 2);
    Socket socket = connectTo(address);
    Handshake talk(jobOf(2), 1, 0, 1);
    ASSERT_EQ(finish(talk, socket), Handshake::Met);
    EXPECT_EQ(hear<uint32_t>(socket), 0u);
    hear<std::array<char, 2 * 24>>(socket);
    struct {
      int32_t channel, call;
      int64_t bytes;
    } header = {5, -1, bytes};
    tell(socket, header);
    join();
    EXPECT_THAT(errors[0], HasSubstr("rank 1 announces a message of " + std::to_string(bytes)));
  }
}
