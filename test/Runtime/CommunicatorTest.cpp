//===- CommunicatorTest.cpp - one suite for all communicators -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Every implementation must pass it: threads of one process, and MPI where the test is
// started by mpirun. Results are compared with plain loops over all
// members' inputs, bitwise.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Agreement.h"
#include "common/plan/Plan.h"
#include "cpu/MpiCommunicator.h"
#include "cpu/ThreadCommunicator.h"
#include "meshwright/runtime/Philox.h"
#include "meshwright/runtime/Traffic.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>

using namespace meshwright;

using Body = std::function<void(Communicator &)>;

static std::shared_ptr<MpiMessages> mpiMessages;

namespace {
/// Each harness runs a body once per rank, for the numbers of ranks in counts().
struct Threads {
  static std::vector<int> counts() { return {1, 2, 3, 4, 8}; }
  static void run(int ranks, const Body &body) {
    std::vector<std::unique_ptr<RankStatus>> owned;
    std::vector<RankStatus *> statuses;
    for (int i = 0; i < ranks; ++i) {
      owned.push_back(std::make_unique<RankStatus>(i));
      statuses.push_back(owned.back().get());
    }
    auto world = ThreadCommunicator::createWorld(ranks, 2, statuses);
    std::vector<std::thread> threads;
    for (int i = 0; i < ranks; ++i)
      threads.emplace_back([&, i] { body(*world[size_t(i)]); });
    for (std::thread &thread : threads)
      thread.join();
  }
};

struct Mpi {
  static std::vector<int> counts() {
    return mpiMessages ? std::vector<int>{mpiMessages->size()} : std::vector<int>{};
  }
  static void run(int, const Body &body) {
    RankStatus status(mpiMessages->rank());
    MpiCommunicator world(mpiMessages, status);
    body(world);
    world.barrier();
  }
};

/// Elements of one type, as bytes.
struct Buffer {
  Buffer(ElementType type, int64_t count)
      : type(type), bytes(size_t(count * bytesOf(type)), char(0x5a)) {}
  char *at(int64_t element) { return bytes.data() + element * bytesOf(type); }
  bool operator==(const Buffer &other) const { return bytes == other.bytes; }
  ElementType type;
  std::vector<char> bytes;
};
} // namespace

static constexpr ElementType allTypes[] = {ElementType::F32, ElementType::F64, ElementType::BF16,
                                           ElementType::F16, ElementType::I32};

