//===- OffsetAssignerTest.cpp - offsets never overlap and waste little -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Memory/OffsetAssigner.h"

#include "gtest/gtest.h"

#include <bitset>
#include <random>

using namespace meshwright::exec;

static constexpr int64_t alignment = 64;

static void expectValid(llvm::ArrayRef<Lifetime> buffers, const OffsetAssignment &assignment) {
  ASSERT_EQ(assignment.offsets.size(), buffers.size());
  for (unsigned i = 0; i < buffers.size(); ++i) {
    EXPECT_GE(assignment.offsets[i], 0);
    EXPECT_EQ(assignment.offsets[i] % alignment, 0);
    EXPECT_LE(assignment.offsets[i] + buffers[i].size, assignment.size);
    for (unsigned j = 0; j < i; ++j)
      EXPECT_TRUE(!buffers[i].overlaps(buffers[j]) ||
                  assignment.offsets[i] + buffers[i].size <= assignment.offsets[j] ||
                  assignment.offsets[j] + buffers[j].size <= assignment.offsets[i])
          << i << " and " << j;
  }
}

static double waste(llvm::ArrayRef<Lifetime> buffers) {
  OffsetAssignment assignment = computeOffsets(buffers, alignment);
  expectValid(buffers, assignment);
  int64_t live = largestLiveSum(buffers, alignment).bytes;
  EXPECT_GE(assignment.size, live);
  return double(assignment.size) / live;
}

TEST(OffsetAssigner, Nothing) { EXPECT_EQ(computeOffsets({}, alignment).size, 0); }

TEST(OffsetAssigner, SharesWhatIsNotLiveTogether) {
  Lifetime buffers[] = {{100, 0, 2}, {100, 2, 4}, {64, 1, 3}};
  OffsetAssignment assignment = computeOffsets(buffers, alignment);
  expectValid(buffers, assignment);
  EXPECT_EQ(assignment.size, 192);
  EXPECT_EQ(assignment.offsets[0], assignment.offsets[1]);
}

TEST(OffsetAssigner, LargestLiveSumNamesTheMoment) {
  Lifetime buffers[] = {{10, 0, 5}, {100, 3, 6}, {70, 5, 9}};
  auto [bytes, when, iterations] = largestLiveSum(buffers, alignment);
  EXPECT_EQ(bytes, 256);
  EXPECT_EQ(when, 5);
}

/// Any intervals and sizes: no bound is proven, but no overlap ever.
TEST(OffsetAssigner, RandomIntervalsDoNotOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    std::vector<Lifetime> buffers;
    for (int i = 0, n = 1 + random() % 120; i < n; ++i) {
      int64_t begin = random() % 200;
      buffers.push_back({int64_t(1 + random() % 5000), begin, begin + 1 + int64_t(random() % 60)});
    }
    EXPECT_LE(waste(buffers), 1.25);
  }
}

TEST(OffsetAssigner, IsDeterministic) {
  std::mt19937 random(3);
  std::vector<Lifetime> buffers;
  for (int i = 0; i < 80; ++i) {
    int64_t begin = random() % 100;
    buffers.push_back({int64_t(1 + random() % 5000), begin, begin + 1 + int64_t(random() % 30)});
  }
  OffsetAssignment first = computeOffsets(buffers, alignment),
                   second = computeOffsets(buffers, alignment);
  EXPECT_EQ(first.offsets, second.offsets);
}

/// A training step: stacks that live from the forward to the backward, gradients
/// that live to the end, temporaries of a few ops, an evaluation after it.
static std::vector<Lifetime> trainingStep(std::mt19937 &random, int64_t width, int64_t layers,
                                          bool gradientsFirst) {
  std::vector<Lifetime> buffers;
  auto add = [&](int64_t elements, int64_t begin, int64_t end) {
    buffers.push_back({elements * 4, begin, end});
  };
  const int64_t rows = 2048;
  for (int64_t i : {1, 1, 1, 1, 1, 1, 4})
    add(layers * rows * width * i, 10, 70);
  add(rows * 50257, 35, 40);
  for (int64_t i : {1, 1, 1, 1, 4, 4})
    add(layers * width * width * i, gradientsFirst ? 0 : 45, 200);
  add(50257 * width, 39, 200);
  for (int i = 0; i < 60; ++i) {
    int64_t begin = 11 + random() % 180;
    add((1 + random() % 4) * rows * width, begin, begin + 1 + random() % 5);
    add(random() % 3000, begin, begin + 1 + random() % 12);
  }
  add(rows * 50257, 220, 222);
  for (int i = 0; i < 10; ++i)
    add((1 + random() % 4) * rows * width, 205 + i, 207 + i);
  return buffers;
}

