//===- Rendezvous.cpp - how ranks with GPUs meet without MPI --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Nothing here has a deadline of its own: a rank that waits says for whom (RankStatus), and
// its WaitMonitor ends it where nothing has come for too long.
//
//===----------------------------------------------------------------------===//
#include "cuda/Rendezvous.h"

#include "common/monitor/Error.h"
#include "common/monitor/RankStatus.h"
#include "common/plan/Plan.h"
#include "cuda/Star.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <set>
#include <thread>
#include <unistd.h>

using namespace meshwright;
using namespace meshwright::cuda;

static constexpr auto noteAfter = std::chrono::seconds(5);
static const char *ownPort = "give each job a MASTER_PORT of its own";

namespace {
/// Rank 0's answer to a Hello.
struct Answer {
  uint64_t magic = Hello::expectedMagic;
  char refusal[248] = {}; ///< empty: welcome
};

/// Rank 0 while it waits for the others.
class RankZero {
public:
  RankZero(const MasterAddress &master, const std::string &plan, int size, RankStatus &status);
  Connections run();

private:
  struct Visitor {
    Socket socket;
    std::string from;
    Hello hello;
    size_t received = 0;
  };

  std::vector<int> missing() const;
  void wait();
  void takeIn();
  bool isDone(Visitor &visitor);
  std::string refusalOf(const Hello &hello) const;
  void note(const Visitor &visitor, const std::string &why);

  const std::string endpoint, plan;
  RankStatus &status;
  Socket listener;
  Connections ranks;
  std::vector<Visitor> visitors;
  std::chrono::steady_clock::time_point noteAt = std::chrono::steady_clock::now() + noteAfter;
};
} // namespace

/// The same text for as long as the process lives, as RankStatus wants it.
static const char *kept(const std::string &words) {
  static std::mutex mutex;
  static auto *texts = new std::set<std::string>;
  std::lock_guard<std::mutex> lock(mutex);
  return texts->insert(words).first->c_str();
}

/// The first of them.
static std::string shortListOf(const std::vector<int> &ranks) {
  std::string list;
  for (size_t i = 0; i < ranks.size() && i <= 16; ++i)
    list += (i ? ", " : "") + (i < 16 ? std::to_string(ranks[i]) : "...");
  return list;
}

MasterAddress MasterAddress::fromEnvironment() {
  const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
  if (!host)
    fail("MASTER_ADDR must be set: it names rank 0's machine");
  // What launchers of this kind use where they say nothing.
  if (!port)
    port = "29500";
  char *end;
  long number = strtol(port, &end, 10);
  if (end == port || *end || number < 1 || number > 65534)
    fail("MASTER_PORT is \"", port, "\": it must be a port number from 1 to 65534");
  const char *store = getenv("TORCHELASTIC_USE_AGENT_STORE");
  return {host, int(number) + (store && !strcmp(store, "True"))};
}

