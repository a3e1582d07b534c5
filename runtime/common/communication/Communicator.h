//===- Communicator.h - collectives of a group of ranks -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// One rank's membership of one ordered group of ranks. All implementations pass
// the same conformance suite (test/Runtime/CommunicatorTest.cpp) and promise:
//
//  - Every call blocks until its result is in place and the input may be reused.
//  - Members call the same collectives in the same order with the same counts.
//  - Members whose calls do not meet (`setCalls`) fail rather than exchange data.
//  - Counts are elements and may be zero.
//  - Sums and maxima are taken in member order 0, 1, ..., in f32 for bf16 and f16
//    (rounded once), so results are bitwise the same on every member, in every
//    run, and from every implementation. Integer sums wrap; a maximum with NaN is
//    NaN.
//  - A call with several tensors gives each the result that a call of its own would.
//  - Input and output do not overlap, or are exactly in place: the same address
//    for all_reduce and reduce, input = output + i * count for all_gather and
//    output = input + i * count for reduce_scatter (i: this member).
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_COMMUNICATOR_H
#define MESHWRIGHT_RUNTIME_COMMON_COMMUNICATOR_H

#include "common/communication/RankGroup.h"
#include "meshwright/runtime/Traffic.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace meshwright {

/// The tensors of one call.
struct Segments {
  const MwSegment *data;
  size_t size;

  const MwSegment &operator[](size_t i) const { return data[i]; }
  const MwSegment *begin() const { return data; }
  const MwSegment *end() const { return data + size; }
  std::vector<int64_t> counts() const {
    std::vector<int64_t> result;
    for (const MwSegment &segment : *this)
      result.push_back(segment.count);
    return result;
  }
};

/// What the calls of a program are, by number, so that ranks that are out of step say so
/// instead of taking each other's data. -1 is none of the program's.
class Calls {
public:
  virtual ~Calls() = default;
  /// Whether two calls are the same one, or the two ends of a message.
  virtual bool meet(int a, int b) const = 0;
  /// What a call is and where it comes from, for an error.
  virtual std::string describe(int call) const = 0;

  /// Fails unless call `mine` of world rank `self` meets call `theirs` of `peer`. Without
  /// `calls`, or outside of the program's calls, everything meets.
  static void check(const Calls *calls, int self, int mine, int peer, int theirs);
};

/// What a program's collectives need of a group, where the host sends them.
class Communicator : public RankGroup {
public:
  using RankGroup::RankGroup;

  /// Bytes that this member has sent to others so far, or read from or written to
  /// their memory: summed over a group what `trafficOf` says.
  int64_t sentBytes() const { return sent; }

  /// Bytes that this communicator has allocated for what it moves: at most what
  /// `scratchOf` says of the calls so far.
  virtual int64_t allocatedBytes() const { return 0; }

  /// The group of the members at positions `positions`, which must include this
  /// one. Every member calls it, in the same order; members that name different
  /// groups get different groups.
  virtual std::unique_ptr<Communicator> split(const std::vector<int> &positions) = 0;

  /// What the program's calls are; null: nobody asks.
  virtual void setCalls(const Calls *known) { calls = known; }
  /// The calls from here on are part of the program's call number `number`.
  void beginCall(int number) { call = number; }

  /// Sends to any member. `post` waits until the message before it to that member has been
  /// taken and then returns at once; its data must stay until `finishSend`, which waits
  /// for that.
  virtual void post(ElementType type, const void *data, int64_t count, int to) = 0;
  virtual void finishSend(int to) = 0;
  void finishSends() {
    for (int to = 0; to < size(); ++to)
      finishSend(to);
  }
  void send(ElementType type, const void *data, int64_t count, int to) override {
    post(type, data, count, to);
    finishSend(to);
  }

  using RankGroup::broadcast;
  void broadcast(ElementType type, const void *input, void *output, int64_t count, int root) {
    if (self == root && input != output && count > 0)
      std::memcpy(output, input, size_t(count * bytesOf(type)));
    broadcast(type, output, count, root);
  }
  /// `output`, on `root` only, is the reduction of every member's `input`.
  virtual void reduce(ElementType type, Reduction reduction, const void *input, void *output,
                      int64_t count, int root) = 0;
  virtual void allReduce(ElementType type, Reduction reduction, Segments segments) = 0;
  /// `output` holds size() * count elements: member i's `input` at i * count.
  virtual void allGather(ElementType type, Segments segments) = 0;
  /// Member i gets the reduction of every member's input[i * count, (i + 1) * count).
  virtual void reduceScatter(ElementType type, Reduction reduction, Segments segments) = 0;

  void allReduce(ElementType type, Reduction reduction, const void *input, void *output,
                 int64_t count) override {
    MwSegment one{input, output, count};
    allReduce(type, reduction, {&one, 1});
  }
  void allGather(ElementType type, const void *input, void *output, int64_t count) override {
    MwSegment one{input, output, count};
    allGather(type, {&one, 1});
  }
  void reduceScatter(ElementType type, Reduction reduction, const void *input, void *output,
                     int64_t count) {
    MwSegment one{input, output, count};
    reduceScatter(type, reduction, {&one, 1});
  }

  /// Member i's block j of `count` elements becomes member j's block i. With `row` above 0 blocks are
  /// rows of so many elements, and the rows of zeros at the end of a block are not sent.
  virtual void allToAll(ElementType type, const void *input, void *output, int64_t count,
                        int64_t row) = 0;
  void allToAll(ElementType type, const void *input, void *output, int64_t count) {
    allToAll(type, input, output, count, 0);
  }
  /// allGather, with `output` on `root` only.
  virtual void gather(ElementType type, const void *input, void *output, int64_t count,
                      int root) = 0;
  /// Member i gets block i of `root`'s `input`.
  virtual void scatter(ElementType type, const void *input, void *output, int64_t count,
                       int root) = 0;
  /// For each pair (from, to), `to` gets the input of `from`; members that are no
  /// pair's `to` get zeros. No member is `from` or `to` twice.
  virtual void permute(ElementType type, const void *input, void *output, int64_t count,
                       const std::vector<std::pair<int, int>> &pairs) = 0;
  /// Member i gets the input of member from[i].
  void permute(ElementType type, const void *input, void *output, int64_t count,
               const int32_t *from) {
    std::vector<std::pair<int, int>> pairs;
    for (int to = 0; to < size(); ++to)
      pairs.push_back({from[to], to});
    permute(type, input, output, count, pairs);
  }

  /// One message for each member that takes part, as mw_exchange has it (ABI.h).
  virtual void exchange(ElementType type, ExchangeTable table, Segments segments,
                        void *workspace) = 0;

  /// The bytes of `bytes` from `data` on before the rows of zeros at the end, all of them for `row` 0.
  static int64_t filledBytes(const void *data, int64_t bytes, int64_t row);

protected:
  int64_t sent = 0;
  const Calls *calls = nullptr;
  int call = -1;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_COMMUNICATOR_H
