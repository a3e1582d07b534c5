//===- RunTest.cpp - whole runs of an executable --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Fake.h"

#include <cmath>
#include <filesystem>

using namespace testing_process;
using testing::HasSubstr;

class RunTest : public FakeTest {};

TEST_F(RunTest, WritesMetricsAndProgress) {
  Result result = train("--steps 6 --lr 0.01 --warmup 2 --lr-schedule linear --min-lr 0.001 "
                        "--eval-every 3 --metrics " +
                        path("m.jsonl") + " --eval-data " + path("data.bin"));
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("arena 70,592 bytes, data in file order\n"));
  EXPECT_THAT(result.output, HasSubstr("step 5 (6/6)"));
  EXPECT_THAT(result.output, HasSubstr("tokens/s"));
  auto lines = metrics("m.jsonl");
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_DOUBLE_EQ(lines[0]["lr"], 0.005);
  EXPECT_DOUBLE_EQ(lines[1]["lr"], 0.01);
  EXPECT_DOUBLE_EQ(lines[4]["lr"], 0.001 + 0.5 * 0.009);
  EXPECT_LT(lines[5]["eval_loss"], lines[2]["eval_loss"]);
  EXPECT_GT(lines[0]["grad_norm"], 0);
  for (int step = 0; step < 6; ++step)
    EXPECT_EQ(lines[size_t(step)].contains("eval_loss"), step % 3 == 2);
  EXPECT_THAT(readFile(path("m.jsonl")), HasSubstr("\"step_ms\":"));
}

// The mean over every whole sequence of the file, whatever the batch (8 sequences of 16 tokens)
// and the mesh; without a step to make, too.
TEST_F(RunTest, EvaluatesAllOfTheFile) {
  ASSERT_EQ(train("--steps 4 --lr 0.01 --save " + path("a")).code, 0);
  std::string corpus = readFile(path("data.bin"));
  corpus += corpus;
  auto evaluate = [&](int first, int sequences, int data = 1, int tensor = 1,
                      const std::string &more = "") {
    // The last tokens make no sequence.
    writeFile(path("eval.bin"), corpus.substr(size_t(first * 16), size_t(sequences * 16 + 12)));
    Result result = train("--steps 4 --resume " + path("a") + " --metrics " + path("m.jsonl") +
                              " --eval-data " + path("eval.bin") + more,
                          data, tensor);
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("nothing to train: 4 of 4 steps are done"));
    EXPECT_THAT(result.output, HasSubstr("after 4 steps, over "));
    auto lines = metrics("m.jsonl");
    std::filesystem::remove(path("m.jsonl"));
    EXPECT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines.at(0)["steps"], 4);
    EXPECT_FALSE(lines.at(0).contains("step"));
    EXPECT_FALSE(lines.at(0).contains("loss"));
    return lines.at(0)["eval_loss"].get<double>();
  };
  // Of 1, 2, ... sequences, each evaluated alone.
  std::vector<double> means = {0};
  for (int i = 0; i < 21; ++i)
    means.push_back((means.back() * i + evaluate(i, 1)) / (i + 1));
  EXPECT_GT(std::abs(means[21] - means[16]), 1e-4);
  for (auto [data, tensor] : {std::pair(1, 1), {2, 2}, {8, 1}, {1, 4}}) {
    EXPECT_NEAR(evaluate(0, 5, data, tensor), means[5], 1e-6);
    EXPECT_NEAR(evaluate(0, 21, data, tensor), means[21], 1e-6);
    EXPECT_NEAR(evaluate(0, 21, data, tensor, " --eval-batches 2"), means[16], 1e-6);
    EXPECT_NEAR(evaluate(0, 21, data, tensor, " --eval-batches 3"), means[21], 1e-6);
  }
  double parts = 0;
  for (int i = 0; i < 6; ++i)
    parts += evaluate(100 * i, 100) / 6;
  EXPECT_NEAR(evaluate(0, 600), parts, 1e-6);
}

