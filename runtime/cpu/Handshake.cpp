//===- Handshake.cpp - two ranks introduce themselves ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cpu/Handshake.h"

#include "common/monitor/Error.h"

#include <cctype>
#include <cstring>
#include <sodium.h>
#include <type_traits>

using namespace meshwright;

// Messages travel as they lie in memory, so a change of their layout changes the protocol.
static_assert(sizeof(Hello) == 96 && sizeof(Challenge) == 48 && sizeof(Verdict) == 40);
static_assert(sizeof(Proof) == crypto_auth_hmacsha256_BYTES);

static Proof randomBytes() {
  if (sodium_init() < 0)
    fail("libsodium cannot start: the system gives no random numbers");
  Proof bytes;
  randombytes_buf(bytes.data(), bytes.size());
  return bytes;
}

template <typename Message> static const unsigned char *bytesOf(const Message &message) {
  static_assert(std::has_unique_object_representations_v<Message>);
  return reinterpret_cast<const unsigned char *>(&message);
}

Proof meshwright::prove(const std::string &secret, const char *end, const Hello &hello,
                        const Challenge &challenge) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char *>(secret.data()),
                              secret.size());
  // With its final zero, so that no end's name begins the other's.
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char *>(end),
                                std::strlen(end) + 1);
  crypto_auth_hmacsha256_update(&state, bytesOf(hello), sizeof(hello));
  crypto_auth_hmacsha256_update(&state, bytesOf(challenge), sizeof(challenge));
  Proof proof;
  crypto_auth_hmacsha256_final(&state, proof.data());
  return proof;
}