TEST(OffsetAssigner, TrainingStepsWasteLessThanThreePercent) {
  std::mt19937 random(11);
  for (int64_t width : {768, 1024, 4096})
    for (int64_t layers : {1, 12, 96})
      for (bool gradientsFirst : {false, true})
        EXPECT_LE(waste(trainingStep(random, width, layers, gradientsFirst)), 1.03)
            << width << " " << layers << " " << gradientsFirst;
}

/// The activations of a pipeline's schedule: each forward makes some that a later backward reads,
/// all of them live at once, or few. Thousands of microbatches are no pairs of them.
TEST(OffsetAssigner, ThousandsOfMicrobatchesTakeWhatIsLive) {
  for (int64_t inFlight : {2, 3000}) {
    std::vector<Lifetime> buffers;
    for (int64_t microbatch = 0; microbatch < 3000; ++microbatch)
      for (int64_t size : {4096, 256, 1000})
        buffers.push_back({size, 2 * microbatch, 2 * (microbatch + inFlight) + 1});
    int64_t live = largestLiveSum(buffers, alignment).bytes;
    EXPECT_EQ(computeOffsets(buffers, alignment).size, live);
  }
}

//===--- stacks that loops fill and empty ---------------------------------------------===//

namespace {
struct Loop {
  int64_t begin, end, count;
  bool reverse;

  /// Whether `time` is behind the loop's first op and before its end.
  bool hasInside(int64_t time) const { return begin < time && time < end; }
};

/// Loops one after the other, with ops between them.
struct Timeline {
  std::vector<Loop> loops;
  int64_t end = 0;
};

/// An op as it runs: at which time, and in which iteration of the loop there.
struct Moment {
  int64_t time, iteration;
};
} // namespace

/// More than the buffers below have.
static constexpr unsigned mostBytes = 1024;
using ByteSet = std::bitset<mostBytes>;

static int64_t between(std::mt19937 &random, int64_t least, int64_t most) {
  return least + int64_t(random() % uint64_t(most - least + 1));
}

static Timeline randomTimeline(std::mt19937 &random) {
  Timeline line;
  for (int i = 0; i < 3; ++i) {
    line.end += between(random, 2, 3);
    int64_t begin = line.end, end = begin + between(random, 4, 7);
    line.loops.push_back({begin, end, between(random, 1, 4), random() % 2 == 0});
    line.end = end;
  }
  line.end += 3;
  return line;
}

/// Everything that happens, iteration by iteration and op by op.
static std::vector<Moment> momentsOf(const Timeline &line) {
  std::vector<Moment> moments;
  int64_t time = 0;
  for (const Loop &loop : line.loops) {
    for (; time < loop.begin; ++time)
      moments.push_back({time, 0});
    for (int64_t iteration = 0; iteration < loop.count; ++iteration)
      for (int64_t at = loop.begin; at < loop.end; ++at)
        moments.push_back({at, iteration});
    time = loop.end;
  }
  for (; time < line.end; ++time)
    moments.push_back({time, 0});
  return moments;
}

/// Which bytes of the buffer hold something at a moment.
static ByteSet heldAt(const Lifetime &buffer, Moment now) {
  ByteSet held;
  auto add = [&](int64_t begin, int64_t size) {
    for (int64_t i = begin; i < begin + size; ++i)
      held.set(i);
  };
  if (now.time < buffer.begin || buffer.end <= now.time)
    return held;
  bool inSlots = false;
  for (bool fills : {true, false}) {
    const std::optional<SlotLife> &slots = fills ? buffer.filled : buffer.emptied;
    if (!slots || now.time < slots->begin || slots->end <= now.time)
      continue;
    inSlots = true;
    for (int64_t i = 0; i < slots->count; ++i) {
      bool isFilled = i < now.iteration || (i == now.iteration && slots->when <= now.time);
      bool isNeeded = i > now.iteration || (i == now.iteration && now.time <= slots->when);
      if (fills ? isFilled : isNeeded)
        add(slots->offset + (slots->reverse ? slots->count - 1 - i : i) * slots->bytes,
            slots->bytes);
    }
  }
  if (!inSlots)
    add(0, buffer.size);
  return held;
}