static std::string textOf(const sockaddr_storage &address, socklen_t length) {
  char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
  getnameinfo(reinterpret_cast<const sockaddr *>(&address), length, host, sizeof(host), port,
              sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
  return text(host, ":", port);
}

/// Calls `use` with each address of `master` until it returns true.
template <typename Use> static bool forEachAddress(const MasterAddress &master, Use use) {
  addrinfo hints = {}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  int code = getaddrinfo(master.host.c_str(), std::to_string(master.port).c_str(), &hints, &list);
  if (code != 0)
    fail("MASTER_ADDR ", master.host, ": ", gai_strerror(code),
         ": name a host that every rank can find");
  bool found = false;
  for (addrinfo *entry = list; entry && !found; entry = entry->ai_next)
    found = use(*entry);
  freeaddrinfo(list);
  return found;
}

/// At the loopback address alone where MASTER_ADDR is one. A host's name may be one on its own
/// machine (Debian's 127.0.1.1) and another elsewhere, so it means all of the machine's addresses.
static Socket listenAt(const MasterAddress &master) {
  bool loopback =
      master.host == "localhost" || master.host == "::1" || master.host.rfind("127.", 0) == 0;
  Socket listener;
  auto listen = [&](int family, const sockaddr *address, socklen_t length) {
    int on = 1, off = 0;
    listener = Socket(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (family == AF_INET6)
      setsockopt(listener.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    return bind(listener.descriptor(), address, length) == 0 &&
           ::listen(listener.descriptor(), 1024) == 0;
  };
  sockaddr_in6 any6 = {};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(uint16_t(master.port));
  sockaddr_in any4 = {};
  any4.sin_family = AF_INET;
  any4.sin_port = any6.sin6_port;
  if (loopback ? forEachAddress(master,
                                [&](const addrinfo &each) {
                                  return listen(each.ai_family, each.ai_addr, each.ai_addrlen);
                                })
               : listen(AF_INET6, reinterpret_cast<sockaddr *>(&any6), sizeof(any6)) ||
                     // A machine without IPv6.
                     (errno != EADDRINUSE &&
                      listen(AF_INET, reinterpret_cast<sockaddr *>(&any4), sizeof(any4))))
    return listener;
  fail("rank 0 cannot listen at MASTER_ADDR ", master.host, ", port ", master.port, ": ",
       errnoText(errno), ": ", ownPort, ", a free one");
}

RankZero::RankZero(const MasterAddress &master, const std::string &plan, int size,
                   RankStatus &status)
    : endpoint(text(master.host, ":", master.port)), plan(plan), status(status),
      listener(listenAt(master)), ranks(size_t(size)) {}

std::vector<int> RankZero::missing() const {
  std::vector<int> result;
  for (size_t rank = 1; rank < ranks.size(); ++rank)
    if (!ranks[rank].isOpen())
      result.push_back(int(rank));
  return result;
}

Connections RankZero::run() {
  ActivityScope activity(status, kept("meeting the other ranks at " + endpoint));
  for (std::vector<int> left = missing(); !left.empty(); left = missing()) {
    status.setWaiting(left);
    if (std::chrono::steady_clock::now() > noteAt) {
      noteAt = noteAt.max();
      fprintf(stderr,
              "note: rank 0 waits at %s for %zu of %zu ranks (%s); how long: "
              "MESHWRIGHT_TIMEOUT\n",
              endpoint.c_str(), left.size(), ranks.size(), shortListOf(left).c_str());
    }
    wait();
    visitors.erase(std::remove_if(visitors.begin(), visitors.end(),
                                  [this](Visitor &visitor) { return isDone(visitor); }),
                   visitors.end());
    takeIn();
  }
  status.clearWaiting();
  return std::move(ranks);
}

/// Waits until something has come. A rank that has been met is one of this job, which cannot go on
/// without it.
void RankZero::wait() {
  std::vector<pollfd> entries;
  for (const Socket &rank : ranks) // poll ignores descriptors below 0.
    entries.push_back({rank.descriptor(), POLLRDHUP, 0});
  entries.push_back({listener.descriptor(), POLLIN, 0});
  for (const Visitor &visitor : visitors)
    entries.push_back({visitor.socket.descriptor(), POLLIN, 0});
  poll(entries.data(), entries.size(), 1000);
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (entries[rank].revents)
      throw LostRank(int(rank));
}

void RankZero::takeIn() {
  while (true) {
    pollfd entry = {listener.descriptor(), POLLIN, 0};
    if (poll(&entry, 1, 0) <= 0)
      return;
    sockaddr_storage address;
    socklen_t length = sizeof(address);
    int file = accept4(listener.descriptor(), reinterpret_cast<sockaddr *>(&address), &length,
                       SOCK_CLOEXEC);
    if (file < 0 && (errno == EMFILE || errno == ENFILE))
      fail("rank 0 cannot take connections of ", ranks.size(), " ranks: ", errnoText(errno),
           ": raise the limit of open files (ulimit -n)");
    if (file >= 0)
      visitors.push_back({Socket(file), textOf(address, length), Hello(), 0});
  }
}

/// Why a rank that says `hello` is not one of this job; empty if it is.
std::string RankZero::refusalOf(const Hello &hello) const {
  std::string claim = text("it says it is rank ", hello.rank, " of ", hello.size);
  // What has come from elsewhere is said only as far as it looks like a hash.
  std::string theirs;
  for (char c : hello.plan)
    if (isalnum(static_cast<unsigned char>(c)))
      theirs += c;
    else
      break;
  if (theirs != plan)
    return text(claim, " with the plan ", theirs, ", but this job's is ", plan, ": ", ownPort,
                ", and every rank of a job the same executable");
  if (hello.size != ranks.size())
    return text(claim, ", but there are ", ranks.size(), ": set the same WORLD_SIZE on every rank");
  if (hello.rank == 0 || hello.rank >= ranks.size() || ranks[hello.rank].isOpen())
    return claim + ", but that rank is there already: give every process another RANK, from 0 to "
                   "WORLD_SIZE - 1";
  return "";
}

/// Whether the visitor is one no longer.
bool RankZero::isDone(Visitor &visitor) {
  char *bytes = reinterpret_cast<char *>(&visitor.hello);
  int64_t count =
      visitor.socket.receive(bytes + visitor.received, sizeof(Hello) - visitor.received);
  visitor.received += size_t(std::max<int64_t>(0, count));
  if (count < 0)
    note(visitor, "it has not said who it is");
  if (count < 0 || visitor.received < sizeof(Hello))
    return count < 0;
  if (visitor.hello.magic != Hello::expectedMagic) {
    note(visitor, "it is no rank of this version of Meshwright");
    return true;
  }
  // What is said here is little, so that it always goes at once.
  Answer answer;
  std::string refusal = refusalOf(visitor.hello);
  refusal.copy(answer.refusal, sizeof(answer.refusal) - 1);
  visitor.socket.send(&answer, sizeof(answer));
  if (!refusal.empty()) {
    note(visitor, refusal);
    return true;
  }
  ranks[visitor.hello.rank] = std::move(visitor.socket);
  // Each rank that comes extends the deadline, also of those that are there.
  status.clearWaiting();
  auto left = uint32_t(missing().size());
  for (const Socket &rank : ranks)
    if (rank.isOpen())
      rank.send(&left, sizeof(left));
  return true;
}

void RankZero::note(const Visitor &visitor, const std::string &why) {
  fprintf(stderr, "note: rank 0 drops the connection from %s: %s\n", visitor.from.c_str(),
          why.c_str());
}

/// All of `bytes` from rank 0; false if the connection ends before.
static bool hear(const Socket &socket, void *data, size_t bytes) {
  char *next = static_cast<char *>(data);
  for (size_t done = 0; done < bytes;) {
    pollfd entry = {socket.descriptor(), POLLIN, 0};
    poll(&entry, 1, 1000);
    int64_t count = socket.receive(next + done, bytes - done);
    if (count < 0)
      return false;
    done += size_t(count);
  }
  return true;
}

/// A connection to rank 0, or one that is not open, with the reason in `trouble`.
static Socket connectTo(const MasterAddress &master, std::string &trouble) {
  Socket result;
  // Then another of a host's addresses has its turn.
  const timeval limit = {5, 0};
  forEachAddress(master, [&](const addrinfo &each) {
    Socket socket(::socket(each.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    setsockopt(socket.descriptor(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(socket.descriptor(), each.ai_addr, each.ai_addrlen) == 0)
      result = std::move(socket);
    else
      trouble = errno == EINPROGRESS ? "nothing answers there" : errnoText(errno);
    return result.isOpen();
  });
  return result;
}

/// Any other rank.
static Connections meetMaster(const MasterAddress &master, const std::string &plan, int rank,
                              int size, RankStatus &status) {
  std::string endpoint = text(master.host, ":", master.port), trouble;
  Hello hello;
  hello.rank = uint32_t(rank);
  hello.size = uint32_t(size);
  plan.copy(hello.plan, sizeof(hello.plan));
  status.setWaiting({0});
  Answer answer;
  Socket socket;
  while (!socket.isOpen()) {
    socket = connectTo(master, trouble);
    if (socket.isOpen() && (socket.send(&hello, sizeof(hello)) != sizeof(hello) ||
                            !hear(socket, &answer, sizeof(answer)))) {
      socket = Socket();
      trouble = "it ended the connection";
    }
    if (socket.isOpen())
      break;
    status.activity = kept(text("connecting to rank 0 at ", endpoint, " (", trouble, ")"));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (answer.magic != Hello::expectedMagic)
    fail("rank ", rank, " calls rank 0 at ", endpoint,
         ", which is no rank of this version of "
         "Meshwright: MASTER_PORT must be a port that nothing else has, and every rank the same "
         "executable");
  answer.refusal[sizeof(answer.refusal) - 1] = 0;
  if (answer.refusal[0])
    fail("rank ", rank, " calls rank 0 at ", endpoint, ", which turns it away: ", answer.refusal);
  for (uint32_t left = 1; left > 0;) {
    if (!hear(socket, &left, sizeof(left)))
      throw LostRank(0);
    status.clearWaiting();
    status.activity = kept(text("meeting the other ranks at ", endpoint, ", where ", left, " of ",
                                size, " are missing"));
    if (left > 0)
      status.setWaiting({0});
  }
  Connections result(1);
  result[0] = std::move(socket);
  result.resize(size_t(size));
  return result;
}

Meeting meshwright::cuda::meetAt(const MasterAddress &master, const std::string &plan, int rank,
                                 int size, RankStatus &status) {
  Connections met;
  {
    ActivityScope activity(status, "meeting the other ranks");
    met = rank == 0 ? RankZero(master, plan, size, status).run()
                    : meetMaster(master, plan, rank, size, status);
  }
  auto connections = std::make_shared<Connections>(std::move(met));
  Meeting meeting;
  meeting.world = std::make_unique<Star>(rank, connections, status);
  meeting.lostPeer = [connections] { return lostOf(*connections); };
  return meeting;
}

Meeting meshwright::cuda::meetAtMaster(const Plan &plan, int rank, int size, RankStatus &status) {
  return meetAt(MasterAddress::fromEnvironment(), plan.hash, rank, size, status);
}