/// Takes as long whatever differs.
static bool isSame(const Proof &a, const Proof &b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

static PlanName nameOf(const std::string &plan) {
  PlanName name = {};
  plan.copy(name.data(), name.size());
  return name;
}

/// What has come from elsewhere is printed only as far as it looks like a hash.
static std::string textOf(const PlanName &plan) {
  std::string text;
  for (char c : plan)
    if (!isalnum(static_cast<unsigned char>(c)))
      break;
    else
      text += c;
  return text.empty() ? "of no name" : text;
}

Handshake::Handshake(const Job &job, int self, int to, int port)
    : secret(job.secret), plan(nameOf(job.plan)), self(uint32_t(self)), size(uint32_t(job.size)) {
  hello.plan = plan;
  hello.from = uint32_t(self);
  hello.to = uint32_t(to);
  hello.size = size;
  hello.port = uint32_t(port);
  hello.hasSecret = !secret.empty();
  hello.nonce = randomBytes();
  say(hello);
  await<Challenge>(&Handshake::hear);
}

Handshake::Handshake(const Job &job, int self, Admit admit)
    : secret(job.secret), plan(nameOf(job.plan)), self(uint32_t(self)), size(uint32_t(job.size)),
      admit(std::move(admit)) {
  await<Hello>(&Handshake::hear);
}

template <typename Message> void Handshake::say(const Message &message) {
  out.insert(out.end(), bytesOf(message), bytesOf(message) + sizeof(message));
}

template <typename Message> void Handshake::await(void (Handshake::*hear)(const Message &)) {
  in.resize(sizeof(Message));
  received = 0;
  heard = [this, hear] {
    Message message;
    std::memcpy(&message, in.data(), sizeof(message));
    (this->*hear)(message);
  };
}

void Handshake::end(State state, const std::string &reason) {
  afterwards = state;
  why = reason;
}

Handshake::State Handshake::advance(Socket &socket) {
  while (state == Talking) {
    if (wantsToSend()) {
      int64_t count = socket.send(out.data() + sent, out.size() - sent);
      if (count < 0)
        return state = Dropped;
      sent += size_t(count);
      if (wantsToSend())
        return state;
    }
    if (afterwards != Talking)
      return state = afterwards;
    int64_t count = socket.receive(in.data() + received, in.size() - received);
    if (count == 0)
      return state;
    if (count < 0)
      return state = Dropped;
    received += size_t(count);
    // The handler may set `heard` to the next one.
    if (received == in.size()) {
      auto now = std::move(heard);
      now();
    }
  }
  return state;
}

// The rank that is called.

void Handshake::hear(const Hello &message) {
  hello = message;
  if (hello.magic != Hello::expectedMagic)
    return end(Dropped, "is no rank of this version of Meshwright");
  challenge.hasSecret = !secret.empty();
  challenge.nonce = randomBytes();
  if (hello.hasSecret != challenge.hasSecret) {
    end(Dropped, text("says it is rank ", hello.from, ", and has ",
                      hello.hasSecret ? "a MESHWRIGHT_SECRET, which this rank has not"
                                      : "no MESHWRIGHT_SECRET"));
  } else {
    why = text("says it is rank ", hello.from, " but has not proved it");
    await<Proof>(&Handshake::hear);
  }
  say(challenge);
}

/// Who has not proved to be of this job learns nothing else.
Refusal Handshake::judge(const Proof &proof) const {
  if (!secret.empty() && !isSame(proof, prove(secret, "caller", hello, challenge)))
    return Refusal::Secret;
  if (hello.plan != plan)
    return Refusal::Plan;
  if (hello.size != size)
    return Refusal::Size;
  return hello.to == self ? admit(hello.from) : Refusal::Rank;
}

void Handshake::hear(const Proof &proof) {
  Verdict verdict;
  verdict.refusal = judge(proof);
  verdict.size = verdict.refusal == Refusal::Secret ? 0 : size;
  std::string claim = text("says it is rank ", hello.from);
  switch (verdict.refusal) {
  case Refusal::None:
    verdict.proof = secret.empty() ? Proof() : prove(secret, "called", hello, challenge);
    end(Met, "");
    break;
  case Refusal::Secret:
    end(Dropped, claim + ", and has another MESHWRIGHT_SECRET");
    break;
  case Refusal::Plan:
    end(Dropped, text(claim, " of the plan ", textOf(hello.plan), ", but this job's is ",
                      textOf(plan)));
    break;
  case Refusal::Size:
    end(Dropped, text(claim, " of ", hello.size, ", but there are ", size));
    break;
  case Refusal::Rank:
    end(Dropped, text(claim, " of ", hello.size, ", which has no call to make here"));
    break;
  case Refusal::Taken:
    end(Dropped, claim + ", but that rank is there already");
    break;
  }
  say(verdict);
}

// The rank that calls.

void Handshake::hear(const Challenge &message) {
  challenge = message;
  if (challenge.magic != Hello::expectedMagic)
    return end(Refused, "is no rank of this version of Meshwright: MASTER_PORT must be a port that "
                        "nothing else has, and every rank the same executable");
  if (challenge.hasSecret != hello.hasSecret)
    return end(Refused, text("has ", secret.empty() ? "a" : "no", " MESHWRIGHT_SECRET, this rank has ",
                             secret.empty() ? "none" : "one",
                             ": set the same on every rank, or on none"));
  say(secret.empty() ? Proof() : prove(secret, "caller", hello, challenge));
  await<Verdict>(&Handshake::hear);
}

void Handshake::hear(const Verdict &verdict) {
  static const char *secrets = "has another MESHWRIGHT_SECRET than this rank: set the same on every rank";
  switch (verdict.refusal) {
  case Refusal::None:
    if (!secret.empty() && !isSame(verdict.proof, prove(secret, "called", hello, challenge)))
      return end(Refused, secrets);
    return end(Met, "");
  case Refusal::Secret:
    return end(Refused, secrets);
  case Refusal::Plan:
    return end(Refused, text("is of a job with another plan than this rank's, ", textOf(plan),
                             ": give each job a MASTER_PORT of its own, and every rank of a job the "
                             "same executable"));
  case Refusal::Size:
    return end(Refused, text("has WORLD_SIZE ", verdict.size, ", this rank has ", size,
                             ": set the same on every rank"));
  case Refusal::Taken:
    return end(Refused, text("has met another rank ", self,
                             ": give every process another RANK, from 0 to WORLD_SIZE - 1"));
  case Refusal::Rank:
    break;
  }
  end(Refused, text("does not wait for rank ", self,
                    ": give every process another RANK, from 0 to WORLD_SIZE - 1"));
}
