//===- ContextTest.cpp - the calls of generated code --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/plan/Arena.h"
#include "common/train/Context.h"
#include "cpu/ThreadCommunicator.h"

#include <functional>
#include <gtest/gtest.h>
#include <thread>

using namespace meshwright;

namespace {
/// Four ranks on a mesh of two by two. Groups: along the first axis, the second,
/// both; and the first again, for another channel of messages.
void runRanks(const std::function<void(MwContext &)> &body) {
  Plan plan;
  plan.mesh = {{"data", 2}, {"tensor", 2}};
  plan.groups = {{0}, {1}, {0, 1}, {0}};
  plan.scratchBytes = {0, 0, 0, 0};
  plan.collectives.resize(2);
  std::vector<std::unique_ptr<RankStatus>> statuses;
  std::vector<RankStatus *> pointers;
  for (int i = 0; i < 4; ++i) {
    statuses.push_back(std::make_unique<RankStatus>(i));
    pointers.push_back(statuses.back().get());
  }
  auto world = ThreadCommunicator::createWorld(4, 1, pointers);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      MwContext context(plan, std::move(world[i]), 1, *statuses[i]);
      body(context);
    });
  for (std::thread &thread : threads)
    thread.join();
}
using Pair = std::vector<float>;
} // namespace

TEST(Context, GroupRanks) {
  runRanks([](MwContext &context) {
    EXPECT_EQ(mw_group_rank(&context, 0), context.rank() / 2);
    EXPECT_EQ(mw_group_rank(&context, 1), context.rank() % 2);
    EXPECT_EQ(mw_group_rank(&context, 2), context.rank());
  });
}

TEST(Context, Collectives) {
  runRanks([](MwContext &context) {
    int rank = context.rank();
    float r = float(rank);
    Pair in{r, 10 * r}, out(2, -1), whole(8, -1);

    float sum[2] = {-1, -1}, third = -1;
    MwSegment several[2] = {{in.data(), sum, 2}, {&r, &third, 1}};
    mw_all_reduce(&context, 0, 0, MW_F32, MW_SUM, several, 2);
    EXPECT_EQ(Pair({sum[0], sum[1], third}),
              Pair({2 * (r - float(rank / 2 * 2)) + 2, 20 * float(rank % 2) + 20,
                    2 * float(rank % 2) + 2}));
    EXPECT_EQ(context.sentBytes["all_reduce"], 12);

    MwSegment one{in.data(), whole.data(), 2};
    mw_all_gather(&context, 0, 2, MW_F32, &one, 1);
    EXPECT_EQ(whole, Pair({0, 0, 1, 10, 2, 20, 3, 30}));
    one = {whole.data(), out.data(), 2};
    mw_reduce_scatter(&context, 0, 2, MW_F32, MW_MAX, &one, 1);
    EXPECT_EQ(out, in);
    EXPECT_EQ(context.sentBytes["reduce_scatter"], 24);

    mw_all_to_all(&context, 0, 1, MW_F32, in.data(), out.data(), 1);
    EXPECT_EQ(out, rank % 2 ? Pair({10 * (r - 1), 10 * r}) : Pair({r, r + 1}));
    int32_t from[4] = {2, 0, 1, 3};
    mw_permute(&context, 0, 2, MW_F32, from, in.data(), out.data(), 2);
    EXPECT_EQ(out, Pair({float(from[rank]), 10 * float(from[rank])}));
    EXPECT_EQ(context.sentBytes["permute"], rank == 3 ? 0 : 8);

    mw_broadcast(&context, 0, 0, MW_F32, 1, in.data(), out.data(), 2);
    float root = float(rank % 2 + 2);
    EXPECT_EQ(out, Pair({root, 10 * root}));
    EXPECT_EQ(in, Pair({r, 10 * r}));

    out = {-1, -1};
    mw_reduce(&context, 0, 2, MW_F32, 1, MW_SUM, in.data(), out.data(), 2);
    EXPECT_EQ(out, rank == 1 ? Pair({6, 60}) : Pair({-1, -1}));
    Pair four(4, -1);
    mw_gather(&context, 0, 1, MW_F32, 0, in.data(), four.data(), 2);
    EXPECT_EQ(four, rank % 2 ? Pair(4, -1) : Pair({r, 10 * r, r + 1, 10 * r + 10}));
    mw_scatter(&context, 0, 1, MW_F32, 1, in.data(), out.data(), 1);
    EXPECT_EQ(out[0], rank % 2 ? 10 * r : r + 1);
  });
}

