//===- Handshake.h - two ranks introduce themselves -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What is said first on every TCP connection between ranks. The rank that calls
// says who it is, the rank that is called asks for a proof, and both then prove
// that they know the job's secret: HMAC-SHA256, keyed with the secret, of all that
// both have said, with 32 random bytes from each side, so that no proof can be used
// twice. Every message has a fixed length. Without a secret the same is said, but
// nothing is proved.
//
// This keeps strangers out of the job. It encrypts nothing, and who can change
// packets on their way can still change what is sent afterwards.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_HANDSHAKE_H
#define MESHWRIGHT_RUNTIME_CPU_HANDSHAKE_H

#include "cpu/Socket.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace meshwright {

using Proof = std::array<uint8_t, 32>;

/// Why a rank that is called does not take the one that calls.
enum class Refusal : uint32_t { None, Secret, Plan, Size, Rank, Taken };

/// The hash of an executable's plan as it travels, filled up with zeros.
using PlanName = std::array<char, 32>;

/// The first message of the rank that calls.
struct Hello {
  static constexpr uint64_t expectedMagic = 0x3454454D57534D4D; // Changes with these messages.
  uint64_t magic = expectedMagic;
  uint32_t from = 0, to = 0, size = 0; ///< ranks, and how many there are
  uint32_t port = 0;                   ///< where the caller listens
  uint32_t hasSecret = 0, unused = 0;
  Proof nonce = {};
  PlanName plan = {}; ///< two jobs may have been given one port
};

/// The answer to it.
struct Challenge {
  uint64_t magic = Hello::expectedMagic;
  uint32_t hasSecret = 0, unused = 0;
  Proof nonce = {};
};

/// What follows the caller's proof.
struct Verdict {
  Refusal refusal = Refusal::None;
  uint32_t size = 0; ///< how many ranks there are for the one that is called
  Proof proof = {};
};

/// What one end of a conversation has to show: `end` is "caller" or "called".
Proof prove(const std::string &secret, const char *end, const Hello &hello,
            const Challenge &challenge);

/// One end of a conversation.
class Handshake {
public:
  enum State {
    Talking,
    Met,     ///< the other end is the rank it says it is, as far as is known
    Dropped, ///< the other end has gone, is no rank, or must not be here
    Refused  ///< the other end will not have this rank; trying again is no use
  };
  /// Whether a rank that calls is wanted: Rank, Taken or None.
  using Admit = std::function<Refusal(uint32_t from)>;

  /// What a rank knows of its job.
  struct Job {
    std::string secret; ///< empty: none
    std::string plan;   ///< its executable's hash
    int size = 0;       ///< how many ranks there are
  };

  /// The end that calls rank `to`, and listens on `port`.
  Handshake(const Job &job, int self, int to, int port);
  /// The end that is called.
  Handshake(const Job &job, int self, Admit admit);
  Handshake(const Handshake &) = delete;
  Handshake &operator=(const Handshake &) = delete;

  /// Says and hears what goes without waiting.
  State advance(Socket &socket);
  bool wantsToSend() const { return sent < out.size(); }
  /// Of the rank that calls, when both have met.
  const Hello &caller() const { return hello; }
  /// Why they have not met, as half a sentence about the other end.
  const std::string &reason() const { return why; }

private:
  void hear(const Hello &message);
  void hear(const Challenge &message);
  void hear(const Proof &message);
  void hear(const Verdict &message);
  template <typename Message> void say(const Message &message);
  template <typename Message> void await(void (Handshake::*heard)(const Message &));
  void end(State state, const std::string &reason);
  Refusal judge(const Proof &proof) const;

  std::string secret;
  PlanName plan;
  uint32_t self, size;
  Admit admit;
  Hello hello;
  Challenge challenge;
  State state = Talking, afterwards = Talking; ///< now, and once all has been said
  std::string why = "has not said who it is";
  std::vector<uint8_t> out, in; ///< `in` is as long as the message that is awaited
  size_t sent = 0, received = 0;
  std::function<void()> heard;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CPU_HANDSHAKE_H