/// Any buffer that programs can have; with slots of up to `mostSlot` units, that lie anywhere in
/// their stack if `larger`, and else are all of it.
static Lifetime randomLife(std::mt19937 &random, const Timeline &line, int64_t unit,
                           int64_t mostSlot, bool larger) {
  Lifetime life{unit * between(random, 1, 3 * mostSlot), 0, 0};
  unsigned kind = random() % 6, at = random() % line.loops.size();
  const Loop &loop = line.loops[at];
  auto slotsOf = [&](const Loop &of, int64_t offset, int64_t bytes) {
    int64_t when = between(random, of.begin + 1, of.end - 1);
    life.size = std::max(life.size,
                         offset + of.count * bytes + (larger ? unit * between(random, 0, 2) : 0));
    return SlotLife{of.begin, of.end, when, offset, bytes, of.count, of.reverse};
  };
  // What is used in front of a loop, or behind it, is there at a time outside all loops.
  auto outside = [&](int64_t least, int64_t most) {
    int64_t time;
    do
      time = between(random, least, most);
    while (llvm::any_of(line.loops, [&](const Loop &of) { return of.hasInside(time); }));
    return time;
  };
  if (kind == 0) {
    life.begin = outside(0, line.end - 1);
    life.end = outside(life.begin + 1, line.end);
    return life;
  }
  if (kind == 1) {
    life.begin = between(random, loop.begin + 1, loop.end - 1);
    life.end = between(random, life.begin + 1, loop.end);
    return life;
  }
  int64_t offset = larger ? unit * between(random, 0, 3) : 0;
  int64_t bytes = unit * between(random, 1, mostSlot);
  life.size = 0;
  if (kind == 5 && at + 1 < line.loops.size()) {
    const Loop &later = line.loops[between(random, at + 1, line.loops.size() - 1)];
    life.begin = loop.begin;
    life.end = later.end;
    life.filled = slotsOf(loop, offset, bytes);
    if (larger) {
      life.emptied =
          slotsOf(later, unit * between(random, 0, 3), unit * between(random, 1, mostSlot));
    } else if (later.count == loop.count) {
      life.emptied = slotsOf(later, offset, bytes);
    }
  } else if (kind % 2) {
    life.begin = loop.begin;
    life.end = outside(loop.end + 1, line.end);
    life.filled = slotsOf(loop, offset, bytes);
  } else {
    life.begin = outside(0, loop.begin - 1);
    life.end = loop.end;
    life.emptied = slotsOf(loop, offset, bytes);
  }
  return life;
}

/// Whether `b`, `apart` bytes behind `a`, ever has a byte that `a` has too.
static bool conflict(llvm::ArrayRef<std::pair<ByteSet, ByteSet>> held, int64_t apart) {
  return llvm::any_of(held, [&](const std::pair<ByteSet, ByteSet> &now) {
    return apart < 0 ? ((now.first << -apart) & now.second).any()
                     : (now.first & (now.second << apart)).any();
  });
}

/// Whether one loop empties one of them and fills the other, or the one lives in an iteration
/// where the other has a slot less: there not even the rest of a large stack is in the way.
static bool isBySlots(const Lifetime &a, const Lifetime &b) {
  auto isInside = [](const SlotLife &slots, int64_t begin, int64_t end) {
    return slots.begin < begin && end <= slots.end;
  };
  return (a.emptied && b.filled && a.emptied->begin == b.filled->begin) ||
         (a.filled && isInside(*a.filled, b.begin, b.end) && b.end <= a.filled->when) ||
         (a.emptied && isInside(*a.emptied, b.begin, b.end) && a.emptied->when < b.begin);
}

/// Compares what `a` forbids `b` with what happens. Returns whether they may overlap although they
/// live at once.
static bool judge(const Lifetime &a, const Lifetime &b, llvm::ArrayRef<Moment> moments,
                  bool exact) {
  std::vector<std::pair<ByteSet, ByteSet>> held;
  for (Moment now : moments)
    held.push_back({heldAt(a, now), heldAt(b, now)});
  std::optional<std::pair<int64_t, int64_t>> range = a.forbids(b), back = b.forbids(a);
  EXPECT_EQ(range.has_value(), back.has_value());
  if (range && back) {
    EXPECT_EQ(range->first, -back->second);
    EXPECT_EQ(range->second, -back->first);
  }
  bool shares = false;
  int64_t reach = 8 + std::max(a.size, b.size);
  for (int64_t apart = -reach; apart <= reach; ++apart) {
    bool forbidden = range && range->first < apart && apart < range->second;
    bool really = conflict(held, apart);
    EXPECT_TRUE(forbidden || !really) << apart << " is allowed";
    EXPECT_TRUE(really || !forbidden || !exact) << apart << " is forbidden";
    shares |= !forbidden && a.overlaps(b) && -b.size < apart && apart < a.size;
  }
  if (range) {
    EXPECT_LT(-reach, range->first);
    EXPECT_LT(range->second, reach);
  }
  return shares;
}