// Several files are those of a folder or of a pattern by name, and the same on every mesh and launcher.
TEST_F(RunTest, TrainsOnSeveralFiles) {
  std::string corpus = readFile(path("data.bin"));
  run("mkdir " + path("d"));
  // Sequences have 16 tokens: 60, 40 and 20 of them, with tokens left over.
  size_t begin = 0;
  for (auto [name, tokens] : {std::pair("d/a.bin", 961), {"d/b.bin", 650}, {"d/c.bin", 321}}) {
    writeFile(path(name), corpus.substr(begin, size_t(tokens)));
    begin += size_t(tokens);
  }
  writeFile(path("d/notes.txt"), "not tokens");
  auto go = [&](const std::string &data, int ranks = 1, Launcher launcher = Threads, const std::string &more = "") {
    std::filesystem::remove(path("m.jsonl"));
    std::string command = this->command("--steps 30 --lr 0.01 --metrics " + path("m.jsonl") + more, ranks, 1, launcher);
    std::string one = " --data " + path("data.bin");
    for (size_t at = 0; (at = command.find(one, at)) != command.npos; at += data.size())
      command.replace(at, one.size(), data);
    Result result = run(command);
    EXPECT_EQ(result.code, 0) << result.output;
    return metrics("m.jsonl");
  };
  std::string a = " --data " + path("d/a.bin"), b = " --data " + path("d/b.bin"), c = " --data " + path("d/c.bin");
  for (std::string more : {" --no-shuffle", ""}) {
    auto wanted = go(a + b + c, 1, Threads, more);
    EXPECT_EQ(go(" --data " + path("d"), 1, Threads, more), wanted);
    EXPECT_EQ(go(" --data '" + path("d/?.bin") + "'", 1, Threads, more), wanted);
    EXPECT_EQ(go(a + " --data '" + path("d/[bc].bin") + "'", 1, Threads, more), wanted);
    EXPECT_NE(go(c + b + a, 1, Threads, more), wanted);
    // In ranks only the order of sums is another, the same for all launchers.
    auto threads = go(" --data " + path("d"), 2, Threads, more);
    EXPECT_EQ(go(" --data " + path("d"), 2, Mpi, more), threads);
    EXPECT_NEAR(threads.back()["loss"], wanted.back()["loss"], 1e-5);
  }
  // The first 7 batches of 8 are the first file's 56 of 60 sequences, as if it were alone.
  auto whole = go(a + b + c, 1, Threads, " --no-shuffle"), alone = go(a);
  for (int step = 0; step < 7; ++step)
    EXPECT_EQ(whole[size_t(step)]["loss"], alone[size_t(step)]["loss"]);
  EXPECT_NE(whole[8]["loss"], alone[8]["loss"]);
  // A run that stops and goes on is the one that does not; other files are noted.
  std::string resume = " --resume " + path("s/step-00000010");
  go(a + b + c, 1, Threads, " --no-shuffle --save-every 10 --save " + path("s"));
  auto rest = go(" --data " + path("d"), 2, Mpi, resume);
  EXPECT_EQ(rest.size(), 20u);
  EXPECT_NEAR(rest.back()["loss"], whole.back()["loss"], 1e-5);
  std::string flags = "--steps 30 --tokens u8" + resume;
  Result result = run(std::string(FAKE_PROGRAM) + b + a + c + " " + flags);
  EXPECT_THAT(result.output, HasSubstr("the tokens are in other files, or in another order"));
  result = run(std::string(FAKE_PROGRAM) + a + b + c + " " + flags);
  EXPECT_THAT(result.output, testing::Not(HasSubstr("note: "))) << result.output;
  // Evaluations, and what is wrong.
  result = run(std::string(FAKE_PROGRAM) + a + " --steps 0 --tokens u8 --eval-data " + path("d"));
  EXPECT_THAT(result.output, HasSubstr("after 0 steps, over 1,920 tokens"));
  expectFailure(run(std::string(FAKE_PROGRAM) + a + " --data '" + path("d/x*.bin") + "' --steps 1 --tokens u8"),
                {"--data " + path("d/x*.bin"), "no file of such a name"});
  run("mkdir " + path("e"));
  expectFailure(run(std::string(FAKE_PROGRAM) + " --data " + path("e") + " --steps 1"), {"no file whose name ends in .bin"});
  expectFailure(run(std::string(FAKE_PROGRAM) + a + " --data " + path("d/notes.txt") + " --steps 1 --tokens u16 "),
                {"tokens"});
  expectFailure(run(std::string(FAKE_PROGRAM) + a + " " + path("d/b.bin") + " --steps 1 --tokens u8"),
                {"d/b.bin' belongs to no flag", "a pattern in quotes"});
  expectFailure(run(std::string(FAKE_PROGRAM) + a + b + " --steps 1 --tokens u8 --metrics " + path("d/b.bin")),
                {"--metrics", "would overwrite --data " + path("d/b.bin")});
}

