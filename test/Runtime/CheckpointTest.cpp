//===- CheckpointTest.cpp - checkpoints that can be relied on -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Fake.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sys/stat.h>

using namespace testing_process;
using testing::HasSubstr;
namespace fs = std::filesystem;

class CheckpointTest : public FakeTest {
protected:
  /// Waits until `ready()`, but not for ever.
  template <typename Ready> static bool eventually(Ready ready) {
    for (int i = 0; i < 30000; ++i) {
      if (ready())
        return true;
      usleep(1000);
    }
    return false;
  }

  /// The processes of fake_program that run in this test's directory, by rank.
  std::vector<pid_t> ranks() const {
    std::vector<pid_t> found;
    for (const auto &entry : fs::directory_iterator("/proc")) {
      std::string words = readFile(entry.path().string() + "/cmdline");
      if (words.rfind(FAKE_PROGRAM, 0) == 0 && words.find(scratch.directory) != std::string::npos)
        found.push_back(std::stoi(entry.path().filename()));
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  std::vector<std::string> names(const std::string &folder) const {
    std::vector<std::string> found;
    for (const auto &entry : fs::directory_iterator(path(folder)))
      found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }
};

// Every byte of every file matters: a changed one is found on every launcher.
TEST_F(CheckpointTest, DamageIsFound) {
  ASSERT_EQ(train("--steps 3 --save-every 2 --save " + path("a"), 2, 1).code, 0);
  std::string folder = path("a/step-00000003");
  auto resume = [&](Launcher launcher = Threads, int data = 2, int tensor = 1) {
    return train("--steps 4 --resume " + folder, data, tensor, launcher);
  };
  ASSERT_EQ(resume().code, 0);
  for (const char *file : {"/model.safetensors", "/optimizer.safetensors"}) {
    std::string good = readFile(folder + file);
    auto [header, data] = parts(good);
    size_t start = good.size() - data.size();
    for (const auto &[name, entry] : header.items()) {
      if (name == "__metadata__")
        continue;
      size_t begin = start + size_t(entry["data_offsets"][0]);
      size_t end = start + size_t(entry["data_offsets"][1]);
      std::string zeroed = good, flipped = good;
      std::fill(zeroed.begin() + long(begin), zeroed.begin() + long(end), '\0');
      flipped[end - 1] ^= 1;
      for (const std::string &bad : {zeroed, flipped}) {
        if (bad == good)
          continue;
        writeFile(folder + file, bad);
        expectFailure(resume(), {file, "tensor " + name, "checksum", "damaged"});
      }
    }
    // The header, the names in it among others.
    for (size_t i = 0; i < start; i += start / 6) {
      std::string bad = good;
      bad[i] ^= 4;
      writeFile(folder + file, bad);
      expectFailure(resume(), {file});
    }
    std::string flipped = good;
    flipped.back() ^= 64;
    writeFile(folder + file, flipped);
    for (auto [launcher, dataRanks, tensor] : {std::tuple(Mpi, 4, 1), {Mpi, 1, 4}}) {
      if (file[1] == 'm')
        continue;
      Result result = resume(launcher, dataRanks, tensor);
      EXPECT_NE(result.code, 0);
      EXPECT_THAT(result.output, HasSubstr("checksum"));
    }
    // That of another step, whole in itself.
    writeFile(folder + file, readFile(path("a/step-00000002") + file));
    expectFailure(resume(), {file, "is not the file that its checkpoint was saved with"});
    // One without checksums.
    writeFile(folder + file, plain(good));
    expectFailure(resume(), {file, "its id is missing"});
    writeFile(folder + file, good);
  }
  std::string state = readFile(folder + "/state.json");
  for (size_t i = 0; i < state.size(); i += 31) {
    std::string bad = state;
    bad[i] ^= 1;
    writeFile(folder + "/state.json", bad);
    expectFailure(resume(), {"state.json"});
  }
}

// Files that hold their checksums are verified as initial weights too; others have none.
// A crash of the machine leaves a whole checkpoint: nothing is seen under its name before all of it is
// on the disk, and `latest` does not point to what may still go.
TEST_F(CheckpointTest, ReachesTheDiskBeforeItIsSeen) {
  std::string save = path("a"), step = save + "/step-00000002", partial = save + "/PARTIAL";
  ASSERT_EQ(train("--steps 2 --save " + save, 1, 1, Threads, "FAKE_DISK_LOG=" + path("log")).code, 0);
  std::vector<std::string> lines;
  std::ifstream log(path("log"));
  for (std::string line; std::getline(log, line);)
    lines.push_back(std::regex_replace(line, std::regex(R"(/\.partial-[^/ ]*)"), "/PARTIAL"));
  EXPECT_THAT(lines, testing::ElementsAre(
                         "sync " + partial + "/model.safetensors",
                         "sync " + partial + "/optimizer.safetensors",
                         "sync " + partial + "/config.json", "sync " + partial + "/state.json",
                         "sync " + partial, "rename " + partial + " " + step, "sync " + save,
                         "rename " + partial + " " + save + "/latest", "sync " + save));
}

TEST_F(CheckpointTest, InitialWeightsAreVerified) {
  ASSERT_EQ(train("--steps 1 --save " + path("a")).code, 0);
  std::string file = path("a/latest/model.safetensors"), good = readFile(file), bad = good;
  bad[bad.size() - 5] ^= 16;
  writeFile(path("bad"), bad);
  expectFailure(train("--steps 1 --init " + path("bad")), {"--init", "checksum", "damaged"});
  for (const std::string &content : {good, plain(good), plain(bad)}) {
    writeFile(path("other"), content);
    Result result = train("--steps 1 --init " + path("other"));
    EXPECT_EQ(result.code, 0) << result.output;
  }
}

TEST_F(CheckpointTest, EarlierVersionsAreReadWithANote) {
  ASSERT_EQ(train("--steps 2 --save " + path("a")).code, 0);
  std::string folder = path("a/latest");
  for (const char *file : {"/model.safetensors", "/optimizer.safetensors"})
    writeFile(folder + file, plain(readFile(folder + file)));
  editState(folder, [](nlohmann::ordered_json &state) {
    state["version"] = 2;
    state.erase("checksum");
    state.erase("files");
  });
  Result result = train("--steps 3 --resume " + path("a"));
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("is of a version without checksums"));
}

TEST_F(CheckpointTest, StateHasTheTypesAndRangesThatItMust) {
  ASSERT_EQ(train("--steps 2 --save " + path("a"), 2, 1).code, 0);
  std::string folder = path("a/latest"), state = readFile(folder + "/state.json");
  using Json = nlohmann::ordered_json;
  auto refused = [&](const char *key, const Json &value, Launcher launcher = Threads) {
    writeFile(folder + "/state.json", state);
    editState(folder, [&](Json &json) { json[key] = value; });
    expectFailure(train("--steps 4 --resume " + path("a"), 2, 1, launcher),
                  {"state.json", std::string("\"") + key + "\" is " + value.dump()});
  };
  for (const char *key : {"step", "position", "seed", "tokens", "batch", "sequence", "vocabulary"})
    for (const Json &value : {Json(2.7), Json(-5), Json("2"), Json(nullptr), Json(true),
                              Json(INT64_MAX), Json(UINT64_MAX), Json(1e300)})
      refused(key, value);
  refused("position", INT64_MAX, Mpi);
  refused("batch", 0);
  refused("shuffle", 1);
  refused("model", 3);
  refused("loss_scale", 3);
  refused("rates", 3);
  for (const Json &loads : {Json(3), Json{{"1", 3}}, Json{{"x", {1, 2}}}, Json{{"1", {1, -2}}}, Json{{"1", Json::array()}}})
    refused("expert_loads", loads);
  refused("files", 3);
  auto text = [&](const std::string &content, const std::vector<std::string> &parts) {
    writeFile(folder + "/state.json", content);
    expectFailure(train("--steps 4 --resume " + path("a"), 2, 1), parts);
  };
  std::string deep(100000, '[');
  text(deep, {"state.json", "deeper than 256"});
  text("{\"version\": " + deep + std::string(100000, ']') + "}", {"deeper than 256"});
  text("{\"version\": 3, \"version\": 3}", {"\"version\" twice"});
  text("[3]", {"not an object"});
  text("", {"not valid JSON"});
  writeFile(folder + "/state.json", state);
  // The model's description beside it.
  writeFile(folder + "/config.json", "{\"model_type\":" + deep + std::string(100000, ']') + "}");
  expectFailure(train("--steps 4 --resume " + path("a"), 2, 1), {"config.json", "deeper than 256"});
}

// One run at a time; a lock goes with its process, however that ends.
TEST_F(CheckpointTest, TwoRunsDoNotSaveIntoOneFolder) {
  std::string flags = "--steps 100000 --save-every 1 --save " + path("a");
  Command first(command(flags, 2, 1, Threads, "FAKE_SLEEP_MS=5"));
  ASSERT_TRUE(eventually([&] { return fs::exists(path("a/latest")); })) << first.output();
  for (Launcher launcher : {Threads, Mpi})
    expectFailure(train("--steps 1 --save " + path("a"), 2, 1, launcher),
                  {"--save " + path("a"), "process " + std::to_string(first.pid()) + " on ",
                   "name another folder"});
  // It goes on, and what it is writing stays.
  auto before = fs::read_symlink(path("a/latest"));
  EXPECT_TRUE(eventually([&] { return fs::read_symlink(path("a/latest")) != before; }));
  kill(first.pid(), SIGKILL);
  first.wait();
  EXPECT_TRUE(fs::exists(path("a/.lock")));
  Result result = train("--steps 1 --save " + path("a"));
  EXPECT_EQ(result.code, 0) << result.output;
  for (const std::string &name : names("a"))
    EXPECT_THAT(name, testing::AnyOf("latest", ".others", testing::StartsWith("step-")));
}

TEST_F(CheckpointTest, ValuesThatAreNotFiniteAreNotPublished) {
  for (Launcher launcher : {Threads, Mpi}) {
    Result result = train("--lr 3e38 --steps 3 --save-every 1 --save " + path("a"), 2, 2, launcher);
    expectFailure(result, {"saving the checkpoint of step 1: tensor transformer.", "on rank ",
                           "infinite or no numbers", "training has diverged"});
    EXPECT_TRUE(names("a").empty());
  }
  ASSERT_EQ(train("--steps 2 --save " + path("a"), 2, 2).code, 0);
  expectFailure(
      train("--lr 3e38 --weight-decay 10 --steps 3 --save " + path("a") + " --resume " + path("a"),
            2, 2),
      {"step 3", "the last good one is " + path("a/latest")});
  EXPECT_EQ(fs::read_symlink(path("a/latest")), "step-00000002");
}

// On a signal to any one rank all save after the step they are at, and what is saved goes on as if
// nothing had been.
TEST_F(CheckpointTest, SignalsSaveFirst) {
  // What runs in the background of a shell ignores it, and so would what it starts.
  ::signal(SIGINT, SIG_DFL);
  std::string flags = "--lr 0.01 --shuffle --metrics " + path("m.jsonl") + " --save " + path("a");
  for (auto [launcher, signal] :
       {std::pair(Threads, SIGTERM), {Threads, SIGINT}, {Mpi, SIGTERM}}) {
    fs::remove_all(path("a"));
    fs::remove(path("m.jsonl"));
    // The second signal comes within the step.
    Command run(command("--steps 400 " + flags, 2, 1, launcher, "FAKE_SLEEP_MS=50"));
    ASSERT_TRUE(eventually([&] { return readFile(path("m.jsonl")).size() > 400; })) << run.output();
    pid_t asked = launcher == Threads ? run.pid() : ranks().back();
    kill(asked, signal);
    // `timeout` and some launchers signal the process and then its group.
    usleep(5000);
    kill(asked, signal);
    Result result = run.wait();
    EXPECT_EQ(result.code, 128 + signal) << result.output;
    EXPECT_LT(result.seconds, 10);
    EXPECT_THAT(result.output,
                HasSubstr(signal == SIGTERM ? "stopped by SIGTERM" : "stopped by SIGINT"));
    EXPECT_THAT(result.output, HasSubstr("go on with --resume " + path("a")));
    if (launcher == Threads) {
      EXPECT_THAT(result.output, HasSubstr("saving after this step; again to end at once"));
    }
    auto state = nlohmann::json::parse(readFile(path("a/latest/state.json")));
    size_t steps = state["step"];
    EXPECT_EQ(metrics("m.jsonl").size(), steps);
    std::string end = std::to_string(steps + 3);
    Result more = train("--resume " + path("a") + " --steps " + end + " " + flags, 2, 1);
    ASSERT_EQ(more.code, 0) << more.output;
    auto interrupted = metrics("m.jsonl");
    Result whole =
        train("--lr 0.01 --shuffle --metrics " + path("w.jsonl") + " --steps " + end, 2, 1);
    ASSERT_EQ(whole.code, 0) << whole.output;
    EXPECT_EQ(interrupted, metrics("w.jsonl"));
  }
  // Without --save there is nothing to wait for, and shells' background jobs ignore SIGINT.
  Command run(
      command("--steps 1000000 --metrics " + path("m.jsonl"), 2, 1, Threads, "FAKE_SLEEP_MS=2"));
  ASSERT_TRUE(eventually([&] { return readFile(path("m.jsonl")).size() > 1000; }));
  kill(run.pid(), SIGTERM);
  EXPECT_EQ(run.wait().code, 128 + SIGTERM);
  // A trace is written to its end.
  fs::remove(path("m.jsonl"));
  Command traced(
      command("--steps 1000000 --trace " + path("t.json") + " --metrics " + path("m.jsonl"), 2, 1,
              Threads, "FAKE_SLEEP_MS=2"));
  ASSERT_TRUE(eventually([&] { return readFile(path("m.jsonl")).size() > 1000; }));
  kill(traced.pid(), SIGTERM);
  Result result = traced.wait();
  EXPECT_EQ(result.code, 128 + SIGTERM) << result.output;
  EXPECT_THAT(result.output, HasSubstr("writing the trace after this step; again to end at once"));
  EXPECT_GE(nlohmann::json::parse(readFile(path("t.json")))["traceEvents"].size(), 10u);
  // Asked again after a second, it ends at once.
  fs::remove(path("m.jsonl"));
  Command slow(command("--steps 1000000 --save " + path("b") + " --metrics " + path("m.jsonl"), 2,
                       1, Threads, "FAKE_SLEEP_MS=5000"));
  ASSERT_TRUE(eventually([&] { return !readFile(path("m.jsonl")).empty(); }));
  usleep(300000); // The next step has begun.
  kill(slow.pid(), SIGTERM);
  ASSERT_TRUE(eventually(
      [&] { return slow.output().find("saving after this step") != std::string::npos; }));
  usleep(1500000);
  kill(slow.pid(), SIGTERM);
  Result ended = slow.wait();
  EXPECT_EQ(ended.code, 128 + SIGTERM) << ended.output;
  EXPECT_THAT(ended.output, testing::Not(HasSubstr("stopped by")));
}

// An error between two steps leaves the state whole: it is saved, whichever rank has the error.
TEST_F(CheckpointTest, ErrorsKeepTheLastGoodStep) {
  for (Launcher launcher : {Threads, Mpi}) {
    std::string tokens(5000, 'a');
    writeFile(path("data.bin"), tokens);
    fs::remove_all(path("a"));
    fs::remove(path("m.jsonl"));
    // The second rank reads what is cut off; SIGBUS was the answer once.
    Command run(command("--steps 400 --metrics " + path("m.jsonl") + " --save " + path("a"), 2, 1,
                        launcher, "FAKE_SLEEP_MS=2"));
    ASSERT_TRUE(eventually([&] { return readFile(path("m.jsonl")).size() > 300; })) << run.output();
    fs::resize_file(path("data.bin"), 100);
    Result result = run.wait();
    EXPECT_EQ(result.code, 1) << result.output;
    EXPECT_EQ(occurrences(result.output, "error: "), 1) << result.output;
    EXPECT_THAT(result.output,
                HasSubstr("data.bin: has 100 bytes, but had 5000 when it was opened"));
    auto state = nlohmann::json::parse(readFile(path("a/latest/state.json")));
    std::string steps = std::to_string(int64_t(state["step"]));
    EXPECT_THAT(result.output,
                HasSubstr("the state after " + steps + " steps is saved in " + path("a/step-")));
    EXPECT_EQ(metrics("m.jsonl").size(), size_t(state["step"]));
    EXPECT_THAT(names("a"), testing::ElementsAre("latest", testing::StartsWith("step-")));
  }
  fs::remove_all(path("a"));
  writeFile(path("data.bin"), std::string(5000, 'a'));
  expectFailure(train("--steps 3 --metrics /dev/full --save " + path("a"), 2, 1, Mpi),
                {"/dev/full", "the state after 1 step is saved in " + path("a/step-00000001")});
  EXPECT_EQ(train("--steps 2 --resume " + path("a")).code, 0);
}

TEST_F(CheckpointTest, KeepRemovesTheOldest) {
  auto saved = [&](const std::string &flags) {
    Result result = train("--save-every 1 --save " + path("a") + " " + flags, 2, 1);
    EXPECT_EQ(result.code, 0) << result.output;
    return names("a");
  };
  using testing::ElementsAre;
  EXPECT_THAT(saved("--steps 5 --keep 2"), ElementsAre("latest", "step-00000004", "step-00000005"));
  EXPECT_THAT(
      saved("--steps 7 --keep 0 --resume " + path("a")),
      ElementsAre("latest", "step-00000004", "step-00000005", "step-00000006", "step-00000007"));
  // The newest are those written last, not those of the highest steps.
  EXPECT_THAT(saved("--steps 6 --keep 2 --resume " + path("a/step-00000005")),
              ElementsAre("latest", "step-00000006", "step-00000007"));
  EXPECT_EQ(fs::read_symlink(path("a/latest")), "step-00000006");
  // A run that does not go on from another one's checkpoints says that they are there, and leaves
  // those that it does not replace.
  Result other = train("--save-every 1 --save " + path("a") + " --steps 6 --keep 1", 2, 1);
  EXPECT_EQ(other.code, 0) << other.output;
  EXPECT_THAT(other.output, HasSubstr("has checkpoints of another run, up to step-00000007"));
  EXPECT_THAT(names("a"), ElementsAre(".others", "latest", "step-00000006", "step-00000007"));
  // Also when it is resumed. Whoever goes on from one of those leaves its own.
  EXPECT_THAT(saved("--steps 8 --keep 1 --resume " + path("a/step-00000006")),
              ElementsAre("latest", "step-00000008"));
  ASSERT_EQ(train("--steps 2 --save " + path("a")).code, 0);
  EXPECT_THAT(saved("--steps 3 --keep 1 --resume " + path("a")),
              ElementsAre(".others", "latest", "step-00000003", "step-00000008"));
  EXPECT_THAT(saved("--steps 9 --keep 1 --resume " + path("a/step-00000008")),
              ElementsAre(".others", "latest", "step-00000003", "step-00000009"));
  fs::remove_all(path("a"));
  EXPECT_THAT(saved("--steps 3 --keep 1"), ElementsAre("latest", "step-00000003"));
  expectFailure(train("--steps 3 --keep 2"), {"--keep needs --save"});
  expectFailure(train("--steps 3 --keep -1 --save " + path("a")), {"--keep is -1"});
  // One that fails to save removes none.
  expectFailure(train("--steps 4 --lr 3e38 --weight-decay 10 --keep 1 --save " + path("a") +
                      " --resume " + path("a")),
                {"the last good one"});
  EXPECT_THAT(names("a"), ElementsAre("latest", "step-00000003"));
}

// The same command starts a run and goes on with it, if it can be told which.
TEST_F(CheckpointTest, ResumeAutoStartsOrGoesOn) {
  expectFailure(train("--steps 2 --resume auto"), {"--resume auto", "--save is not given"});
  ASSERT_EQ(train("--steps 0 --seed 5 --save " + path("start")).code, 0);
  std::string flags = " --lr 0.01 --init " + path("start") + " --save " + path("a") +
                      " --resume auto --metrics " + path("m.jsonl");
  ASSERT_EQ(train("--steps 3" + flags, 2, 1).code, 0);
  EXPECT_EQ(metrics("m.jsonl").size(), 3u);
  Result more = train("--steps 5" + flags, 2, 1);
  ASSERT_EQ(more.code, 0) << more.output;
  EXPECT_THAT(more.output, HasSubstr("resumed from " + path("a/step-00000003")));
  auto resumed = metrics("m.jsonl");
  ASSERT_EQ(train("--steps 5 --lr 0.01 --init " + path("start/latest/model.safetensors") +
                      " --metrics " + path("w.jsonl"),
                  2, 1)
                .code,
            0);
  EXPECT_EQ(resumed, metrics("w.jsonl"));
  // One that is damaged or missing is passed over for the one before it.
  fs::remove_all(path("a/step-00000005"));
  Result before = train("--steps 3" + flags, 2, 1);
  EXPECT_EQ(before.code, 0) << before.output;
  EXPECT_THAT(before.output, HasSubstr("note: --resume auto passes over the checkpoint " +
                                       path("a/step-00000005") + ": "));
  EXPECT_THAT(before.output, HasSubstr("resumed from " + path("a/step-00000003")));
  // A run that was killed between its first checkpoint and the link to it.
  fs::remove(path("a/latest"));
  EXPECT_THAT(train("--steps 3" + flags, 2, 1).output, HasSubstr("resumed from " + path("a/step-00000003")));
  // What is there but damaged is no reason to start anew.
  editState(path("a/step-00000003"), [](auto &state) { state["files"]["optimizer.safetensors"] = "0"; });
  expectFailure(train("--steps 6" + flags, 2, 1),
                {"optimizer.safetensors is not the file that state.json names", "--resume auto: no checkpoint in",
                 "is whole"});
  // Weights in a folder.
  fs::create_directory(path("empty"));
  expectFailure(train("--steps 1 --init " + path("empty")),
                {"--init " + path("empty"), "neither model.safetensors nor"});
}

// A rank that is stopped while others save is missed after the time-out, whoever it is.
// What is left out is as it was, on every launcher; what is given and differs is said.
TEST_F(CheckpointTest, ResumedRunsKeepTheirFlags) {
  std::string flags = " --lr 0.01 --lr-schedule cosine --min-lr 0.001 --warmup 2 --beta1 0.8 "
                      "--weight-decay 0.3 --grad-clip 0.5";
  auto go = [&](const std::string &more, Launcher launcher = Threads) {
    std::filesystem::remove(path("m.jsonl"));
    return train(more + " --metrics " + path("m.jsonl"), 2, 1, launcher);
  };
  ASSERT_EQ(go("--steps 8" + flags + " --save-every 4 --save " + path("a")).code, 0);
  auto whole = metrics("m.jsonl");
  std::string resume = "--resume " + path("a/step-00000004");
  for (Launcher launcher : {Threads, Mpi}) {
    Result result = go(resume, launcher);
    ASSERT_EQ(result.code, 0) << result.output;
    EXPECT_THAT(result.output, testing::Not(HasSubstr("note: ")));
    EXPECT_EQ(metrics("m.jsonl"), decltype(whole)(whole.begin() + 4, whole.end()));
  }
  // The schedule's end moves only if that is asked for.
  for (Launcher launcher : {Threads, Mpi})
    expectFailure(go(resume + " --steps 16", launcher),
                  {"--steps 16: the schedule of the checkpoint", "cosine, ends at step 8",
                   "goes on at 0.00955436 in step 4, instead of 0.00775", "add --reschedule"});
  expectFailure(go("--steps 16 --reschedule"), {"--reschedule moves the end of a checkpoint's schedule"});
  ASSERT_EQ(go("--resume auto --reschedule --steps 1 --lr 0.01 --save " + path("fresh")).code, 0);
  Result result =
      go(resume + " --steps 16 --reschedule --lr 0.005 --warmup 2 --save " + path("b"), Mpi);
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(occurrences(result.output, "note: "), 1) << result.output;
  EXPECT_THAT(result.output,
              HasSubstr("note: --steps 16, was 8, where cosine ends; --lr 0.005, was 0.01\n"));
  // The checkpoint of that run has its flags.
  result = go("--resume " + path("b"));
  EXPECT_THAT(result.output, HasSubstr("nothing to train: 16 of 16 steps are done"));
  EXPECT_THAT(result.output, testing::Not(HasSubstr("note: ")));
  // Where no step is to be made, no rate jumps, and the run that made them may go on as it was.
  result = go("--resume " + path("a/step-00000004") + " --steps 0 --save " + path("same"));
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, testing::Not(HasSubstr("note: ")));
  ASSERT_EQ(go("--resume " + path("same")).code, 0);
  EXPECT_EQ(metrics("m.jsonl"), decltype(whole)(whole.begin() + 4, whole.end()));
  // Before wsd decays the end does not matter, and in the warm-up it never does.
  for (const char *schedule : {"wsd --decay-fraction 0.5", "linear --warmup 4"}) {
    std::string folder = path(std::string(schedule, 3));
    ASSERT_EQ(go(std::string("--steps 8 --lr 0.01 --save-every 4 --save ") + folder +
                 " --lr-schedule " + schedule)
                  .code,
              0);
    EXPECT_EQ(go("--resume " + folder + "/step-00000004 --steps 16").code, 0);
    expectFailure(go("--resume " + folder + " --steps 16"), {"ends at step 8", "add --reschedule"});
  }
  // Flags that are texts, and those of other schedules, which a checkpoint does not have.
  ASSERT_EQ(go("--steps 8 --lr 0.01 --lr-schedule multi-step --lr-milestones 3,5 --lr-gamma 0.5 "
               "--save-every 4 --save " + path("c"))
                .code,
            0);
  auto stairs = metrics("m.jsonl");
  result = go("--resume " + path("c/step-00000004"));
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, testing::Not(HasSubstr("note: ")));
  EXPECT_EQ(metrics("m.jsonl"), decltype(stairs)(stairs.begin() + 4, stairs.end()));
  result = go("--resume " + path("c/step-00000004") + " --steps 9 --lr-milestones 3,7");
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("note: --steps 9, was 8; --lr-milestones 3,7, was 3,5\n"));
  // Limits hold for what comes from both.
  expectFailure(go(resume + " --lr 0.0001"), {"--min-lr 0.001 is larger than --lr 0.0001"});
  expectFailure(go("--lr 0.1"), {"--steps is required"});
  expectFailure(go("--resume " + path("nothing")), {"nothing", "there is no such folder"});
  // Without the flags, as earlier versions wrote it.
  editState(path("a/step-00000004"), [](auto &state) { state.erase("flags"); });
  expectFailure(go(resume), {"--steps is required", "does not say it"});
  result = go(resume + " --steps 8" + flags);
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(metrics("m.jsonl"), decltype(whole)(whole.begin() + 4, whole.end()));
  EXPECT_THAT(result.output, HasSubstr("so defaults are used: --beta2 0.95, --eps 1e-08, --freeze-variance 0\n"));
  editState(path("a/step-00000004"), [](auto &state) { state["flags"] = {{"--lr", 3}}; });
  expectFailure(go(resume + " --steps 8"), {"state.json", "\"--lr\" is 3, but must be a string"});
}