/// What member `rank` has at the start of test `seed`: the same wherever computed.
static Buffer inputOf(ElementType type, int64_t count, int rank, uint32_t seed) {
  Buffer buffer(type, count);
  auto fill = [&](auto convert) {
    using Stored = decltype(convert(int32_t(0)));
    uint64_t first = (uint64_t(seed) << 40) + (uint64_t(rank) << 34);
    for (int64_t i = 0; i < count; ++i) {
      uint64_t mixed = (uint64_t(i) + first) * 0x9E3779B97F4A7C15u;
      Stored value = convert(int32_t((mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9u >> 32));
      memcpy(buffer.at(i), &value, sizeof(value));
    }
  };
  auto narrow = [](int32_t bits) { return float(bits) * 0x1p-28f; };
  switch (type) {
  case ElementType::F32:
    fill(narrow);
    break;
  case ElementType::F64:
    fill([](int32_t bits) { return double(bits) * 0x1p-28; });
    break;
  case ElementType::BF16:
    fill([&](int32_t bits) { return floatToBf16(narrow(bits)); });
    break;
  case ElementType::F16:
    fill([&](int32_t bits) { return floatToF16(narrow(bits)); });
    break;
  case ElementType::I32:
    fill([](int32_t bits) { return bits; });
    break;
  case ElementType::F8E4M3:
  case ElementType::F8E5M2:
  case ElementType::I16:
  case ElementType::I8:
    throw std::logic_error("such numbers are not summed between ranks");
  }
  return buffer;
}

template <typename Stored, typename Wide, typename Load, typename Store>
static void reduceAs(Buffer &result, std::vector<Buffer> &inputs, int64_t count, bool isMax,
                     Load load, Store store) {
  for (int64_t i = 0; i < count; ++i) {
    Wide total = load(*reinterpret_cast<Stored *>(inputs[0].at(i)));
    for (size_t way = 1; way < inputs.size(); ++way) {
      Wide next = load(*reinterpret_cast<Stored *>(inputs[way].at(i)));
      total = isMax ? std::max(total, next) : Wide(total + next);
    }
    *reinterpret_cast<Stored *>(result.at(i)) = store(total);
  }
}

/// The reduction of `inputs` in their order.
static Buffer reduced(ElementType type, Reduction reduction, int64_t count,
                      std::vector<Buffer> inputs) {
  Buffer result(type, count);
  bool isMax = reduction == Reduction::Max;
  auto same = [](auto value) { return value; };
  switch (type) {
  case ElementType::F32:
    reduceAs<float, float>(result, inputs, count, isMax, same, same);
    break;
  case ElementType::F64:
    reduceAs<double, double>(result, inputs, count, isMax, same, same);
    break;
  case ElementType::BF16:
    reduceAs<uint16_t, float>(result, inputs, count, isMax, bf16ToFloat, floatToBf16);
    break;
  case ElementType::F16:
    reduceAs<uint16_t, float>(result, inputs, count, isMax, f16ToFloat, floatToF16);
    break;
  case ElementType::I32:
    if (isMax)
      reduceAs<int32_t, int32_t>(result, inputs, count, isMax, same, same);
    else
      reduceAs<uint32_t, uint32_t>(result, inputs, count, isMax, same, same);
    break;
  case ElementType::F8E4M3:
  case ElementType::F8E5M2:
  case ElementType::I16:
  case ElementType::I8:
    throw std::logic_error("such numbers are not summed between ranks");
  }
  return result;
}

/// The reduction, in member order, of every member's input.
static Buffer reduced(ElementType type, Reduction reduction, int64_t count, int members,
                      uint32_t seed) {
  std::vector<Buffer> inputs;
  for (int i = 0; i < members; ++i)
    inputs.push_back(inputOf(type, count, i, seed));
  return reduced(type, reduction, count, inputs);
}

/// `length` elements of `from` starting at `begin`.
static Buffer part(Buffer from, int64_t begin, int64_t length) {
  Buffer result(from.type, length);
  memcpy(result.bytes.data(), from.at(begin), result.bytes.size());
  return result;
}

/// The parts one after the other.
static Buffer joined(ElementType type, const std::vector<Buffer> &parts) {
  Buffer result(type, 0);
  for (const Buffer &each : parts)
    result.bytes.insert(result.bytes.end(), each.bytes.begin(), each.bytes.end());
  return result;
}

/// Sizes that are zero, one, do not divide, cross block and window boundaries.
static std::vector<int64_t> sizesFor(uint32_t seed) {
  std::vector<int64_t> sizes = {0, 1, 2, 3, 7, 1024, 1025, 20001};
  for (uint32_t i = 0; i < 3; ++i)
    sizes.push_back(randomBits({seed, 0}, 1, i) % 5000);
  return sizes;
}

static void checkReductions(Communicator &comm, ElementType type, int64_t count, uint32_t seed) {
  int n = comm.size(), me = comm.rank();
  for (Reduction reduction : {Reduction::Sum, Reduction::Max}) {
    Buffer mine = inputOf(type, count, me, seed),
           expected = reduced(type, reduction, count, n, seed);
    Buffer output(type, count);
    comm.allReduce(type, reduction, mine.at(0), output.at(0), count);
    EXPECT_EQ(output, expected) << "all_reduce of " << count << " " << nameOf(type);
    EXPECT_EQ(mine, inputOf(type, count, me, seed)) << "all_reduce changed its input";
    comm.allReduce(type, reduction, mine.at(0), mine.at(0), count);
    EXPECT_EQ(mine, expected) << "all_reduce in place";

    int root = int(seed) % n;
    mine = inputOf(type, count, me, seed);
    Buffer onRoot(type, count);
    comm.reduce(type, reduction, mine.at(0), onRoot.at(0), count, root);
    EXPECT_EQ(onRoot, me == root ? expected : Buffer(type, count)) << "reduce";

    mine = inputOf(type, count * n, me, seed);
    expected = part(reduced(type, reduction, count * n, n, seed), count * me, count);
    comm.reduceScatter(type, reduction, mine.at(0), output.at(0), count);
    EXPECT_EQ(output, expected) << "reduce_scatter of " << count << " " << nameOf(type);
    comm.reduceScatter(type, reduction, mine.at(0), mine.at(count * me), count);
    EXPECT_EQ(part(mine, count * me, count), expected) << "reduce_scatter in place";
  }
}

static void checkTraffic(Communicator &comm, int64_t before, int64_t planned, const char *what);

/// Blocks whose last rows are zeros: those are not sent, but arrive.
static void checkSlots(Communicator &comm, ElementType type, int64_t count, uint32_t seed) {
  int n = comm.size(), me = comm.rank();
  int64_t row = count % 3 ? 1 : 3, width = bytesOf(type), sent = 0;
  auto filled = [&](int from, int to) {
    return int64_t(seed + uint32_t(from) * 7 + uint32_t(to) * 5) % (count / row + 1) * row;
  };
  auto blocksOf = [&](int from) {
    Buffer blocks = inputOf(type, count * n, from, seed);
    for (int to = 0; to < n && count > 0; ++to) {
      int64_t rest = (count - filled(from, to)) * width;
      memset(blocks.at(0) + (int64_t(to) * count + filled(from, to)) * width, 0, size_t(rest));
    }
    return blocks;
  };
  std::vector<Buffer> wanted;
  for (int from = 0; from < n; ++from)
    wanted.push_back(part(blocksOf(from), count * me, count));
  Buffer mine = blocksOf(me), got(type, count * n);
  memset(got.at(0), 0x5A, got.bytes.size());
  bool messages = dynamic_cast<MpiCommunicator *>(&comm);
  for (int from = 0; from < n; ++from)
    for (int to = 0; to < n; ++to)
      if (from != to) // Messages say before how long they are.
        sent += Communicator::filledBytes(blocksOf(from).at(0) + to * count * width, count * width,
                                          row * width) +
                (messages ? int64_t(sizeof(int64_t)) : 0);
  int64_t before = comm.sentBytes();
  comm.allToAll(type, mine.at(0), got.at(0), count, row);
  checkTraffic(comm, before, sent, "all_to_all of slots");
  EXPECT_EQ(got, joined(type, wanted)) << "all_to_all of slots";
}

static void checkMoves(Communicator &comm, ElementType type, int64_t count, uint32_t seed) {
  int n = comm.size(), me = comm.rank(), root = int(seed + 1) % n;
  Buffer mine = inputOf(type, count, me, seed);
  std::vector<Buffer> inputs, blocks;
  for (int i = 0; i < n; ++i) {
    inputs.push_back(inputOf(type, count, i, seed));
    blocks.push_back(part(inputOf(type, count * n, i, seed), count * me, count));
  }
  Buffer all(type, count * n), one(type, count);
  comm.allGather(type, mine.at(0), all.at(0), count);
  EXPECT_EQ(all, joined(type, inputs)) << "all_gather of " << count << " " << nameOf(type);
  Buffer inPlace(type, count * n);
  memcpy(inPlace.at(count * me), mine.at(0), mine.bytes.size());
  comm.allGather(type, inPlace.at(count * me), inPlace.at(0), count);
  EXPECT_EQ(inPlace, all) << "all_gather in place";

  Buffer wide = inputOf(type, count * n, me, seed), exchanged(type, count * n);
  comm.allToAll(type, wide.at(0), exchanged.at(0), count);
  EXPECT_EQ(exchanged, joined(type, blocks)) << "all_to_all";
  checkSlots(comm, type, count, seed);

  Buffer copy = mine;
  comm.broadcast(type, copy.at(0), count, root);
  EXPECT_EQ(copy, inputs[size_t(root)]) << "broadcast of " << count;

  Buffer gathered(type, count * n);
  comm.gather(type, mine.at(0), gathered.at(0), count, root);
  EXPECT_EQ(gathered, me == root ? joined(type, inputs) : Buffer(type, count * n)) << "gather";

  comm.scatter(type, wide.at(0), one.at(0), count, root);
  EXPECT_EQ(one, part(inputOf(type, count * n, root, seed), count * me, count)) << "scatter";

  // A ring with one link cut: its end gets zeros.
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i + 1 < n; ++i)
    pairs.push_back({i, i + 1});
  comm.permute(type, mine.at(0), one.at(0), count, pairs);
  Buffer zeros(type, count);
  std::fill(zeros.bytes.begin(), zeros.bytes.end(), char(0));
  EXPECT_EQ(one, me ? inputs[size_t(me - 1)] : zeros) << "permute";
}