TEST_F(RunTest, EvaluatesInitialWeights) {
  std::string flags = "--steps 0 --metrics " + path("m.jsonl") + " --eval-data " + path("data.bin");
  Result result = train(flags, 2, 1, Mpi);
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(occurrences(result.output, "after 0 steps, over 4,992 tokens"), 1) << result.output;
  EXPECT_EQ(metrics("m.jsonl").at(0)["steps"], 0);
  EXPECT_FALSE(metrics("m.jsonl").at(0).contains("step"));
  // What comes before a step is no evaluation after it.
  ASSERT_EQ(
      train("--steps 1 --lr 0 --metrics " + path("s.jsonl") + " --eval-data " + path("data.bin"))
          .code,
      0);
  EXPECT_NEAR(metrics("s.jsonl").at(0)["eval_loss"], metrics("m.jsonl").at(0)["eval_loss"], 1e-6);
}

// An evaluation alone goes behind the lines of the steps before it, and a run that goes on keeps it.
TEST_F(RunTest, EvaluatesCheckpointsBetweenRuns) {
  std::string files = " --lr 0.01 --shuffle --metrics " + path("m.jsonl") + " --save " + path("a");
  ASSERT_EQ(train("--steps 2" + files).code, 0);
  std::string resume = " --resume " + path("a") + " --metrics " + path("m.jsonl");
  Result alone = train("--steps 0 --eval-data " + path("data.bin") + resume);
  ASSERT_EQ(alone.code, 0) << alone.output;
  EXPECT_THAT(alone.output, HasSubstr("after 2 steps, over 4,992 tokens"));
  ASSERT_EQ(train("--steps 3" + files + " --resume " + path("a")).code, 0);
  auto lines = metrics("m.jsonl");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1]["step"], 1);
  EXPECT_EQ(lines[2]["steps"], 2);
  EXPECT_EQ(lines[3]["step"], 2);
  // One of an earlier checkpoint repeats no step, and so drops none.
  alone = train("--steps 0 --eval-data " + path("data.bin") + " --resume " + path("a/step-00000002") + " --metrics " + path("m.jsonl"));
  ASSERT_EQ(alone.code, 0) << alone.output;
  auto more = metrics("m.jsonl");
  ASSERT_EQ(more.size(), 5u);
  EXPECT_EQ(decltype(lines)(more.begin(), more.begin() + 4), lines);
  EXPECT_EQ(more[4]["steps"], 2);
}

// A program without targets cannot leave out the rest of a batch.
TEST_F(RunTest, EvaluatesWholeBatchesWithoutTargets) {
  writeFile(path("eval.bin"), readFile(path("data.bin")).substr(0, 21 * 16 + 1));
  std::string flags = "--steps 1 --eval-data " + path("eval.bin");
  expectFailure(
      train(flags, 1, 1, Threads, "FAKE_TARGETS=0"),
      {"--eval-data " + path("eval.bin"), "21 sequences", "batch of 8", "--eval-batches 2"});
  EXPECT_EQ(train(flags + " --eval-batches 2", 1, 1, Threads, "FAKE_TARGETS=0").code, 0);
}

TEST_F(RunTest, SameLossesFromEveryCommunicatorAndAgain) {
  std::vector<std::vector<nlohmann::json>> runs;
  for (Launcher launcher : {Threads, Threads, Mpi}) {
    Result result = train("--steps 5 --lr 0.01 --metrics " + path("m.jsonl"), 2, 2, launcher);
    ASSERT_EQ(result.code, 0) << result.output;
    runs.push_back(metrics("m.jsonl"));
    ASSERT_EQ(runs.back().size(), 5u);
    EXPECT_EQ(runs.back(), runs.front());
  }
}

