//===- Transport.h - messages between processes ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The little that MPI and TCP have to provide; collectives are built on it once
// (MessageCommunicator.h).
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_TRANSPORT_H
#define MESHWRIGHT_RUNTIME_CPU_TRANSPORT_H

#include "common/communication/Communicator.h"
#include "common/monitor/Error.h"

#include <chrono>
#include <cstdint>
#include <memory>

namespace meshwright {

class Transport {
public:
  /// A message under way. Its buffer must stay until it is done.
  class Request {
  public:
    virtual ~Request() = default;
  };

  /// The largest message; longer ones are sent in pieces.
  static constexpr int64_t maxMessageBytes = int64_t(1) << 28;

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// What the program's calls are; null: nobody asks.
  void setCalls(const Calls *known) { calls = known; }

  /// Starts a message to, or from, world rank `peer`, as a part of the program's call
  /// number `call`. Messages of one channel between two ranks match in the order in
  /// which they are started.
  virtual std::unique_ptr<Request> startSend(int peer, int channel, int call, const void *data,
                                             int64_t bytes) = 0;
  virtual std::unique_ptr<Request> startReceive(int peer, int channel, int call, void *data,
                                                int64_t bytes) = 0;
  /// Moves messages along without blocking; whether `request` is done. Fails where what
  /// has arrived is of another call, or of another length.
  virtual bool test(Request &request) = 0;

  /// Leaves the core to others for a moment, or until a message moves; `waited` is how
  /// long the caller has waited for one.
  virtual void idle(std::chrono::nanoseconds waited) = 0;

  /// Grows while parts of messages come and go, where the transport sees that.
  virtual uint64_t moved() const { return 0; }

  /// A rank that is known to have ended, or -1. May be called from any thread.
  virtual int lostPeer() const { return -1; }

  /// Ends all processes of the job with `code`, as far as that can be done.
  virtual void abort(int code) = 0;
  /// Takes leave of the others after the last message.
  virtual void finish() = 0;

protected:
  /// Checks a message from `peer` against what was asked for.
  void checkCall(int mine, int peer, int theirs) const {
    Calls::check(calls, rank(), mine, peer, theirs);
  }
  static void checkLength(int peer, int64_t sent, int64_t expected) {
    if (sent != expected)
      fail("rank ", peer, " sent ", sent, " bytes, but ", expected,
           " were expected; the program is broken, please report it");
  }

private:
  const Calls *calls = nullptr;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CPU_TRANSPORT_H