static void checkMessages(Communicator &comm, ElementType type, int64_t count, uint32_t seed) {
  int n = comm.size(), me = comm.rank();
  if (n == 1)
    return;
  // Two messages in a row each way between neighbours, even ranks first.
  for (int phase = 0; phase < 2; ++phase) {
    int peer = me % 2 == phase ? me + 1 : me - 1;
    if (peer < 0 || peer >= n)
      continue;
    auto send = [&] {
      Buffer first = inputOf(type, count, me, seed), second = inputOf(type, count, me, seed + 1);
      comm.send(type, first.at(0), count, peer);
      comm.send(type, second.at(0), count, peer);
    };
    auto receive = [&] {
      Buffer first(type, count), second(type, count);
      comm.receive(type, first.at(0), count, peer);
      comm.receive(type, second.at(0), count, peer);
      EXPECT_EQ(first, inputOf(type, count, peer, seed));
      EXPECT_EQ(second, inputOf(type, count, peer, seed + 1));
    };
    if (me < peer) {
      send();
      receive();
    } else {
      receive();
      send();
    }
  }
}

/// What all members have sent since they were at `before`: as much as is planned.
static void checkTraffic(Communicator &comm, int64_t before, int64_t planned, const char *what) {
  double mine = double(comm.sentBytes() - before);
  std::vector<double> all(size_t(comm.size()));
  comm.allGather(ElementType::F64, &mine, all.data(), 1);
  EXPECT_EQ(std::accumulate(all.begin(), all.end(), 0.0), double(planned)) << what;
}