TEST_F(RunTest, SameLossesOnEveryMesh) {
  std::vector<nlohmann::json> first;
  for (auto [data, tensor] : {std::pair(1, 1), {2, 1}, {1, 2}, {4, 2}, {1, 4}, {8, 1}}) {
    std::string microbatches = data == 8 ? "" : "FAKE_MICROBATCHES=2";
    Result result = train("--steps 5 --lr 0.01 --shuffle --metrics " + path("m.jsonl"), data,
                          tensor, Threads, microbatches);
    ASSERT_EQ(result.code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr(" bytes, data shuffled\n"));
    auto lines = metrics("m.jsonl");
    if (first.empty())
      first = lines;
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(lines[i]["loss"], first[i]["loss"], 1e-5);
      EXPECT_NEAR(lines[i]["grad_norm"], first[i]["grad_norm"], 1e-5);
    }
  }
}

TEST_F(RunTest, InitialWeightsDoNotDependOnTheMesh) {
  std::string first;
  for (auto [data, tensor] : {std::pair(1, 1), {2, 2}, {1, 4}, {1, 8}}) {
    std::string save = path("save" + std::to_string(tensor));
    Result result = train("--steps 0 --seed 7 --save " + save, data, tensor);
    ASSERT_EQ(result.code, 0) << result.output;
    std::string model = readFile(save + "/latest/model.safetensors");
    ASSERT_GT(model.size(), 1000u);
    if (first.empty())
      first = model;
    EXPECT_EQ(model, first) << data << "x" << tensor;
  }
  Result other = train("--steps 0 --seed 8 --save " + path("other"));
  ASSERT_EQ(other.code, 0);
  EXPECT_NE(readFile(path("other/latest/model.safetensors")), first);
}

TEST_F(RunTest, SavedWeightsCanBeTheInitialOnes) {
  ASSERT_EQ(train("--steps 3 --lr 0.01 --save " + path("a")).code, 0);
  std::string model = path("a/latest/model.safetensors");
  for (auto [data, tensor] : {std::pair(1, 1), {2, 2}, {1, 4}}) {
    Result result = train("--steps 0 --init " + model + " --save " + path("b"), data, tensor);
    ASSERT_EQ(result.code, 0) << result.output;
    EXPECT_EQ(readFile(path("b/latest/model.safetensors")), readFile(model));
  }
}

TEST_F(RunTest, ResumeIsExact) {
  for (auto [data, tensor] : {std::pair(1, 1), {2, 2}}) {
    std::string flags = "--lr 0.01 --warmup 3 --lr-schedule cosine --steps 10 --save-every 4 "
                        "--shuffle --seed 3 --metrics ";
    ASSERT_EQ(train(flags + path("whole.jsonl") + " --save " + path("whole"), data, tensor).code,
              0);
    // The first run dies at step 6; step 4 is the last that was saved.
    Result dead = train(flags + path("parts.jsonl") + " --save " + path("parts"), data, tensor,
                        Threads, "FAKE_KILL_STEP=6");
    EXPECT_EQ(dead.code, 128 + 9);
    EXPECT_EQ(std::filesystem::read_symlink(path("parts/latest")), "step-00000004");
    Result resumed =
        train("--lr 0.01 --warmup 3 --lr-schedule cosine --steps 10 --save-every 4 "
              "--metrics " +
                  path("parts.jsonl") + " --save " + path("parts") + " --resume " + path("parts"),
              data, tensor);
    ASSERT_EQ(resumed.code, 0) << resumed.output;
    EXPECT_EQ(metrics("parts.jsonl"), metrics("whole.jsonl"));
    for (const char *file : {"model.safetensors", "optimizer.safetensors", "state.json"})
      EXPECT_EQ(readFile(path("parts/latest/") + file), readFile(path("whole/latest/") + file));
    EXPECT_EQ(readFile(path("parts/latest/config.json")), "{\"model_type\":\"fake\"}\n");
    std::filesystem::remove_all(path("whole"));
    std::filesystem::remove_all(path("parts"));
  }
}

