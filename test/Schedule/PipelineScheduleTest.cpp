//===- PipelineScheduleTest.cpp ----------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Each schedule against its paper's formula on 2 to 16 equal stages, and what is
// said of orders that cannot run.
//
//===----------------------------------------------------------------------===//
#include "meshwright/PipelineSchedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

using namespace meshwright::schedule;
using testing::HasSubstr;

namespace {

ScheduleKind kindOf(llvm::StringRef text) { return llvm::cantFail(ScheduleKind::parse(text)); }

PipelineSchedule made(llvm::StringRef kind, int64_t stages, int64_t microbatches) {
  return llvm::cantFail(makeSchedule(kindOf(kind), stages, microbatches));
}

Timeline timed(const PipelineSchedule &schedule) {
  return llvm::cantFail(simulate(schedule, TaskCosts::uniform(schedule.chunks())));
}

template <typename T> std::string errorOf(llvm::Expected<T> value) {
  return value ? "no error" : toString(value.takeError());
}

/// Calls `f` with numbers of stages and of microbatches from the least on.
template <typename F> void forSizes(llvm::StringRef kind, F f) {
  for (int64_t p = 2; p <= 16; ++p)
    for (int64_t more : {0, 1, 3, 17}) {
      int64_t m = kindOf(kind).leastMicrobatches(p) + more;
      if (kindOf(kind).name == ScheduleKind::interleaved)
        m = p * (1 + more);
      SCOPED_TRACE(kind.str() + ", stages " + std::to_string(p) + ", microbatches " +
                   std::to_string(m));
      PipelineSchedule schedule = made(kind, p, m);
      f(schedule, timed(schedule), double(p), double(m));
    }
}

TEST(PipelineSchedule, NaiveUsesOneStageAtATime) {
  forSizes("naive", [](const PipelineSchedule &s, const Timeline &t, double p, double m) {
    EXPECT_DOUBLE_EQ(t.utilisation(), 1 / p);
    EXPECT_EQ(mostHeld(s, 0), 1);
  });
  EXPECT_DOUBLE_EQ(timed(made("naive", 4, 4)).utilisation(), 0.25);
}

TEST(PipelineSchedule, RoundsWaitForAllStages) {
  Timeline t = timed(made("gpipe", 2, 2));
  ASSERT_DOUBLE_EQ(t.stages[0].back().end, 9);
  ASSERT_DOUBLE_EQ(t.stages[1].back().end, 7);
  t.addRounds({{1, 5}, {2, 3}});
  EXPECT_DOUBLE_EQ(t.rounds[0][0].begin, 9);
  EXPECT_DOUBLE_EQ(t.rounds[0][1].begin, 7);
  EXPECT_DOUBLE_EQ(t.rounds[1][0].begin, 12);
  EXPECT_DOUBLE_EQ(t.rounds[1][1].begin, 12);
  EXPECT_DOUBLE_EQ(t.end(), 15);
  EXPECT_DOUBLE_EQ(t.length(), 9); // of the tasks alone
}

TEST(PipelineSchedule, GPipeAndOneFOneBHaveTheSameBubble) {
  for (llvm::StringRef kind : {"gpipe", "1f1b"})
    forSizes(kind, [&](const PipelineSchedule &s, const Timeline &t, double p, double m) {
      EXPECT_DOUBLE_EQ(t.utilisation(), m / (m + p - 1));
      for (int64_t stage = 0; stage < s.stages(); ++stage)
        EXPECT_EQ(mostHeld(s, stage), kind == "gpipe" ? int64_t(m)
                                                      : std::min<int64_t>(m, int64_t(p) - stage));
    });
  EXPECT_NEAR(timed(made("gpipe", 4, 4)).utilisation(), 0.57, 0.005);
}

TEST(PipelineSchedule, InterleavingDividesTheBubble) {
  for (int64_t v = 2; v <= 4; ++v)
    forSizes("interleaved:" + std::to_string(v),
             [&](const PipelineSchedule &s, const Timeline &t, double p, double m) {
               EXPECT_DOUBLE_EQ(t.utilisation(), v * m / (v * m + p - 1));
               // Narayanan et al. 2021b: what goes ahead, and one forward task before each
               // backward one. So the first stage holds 1 + (p-1)/(p v) times what 1f1b
               // holds, here in chunks, and p - 1 more.
               for (int64_t stage = 0; stage < s.stages(); ++stage) {
                 int64_t ahead = 2 * (s.stages() - 1 - stage) + (v - 1) * s.stages();
                 EXPECT_EQ(mostHeld(s, stage), std::min(v * s.microbatches, ahead + 1));
               }
             });
  PipelineSchedule one = made("interleaved:2", 3, 3);
  EXPECT_EQ(mostHeld(one, 0), 6);
  EXPECT_EQ(mostHeld(one, 1), 6);
  EXPECT_EQ(mostHeld(one, 2), 4);
}

TEST(PipelineSchedule, ZeroBubbleH1HasAThirdOfTheBubbleAndNoMoreMemory) {
  forSizes("zb-h1", [](const PipelineSchedule &s, const Timeline &t, double p, double m) {
    Timeline plain = timed(made("1f1b", int64_t(p), int64_t(m)));
    EXPECT_DOUBLE_EQ(plain.bubble(), 3 * (p - 1)); // (p - 1)(F + B + W)
    EXPECT_DOUBLE_EQ(t.bubble(), p - 1);           // (p - 1)(F + B - W)
    for (int64_t stage = 0; stage < s.stages(); ++stage)
      EXPECT_LE(mostHeld(s, stage), int64_t(p));
  });
}

TEST(PipelineSchedule, ZeroBubbleH2HasNoneWithTwiceTheMemory) {
  forSizes("zb-h2", [](const PipelineSchedule &s, const Timeline &t, double p, double m) {
    EXPECT_DOUBLE_EQ(t.bubble(), 0); // (p - 1)(F + B - 2W)
    for (int64_t stage = 0; stage < s.stages(); ++stage)
      EXPECT_LE(mostHeld(s, stage), 2 * int64_t(p) - 1);
  });
}

TEST(PipelineSchedule, ZeroBubbleVHasNoneWithTheMemoryOf1F1B) {
  forSizes("zb-v", [](const PipelineSchedule &s, const Timeline &t, double p, double m) {
    EXPECT_DOUBLE_EQ(t.bubble(), 0);
    // Chunks are half as large: 2p of them are the p activations of 1f1b's first stage.
    for (int64_t stage = 0; stage < s.stages(); ++stage)
      EXPECT_LE(mostHeld(s, stage), 2 * int64_t(p));
    EXPECT_EQ(s.stageOf.front(), s.stageOf.back());
  });
}

TEST(PipelineSchedule, VHalfAndVMinHoldHalfAndAThird) {
  // Chunks are half as large, and 1f1b holds p activations. Its bubble is 6 (p - 1) of their units.
  forSizes("v-half", [](const PipelineSchedule &s, const Timeline &t, double p, double m) {
    EXPECT_LE(t.bubble(), m >= p ? 3.5 * p - (int64_t(p) % 2 ? 4.5 : 5) : 4 * (p - 1));
    for (int64_t stage = 0; stage < s.stages(); ++stage)
      EXPECT_LE(mostHeld(s, stage), int64_t(p) + (int64_t(p) % 2 ? 1 : 3));
  });
  forSizes("v-min", [](const PipelineSchedule &s, const Timeline &t, double p, double m) {
    EXPECT_LE(t.bubble(), 4 * p - 5 + (int64_t(p) % 3 ? 0 : 2));
    for (int64_t stage = 0; stage < s.stages(); ++stage)
      EXPECT_LE(mostHeld(s, stage), 2 * ((int64_t(p) + 1) / 3) + 2);
  });
}

TEST(PipelineSchedule, DualPipeVHasTheBubbleAndTheMemoryOfItsPaper) {
  forSizes("dualpipe-v", [](const PipelineSchedule &s, const Timeline &t, double p, double m) {
    // Published as (p - 1)(F&B + B - 3W), with B for B + W here: 2 (p - 1), if F&B takes as long as both. That
    // lets other stages wait for the end of a pair; one after the other, the forward result is there sooner.
    EXPECT_DOUBLE_EQ(t.bubble(), p - 1);
    // p + 1/2 activations, in chunks of half the size.
    for (int64_t stage = 0; stage < s.stages(); ++stage)
      EXPECT_LE(mostHeld(s, stage), 2 * int64_t(p) + 1);
    EXPECT_EQ(s.stageOf.front(), s.stageOf.back());
  });
}

/// A pair begins when both tasks can, and what it makes is there when both are done.
TEST(PipelineSchedule, PairsOfDualPipeVEnd) {
  forSizes("dualpipe-v", [](const PipelineSchedule &s, const Timeline &, double p, double m) {
    ScheduleKind kind = kindOf("dualpipe-v");
    std::set<std::string> done;
    std::vector<int64_t> next(s.stages(), 0), pairs(s.stages(), 0);
    auto advance = [&](int64_t stage) {
      llvm::ArrayRef<Task> left = llvm::ArrayRef(s.order[stage]).drop_front(next[stage]);
      if (left.empty())
        return false;
      bool isPair = left.size() > 1 && kind.pairs(left[0], left[1]);
      left = left.take_front(isPair ? 2 : 1);
      for (const Task &task : left)
        for (const Task &before : s.needs(task))
          if (!done.count(before.str()))
            return false;
      for (const Task &task : left)
        done.insert(task.str());
      next[stage] += left.size();
      pairs[stage] += isPair;
      return true;
    };
    for (bool progress = true; progress;) {
      progress = false;
      for (int64_t stage = 0; stage < s.stages(); ++stage)
        while (advance(stage))
          progress = true;
    }
    for (int64_t stage = 0; stage < s.stages(); ++stage) {
      EXPECT_EQ(next[stage], int64_t(s.order[stage].size()));
      int64_t after = int64_t(p) - 1 - stage;
      EXPECT_EQ(pairs[stage], 2 * (int64_t(m) - 2 * after - stage - 1) + after);
    }
  });
  EXPECT_FALSE(kindOf("zb-v").pairs({TaskKind::forward, 1, 0}, {TaskKind::backward, 0, 1}));
}

/// At a backward the stage holds all that is ahead of it, of chunks before and after too.
TEST(PipelineSchedule, HeldAtBackward) {
  auto held = [](llvm::StringRef kind, int64_t stage) {
    std::string text;
    for (const HeldAtBackward &now : heldAtBackward(made(kind, 2, 4), stage)) {
      text += (text.empty() ? "" : " ") + std::to_string(now.chunk) + ":";
      for (int64_t count : now.counts)
        text += std::to_string(count);
    }
    return text;
  };
  EXPECT_EQ(held("naive", 0), "0:10");
  EXPECT_EQ(held("gpipe", 1), "1:04 1:03 1:02 1:01");
  EXPECT_EQ(held("1f1b", 0), "0:20 0:10");
  EXPECT_EQ(held("1f1b", 1), "1:01");
  // With weight tasks the microbatch waits on.
  EXPECT_EQ(held("zb-h1", 1).substr(0, 9), "1:01 1:02");
  for (const char *kind : {"1f1b", "gpipe", "zb-h1", "zb-h2"})
    for (int64_t p : {2, 4})
      for (int64_t stage = 0; stage < p; ++stage) {
        PipelineSchedule s = made(kind, p, 3 * p);
        int64_t most = 0;
        for (const HeldAtBackward &now : heldAtBackward(s, stage))
          most = std::max(most, now.counts[stage]);
        EXPECT_EQ(most, mostHeld(s, stage)) << kind;
      }
}

TEST(PipelineSchedule, OtherCostsStillRun) {
  for (llvm::StringRef kind : {"naive", "gpipe", "1f1b", "interleaved:2", "zb-h1", "zb-h2", "zb-v",
                               "v-half", "v-min", "dualpipe-v"}) {
    PipelineSchedule schedule = made(kind, 4, 8);
    TaskCosts costs = TaskCosts::uniform(schedule.chunks(), 1, 1.3, 0.9);
    costs.chunks.front().forward = 2;
    costs.message = 0.25;
    Timeline slow = llvm::cantFail(simulate(schedule, costs));
    costs.message = 0;
    Timeline fast = llvm::cantFail(simulate(schedule, costs));
    // Schedules with slack hide messages; where one microbatch runs at a time, nothing does.
    EXPECT_LE(fast.length(), slow.length()) << kind.str();
    if (kind == "naive")
      EXPECT_NEAR(slow.length() - fast.length(), 8 * 2 * 3 * 0.25, 1e-9);
    EXPECT_LT(fast.utilisation(), 1) << kind.str();
  }
}

TEST(PipelineSchedule, GradientsAreSummedInOneOrder) {
  for (llvm::StringRef kind : {"gpipe", "1f1b", "interleaved:2", "zb-h1", "zb-h2", "zb-v",
                               "v-half", "v-min", "dualpipe-v"})
    for (const auto &tasks : made(kind, 4, 8).order) {
      std::map<std::pair<int64_t, int>, int64_t> next;
      for (const Task &task : tasks)
        EXPECT_EQ(task.microbatch, (next[{task.chunk, int(task.kind)}]++)) << kind.str();
    }
}

TEST(PipelineSchedule, NamesAreRead) {
  for (llvm::StringRef kind : {"naive", "gpipe", "1f1b", "interleaved:3", "zb-h1", "zb-h2", "zb-v",
                               "v-half", "v-min", "dualpipe-v"})
    EXPECT_EQ(kindOf(kind).str(), kind);
  for (llvm::StringRef bad : {"", "1f1", "interleaved", "interleaved:1", "interleaved:x", "zb-v:2"})
    EXPECT_THAT(errorOf(ScheduleKind::parse(bad)), HasSubstr("is no schedule")) << bad.str();
  EXPECT_EQ(llvm::cantFail(Task::parse("W12.3")).str(), "W12.3");
  for (llvm::StringRef bad : {"", "F", "F1", "X1.2", "F1.", "F-1.0", "F1.2.3"})
    EXPECT_THAT(errorOf(Task::parse(bad)), HasSubstr("is no task")) << bad.str();
}

TEST(PipelineSchedule, TooFewMicrobatchesAreRefused) {
  EXPECT_EQ(errorOf(makeSchedule(kindOf("zb-h2"), 4, 6)),
            "schedule zb-h2 on 4 stages needs 7 microbatches or more; there are 6");
  EXPECT_EQ(errorOf(makeSchedule(kindOf("interleaved:2"), 4, 6)),
            "schedule interleaved:2 needs a multiple of the 4 stages as microbatches; there are 6, "
            "4 or 8 would do");
}

TEST(PipelineSchedule, OrdersThatCannotRunAreRefused) {
  PipelineSchedule good = made("1f1b", 2, 2);
  auto refused = [&](auto change) {
    PipelineSchedule s = good;
    change(s);
    return errorOf(simulate(s, TaskCosts::uniform(s.chunks())));
  };
  EXPECT_EQ(refused([](auto &s) { std::swap(s.order[1][0], s.order[1][1]); }),
            "the order never ends: stage 0 has B0.0 next, which needs B0.1 of stage 1; stage 1 has "
            "B0.1 next, which needs F0.1 of stage 1");
  EXPECT_EQ(refused([](auto &s) { s.order[1].pop_back(); }), "task B1.1 is missing on stage 1");
  EXPECT_EQ(refused([](auto &s) { s.order[1].push_back(s.order[1][0]); }),
            "task F0.1 is there twice");
  EXPECT_EQ(refused([](auto &s) { std::swap(s.order[0], s.order[1]); }),
            "task F0.1 is on stage 0; chunk 1 is on stage 1");
  EXPECT_EQ(refused([](auto &s) { s.order[0][0].microbatch = 2; }),
            "task F2.0 is none of 2 microbatches and 2 chunks");
  EXPECT_EQ(refused([](auto &s) {
              s.order[0].push_back({TaskKind::weight, 0, 0});
            }),
            "task W0.0: in this program backward makes the gradients of weights");
}

} // namespace