// Names of files are bytes, those in a checkpoint are text.
TEST_F(CheckpointTest, DataMayHaveAnyName) {
  writeFile(path("a\xff.bin"), readFile(path("data.bin")));
  std::string exe = std::string(FAKE_PROGRAM) + " --data '" + path("a\xff.bin") + ":1' --data " + path("data.bin") +
                    ":3 --tokens u8 --metrics " + path("m.jsonl");
  ASSERT_EQ(run(exe + " --steps 6 --save-every 3 --save " + path("s")).code, 0);
  auto whole = metrics("m.jsonl");
  Result rest = run(exe + " --resume " + path("s/step-00000003"));
  ASSERT_EQ(rest.code, 0) << rest.output;
  EXPECT_THAT(rest.output, testing::Not(HasSubstr("note: ")));
  EXPECT_EQ(metrics("m.jsonl"), whole);
}

// Bias corrections count updates, whichever precision the steps that overflowed had.
TEST_F(CheckpointTest, ResumedRunsCountOverflowsOfFp16) {
  ASSERT_EQ(train("--steps 4 --lr 0.01 --save " + path("a")).code, 0);
  auto resumed = [&](const char *folder) {
    Result result = train("--steps 6 --resume " + path("a") + " --metrics " + path("m.jsonl") + " --save " + path(folder));
    EXPECT_EQ(result.code, 0) << result.output;
    auto lines = metrics("m.jsonl");
    std::filesystem::remove(path("m.jsonl"));
    return lines;
  };
  auto none = resumed("none");
  editState(path("a/latest"), [](auto &state) { state["skipped"] = 3; });
  auto skipped = resumed("skipped");
  EXPECT_NE(skipped[1]["loss"], none[1]["loss"]);
  editState(path("a/latest"), [](auto &state) {
    state["skipped"] = 1;
    state["loss_scale"] = {{"scale", 1024.0}, {"good_steps", 2}, {"overflows", 0}, {"skipped", 2}};
  });
  EXPECT_EQ(resumed("fp16"), skipped);
  auto state = nlohmann::json::parse(readFile(path("fp16/latest/state.json")));
  EXPECT_EQ(state["skipped"], 3);
  EXPECT_FALSE(state.contains("loss_scale"));
}