TEST_F(RunTest, ResumeOnAnotherMeshKeepsEveryBit) {
  ASSERT_EQ(train("--steps 5 --lr 0.01 --save " + path("a"), 2, 2).code, 0);
  for (auto [data, tensor] : {std::pair(1, 1), {1, 4}, {4, 2}}) {
    Result result = train("--steps 5 --save " + path("b") + " --resume " + path("a/step-00000005"),
                          data, tensor);
    ASSERT_EQ(result.code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("nothing to train"));
    for (const char *file : {"model.safetensors", "optimizer.safetensors"})
      EXPECT_EQ(readFile(path("b/latest/") + file), readFile(path("a/latest/") + file));
  }
  for (Launcher launcher : {Threads, Mpi}) {
    Result result = train("--steps 7 --lr 0.01 --resume " + path("a"), 2, 1, launcher);
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("step 6 (7/7)"));
  }
}

// The lines of steps that are repeated go, in one step: a reader of the old file, or a
// kill, never sees it cut short.
TEST_F(RunTest, ResumeContinuesMetrics) {
  std::string flags = "--lr 0.01 --steps 6 --metrics " + path("m.jsonl");
  ASSERT_EQ(train(flags + " --save-every 2 --save " + path("a")).code, 0);
  auto whole = metrics("m.jsonl");
  std::string text = readFile(path("m.jsonl"));
  std::filesystem::create_hard_link(path("m.jsonl"), path("old.jsonl"));
  std::filesystem::create_symlink("m.jsonl", path("link.jsonl"));
  Result resumed = train("--lr 0.01 --steps 6 --metrics " + path("link.jsonl") + " --resume " +
                         path("a/step-00000004"));
  ASSERT_EQ(resumed.code, 0) << resumed.output;
  EXPECT_EQ(metrics("m.jsonl"), whole);
  EXPECT_EQ(readFile(path("old.jsonl")), text);
  EXPECT_TRUE(std::filesystem::is_symlink(path("link.jsonl")));
  EXPECT_FALSE(std::filesystem::exists(path("m.jsonl.partial")));
  // Into a pipe only what is new.
  Result piped =
      run(command("--lr 0.01 --steps 6 --metrics /dev/stderr --resume " + path("a/step-00000004")) +
          " 2>&1 >/dev/null | cat");
  EXPECT_EQ(occurrences(piped.output, "\"step\":"), 2) << piped.output;
}

TEST_F(RunTest, ResumeRefusesAnotherModel) {
  ASSERT_EQ(train("--steps 2 --save " + path("a")).code, 0);
  auto refused = [&](const std::string &environment, const std::vector<std::string> &parts) {
    for (Launcher launcher : {Threads, Mpi}) {
      std::vector<std::string> all = parts;
      all.insert(all.end(), {path("a/step-00000002"), "--init " + path("a/step-00000002/model")});
      expectFailure(train("--steps 4 --resume " + path("a"), 2, 1, launcher, environment), all);
    }
  };
  refused("FAKE_OPTIMIZER=sgd", {"with --optimizer adamw, ", "compiled for sgd", "optimizer"});
  refused("FAKE_MODEL=other", {"with the model fake, ", "compiled for other", "config.json"});
  refused("FAKE_HEADS=3", {"with a model of n_head absent, ", "compiled for n_head = 3",
                           "compile " + path("a/step-00000002/config.json")});
  auto edited = [&](const char *key, int64_t value) {
    int64_t before = 0;
    editState(path("a/latest"), [&](nlohmann::ordered_json &state) {
      before = state[key];
      state[key] = value;
    });
    return before;
  };
  int64_t sequence = edited("sequence", 32);
  refused("FAKE_DATA=2", {"with --seq 32, ", "compiled for 16", "--seq"});
  edited("sequence", sequence);
  int64_t vocabulary = edited("vocabulary", 300);
  refused("FAKE_DATA=2", {"with a vocabulary of 300, ", "compiled for 251"});
  edited("vocabulary", vocabulary);
  int64_t version = edited("version", 1);
  refused("FAKE_DATA=2", {"version 1", "version 3"});
  edited("version", version);
  // The batch may change; the run says where it goes on.
  edited("batch", 4);
  Result result = train("--steps 4 --resume " + path("a"));
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("was 4 sequences, this executable's is 8: training continues after "
                                       "16 sequences of the data, at step 2"));
  // Spaces and order of a configuration mean nothing.
  writeFile(path("a/latest/config.json"), "{ \"model_type\" : \"fake\" }");
  EXPECT_EQ(train("--steps 3 --resume " + path("a")).code, 0);
  // Weights alone may start another model's run, which is noted.
  writeFile(path("a/latest/config.json"), "{\"model_type\": \"fake\", \"n_head\": 4, \"use_cache\": true}");
  for (int heads : {3, 4}) {
    result = train("--steps 1 --init " + path("a/latest"), 1, 1, Threads, "FAKE_HEADS=" + std::to_string(heads));
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_EQ(occurrences(result.output, "is of another model than this executable: n_head = 4 (here 3)\n"), heads == 3)
        << result.output;
    EXPECT_EQ(occurrences(result.output, "note: "), heads == 3) << result.output;
  }
}