/// What a communicator that has made no call yet allocates in one: as much as is
/// planned if members send messages, though those with small parts may need less, and
/// none if they do not.
static void checkScratch(Communicator &comm, const char *op, const std::vector<int64_t> &counts,
                         int64_t width, const std::function<void(Communicator &)> &call) {
  std::vector<int> everyone(size_t(comm.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  std::unique_ptr<Communicator> fresh = comm.split(everyone);
  call(*fresh);
  Scratch planned = scratchOf(op, counts, width, comm.size());
  int64_t most = planned.received + planned.packed;
  bool messages = dynamic_cast<MpiCommunicator *>(fresh.get());
  EXPECT_LE(fresh->allocatedBytes(), messages ? most : 0) << op;
  if (messages && comm.rank() == 0) {
    EXPECT_EQ(fresh->allocatedBytes(), most) << op;
  }
}

/// Several tensors in one call: each as if alone, and as many bytes as are planned.
static void checkSegments(Communicator &comm, ElementType type, const std::vector<int64_t> &counts,
                          uint32_t seed) {
  int n = comm.size(), me = comm.rank();
  int64_t width = bytesOf(type);
  std::vector<Buffer> narrow, wide, toNarrow, toWide;
  std::vector<MwSegment> reduces, gathers, scatters;
  for (size_t i = 0; i < counts.size(); ++i) {
    narrow.push_back(inputOf(type, counts[i], me, seed + uint32_t(i)));
    wide.push_back(inputOf(type, counts[i] * n, me, seed + uint32_t(i)));
    toNarrow.push_back(Buffer(type, counts[i]));
    toWide.push_back(Buffer(type, counts[i] * n));
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    reduces.push_back({narrow[i].at(0), toNarrow[i].at(0), counts[i]});
    gathers.push_back({narrow[i].at(0), toWide[i].at(0), counts[i]});
    scatters.push_back({wide[i].at(0), toNarrow[i].at(0), counts[i]});
  }
  int64_t before = comm.sentBytes();
  comm.allReduce(type, Reduction::Sum, {reduces.data(), reduces.size()});
  checkTraffic(comm, before, trafficOf("all_reduce", counts, width, n), "all_reduce");
  for (size_t i = 0; i < counts.size(); ++i)
    EXPECT_EQ(toNarrow[i], reduced(type, Reduction::Sum, counts[i], n, seed + uint32_t(i)));

  before = comm.sentBytes();
  comm.allGather(type, {gathers.data(), gathers.size()});
  checkTraffic(comm, before, trafficOf("all_gather", counts, width, n), "all_gather");
  before = comm.sentBytes();
  comm.reduceScatter(type, Reduction::Max, {scatters.data(), scatters.size()});
  checkTraffic(comm, before, trafficOf("reduce_scatter", counts, width, n), "reduce_scatter");
  for (size_t i = 0; i < counts.size(); ++i) {
    std::vector<Buffer> inputs;
    for (int member = 0; member < n; ++member)
      inputs.push_back(inputOf(type, counts[i], member, seed + uint32_t(i)));
    EXPECT_EQ(toWide[i], joined(type, inputs));
    EXPECT_EQ(toNarrow[i], part(reduced(type, Reduction::Max, counts[i] * n, n, seed + uint32_t(i)),
                                counts[i] * me, counts[i]));
  }
  checkScratch(comm, "all_reduce", counts, width, [&](Communicator &fresh) {
    fresh.allReduce(type, Reduction::Sum, {reduces.data(), reduces.size()});
  });
  checkScratch(comm, "all_gather", counts, width, [&](Communicator &fresh) {
    fresh.allGather(type, {gathers.data(), gathers.size()});
  });
  checkScratch(comm, "reduce_scatter", counts, width, [&](Communicator &fresh) {
    fresh.reduceScatter(type, Reduction::Max, {scatters.data(), scatters.size()});
  });
  // In place.
  for (MwSegment &segment : reduces)
    segment.output = const_cast<void *>(segment.input);
  comm.allReduce(type, Reduction::Sum, {reduces.data(), reduces.size()});
  for (size_t i = 0; i < counts.size(); ++i)
    EXPECT_EQ(narrow[i], reduced(type, Reduction::Sum, counts[i], n, seed + uint32_t(i)));
}

/// Every member sends its second piece of three to the next. What arrives is added to
/// the same piece, which may be shorter than the first or empty; or, where the last
/// member does not send, added to or put in the place of the first piece.
static void checkExchange(Communicator &comm, ElementType type, std::vector<int64_t> counts,
                          bool ring, bool adds, uint32_t seed) {
  int n = comm.size(), me = comm.rank(), target = ring ? 1 : 0;
  if (n == 1)
    return;
  std::vector<int32_t> to, send, from, receive, table{adds ? MW_SUM : -1, 3, 1};
  for (int i = 0; i < n; ++i) {
    bool sends = ring || i < n - 1, receives = ring || i > 0;
    to.push_back(sends ? (i + 1) % n : -1);
    send.push_back(sends ? 1 : -1);
    from.push_back(receives ? (i + n - 1) % n : -1);
    receive.push_back(receives ? target : -1);
  }
  for (const auto &list : {to, send, from, receive})
    table.insert(table.end(), list.begin(), list.end());
  ExchangeTable exchange{table.data(), n};
  std::vector<Buffer> tensors, wanted;
  std::vector<MwSegment> segments;
  int64_t all = 0, width = bytesOf(type);
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t &count = counts[i];
    count *= ring ? 1 : 3; // pieces of different places must be equal
    uint32_t own = seed + uint32_t(i);
    tensors.push_back(inputOf(type, count, me, own));
    wanted.push_back(tensors.back());
    all += count;
    if (from[size_t(me)] < 0)
      continue;
    ExchangeTable::Range sent = exchange.pieces(count, 1), at = exchange.pieces(count, target);
    Buffer got = part(inputOf(type, count, from[size_t(me)], own), sent.begin, sent.length());
    if (adds)
      got = reduced(type, Reduction::Sum, at.length(),
                    {part(wanted[i], at.begin, at.length()), got});
    memcpy(wanted[i].at(at.begin), got.bytes.data(), got.bytes.size());
  }
  for (size_t i = 0; i < counts.size(); ++i)
    segments.push_back({tensors[i].at(0), tensors[i].at(0), counts[i]});
  Buffer workspace(type, all);
  std::vector<int> everyone(static_cast<size_t>(n));
  std::iota(everyone.begin(), everyone.end(), 0);
  std::unique_ptr<Communicator> fresh = comm.split(everyone);
  fresh->exchange(type, exchange, {segments.data(), segments.size()},
                  adds ? workspace.at(0) : nullptr);
  bool messages = dynamic_cast<MpiCommunicator *>(fresh.get());
  EXPECT_EQ(fresh->allocatedBytes(), messages ? exchange.packedBytes(me, counts, width) : 0);
  checkTraffic(*fresh, 0, exchange.sentElements(counts) * width, "exchange");
  for (size_t i = 0; i < counts.size(); ++i)
    EXPECT_EQ(tensors[i], wanted[i]) << "exchange of tensor " << i;
}

/// Ops on one tensor send what is planned.
static void checkTrafficOfMoves(Communicator &comm, ElementType type, int64_t count,
                                uint32_t seed) {
  int n = comm.size(), root = int(seed) % n;
  int64_t width = bytesOf(type);
  Buffer wide = inputOf(type, count * n, comm.rank(), seed), out(type, count * n);
  auto check = [&](const char *op, const std::function<void()> &body, int64_t fixed = 0) {
    int64_t before = comm.sentBytes();
    body();
    checkTraffic(comm, before, trafficOf(op, {count}, width, n, root, fixed), op);
  };
  check("all_to_all", [&] { comm.allToAll(type, wide.at(0), out.at(0), count); });
  check("broadcast", [&] { comm.broadcast(type, out.at(0), count, root); });
  check("gather", [&] { comm.gather(type, wide.at(0), out.at(0), count, root); });
  check("scatter", [&] { comm.scatter(type, wide.at(0), out.at(0), count, root); });
  check("reduce",
        [&] { comm.reduce(type, Reduction::Sum, wide.at(0), out.at(0), count, root); });
  std::vector<std::pair<int, int>> pairs{{0, 0}};
  for (int i = 1; i < n; ++i)
    pairs.push_back({i, i % (n - 1) + 1});
  check(
      "permute", [&] { comm.permute(type, wide.at(0), out.at(0), count, pairs); },
      n == 2 ? 2 : 1);
  if (n > 1)
    check("send", [&] {
      if (comm.rank() == 0)
        comm.send(type, wide.at(0), count, 1);
      else if (comm.rank() == 1)
        comm.receive(type, out.at(0), count, 0);
    });
}

template <typename Harness> class CommunicatorTest : public testing::Test {};
TYPED_TEST_SUITE_P(CommunicatorTest);

TYPED_TEST_P(CommunicatorTest, Reductions) {
  for (int ranks : TypeParam::counts())
    TypeParam::run(ranks, [](Communicator &world) {
      uint32_t seed = 100;
      for (ElementType type : allTypes)
        for (int64_t count : sizesFor(1))
          checkReductions(world, type, count, ++seed);
    });
}

TYPED_TEST_P(CommunicatorTest, Moves) {
  for (int ranks : TypeParam::counts())
    TypeParam::run(ranks, [](Communicator &world) {
      uint32_t seed = 300;
      for (ElementType type : allTypes)
        for (int64_t count : sizesFor(2)) {
          checkMoves(world, type, count, ++seed);
          checkMessages(world, type, count, seed);
        }
    });
}

TYPED_TEST_P(CommunicatorTest, LargeBuffersCrossWindows) {
  for (int ranks : TypeParam::counts())
    TypeParam::run(ranks, [](Communicator &world) {
      checkReductions(world, ElementType::F32, windowBytes / 16 + 1, 1);
      checkMoves(world, ElementType::F32, 100001, 2);
      int64_t count = windowBytes / 8 + 1;
      Buffer mine = inputOf(ElementType::F64, count, world.rank(), 3);
      world.allReduce(ElementType::F64, Reduction::Sum, mine.at(0), mine.at(0), count);
      EXPECT_EQ(mine, reduced(ElementType::F64, Reduction::Sum, count, world.size(), 3));
    });
}

TYPED_TEST_P(CommunicatorTest, SeveralTensors) {
  const std::vector<std::vector<int64_t>> calls = {
      {5}, {0, 3, 0}, {1, 2000, 7, 30000, 5, 20001, 12, 9}, std::vector<int64_t>(100, 4099)};
  for (int ranks : TypeParam::counts())
    TypeParam::run(ranks, [&](Communicator &world) {
      uint32_t seed = 900;
      for (ElementType type : {ElementType::F32, ElementType::BF16})
        for (const auto &counts : calls)
          checkSegments(world, type, counts, seed += 1000);
      for (ElementType type : {ElementType::F32, ElementType::BF16})
        for (const auto &counts : calls) {
          checkExchange(world, type, counts, /*ring=*/true, /*adds=*/true, seed += 1000);
          checkExchange(world, type, counts, /*ring=*/false, /*adds=*/true, seed += 1000);
          checkExchange(world, type, counts, /*ring=*/false, /*adds=*/false, seed += 1000);
        }
      for (int64_t count : {int64_t(0), int64_t(1), int64_t(1023), int64_t(40001),
                            windowBytes / 8 + 1})
        checkTrafficOfMoves(world, ElementType::F32, count, ++seed);
    });
}

// Every group shape of several meshes, several groups at work at the same time.
TYPED_TEST_P(CommunicatorTest, GroupsOfMeshes) {
  const std::vector<std::vector<int64_t>> meshes = {{8}, {2, 4}, {4, 2}, {2, 2, 2}, {2, 2},
                                                    {4}, {3},    {1, 2}, {2, 1},    {1}};
  for (int ranks : TypeParam::counts())
    TypeParam::run(ranks, [&](Communicator &world) {
      for (const auto &sizes : meshes) {
        Plan plan;
        for (size_t axis = 0; axis < sizes.size(); ++axis)
          plan.mesh.push_back({"axis" + std::to_string(axis), sizes[axis]});
        if (plan.ranks() != world.size())
          continue;
        for (uint32_t subset = 0; subset < 1u << sizes.size(); ++subset) {
          std::vector<int> axes;
          for (size_t axis = 0; axis < sizes.size(); ++axis)
            if (subset >> axis & 1)
              axes.push_back(int(axis));
          auto group = world.split(plan.groupMembers(axes, world.rank()));
          ASSERT_EQ(group->size(), plan.axesSize(axes));
          ASSERT_EQ(group->worldRank(group->rank()), world.rank());
          for (int64_t count : {0, 5, 3001}) {
            checkReductions(*group, ElementType::F32, count, subset);
            checkMoves(*group, ElementType::BF16, count, subset);
            checkMessages(*group, ElementType::I32, count, subset);
          }
          group->barrier();
        }
      }
    });
}

// Nobody leaves a barrier before the last has come.
TYPED_TEST_P(CommunicatorTest, BarrierHolds) {
  for (int ranks : TypeParam::counts())
    TypeParam::run(ranks, [](Communicator &world) {
      for (int late = 0; late < world.size(); ++late) {
        using Clock = std::chrono::steady_clock;
        auto begin = Clock::now();
        world.barrier();
        if (world.rank() == late)
          std::this_thread::sleep_for(std::chrono::milliseconds(30));
        world.barrier();
        EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(20));
      }
    });
}