TEST(Context, MessagesOfTwoChannels) {
  runRanks([](MwContext &context) {
    float value = float(context.rank()), got[2] = {-1, -1}, buffers[2];
    int32_t other = 1 - int32_t(mw_group_rank(&context, 0));
    // Both members send on both channels before either receives.
    mw_send(&context, 0, 0, MW_F32, other, &value, 1, &buffers[0]);
    value += 100;
    mw_send(&context, 0, 3, MW_F32, other, &value, 1, &buffers[1]);
    value = -2;
    mw_recv(&context, 0, 0, MW_F32, other, &got[0], 1);
    mw_recv(&context, 0, 3, MW_F32, other, &got[1], 1);
    mw_finish_sends(&context);
    float peer = float((context.rank() + 2) % 4);
    EXPECT_EQ(got[0], peer);
    EXPECT_EQ(got[1], peer + 100);
    EXPECT_EQ(context.sentBytes["send"], 8);
    EXPECT_EQ(context.sentBytes["recv"], 0);
  });
}

// Started collectives run in the order of their starts, those that are not started after
// them; segments may change once the call is over, memory once it has been waited for.
TEST(Context, Starts) {
  runRanks([](MwContext &context) {
    float r = float(context.rank() % 2);
    float values[3] = {r, 2 * r, 3 * r};
    MwSegment segment{&values[0], &values[0], 1};
    EXPECT_FALSE(context.communication.wait(0));
    for (int32_t i = 0; i < 2; ++i) {
      segment.input = segment.output = &values[i];
      mw_start(&context, 7);
      mw_all_reduce(&context, i, 1, MW_F32, MW_SUM, &segment, 1);
    }
    mw_wait(&context, 7); // the latest, and so the first too
    EXPECT_FLOAT_EQ(values[0], 1);
    EXPECT_FLOAT_EQ(values[1], 2);
    EXPECT_FALSE(context.communication.wait(7));
    segment.input = segment.output = &values[2];
    mw_start(&context, 1);
    mw_all_reduce(&context, 0, 1, MW_F32, MW_SUM, &segment, 1);
    // Not started: it ends after the one before, whose result it takes.
    mw_all_reduce(&context, 1, 0, MW_F32, MW_SUM, &segment, 1);
    EXPECT_FLOAT_EQ(values[2], 6);
    mw_wait(&context, 1);
  });
}

TEST(Context, OffloadSpaces) {
  for (MemorySpace space : offloadSpaces) {
    Plan plan;
    plan.spaces[MemorySpace::Device].bytes = plan.spaces[space].bytes = 64;
    bool isStaged = !spaceRow(space).hasAddresses();
    if (isStaged)
      plan.spaces[MemorySpace::Host].bytes = spaceRow(space).staging;
    RankStatus status(0);
    auto world = ThreadCommunicator::createWorld(1, 1, {&status});
    MwContext context(plan, std::move(world[0]), 1, status);
    context.ssd = ".";
    auto arena = makeArena(context);
    context.offloaded = arena->offloadMemory();
    // Generated code asks for the address by the space's name.
    BySpace<char *> addresses = {{
        arena->data(),
#define MW_OFFLOAD_SPACE(Space, name, ...) mw_##name##_arena(&context),
#include "meshwright/runtime/MemorySpaces.def"
    }};
    for (MemorySpace other : offloadSpaces)
      EXPECT_EQ(addresses[other] != nullptr, other == space || (isStaged && other == MemorySpace::Host))
          << spaceRow(other).name;
    char *there = addresses[space], *here = arena->data();
    ASSERT_TRUE(there && here && there != here);
    EXPECT_EQ(std::string(there, 64), std::string(64, 0));
    arena->settle();
    // One copy waits for its engine, the other for its token.
    std::fill_n(here, 64, 'x');
    mw_transfer(&context, there, here, 64, CopyEngine{space, true}.number(), -1);
    std::fill_n(here, 64, 'y');
    mw_transfer(&context, here, there, 32, CopyEngine{space, false}.number(), 7);
    mw_wait(&context, 7);
    EXPECT_EQ(std::string(here, 64), std::string(32, 'x') + std::string(32, 'y'));
    for (int32_t engine = 0; engine < copyEngines; ++engine)
      EXPECT_EQ(context.copiedBytes[size_t(engine)],
                CopyEngine::numbered(engine).space != space    ? 0
                : CopyEngine::numbered(engine).stores ? 64
                                                      : 32);
  }
}