/// What is forbidden is just what would do harm, byte by byte.
TEST(Lifetime, ForbidsWhatDoesHarm) {
  std::mt19937 random(5);
  unsigned shared = 0;
  for (int round = 0; round < 3000 && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    Timeline line = randomTimeline(random);
    Lifetime a = randomLife(random, line, 1, 6, false), b = randomLife(random, line, 1, 6, false);
    shared += judge(a, b, momentsOf(line), /*exact=*/true);
  }
  EXPECT_GT(shared, 100u);
}

/// Where a stack has more than the slots, the rest is in nobody's way if slots are what counts.
TEST(Lifetime, ForbidsWhatDoesHarmToPartsOfStacks) {
  std::mt19937 random(6);
  unsigned shared = 0;
  for (int round = 0; round < 3000 && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    Timeline line = randomTimeline(random);
    Lifetime a = randomLife(random, line, 1, 6, true), b = randomLife(random, line, 1, 6, true);
    shared += judge(a, b, momentsOf(line), isBySlots(a, b) || isBySlots(b, a));
  }
  EXPECT_GT(shared, 100u);
}

/// A stack of `slots` slots that a loop at times 10 to 19 empties, or fills.
static Lifetime stackOf(int64_t slots, int64_t bytes, int64_t when, bool fills,
                        bool reverse = true) {
  Lifetime life{slots * bytes, fills ? 10 : 0, fills ? 30 : 20};
  (fills ? life.filled : life.emptied) = SlotLife{10, 20, when, 0, bytes, slots, reverse};
  return life;
}

using Forbidden = std::optional<OffsetRange>;

TEST(Lifetime, ForbidsBySlots) {
  Lifetime emptied = stackOf(4, 10, 14, false), filledLater = stackOf(4, 10, 15, true),
           filled = stackOf(4, 10, 14, true);
  // An iteration may fill the slot that it has emptied; else the one that came before.
  EXPECT_EQ(emptied.forbids(filledLater), Forbidden({-40, 0}));
  EXPECT_EQ(emptied.forbids(filled), Forbidden({-40, 10}));
  EXPECT_EQ(filled.forbids(emptied), Forbidden({-10, 40}));
  // From the other end the other way round.
  Lifetime up = stackOf(4, 10, 14, false, false), upLater = stackOf(4, 10, 15, true, false),
           upFilled = stackOf(4, 10, 14, true, false);
  EXPECT_EQ(up.forbids(upLater), Forbidden({0, 40}));
  EXPECT_EQ(up.forbids(upFilled), Forbidden({-10, 40}));
  // Slots that are larger than those that make room for them run into these in the end.
  EXPECT_EQ(emptied.forbids(stackOf(4, 15, 15, true)), Forbidden({-60, -5}));
  EXPECT_EQ(emptied.forbids(stackOf(4, 5, 15, true)), Forbidden({-20, 15}));
  // What a stack is emptied for, or not filled with yet.
  EXPECT_EQ(emptied.forbids({8, 15, 18}), Forbidden({-8, 30}));
  EXPECT_EQ(emptied.forbids({8, 14, 18}), Forbidden({-8, 40}));
  EXPECT_EQ(filledLater.forbids({8, 12, 15}), Forbidden({2, 40}));
  EXPECT_EQ(filledLater.forbids({8, 12, 16}), Forbidden({-8, 40}));
  // What lives through the loop meets all slots.
  EXPECT_EQ(emptied.forbids({8, 10, 20}), Forbidden({-8, 40}));
  // One slot is empty once the iteration has read it.
  EXPECT_EQ(stackOf(1, 10, 14, false).forbids(stackOf(1, 10, 15, true)), std::nullopt);
  EXPECT_EQ(stackOf(1, 10, 14, false).forbids({8, 15, 18}), std::nullopt);
}

/// No byte is ever two buffers'.
static void expectApart(llvm::ArrayRef<Lifetime> buffers, const OffsetAssignment &assignment,
                        llvm::ArrayRef<Moment> moments) {
  ASSERT_EQ(assignment.offsets.size(), buffers.size());
  for (auto [buffer, offset] : llvm::zip(buffers, assignment.offsets))
    EXPECT_LE(offset + buffer.size, assignment.size);
  for (Moment now : moments) {
    std::vector<int> owner(assignment.size, -1);
    for (unsigned i = 0; i < buffers.size(); ++i) {
      ByteSet held = heldAt(buffers[i], now);
      for (int64_t byte = 0; byte < buffers[i].size; ++byte) {
        if (!held[byte])
          continue;
        int &has = owner[assignment.offsets[i] + byte];
        ASSERT_EQ(has, -1) << "and " << i << " at time " << now.time << " in iteration "
                           << now.iteration << " have byte " << assignment.offsets[i] + byte;
        has = i;
      }
    }
  }
}

