//===- Rendezvous.cpp - how ranks find each other by TCP ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cpu/Rendezvous.h"

#include "common/monitor/Error.h"
#include "common/monitor/WaitMonitor.h"
#include "cpu/Handshake.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <netinet/in.h>
#include <poll.h>

using namespace meshwright;
using Clock = std::chrono::steady_clock;

// So many may be about to introduce themselves; the oldest goes when there are more. A rank that
// is dropped calls again.
static constexpr size_t maxVisitors = 512;
// After so many a flood of connections is no news.
static constexpr int maxNotes = 20;
static const char *raiseLimit = ": raise the limit of open files (ulimit -n)";
static constexpr auto callAgainAfter = std::chrono::milliseconds(20);
// Then another of a host's addresses has its turn.
static constexpr auto connectWithin = std::chrono::seconds(5);

namespace {
/// Where rank 0 has met a rank, as it travels: in network byte order.
struct MetAt {
  uint16_t family = 0, port = 0; ///< 4 or 6; the port that it listens on
  uint32_t scope = 0;
  uint8_t address[16] = {};

  MetAt() = default;
  MetAt(const SocketAddress &seen, int port);
  SocketAddress seen() const;
};

/// A connection that somebody has made to this rank.
struct Visitor {
  Socket socket;
  std::string from;
  Handshake talk;

  Visitor(Socket socket, const Handshake::Job &job, int self, Handshake::Admit admit)
      : socket(std::move(socket)), from(this->socket.peer().text()),
        talk(job, self, std::move(admit)) {}
};

/// A connection that this rank makes to another.
struct Call {
  int to;
  std::string endpoint;                 ///< for errors
  std::vector<SocketAddress> addresses; ///< tried in turn
  size_t attempts = 0;
  Deadline next = {}; ///< when to try, or to give up connecting
  Socket socket = {};
  std::unique_ptr<Handshake> talk = nullptr; ///< once connected
  std::string trouble = "nothing answers there";

  const SocketAddress &address() const { return addresses[attempts % addresses.size()]; }
};

class Rendezvous {
public:
  Rendezvous(int rank, int processes, const TcpAddress &master);
  std::vector<Socket> run();

private:
  void listenAtMaster(const std::vector<SocketAddress> &addresses);
  void sendTable();
  void receiveTable();
  void tell(int rank, uint32_t missing);
  void add(int rank, Socket socket);
  int countMissing() const;
  bool isMissing(int rank) const { return rank != self && !peers[size_t(rank)].isOpen(); }
  bool areAllHere() const;
  void serveUntil(bool (Rendezvous::*done)() const);
  bool hasMetMaster() const { return !isMissing(0); }
  int wait() const;
  void makeCall(Call &call);
  bool advanceCall(Call &call);
  void callAgain(Call &call, const std::string &trouble);
  void acceptVisitors();
  bool advanceVisitor(Visitor &visitor);
  void note(const std::string &about);
  std::string describeWait() const;
  void noteWait();
  [[noreturn]] void failAtDeadline() const;

  int self, size;
  const TcpAddress &master;
  Handshake::Job job;
  std::string endpoint;
  Deadline deadline; ///< extended by each rank that is met
  Deadline noteAt;   ///< when to say who is missing, once
  SocketAddress metMasterAt; ///< for ranks other than 0
  bool elsewhereIsOther = false; ///< MASTER_ADDR means this machine here, and another elsewhere
  std::vector<Socket> listeners;
  std::vector<Socket> peers;
  std::vector<MetAt> met; ///< for rank 0 and from it
  std::deque<std::unique_ptr<Visitor>> visitors;
  std::vector<std::unique_ptr<Call>> calls;
  int notes = 0;
};
} // namespace