/// Numbers that meet when they are equal.
struct EqualCalls : Calls {
  bool meet(int a, int b) const override { return a == b; }
  std::string describe(int call) const override { return "call " + std::to_string(call); }
};

// A message of another call is refused, whether it waits or is waited for, and the next
// one is in order.
TYPED_TEST_P(CommunicatorTest, OutOfStep) {
  for (int ranks : TypeParam::counts())
    for (bool early : {false, true}) {
      if (ranks == 1)
        continue;
      TypeParam::run(ranks, [&](Communicator &world) {
        EqualCalls calls;
        world.setCalls(&calls);
        int32_t value = world.rank() == 0 ? 7 : 0;
        if (early)
          world.barrier();
        if (world.rank() == 0) {
          for (int call : {3, 5}) {
            world.beginCall(call);
            world.send(ElementType::I32, &value, 1, 1);
          }
          world.beginCall(-1);
        } else if (world.rank() == 1) {
          world.beginCall(4);
          try {
            world.receive(ElementType::I32, &value, 1, 0);
            ADD_FAILURE() << "a message of another call was taken";
          } catch (const std::exception &error) {
            std::string message = error.what();
            for (const char *part : {"rank 1 is at call 4", "rank 0 at call 3"})
              EXPECT_NE(message.find(part), std::string::npos) << message;
          }
          world.beginCall(5);
          world.receive(ElementType::I32, &value, 1, 0);
          EXPECT_EQ(value, 7);
          world.beginCall(-1);
        }
        world.barrier();
        world.setCalls(nullptr);
      });
    }
}

