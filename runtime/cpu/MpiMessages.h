//===- MpiMessages.h - messages by OpenMPI --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_MPIMESSAGES_H
#define MESHWRIGHT_RUNTIME_CPU_MPIMESSAGES_H

#include "common/communication/Communicator.h"
#include "cpu/MpiSymbols.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <thread>

namespace meshwright {

class MpiMessages {
public:
  /// A message under way. Its buffer must stay until it is done.
  struct Request {
    MPI_Request handle;
    bool matched = true;
    /// Of a message that is received: where from and to, and the two ends' calls.
    int from = -1, bytes = 0, call = -1, theirs = -1;
    void *data = nullptr;
  };

  /// The largest message; longer ones are sent in pieces.
  static constexpr int64_t maxMessageBytes = int64_t(1) << 28;

  /// Loads and starts MPI, which must find `processes` processes. All calls must come from one
  /// thread at a time, save for abort().
  explicit MpiMessages(int processes);

  int rank() const { return self; }
  int size() const { return count; }

  /// What the program's calls are; null: nobody asks.
  void setCalls(const Calls *known) { calls = known; }

  /// Starts a message to, or from, world rank `peer`, as a part of the program's call
  /// number `call`. Messages of one channel between two ranks match in the order in
  /// which they are started.
  std::unique_ptr<Request> startSend(int peer, int channel, int call, const void *data,
                                     int64_t bytes);
  std::unique_ptr<Request> startReceive(int peer, int channel, int call, void *data, int64_t bytes);
  /// Moves messages along without blocking; whether `request` is done. Fails where what
  /// has arrived is of another call, or of another length.
  bool test(Request &request);

  /// Ends all processes of the job with `code`, as far as that can be done.
  void abort(int code);
  /// Takes leave of the others after the last message.
  void finish();

private:
  /// A message that MPI has taken out of its queues for us.
  struct Arrived {
    MPI_Message message;
    int bytes, call;
  };
  /// By sender and channel.
  template <typename T> using Queues = std::map<std::pair<int, int>, std::deque<T>>;

  void check(int code, const char *call) const;
  void checkCall(const Request &request, int theirs) const {
    Calls::check(calls, self, request.call, request.from, theirs);
  }
  int tagOf(int channel, int call) const;
  void match(int peer);
  void receive(Request &request, Arrived message);

  const MpiSymbols &mpi;
  MPI_Comm comm = nullptr;
  int self = 0, count = 0;
  const Calls *calls = nullptr;
  /// The thread that MPI was last called from; one at a time does.
  std::atomic<std::thread::id> owner{std::this_thread::get_id()};
  /// MPI would match by tag, but a message of another call must be found, not waited
  /// for: so messages are taken in the order in which they come and matched here.
  int callBits = 0; ///< the lower bits of a tag; those above are the channel
  Queues<Request *> waiting;
  Queues<Arrived> arrived;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CPU_MPIMESSAGES_H
