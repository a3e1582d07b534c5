//===- AsyncSaveTest.cpp - checkpoints beside training, and in tiers -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Fake.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace testing_process;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class AsyncSaveTest : public FakeTest {
protected:
  std::vector<std::string> names(const std::string &folder) const {
    std::vector<std::string> found;
    for (const auto &entry : fs::directory_iterator(path(folder)))
      found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }
};

// A checkpoint that is written beside training has the bits of one that training waits for.
TEST_F(AsyncSaveTest, WritesTheSameBits) {
  std::string flags = " --steps 5 --save-every 2 --save ";
  ASSERT_EQ(train(flags + path("now"), 2, 2).code, 0);
  for (Launcher launcher : {Threads, Mpi}) {
    fs::remove_all(path("beside"));
    Result result = train("--async-save" + flags + path("beside"), 2, 2, launcher);
    ASSERT_EQ(result.code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("--async-save: rank 0 has 51,480 bytes of host memory"));
    EXPECT_EQ(names("beside"), names("now"));
    for (const char *step : {"step-00000002", "step-00000004", "step-00000005"})
      for (const char *file : {"model.safetensors", "optimizer.safetensors", "config.json"})
        EXPECT_EQ(readFile(path("beside/") + step + "/" + file), readFile(path("now/") + step + "/" + file))
            << step << file;
  }
}

// Steps are made while a disk is slow, and the next checkpoint waits for the one in flight.
TEST_F(AsyncSaveTest, TrainingGoesOnMeanwhile) {
  auto stepsAtFirst = [&](const std::string &flags) {
    fs::remove_all(path("a"));
    fs::remove(path("m.jsonl"));
    Command run(command("--steps 60 --save-every 10 --metrics " + path("m.jsonl") + " --save " + path("a") + flags,
                        2, 1, Threads, "FAKE_SLEEP_MS=5 FAKE_SYNC_MS=80"));
    size_t steps = 0;
    for (int i = 0; i < 30000 && steps == 0; ++i) {
      if (fs::exists(path("a/step-00000010")))
        steps = metrics("m.jsonl").size();
      usleep(1000);
    }
    Result result = run.wait();
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_EQ(names("a").size(), 7u); // with "latest"
    EXPECT_EQ(fs::read_symlink(path("a/latest")), "step-00000060");
    return steps;
  };
  EXPECT_EQ(stepsAtFirst(""), 10u);
  size_t meanwhile = stepsAtFirst(" --async-save");
  EXPECT_GT(meanwhile, 10u);
  EXPECT_LE(meanwhile, 20u); // The copy of step 20 waits.
}

// An error of the thread that writes ends the run, and the last checkpoint stays.
TEST_F(AsyncSaveTest, ErrorsEndTheRun) {
  ASSERT_EQ(train("--steps 2 --save " + path("a"), 2, 1).code, 0);
  Result full = run("ulimit -f 12; " + command("--async-save --save-every 1 --steps 400 --save " + path("a") +
                                                   " --resume " + path("a"),
                                               2, 1, Threads, "FAKE_SLEEP_MS=2"));
  expectFailure(full, {"saving the checkpoint of step 3: cannot write " + path("a/.partial-step-00000003"),
                       "the last good one is " + path("a/latest")});
  EXPECT_THAT(names("a"), ElementsAre("latest", "step-00000002"));
  for (Launcher launcher : {Threads, Mpi}) {
    // The folder goes.
    Command run(command("--async-save --save-every 1 --steps 4000 --save " + path("gone"), 2, 1, launcher,
                        "FAKE_SLEEP_MS=2"));
    for (int i = 0; i < 30000 && !fs::exists(path("gone/latest")); ++i)
      usleep(1000);
    fs::rename(path("gone"), path("kept" + std::to_string(launcher)));
    expectFailure(run.wait(), {"saving the checkpoint of step ", path("gone/")});
    fs::remove_all(path("gone"));
  }
  // Of several folders the one that has failed is named, with its own last checkpoint.
  Command tiers(command("--async-save --steps 4000 --save " + path("first:1") + " --save " + path("second:4"), 2, 1, Threads,
                        "FAKE_SLEEP_MS=2"));
  for (int i = 0; i < 30000 && !fs::exists(path("second/latest")); ++i)
    usleep(1000);
  fs::rename(path("second"), path("second.gone"));
  Result second = tiers.wait();
  expectFailure(second, {"saving the checkpoint of step ", path("second/")});
  EXPECT_THAT(second.output, testing::Not(HasSubstr("the last good one is " + path("first"))));
  expectFailure(train("--steps 3 --async-save"), {"--async-save needs --save"});
  // A state that is not finite is found before it is copied.
  Result result = train("--lr 3e38 --steps 3 --async-save --save-every 1 --save " + path("b"), 2, 2);
  expectFailure(result, {"saving the checkpoint of step 1: tensor transformer.", "infinite or no numbers"});
  EXPECT_TRUE(names("b").empty());
}