MetAt::MetAt(const SocketAddress &seen, int port) : port(htons(uint16_t(port))) {
  if (seen.storage.ss_family == AF_INET6) {
    const auto &v6 = reinterpret_cast<const sockaddr_in6 &>(seen.storage);
    family = htons(6);
    scope = v6.sin6_scope_id;
    std::memcpy(address, &v6.sin6_addr, 16);
  } else {
    family = htons(4);
    std::memcpy(address, &reinterpret_cast<const sockaddr_in &>(seen.storage).sin_addr, 4);
  }
}

SocketAddress MetAt::seen() const {
  SocketAddress result;
  if (ntohs(family) == 6) {
    auto &v6 = reinterpret_cast<sockaddr_in6 &>(result.storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_scope_id = scope;
    std::memcpy(&v6.sin6_addr, address, 16);
    result.length = sizeof(v6);
  } else {
    auto &v4 = reinterpret_cast<sockaddr_in &>(result.storage);
    v4.sin_family = AF_INET;
    std::memcpy(&v4.sin_addr, address, 4);
    result.length = sizeof(v4);
  }
  return result;
}

/// Whether two variables of a launcher are there and equal.
static bool areEqual(const char *a, const char *b) {
  const char *x = getenv(a), *y = getenv(b);
  return x && y && !strcmp(x, y);
}

TcpAddress TcpAddress::fromEnvironment() {
  TcpAddress address;
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
  address.host = host;
  address.port = int(number);
  if (const char *store = getenv("TORCHELASTIC_USE_AGENT_STORE"))
    address.port += !strcmp(store, "True");
  if (const char *secret = getenv("MESHWRIGHT_SECRET"))
    address.secret = secret;
  if (size_t length = address.secret.size(); length > 0 && length < 16)
    fail("MESHWRIGHT_SECRET has ", length, " characters, which can be guessed: give every rank the "
         "same random text of at least 16, such as `openssl rand -hex 32` prints");
  address.oneMachine = areEqual("LOCAL_WORLD_SIZE", "WORLD_SIZE") ||
                       areEqual("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE");
  return address;
}

SocketAddress meshwright::reachable(const SocketAddress &seen, int port,
                                    const SocketAddress &master) {
  SocketAddress address = seen.isLoopback() && !master.isLoopback() ? master : seen;
  address.setPort(port);
  return address;
}

/// Whether `host` means the machine it is looked up on, wherever that is done.
static bool meansThisMachine(const std::string &host) {
  in6_addr ignored;
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &ignored) == 1 ||
         host.find("localhost") != std::string::npos || host == "ip6-loopback";
}

bool meshwright::isOtherElsewhere(const TcpAddress &master,
                                  const std::vector<SocketAddress> &addresses) {
  return !master.oneMachine && !meansThisMachine(master.host) &&
         std::any_of(addresses.begin(), addresses.end(),
                     [](const SocketAddress &each) { return each.isLoopback(); });
}

static Deadline after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

Rendezvous::Rendezvous(int rank, int processes, const TcpAddress &master)
    : self(rank), size(processes), master(master), job{master.secret, master.plan, processes},
      endpoint(text(master.host, ":", master.port)),
      deadline(after(master.timeout)), noteAt(after(master.noteAfter)), peers(size_t(processes)),
      met(size_t(processes)) {}