// All ranks see the same error, whoever brings something else; nothing is lost in between.
TYPED_TEST_P(CommunicatorTest, Agreement) {
  for (int ranks : TypeParam::counts())
    TypeParam::run(ranks, [](Communicator &world) {
      std::vector<Term> terms = {{"plan", "0123", "", "same"}, {"--lr", "0.5", "", "same"},
                                 {"--data", "5 bytes", "/tmp/a b", "the same file"}};
      checkAgreement(world, terms);
      for (int odd = 1; odd < world.size(); ++odd) {
        std::vector<Term> mine = terms;
        if (world.rank() == odd)
          mine[2] = {"--data", "66 bytes", "/b", "the same file"};
        if (world.rank() == world.size() - 1 && odd % 2)
          mine[1].value = "0.25";
        std::string last = std::to_string(world.size() - 1), at = std::to_string(odd);
        std::string expected =
            odd % 2 ? "--lr is 0.5 on rank 0 but 0.25 on rank " + last + ": same"
                    : "--data is 5 bytes on rank 0 (/tmp/a b) but 66 bytes on rank " + at +
                          " (/b): the same file";
        try {
          checkAgreement(world, mine);
          ADD_FAILURE() << "no error";
        } catch (const std::exception &error) {
          EXPECT_EQ(error.what(), expected);
        }
      }
      if (world.size() == 1)
        return;
      if (world.rank() == 0)
        terms.pop_back();
      EXPECT_THROW(checkAgreement(world, terms), std::exception);
    });
}

TYPED_TEST_P(CommunicatorTest, NaNWinsMaximum) {
  for (int ranks : TypeParam::counts())
    TypeParam::run(ranks, [](Communicator &world) {
      for (int owner = 0; owner < world.size(); ++owner) {
        float value = world.rank() == owner ? NAN : float(world.rank()), result = 0;
        world.allReduce(ElementType::F32, Reduction::Max, &value, &result, 1);
        EXPECT_TRUE(std::isnan(result));
      }
    });
}

REGISTER_TYPED_TEST_SUITE_P(CommunicatorTest, Agreement, OutOfStep, Reductions, Moves, LargeBuffersCrossWindows,
                            SeveralTensors, GroupsOfMeshes, BarrierHolds, NaNWinsMaximum);
INSTANTIATE_TYPED_TEST_SUITE_P(Threads, CommunicatorTest, Threads);
INSTANTIATE_TYPED_TEST_SUITE_P(Mpi, CommunicatorTest, Mpi);

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const char *size = getenv("OMPI_COMM_WORLD_SIZE"))
    mpiMessages = std::make_shared<MpiMessages>(atoi(size));
  int result = RUN_ALL_TESTS();
  if (mpiMessages)
    mpiMessages->finish();
  return result;
}