TEST_F(RunTest, TraceShowsEveryRank) {
  for (Launcher launcher : {Threads, Mpi}) {
    Result result = train("--steps 2 --trace " + path("t.json"), 2, 1, launcher);
    ASSERT_EQ(result.code, 0) << result.output;
    auto trace = nlohmann::json::parse(readFile(path("t.json")));
    int steps[2] = {}, reductions[2] = {};
    for (const auto &event : trace["traceEvents"]) {
      int rank = event["pid"];
      steps[rank] += event["name"] == "step";
      reductions[rank] += event["name"] == "all_reduce";
    }
    for (int rank : {0, 1}) {
      EXPECT_EQ(steps[rank], 2);
      EXPECT_EQ(reductions[rank], 6);
    }
  }
  // A number of steps that no sum of two holds.
  ASSERT_EQ(train("--steps 3 --trace-from 1 --trace-steps 9223372036854775807 --trace " + path("t.json")).code, 0);
  int traced = 0;
  auto trace = nlohmann::json::parse(readFile(path("t.json")));
  for (const auto &event : trace["traceEvents"])
    traced += event["name"] == "step";
  EXPECT_EQ(traced, 2);
}

TEST_F(RunTest, SavingTheSameStepAgainReplacesIt) {
  ASSERT_EQ(train("--steps 2 --seed 1 --save " + path("a")).code, 0);
  ASSERT_EQ(train("--steps 2 --seed 2 --save " + path("a")).code, 0);
  ASSERT_EQ(train("--steps 2 --seed 2 --save " + path("b")).code, 0);
  EXPECT_EQ(readFile(path("a/latest/model.safetensors")),
            readFile(path("b/latest/model.safetensors")));
  for (const auto &entry : std::filesystem::directory_iterator(path("a")))
    EXPECT_THAT(entry.path().filename().string(), testing::AnyOf("latest", "step-00000002"));
}

// kill -9 at any moment: the newest checkpoint is whole and can be resumed.
TEST_F(RunTest, KillAtAnyMomentLeavesAWholeCheckpoint) {
  for (int i = 0; i < 12; ++i) {
    std::string resume = i ? " --resume " + path("a") : "";
    {
      Command command(this->command(
          "--steps 1000000 --lr 0.001 --save-every 1 --save " + path("a") + resume, 2, 1));
      while (i == 0 && !std::filesystem::exists(path("a/latest")))
        usleep(1000);
      usleep(useconds_t(30000 + i * 3700));
      kill(command.pid(), SIGKILL);
      EXPECT_EQ(command.wait().code, 128 + 9) << command.output();
    }
    auto state = nlohmann::json::parse(readFile(path("a/latest/state.json")));
    int64_t step = state["step"];
    Result result = train("--steps " + std::to_string(step + 1) + " --resume " + path("a"), 2, 1);
    ASSERT_EQ(result.code, 0) << result.output;
    // Keeps the directory small for the next round.
    for (const auto &entry : std::filesystem::directory_iterator(path("a")))
      if (entry.path().filename() != "latest" &&
          entry.path().filename() != std::filesystem::read_symlink(path("a/latest")) &&
          entry.path().filename().string().rfind("step-", 0) == 0)
        std::filesystem::remove_all(entry.path());
  }
}