void Rendezvous::listenAtMaster(const std::vector<SocketAddress> &addresses) {
  if (elsewhereIsOther)
    listeners.push_back(Socket::listen(addresses.front().any()));
  for (const SocketAddress &address : addresses) {
    if (elsewhereIsOther)
      break;
    int error = 0;
    Socket socket = Socket::listen(address, &error);
    if (socket.isOpen())
      listeners.push_back(std::move(socket));
    else if (error != EADDRNOTAVAIL && error != EAFNOSUPPORT)
      fail("rank 0 cannot listen at ", address.text(), ": ", errnoText(error),
           error == EADDRINUSE ? " (by another job?)" : "",
           ": set MASTER_PORT to a free port on every rank");
  }
  // MASTER_ADDR may be none of this machine's addresses (behind a translation of addresses). Where
  // strangers cannot prove that they know a secret, rank 0 may listen at every address.
  if (listeners.empty() && !master.secret.empty())
    listeners.push_back(Socket::listen(addresses.front().any()));
  if (listeners.empty())
    fail("rank 0 cannot listen at MASTER_ADDR ", master.host, " (", addresses.front().text(),
         "), which is no address of its machine: set MASTER_ADDR to one that is, or set "
         "MESHWRIGHT_SECRET to the same random text on every rank, and rank 0 listens at all of its "
         "machine's addresses");
  for (const Socket &listener : listeners)
    if (SocketAddress at = listener.local(); master.secret.empty() && !at.isLoopback()) {
      fprintf(stderr,
              "warning: the ranks meet at %s without a secret: whoever can connect to %s can take "
              "a rank's place; set MESHWRIGHT_SECRET to the same random text on every rank\n",
              endpoint.c_str(), at.text().c_str());
      break;
    }
}

std::vector<Socket> Rendezvous::run() {
  std::vector<SocketAddress> addresses = Socket::resolve(master.host, master.port);
  elsewhereIsOther = isOtherElsewhere(master, addresses);
  if (self == 0) {
    listenAtMaster(addresses);
    serveUntil(&Rendezvous::areAllHere);
    sendTable();
  } else {
    calls.push_back(std::make_unique<Call>(Call{0, endpoint, addresses}));
    serveUntil(&Rendezvous::hasMetMaster);
    receiveTable();
    for (int rank = 1; rank < self; ++rank) {
      const MetAt &at = met[size_t(rank)];
      SocketAddress address = reachable(at.seen(), ntohs(at.port), metMasterAt);
      calls.push_back(std::make_unique<Call>(Call{rank, address.text(), {address}}));
    }
    serveUntil(&Rendezvous::areAllHere);
  }
  for (const auto &visitor : visitors)
    note(text(visitor->from, ", which ", visitor->talk.reason()));
  return std::move(peers);
}

bool Rendezvous::areAllHere() const { return countMissing() == 0; }

int Rendezvous::countMissing() const {
  int count = 0;
  for (int rank = 0; rank < size; ++rank)
    count += isMissing(rank);
  return count;
}

void Rendezvous::sendTable() {
  for (int rank = 1; rank < size; ++rank)
    peers[size_t(rank)].sendAll(met.data(), met.size() * sizeof(MetAt), deadline,
                                text("sending to rank ", rank));
}

/// Tells a rank that waits for the table how many ranks are missing.
void Rendezvous::tell(int rank, uint32_t missing) {
  peers[size_t(rank)].sendAll(&missing, sizeof(missing), deadline, text("sending to rank ", rank));
}

/// Each rank that rank 0 meets is news here too, which extends the deadline.
void Rendezvous::receiveTable() {
  // Rank 0, whose deadline is the same, knows who is missing: it speaks first.
  const double patience = master.timeout + 1;
  std::string what = text("rank ", self, " has met rank 0 at ", endpoint, " and waits for the rest");
  try {
    for (uint32_t missing = 1; missing > 0;) {
      deadline = after(patience);
      peers[0].receiveAll(&missing, sizeof(missing), deadline, what);
      what = text("rank ", self, " has met rank 0 at ", endpoint, ", which waits for ", missing,
                  " of ", size, " ranks");
    }
    peers[0].receiveAll(met.data(), met.size() * sizeof(MetAt), deadline, what);
  } catch (const Socket::Closed &) {
    throw LostRank(0);
  }
  deadline = after(master.timeout);
  for (const MetAt &each : met)
    if (int family = ntohs(each.family); &each != &met.front() && family != 4 && family != 6)
      fail("rank 0 at ", endpoint, " says where rank ", &each - met.data(),
           " is in a way that is not understood: start the same executable on every rank");
}

