//===- CollectiveAlgorithms.cpp - all_reduce as messages --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Collectives/CollectiveAlgorithms.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace meshwright::dist {

ArrayRef<CollectiveAlgorithm> collectiveAlgorithms() {
  using A = CollectiveAlgorithm;
  static constexpr A all[] = {A::ParameterServer, A::Sequential, A::Ring,
                              A::Parallel,        A::Doubling,   A::HalvingDoubling};
  return all;
}

namespace {
class Builder {
public:
  explicit Builder(int64_t ranks) { result.ranks = ranks; }

  /// The exchanges added from here on wait for those before.
  void nextRound() { round += !result.exchanges.empty() && result.exchanges.back().round == round; }

  Exchange &exchange(int64_t length, bool add) {
    SmallVector<int64_t> nobody(result.ranks, -1);
    result.exchanges.push_back({nobody, nobody, nobody, nobody, length, add, round});
    return result.exchanges.back();
  }

  static void message(Exchange &exchange, int64_t from, int64_t to, int64_t send, int64_t receive) {
    exchange.to[from] = to;
    exchange.sendBegin[from] = send;
    exchange.from[to] = from;
    exchange.receiveBegin[to] = receive;
  }

  /// Gathers at rank 0 and sends back, all at once or one after another.
  void star(bool atOnce) {
    for (bool add : {true, false}) {
      nextRound();
      for (int64_t p = 1; p < result.ranks; ++p) {
        if (!atOnce)
          nextRound();
        message(exchange(1, add), add ? p : 0, add ? 0 : p, 0, 0);
      }
    }
  }

  void ring() {
    int64_t n = result.pieces = result.ranks;
    for (int64_t step = 0; step < 2 * (n - 1); ++step) {
      nextRound();
      Exchange &e = exchange(1, /*add=*/step < n - 1);
      // Rank p has summed piece p + 1 when everything has gone round once.
      for (int64_t p = 0; p < n; ++p) {
        int64_t piece = (p - step + 2 * n) % n;
        message(e, p, (p + 1) % n, piece, piece);
      }
    }
  }

  void parallel() {
    int64_t n = result.pieces = result.ranks;
    result.stacked = n > 1;
    for (int64_t distance = 1; distance < n; ++distance) {
      Exchange &e = exchange(1, /*add=*/false);
      for (int64_t p = 0; p < n; ++p)
        message(e, p, (p + distance) % n, p, p);
    }
  }

  /// `body(m)` among the first m ranks, m a power of two, with the vectors of the
  /// others folded onto them before and the sum sent back after.
  void folded(function_ref<void(int64_t)> body) {
    int64_t n = result.ranks, m = int64_t(llvm::bit_floor(uint64_t(n)));
    auto fold = [&](bool back) {
      if (n == m)
        return;
      nextRound();
      Exchange &e = exchange(result.pieces, !back);
      for (int64_t p = m; p < n; ++p)
        message(e, back ? p - m : p, back ? p : p - m, 0, 0);
    };
    fold(false);
    body(m);
    fold(true);
  }

  void doubling() {
    folded([&](int64_t m) {
      for (int64_t distance = 1; distance < m; distance *= 2) {
        nextRound();
        Exchange &e = exchange(1, /*add=*/true);
        for (int64_t p = 0; p < m; ++p)
          message(e, p, p ^ distance, 0, 0);
      }
    });
  }

  void halvingDoubling() {
    result.pieces = int64_t(llvm::bit_floor(uint64_t(result.ranks)));
    folded([&](int64_t m) {
      // Rank p is to sum the pieces whose numbers begin with its own bits.
      auto part = [&](int64_t p, int64_t length) { return p / length * length; };
      for (int64_t length = m / 2; length >= 1; length /= 2) {
        nextRound();
        Exchange &e = exchange(length, /*add=*/true);
        for (int64_t p = 0; p < m; ++p)
          message(e, p, p ^ length, part(p ^ length, length), part(p ^ length, length));
      }
      for (int64_t length = 1; length < m; length *= 2) {
        nextRound();
        Exchange &e = exchange(length, /*add=*/false);
        for (int64_t p = 0; p < m; ++p)
          message(e, p, p ^ length, part(p, length), part(p, length));
      }
    });
  }

  AllReduceMessages result;

private:
  unsigned round = 0;
};
} // namespace

AllReduceMessages allReduceMessages(CollectiveAlgorithm algorithm, int64_t ranks) {
  Builder builder(ranks);
  switch (algorithm) {
  case CollectiveAlgorithm::Native:
  case CollectiveAlgorithm::Auto:
    llvm_unreachable("no algorithm of messages");
  case CollectiveAlgorithm::ParameterServer:
    builder.star(/*atOnce=*/true);
    break;
  case CollectiveAlgorithm::Sequential:
    builder.star(/*atOnce=*/false);
    break;
  case CollectiveAlgorithm::Ring:
    builder.ring();
    break;
  case CollectiveAlgorithm::Parallel:
    builder.parallel();
    break;
  case CollectiveAlgorithm::Doubling:
    builder.doubling();
    break;
  case CollectiveAlgorithm::HalvingDoubling:
    builder.halvingDoubling();
    break;
  }
  return std::move(builder.result);
}

/// Pieces that each rank sends (or receives).
static SmallVector<int64_t> piecesMoved(const AllReduceMessages &messages, bool sent) {
  SmallVector<int64_t> moved(messages.ranks, 0);
  for (const Exchange &e : messages.exchanges)
    for (auto [rank, peer] : enumerate(sent ? e.to : e.from))
      if (peer >= 0)
        moved[rank] += e.length;
  return moved;
}

static double vectors(const AllReduceMessages &messages, int64_t pieces) {
  return messages.stacked ? double(pieces) : double(pieces) / double(messages.pieces);
}

unsigned AllReduceMessages::rounds() const {
  return exchanges.empty() ? 0 : exchanges.back().round + 1;
}

double AllReduceMessages::busiest() const {
  int64_t most = 0;
  for (bool sent : {true, false})
    for (int64_t pieces : piecesMoved(*this, sent))
      most = std::max(most, pieces);
  return vectors(*this, most);
}

double AllReduceMessages::total() const {
  int64_t sum = 0;
  for (int64_t pieces : piecesMoved(*this, true))
    sum += pieces;
  return vectors(*this, sum);
}

double secondsOf(const AllReduceMessages &messages, double bytes, const cost::Link &link) {
  return link.seconds(messages.busiest() * bytes, messages.rounds());
}

} // namespace meshwright::dist