// Data that is as long as the checkpoint's, but other data, is noted once.
TEST_F(CheckpointTest, ResumedRunsSayWhichDataIsAnother) {
  ASSERT_EQ(train("--steps 2 --save " + path("a")).code, 0);
  std::string resume = "--steps 3 --resume " + path("a");
  EXPECT_THAT(train(resume).output, testing::Not(HasSubstr("--data is")));
  std::string data = readFile(path("data.bin"));
  data[4000] = data[4000] == 1 ? 2 : 1;
  writeFile(path("data.bin"), data);
  for (Launcher launcher : {Threads, Mpi}) {
    Result result = train(resume, 2, 1, launcher);
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_EQ(occurrences(result.output, "note: --data is 5,000 bytes with contents "), 1) << result.output;
    EXPECT_EQ(occurrences(result.output, ", but was 5,000 bytes with contents "), 1) << result.output;
  }
  // Another length has a note of its own.
  writeFile(path("data.bin"), data.substr(1));
  Result shorter = train(resume);
  EXPECT_THAT(shorter.output, HasSubstr("4,999 tokens, the data of the checkpoint"));
  EXPECT_THAT(shorter.output, testing::Not(HasSubstr("--data is")));
  // Earlier versions do not say what it was.
  writeFile(path("data.bin"), data);
  editState(path("a/latest"), [](auto &state) { state["data"] = {{"--data", 3}}; });
  expectFailure(train(resume), {"state.json", "\"--data\" is 3, but must be a string"});
  editState(path("a/latest"), [](auto &state) { state.erase("data"); });
  EXPECT_THAT(train(resume).output, testing::Not(HasSubstr("--data is")));
}