// What a signal or an error leaves is whole too, and a run that goes back does so to what is written.
TEST_F(AsyncSaveTest, EndsAndReturnsLikeOthers) {
  Command run(command("--async-save --save-every 1 --steps 4000 --save " + path("a") + " --metrics " + path("m.jsonl"), 2, 1,
                      Threads, "FAKE_SLEEP_MS=2 FAKE_SYNC_MS=20"));
  for (int i = 0; i < 30000 && readFile(path("m.jsonl")).size() < 500; ++i)
    usleep(1000);
  kill(run.pid(), SIGTERM);
  Result ended = run.wait();
  EXPECT_EQ(ended.code, 128 + SIGTERM) << ended.output;
  auto state = nlohmann::json::parse(readFile(path("a/latest/state.json")));
  EXPECT_EQ(metrics("m.jsonl").size(), size_t(state["step"]));

  std::string flags = "--steps 12 --save-every 4 --on-nan rollback --save ";
  Result now = train(flags + path("now") + " --metrics " + path("now.jsonl"), 2, 1, Threads, "FAKE_NAN_STEP=9");
  Result beside = train("--async-save " + flags + path("beside") + " --metrics " + path("beside.jsonl"), 2, 1, Threads,
                        "FAKE_NAN_STEP=9 FAKE_SYNC_MS=20");
  EXPECT_EQ(now.code, beside.code) << beside.output;
  EXPECT_EQ(metrics("now.jsonl"), metrics("beside.jsonl"));
  EXPECT_THAT(beside.output, HasSubstr("going back to " + path("beside/step-00000008")));
}

// Each folder of --save has an interval of its own, and all get the last state.
TEST_F(AsyncSaveTest, TiersHaveTheirIntervals) {
  for (std::string async : {"", "--async-save "}) {
    Result result = train(async + "--steps 7 --save " + path("fast:2") + " --save " + path("slow:4") + " --save " +
                              path("end"),
                          2, 1);
    ASSERT_EQ(result.code, 0) << result.output;
    EXPECT_THAT(names("fast"), ElementsAre("latest", "step-00000002", "step-00000004", "step-00000006", "step-00000007"));
    EXPECT_THAT(names("slow"), ElementsAre("latest", "step-00000004", "step-00000007"));
    EXPECT_THAT(names("end"), ElementsAre("latest", "step-00000007"));
    EXPECT_EQ(readFile(path("fast/step-00000004/state.json")), readFile(path("slow/step-00000004/state.json")));
    for (const char *folder : {"fast", "slow", "end"})
      fs::remove_all(path(folder));
  }
  // A folder without an interval has that of --save-every.
  ASSERT_EQ(train("--steps 7 --keep 1 --save-every 3 --save " + path("fast:2") + " --save " + path("slow")).code, 0);
  EXPECT_THAT(names("fast"), ElementsAre("latest", "step-00000007"));
  EXPECT_THAT(names("slow"), ElementsAre("latest", "step-00000007"));
  expectFailure(train("--steps 3 --save " + path("x:0")), {"the interval is 0 steps"});
  expectFailure(train("--steps 3 --save :5"), {"--save :5: there is no folder before the colon"});
  expectFailure(train("--steps 3 --save " + path("x:99999999999999999999")), {"must fit into 64 bits"});
  expectFailure(train("--steps 3 --save " + path("x:1") + " --save " + path("y/../x:2")), {"are one folder"});
  expectFailure(train("--steps 3 --save-every 2 --save " + path("x:1")),
                {"--save-every changes nothing, since each --save has an interval of its own"});
}