static constexpr int64_t smallAlignment = 8;

/// Slots lie anywhere, not at multiples of the alignment alone.
TEST(OffsetAssigner, RandomStacksDoNotOverlap) {
  std::mt19937 random(8);
  for (int round = 0; round < 400 && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    Timeline line = randomTimeline(random);
    std::vector<Lifetime> buffers;
    bool few = round % 2;
    for (int i = 0, n = 2 + random() % (few ? 3 : 20); i < n; ++i)
      buffers.push_back(randomLife(random, line, 1, few ? 6 : 30, random() % 2));
    OffsetAssignment assignment = computeOffsets(buffers, smallAlignment);
    for (int64_t offset : assignment.offsets)
      EXPECT_EQ(offset % smallAlignment, 0);
    expectApart(buffers, assignment, momentsOf(line));
    // Nor are live bytes ever more than memory.
    EXPECT_LE(largestLiveSum(buffers, smallAlignment).bytes, assignment.size);
  }
}

/// It is what is live at once at some moment, so less memory never is enough.
TEST(OffsetAssigner, LargestLiveSumIsThatOfSomeMoment) {
  std::mt19937 random(9);
  for (int round = 0; round < 300 && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    Timeline line = randomTimeline(random);
    std::vector<Lifetime> buffers;
    for (int i = 0, n = 1 + random() % 12; i < n; ++i)
      buffers.push_back(randomLife(random, line, smallAlignment, 4, random() % 2));
    LiveSum live = largestLiveSum(buffers, smallAlignment);
    int64_t most = 0, there = 0;
    for (Moment now : momentsOf(line)) {
      int64_t sum = 0;
      for (const Lifetime &buffer : buffers)
        sum += heldAt(buffer, now).count();
      most = std::max(most, sum);
    }
    for (const Lifetime &buffer : buffers)
      there += buffer.bytesAt(live.time, live.iterations, smallAlignment);
    EXPECT_EQ(live.bytes, most);
    EXPECT_EQ(live.bytes, there);
    EXPECT_LE(live.bytes, computeOffsets(buffers, smallAlignment).size);
  }
}

/// The backward of many layers: gradients take the place of activations.
TEST(OffsetAssigner, GradientsTakeThePlaceOfActivations) {
  const int64_t slot = 64, layers = 12, stacks = 5;
  for (bool later : {false, true})
    for (bool reverse : {false, true}) {
      std::vector<Lifetime> buffers;
      for (int64_t i = 0; i < stacks; ++i) {
        buffers.push_back(stackOf(layers, slot, 14, false, reverse));
        buffers.push_back(stackOf(layers, slot, later ? 15 : 14, true, reverse));
      }
      OffsetAssignment assignment = computeOffsets(buffers, alignment);
      expectApart(buffers, assignment, momentsOf({{{10, 20, layers, reverse}}, 30}));
      // One slot more where an op fills a gradient's slot while it reads an activation's.
      EXPECT_EQ(assignment.size, stacks * (layers + !later) * slot) << later << " " << reverse;
      EXPECT_EQ(assignment.size, largestLiveSum(buffers, alignment).bytes);
    }
}

/// A temporary of an iteration lies in the slot that the loop fills last, or empties first.
TEST(OffsetAssigner, TemporariesLieInFreeSlots) {
  for (bool fills : {false, true}) {
    Lifetime buffers[] = {stackOf(3, 128, 14, fills), {128, fills ? 11 : 15, fills ? 14 : 19}};
    OffsetAssignment assignment = computeOffsets(buffers, alignment);
    EXPECT_EQ(assignment.size, 3 * 128);
    EXPECT_EQ(assignment.offsets[1] - assignment.offsets[0], fills ? 0 : 2 * 128);
    EXPECT_EQ(largestLiveSum(buffers, alignment).bytes, 3 * 128);
  }
}

/// A slot of 40 bytes has room for a temporary that would have 64 to itself.
TEST(OffsetAssigner, LiveBytesOfUnalignedSlotsAreNoMoreThanMemory) {
  for (bool fills : {false, true}) {
    Lifetime buffers[] = {stackOf(3, 40, 14, fills, /*reverse=*/fills),
                          {40, fills ? 11 : 15, fills ? 14 : 19}};
    EXPECT_EQ(computeOffsets(buffers, alignment).size, 128);
    EXPECT_EQ(largestLiveSum(buffers, alignment).bytes, 128);
  }
}