void Rendezvous::serveUntil(bool (Rendezvous::*done)() const) {
  while (!(this->*done)()) {
    if (Clock::now() > deadline)
      failAtDeadline();
    if (Clock::now() > noteAt)
      noteWait();
    for (auto &call : calls)
      if (!call->socket.isOpen() && Clock::now() >= call->next)
        makeCall(*call);
    if (int lost = wait(); lost >= 0)
      throw LostRank(lost);
    calls.erase(std::remove_if(calls.begin(), calls.end(),
                               [&](auto &call) { return advanceCall(*call); }),
                calls.end());
    visitors.erase(std::remove_if(visitors.begin(), visitors.end(),
                                  [&](auto &visitor) { return advanceVisitor(*visitor); }),
                   visitors.end());
    acceptVisitors();
  }
}

/// Waits until something can go on or is overdue. Returns a rank that has been met and has gone, or
/// -1: it is known to be one of this job, so the job cannot go on without it.
int Rendezvous::wait() const {
  std::vector<pollfd> entries;
  Deadline until = std::min(deadline, noteAt);
  for (const Socket &listener : listeners)
    entries.push_back({listener.descriptor(), POLLIN, 0});
  for (const auto &visitor : visitors)
    entries.push_back({visitor->socket.descriptor(),
                       short(visitor->talk.wantsToSend() ? POLLOUT : POLLIN), 0});
  for (const auto &call : calls) {
    if (!call->talk)
      until = std::min(until, call->next);
    if (call->socket.isOpen())
      entries.push_back({call->socket.descriptor(),
                         short(!call->talk || call->talk->wantsToSend() ? POLLOUT : POLLIN), 0});
  }
  size_t first = entries.size();
  for (const Socket &peer : peers) // poll ignores descriptors below 0.
    entries.push_back({peer.descriptor(), POLLRDHUP, 0});
  auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  poll(entries.data(), entries.size(), int(std::clamp<int64_t>(left.count(), 0, 60000)));
  for (size_t i = first; i < entries.size(); ++i)
    if (entries[i].revents)
      return int(i - first);
  return -1;
}

/// A rank has been met.
void Rendezvous::add(int rank, Socket socket) {
  peers[size_t(rank)] = std::move(socket);
  deadline = after(master.timeout);
  for (int other = 1; self == 0 && other < size; ++other)
    if (!isMissing(other))
      tell(other, uint32_t(countMissing()));
}

void Rendezvous::makeCall(Call &call) {
  int error = 0;
  call.socket = Socket::connect(call.address(), error);
  call.next = Clock::now() + connectWithin;
  if (error == EMFILE || error == ENFILE)
    fail("rank ", self, " cannot connect to ", size, " ranks: ", errnoText(error), raiseLimit);
  if (error)
    callAgain(call, errnoText(error));
}

void Rendezvous::callAgain(Call &call, const std::string &trouble) {
  call.trouble = trouble;
  call.socket = Socket();
  call.talk.reset();
  call.next = Clock::now() + callAgainAfter;
  ++call.attempts;
}

/// Whether the call is over: its rank has been met.
bool Rendezvous::advanceCall(Call &call) {
  if (!call.socket.isOpen())
    return false;
  if (!call.talk) {
    pollfd entry = {call.socket.descriptor(), POLLOUT, 0};
    if (poll(&entry, 1, 0) == 0) {
      if (Clock::now() >= call.next)
        callAgain(call, "nothing answers there");
      return false;
    }
    if (int code = call.socket.error()) {
      callAgain(call, errnoText(code));
      return false;
    }
    if (call.to == 0) {
      // Where rank 0 sees this rank, or, beside it on a machine of two names, everywhere.
      SocketAddress own = call.socket.local();
      own.setPort(0);
      listeners.clear();
      listeners.push_back(Socket::listen(own.isLoopback() && elsewhereIsOther ? own.any() : own));
      metMasterAt = call.address();
    }
    int port = listeners.front().local().port();
    call.talk = std::make_unique<Handshake>(job, self, call.to, port);
  }
  switch (call.talk->advance(call.socket)) {
  case Handshake::Talking:
    return false;
  case Handshake::Met:
    add(call.to, std::move(call.socket));
    return true;
  case Handshake::Dropped:
    callAgain(call, "it " + call.talk->reason());
    return false;
  case Handshake::Refused:
    break;
  }
  fail("rank ", self, " calls rank ", call.to, " at ", call.endpoint, ", which ",
       call.talk->reason());
}