// --resume auto takes the newest of all folders, and passes over what is damaged.
TEST_F(AsyncSaveTest, ResumesTheNewestOfAllTiers) {
  std::string both = " --save " + path("fast:2") + " --save " + path("slow:4") + " --resume auto";
  ASSERT_EQ(train("--steps 4 --save " + path("slow")).code, 0);
  auto resumed = [&](const std::string &from) {
    for (const char *folder : {"fast", "slow"})
      if (fs::exists(path(folder)))
        run("cp -a " + path(folder) + " " + path(folder + std::string(".kept")));
    Result result = train("--steps 7" + both);
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("resumed from " + path(from)));
    EXPECT_THAT(result.output, testing::Not(HasSubstr("checkpoints of another run")));
    for (const char *folder : {"fast", "slow"}) { // As they were.
      fs::remove_all(path(folder));
      if (fs::exists(path(folder + std::string(".kept"))))
        fs::rename(path(folder + std::string(".kept")), path(folder));
    }
    return result.output;
  };
  resumed("slow/step-00000004");
  ASSERT_EQ(train("--steps 6 --save " + path("fast:1") + " --resume " + path("slow")).code, 0);
  EXPECT_THAT(resumed("fast/step-00000006"), testing::Not(HasSubstr("passes over")));
  // Where the newest is damaged, the one before it in its folder is still newer than the other folder's.
  std::string state = readFile(path("fast/step-00000006/state.json"));
  writeFile(path("fast/step-00000006/state.json"), state + " ");
  EXPECT_THAT(resumed("fast/step-00000005"),
              HasSubstr("passes over the checkpoint " + path("fast/step-00000006") + ": "));
  fs::remove_all(path("fast/step-00000005"));
  fs::resize_file(path("fast/step-00000006/model.safetensors"), 100);
  resumed("slow/step-00000004");
  writeFile(path("slow/step-00000004/state.json"), "{}");
  expectFailure(train("--steps 6" + both), {"--resume auto: no checkpoint in", "and the other folders of --save"});
}

// Later steps that a run has left behind by going back to earlier ones are not gone on from.
TEST_F(AsyncSaveTest, ResumesWhatWasWrittenLast) {
  ASSERT_EQ(train("--steps 8 --save " + path("fast:2") + " --save " + path("slow:4")).code, 0);
  ASSERT_EQ(train("--steps 6 --lr 0.01 --save " + path("fast:2") + " --resume " + path("fast/step-00000004")).code, 0);
  std::string both = " --save " + path("fast:2") + " --save " + path("slow:4") + " --resume auto";
  Result result = train("--steps 7" + both);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("resumed from " + path("fast/step-00000006")));
  // Of copies of one checkpoint the first folder's is.
  EXPECT_THAT(train("--steps 7" + both).output, HasSubstr("resumed from " + path("fast/step-00000007")));
}

// What "latest" names is another run's until the new run has saved: it comes after all that is the run's own.
TEST_F(AsyncSaveTest, ResumesItsOwnBeforeAnothers) {
  ASSERT_EQ(train("--steps 8 --save " + path("old")).code, 0);
  ASSERT_EQ(train("--steps 2 --seed 5 --save " + path("own:1")).code, 0);
  writeFile(path("old/.others"), "step-00000008\n");
  fs::last_write_time(path("old/step-00000008/state.json"), fs::file_time_type::clock::now());
  std::string both = " --save " + path("old:4") + " --save " + path("own:1") + " --resume auto";
  Result own = train("--steps 3" + both);
  EXPECT_EQ(own.code, 0) << own.output;
  EXPECT_THAT(own.output, HasSubstr("resumed from " + path("own/step-00000002")));
  // Where there is none of its own.
  fs::remove_all(path("own"));
  fs::remove_all(path("old"));
  ASSERT_EQ(train("--steps 8 --save " + path("old")).code, 0);
  writeFile(path("old/.others"), "step-00000008\n");
  EXPECT_THAT(train("--steps 9" + both).output, HasSubstr("resumed from " + path("old/step-00000008")));
}