TEST_F(CheckpointTest, StoppedRanksAreMissed) {
  for (int rank : {0, 1}) {
    fs::remove_all(path("a"));
    Command run(command("--steps 1000000 --save-every 1 --keep 1 --save " + path("a"), 2, 1, Mpi,
                        // MPI's start is a wait too, which takes seconds on a loaded machine.
                        "MESHWRIGHT_TIMEOUT=8"));
    auto saving = [&] {
      std::error_code error;
      for (const auto &entry : fs::directory_iterator(path("a"), error))
        if (entry.path().filename().string().rfind(".partial-step", 0) == 0)
          return true;
      return false;
    };
    ASSERT_TRUE(eventually([&] { return fs::exists(path("a/latest")); })) << run.output();
    std::vector<pid_t> all = ranks();
    ASSERT_EQ(all.size(), 2u);
    // Which process is which rank, its environment says.
    auto isRank = [&](pid_t pid) {
      std::string environment = readFile("/proc/" + std::to_string(pid) + "/environ");
      return environment.find(std::string(1, '\0') + "OMPI_COMM_WORLD_RANK=" + std::to_string(rank) +
                              '\0') != std::string::npos;
    };
    pid_t stopped = isRank(all[0]) ? all[0] : all[1];
    ASSERT_TRUE(eventually(saving));
    kill(stopped, SIGSTOP);
    EXPECT_TRUE(eventually([&] { return occurrences(run.output(), "error: ") > 0; }));
    kill(stopped, SIGKILL);
    Result result = run.wait(20);
    EXPECT_NE(result.code, 0);
    EXPECT_LT(result.seconds, 30) << result.output;
    EXPECT_THAT(result.output, HasSubstr("waited longer than 8 s for others"));
  }
}