void Rendezvous::acceptVisitors() {
  for (Socket &listener : listeners)
    for (int i = 0; i < 64; ++i) {
      Socket socket = listener.accept();
      if (!socket.isOpen() && errno != EMFILE && errno != ENFILE)
        break;
      if (!socket.isOpen() && visitors.empty())
        fail("rank ", self, " cannot take connections of ", size, " ranks: ", errnoText(errno), raiseLimit);
      if (!socket.isOpen() || visitors.size() == maxVisitors) {
        note(text(visitors.front()->from, ", which ", visitors.front()->talk.reason(),
                  ", to make room"));
        visitors.pop_front();
      }
      if (!socket.isOpen())
        continue;
      visitors.push_back(std::make_unique<Visitor>(
          std::move(socket), job, self, [this](uint32_t from) {
            if (from <= uint32_t(self) || from >= uint32_t(size))
              return Refusal::Rank;
            return isMissing(int(from)) ? Refusal::None : Refusal::Taken;
          }));
    }
}

/// Whether the visitor is one no longer.
bool Rendezvous::advanceVisitor(Visitor &visitor) {
  Handshake::State state = visitor.talk.advance(visitor.socket);
  if (state == Handshake::Talking)
    return false;
  const Hello &caller = visitor.talk.caller();
  if (state != Handshake::Met) {
    note(text(visitor.from, ", which ", visitor.talk.reason()));
  } else if (!isMissing(int(caller.from))) {
    note(text(visitor.from, ", which came as rank ", caller.from, " after another"));
  } else {
    met[caller.from] = MetAt(visitor.socket.peer(), int(caller.port));
    add(int(caller.from), std::move(visitor.socket));
  }
  return true;
}

void Rendezvous::note(const std::string &about) {
  if (++notes <= maxNotes)
    fprintf(stderr, "note: rank %d drops the connection from %s%s\n", self, about.c_str(),
            notes == maxNotes ? " (there may be more, which are not told)" : "");
}

/// Half a sentence: for whom and where.
std::string Rendezvous::describeWait() const {
  for (const auto &call : calls)
    return text("cannot reach rank ", call->to, " at ", call->endpoint, ": ",
                call->talk ? "it " + call->talk->reason() : call->trouble);
  std::string missing;
  int count = 0;
  for (int rank = 0; rank < size; ++rank)
    if (isMissing(rank) && ++count <= 16)
      missing += (count > 1 ? ", " : "") + std::to_string(rank);
  return text("waits", self == 0 ? " at " + endpoint : "", " for ", count, " of ", size, " ranks (",
              missing, count > 16 ? ", ...)" : ")");
}

void Rendezvous::noteWait() {
  noteAt = Deadline::max();
  fprintf(stderr, "note: rank %d %s; it goes on for %g s after the last one that comes "
          "(MESHWRIGHT_TIMEOUT)\n", self, describeWait().c_str(), master.timeout);
}

void Rendezvous::failAtDeadline() const {
  fail("rank ", self, " ", describeWait(), ", and nobody has come for ", master.timeout,
       " s: start all ranks, with the same MASTER_ADDR and MASTER_PORT, which every rank must be "
       "able to reach; MESHWRIGHT_TIMEOUT sets the limit");
}

std::vector<Socket> meshwright::meetRanks(int rank, int processes, const TcpAddress &master) {
  return Rendezvous(rank, processes, master).run();
}
