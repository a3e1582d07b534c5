//===- FailureTest.cpp - runs that must end with one clear message --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Fake.h"

#include <csignal>
#include <filesystem>
#include <sys/stat.h>

using namespace testing_process;
using testing::HasSubstr;

class FailureTest : public FakeTest {};

TEST_F(FailureTest, BadFlags) {
  for (auto [arguments, part] :
       {std::pair("--steps 2 --stepps 3", "--stepps"),
        {"--steps -2", "--steps is -2"},
        {"--steps two", "--steps"},
        {"--steps 2 --lr abc", "--lr"},
        {"--steps 2 --lr nan", "--lr"},
        {"--steps 2 --beta2 1", "--beta2 is 1"},
        {"--steps 2 --lr-schedule step", "constant|cosine|linear|wsd|inverse-sqrt|multi-step"},
        {"--steps 9 --lr-schedule wsd --decay-fraction 0.5 --warmup 5",
         "--warmup 5 and a decay of 5 steps (--decay-fraction 0.5 of --steps 9)"},
        {"--steps 9 --lr-schedule wsd --decay-fraction 1.5", "--decay-fraction is 1.5"},
        {"--steps 9 --lr-schedule wsd --decay-shape sqrt", "linear|cosine|1-sqrt|exponential"},
        {"--steps 9 --decay-fraction 0.5", "--decay-fraction is for --lr-schedule wsd"},
        {"--steps 9 --lr-schedule wsd --lr-gamma 0.5", "--lr-gamma is for --lr-schedule multi-step"},
        {"--steps 9 --lr-schedule multi-step", "needs --lr-milestones"},
        {"--steps 9 --lr-schedule multi-step --lr-milestones 4,4", "must be ascending"},
        {"--steps 9 --lr-schedule multi-step --lr-milestones 4,", "must be ascending"},
        {"--steps 9 --lr-schedule multi-step --lr-milestones 4x", "must be ascending"},
        {"--steps 9 --lr-schedule multi-step --lr-milestones 4 --min-lr 1e-5",
         "--min-lr has an effect with"},
        {"--steps 2 --save-every 2", "--save-every needs --save"},
        {"", "--steps"},
        {"--steps 2 extra", "extra"},
        {"--steps 1e3", "--steps"},
        {"--steps 2 --init x --resume y", "drop one"},
        {"--steps 2 --save ''", "--save"},
        {"--steps 9223372036854775808", "--steps is 9223372036854775808: it must fit"},
        {"--steps 2 --save-every -9223372036854775809", "must fit into 64 bits"},
        {"--steps 0x10", "\"0x10\": it must be a whole number"},
        {"--steps 2 --ranks 18446744073709551617", "must fit into 64 bits"},
        {"--steps 2 --seed 4294967296", "--seed is 4294967296: it must be from 0 to 4294967295"},
        {"--steps 2 --lr 1e39", "--lr is 1e39: it must be a number that a 32-bit float"},
        {"--steps 2 --lr 1e400", "--lr is 1e400: it must be a number that a 32-bit"},
        {"--steps 2 --eps 1e-60", "--eps is 1e-60: it must be a number that a 32-bit"},
        {"--steps 2 --eps 0", "--eps is 0, so that an element whose gradients are 0 would be divided by 0: give a number above 0, such as 1e-08"},
        {"--steps 2 --grad-clip inf", "--grad-clip is inf"},
        {"--steps 2 --weight-decay 1x", "\"1x\": it must be a number"},
        // 1 in 32 bits.
        {"--steps 2 --beta1 0.99999999", "less than 1"}})
    expectFailure(run(std::string(FAKE_PROGRAM) + " --data " + path("data.bin") + " --tokens u8 " +
                      arguments),
                  {part});
  expectFailure(train("--steps 2 --lr x", 4, 1, Mpi), {"--lr"});
  expectFailure(run(std::string(FAKE_PROGRAM) + " --steps 2"), {"--data"});
}

TEST_F(FailureTest, HelpComesFromTheTable) {
  Result result = run(std::string(FAKE_PROGRAM) + " --help");
  EXPECT_EQ(result.code, 0);
  for (const char *part : {"--data FILE", "--lr-schedule constant|cosine|linear", "--trace FILE",
                           "--eval-only"})
    EXPECT_THAT(result.output, HasSubstr(part));
}

TEST_F(FailureTest, WrongNumberOfRanks) {
  std::string exe = std::string(FAKE_PROGRAM) + " --steps 1 --tokens u8 --data " + path("data.bin");
  expectFailure(run("FAKE_DATA=4 " + exe), {"4 ranks", "started with 1", "--ranks 4"});
  expectFailure(run("FAKE_DATA=4 " + exe + " --ranks 3"), {"data=4", "started with 3"});
  expectFailure(run(exe + " --ranks 2"), {"1 rank ", "started with 2"});
  expectFailure(run("export FAKE_DATA=4; mpirun --allow-run-as-root --oversubscribe -n 2 " + exe),
                {"4 ranks", "started with 2", "mpirun -n 4"});
  expectFailure(run("export FAKE_DATA=2; mpirun --allow-run-as-root --oversubscribe -n 2 " + exe +
                    " --ranks 3"),
                {"drop --ranks"});
}

// Tasks of srun that know nothing of each other must not train one model each.
TEST_F(FailureTest, SlurmTasksWithoutAWayToMeet) {
  std::string exe = std::string(FAKE_PROGRAM) + " --steps 1 --tokens u8 --data " + path("data.bin");
  std::string tasks = "export SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_STEP_ID=0; ";
  for (const char *mesh : {"", "FAKE_DATA=2 "})
    for (const char *ranks : {"", " --ranks 2"}) {
      Result first = run(tasks + mesh + "SLURM_PROCID=0 exec " + exe + ranks);
      expectFailure(first, {"one of 2 tasks of Slurm", "srun --mpi=pmix", "--ranks N"});
      Result second = run(tasks + mesh + "SLURM_PROCID=1 exec " + exe + ranks);
      EXPECT_EQ(second.code, 1);
      EXPECT_EQ(second.output, "");
    }
  // One task, and threads from a batch script, are what they seem.
  EXPECT_EQ(run("SLURM_NTASKS=1 SLURM_PROCID=0 SLURM_STEP_ID=0 " + exe).code, 0);
  EXPECT_EQ(run("FAKE_DATA=2 SLURM_NTASKS=2 SLURM_PROCID=0 " + exe + " --ranks 2").code, 0);
}

// Nor what torchrun has started, which is for GPUs.
TEST_F(FailureTest, TorchrunIsForGpus) {
  std::string exe = std::string(FAKE_PROGRAM) + " --steps 1 --tokens u8 --data " + path("data.bin");
  for (const char *mesh : {"", "FAKE_DATA=2 "})
    for (const char *rank : {"0", "1"}) {
      std::string ranks = std::string("MASTER_ADDR=localhost WORLD_SIZE=2 RANK=") + rank + " " + mesh;
      expectFailure(run(ranks + exe), {std::string("this process is rank ") + rank + " of 2",
                                       "meshwright run --mpi -n 2", "mpirun -n 2", "--ranks 2"});
    }
  // Its variables are left set in many environments.
  EXPECT_EQ(run("RANK=0 WORLD_SIZE=2 FAKE_DATA=2 " + exe + " --ranks 2").code, 0);
  EXPECT_EQ(run("RANK=0 WORLD_SIZE=1 " + exe).code, 0);
  expectFailure(run("RANK=3 WORLD_SIZE=2 " + exe), {"RANK is 3"});
  expectFailure(run("RANK=x WORLD_SIZE=2 " + exe), {"RANK is \"x\""});
}

TEST_F(FailureTest, DifferentPlans) {
  expectFailure(train("--steps 2", 2, 2, Mpi, "FAKE_ODD_HASH_RANK=2"),
                {"the executable's plan is ", " on rank 0 but ", " on rank 2", "same executable"});
}

// One digit of what the plan says of the program.
TEST_F(FailureTest, ChangedPlan) {
  for (Launcher launcher : {Threads, Mpi})
    expectFailure(train("--steps 2", 2, 1, launcher, "FAKE_CHANGED=1"),
                  {"plan has the hash", "with which it was written", "compile the executable again"});
}

TEST_F(FailureTest, BadDataFiles) {
  auto withData = [&](const std::string &content, const std::string &flags) {
    writeFile(path("bad.bin"), content);
    return run(std::string(FAKE_PROGRAM) + " --steps 2 --data " + path("bad.bin") + flags);
  };
  expectFailure(run(std::string(FAKE_PROGRAM) + " --steps 2 --data " + path("none.bin")),
                {"none.bin", "No such file"});
  run("mkdir " + path("none"));
  expectFailure(run(std::string(FAKE_PROGRAM) + " --steps 2 --data " + path("none")),
                {path("none"), "no file whose name ends in .bin"});
  expectFailure(run(std::string(FAKE_PROGRAM) + " --steps 2 --data /dev/null"), {"/dev/null", "regular"});
  expectFailure(withData("", " --tokens u8"), {"bad.bin", "0 tokens", "needs 17"});
  expectFailure(withData(std::string(16, 'a'), " --tokens u8"), {"16 tokens", "needs 17"});
  expectFailure(withData(std::string(101, 0), ""), {"101 bytes", "u16"});
  expectFailure(withData(std::string(102, 0), " --tokens u32"), {"102 bytes", "u32"});
  std::string outside(200, 'a');
  outside[130] = char(255);
  expectFailure(withData(outside, " --tokens u8"),
                {"bad.bin", "token 130", "is 255", "vocabulary has 251"});
  writeFile(path("data.bin"), outside);
  expectFailure(train("--steps 2", 4, 1, Mpi), {"token 130", "is 255"});

  int32_t header[256] = {20240520, 1, 200};
  std::string bytes(reinterpret_cast<char *>(header), sizeof(header));
  EXPECT_EQ(withData(bytes + std::string(400, 0), "").code, 0);
  expectFailure(withData(bytes + std::string(398, 0), ""), {"200 tokens", "1422"});
  expectFailure(withData(bytes + std::string(400, 0), " --tokens u8"), {"--tokens says u8"});
  expectFailure(withData(bytes.substr(0, 100), ""), {"header", "truncated"});
  header[1] = 9;
  expectFailure(withData(std::string(reinterpret_cast<char *>(header), sizeof(header)), ""),
                {"version 9", "version 1 (u16 tokens)"});
  header[0] = 20240801;
  header[1] = 7;
  expectFailure(withData(std::string(reinterpret_cast<char *>(header), sizeof(header)), ""),
                {"version 7 says u32 tokens", "give --tokens u32"});
  writeFile(path("short.bin"), std::string(16, 'a'));
  expectFailure(train("--steps 2 --eval-data " + path("short.bin")), {"short.bin", "needs 17"});
}

// What a run reads, or writes already, must not be overwritten, whatever it is called.
TEST_F(FailureTest, FilesThatAreOne) {
  namespace fs = std::filesystem;
  std::string data = readFile(path("data.bin"));
  ASSERT_EQ(train("--steps 1 --save " + path("c")).code, 0);
  std::string weights = path("c/latest/model.safetensors"), saved = readFile(weights);
  fs::create_symlink(path("data.bin"), path("link"));
  fs::create_hard_link(path("data.bin"), path("hard"));
  fs::create_symlink(path("later"), path("dangling"));
  fs::create_directory(path("dump"));
  fs::create_symlink(path("dump"), path("dump-link"));

  auto words = [&](std::string text) {
    for (size_t at; (at = text.find('@')) != std::string::npos;)
      text.replace(at, 1, path(""));
    return text;
  };
  for (auto [arguments, part] : {
           std::pair("--metrics @data.bin", "--metrics @data.bin would overwrite --data @data.bin"),
           {"--trace @link", "--trace @link would overwrite --data @data.bin"},
           {"--metrics @hard", "--metrics @hard would overwrite --data @data.bin"},
           {"--metrics @./c/../data.bin", "would overwrite --data"},
           {"--eval-data @c/latest/config.json --trace @c/latest/config.json", "--eval-data"},
           {"--init @c/latest/model.safetensors --trace @c/step-00000001/model.safetensors",
            "would overwrite --init"},
           {"--metrics @m --trace @m", "--metrics @m and --trace @m write to the same file"},
           {"--metrics @later --trace @dangling", "write to the same file"},
           {"--save @new --metrics @new", "write to the same file"},
           {"--save @new --metrics @new/latest", "--save @new would overwrite --metrics"},
           {"--dump @dump --metrics @dump-link/rank-0.json", "--dump @dump would overwrite"},
       })
    expectFailure(train(std::string("--steps 1 ") + words(arguments)), {words(part)});
  for (const char *folder : {"c", "c/latest", "c/step-00000001"})
    expectFailure(train("--steps 2 --resume " + path(folder) + " --metrics " +
                        path("c/latest/state.json")),
                  {"state.json would overwrite a file of --resume"});
  expectFailure(train("--steps 2 --resume " + path("c") + " --metrics " + FAKE_PROGRAM),
                {"would overwrite the executable"});
  expectFailure(train("--steps 1 --metrics " + path("link"), 2, 1, Mpi), {"would overwrite --data"});
  EXPECT_EQ(readFile(path("data.bin")), data);
  EXPECT_EQ(readFile(weights), saved);

  // What may be one: what is only read, folders of checkpoints, and devices.
  for (const char *arguments : {"--eval-data @data.bin", "--metrics /dev/null --trace /dev/null",
                                "--resume @c --save @c --metrics @c/m.jsonl --trace @c/t.json"})
    EXPECT_EQ(train(std::string("--steps 2 ") + words(arguments)).code, 0);
}

TEST_F(FailureTest, OutputsThatTakeNothing) {
  for (const char *flag : {"--metrics", "--trace"})
    expectFailure(train(std::string("--steps 1 ") + flag + " /dev/full"),
                  {"cannot write /dev/full", "No space left"});
}

TEST_F(FailureTest, FewerSequencesThanABatch) {
  writeFile(path("data.bin"), std::string(128, 'a'));
  expectFailure(train("--steps 1"), {"128 tokens, 7 sequences of 16, but a batch has 8", "129"});
  writeFile(path("data.bin"), std::string(129, 'a'));
  EXPECT_EQ(train("--steps 1").code, 0);
}

TEST_F(FailureTest, BadTokensAreFoundBeforeTheFirstStep) {
  // In the last sequence, which the first step does not read.
  std::string tokens(5000, 'a');
  tokens[4990] = char(253);
  writeFile(path("data.bin"), tokens);
  expectFailure(train("--steps 1 --metrics " + path("m")), {"token 4990", "is 253"});
  EXPECT_FALSE(std::filesystem::exists(path("m")));
  expectFailure(train("--steps 1", 4, 1, Mpi), {"token 4990", "is 253"});
}

TEST_F(FailureTest, BadWeightFiles) {
  ASSERT_EQ(train("--steps 0 --save " + path("a")).code, 0);
  std::string good = plain(readFile(path("a/latest/model.safetensors")));
  auto init = [&](const std::string &content, int data = 1, Launcher launcher = Threads) {
    writeFile(path("bad.safetensors"), content);
    return train("--steps 1 --init " + path("bad.safetensors"), data, 1, launcher);
  };
  auto replaced = [&](const std::string &from, const std::string &to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  EXPECT_EQ(init(good).code, 0);
  expectFailure(init(""), {"bad.safetensors", "0 bytes"});
  expectFailure(init(good.substr(0, 40)), {"header claims", "truncated"});
  expectFailure(init(good.substr(0, good.size() - 4)), {"lies at bytes"});
  expectFailure(init(std::string(8, char(0xff)) + good.substr(8)), {"header claims"});
  expectFailure(init(replaced("{", "[")), {"not a JSON object"});
  expectFailure(init(replaced("ln_f.bias", "ln_g.bias")),
                {"no tensor transformer.ln_f.bias", "[13]"});
  expectFailure(init(replaced("[251,13]", "[13,251]")),
                {"wte.weight", "[13, 251]", "needs [251, 13]"});
  expectFailure(init(replaced("[251,13]", "[251,14]")), {"wte.weight", "not those of its shape"});
  expectFailure(init(replaced("\"F32\"", "\"F99\"")), {"F99"});
  expectFailure(init(replaced("ln_f.bias", "ln_g.bias"), 4, Mpi), {"ln_f.bias"});
  // Without the prefix; and a tensor more than the model wants.
  Result result = init(replaced("\"transformer.ln_f.bias\"", "\"ln_f.bias\"            "));
  EXPECT_EQ(result.code, 0) << result.output;
  expectFailure(train("--steps 1 --resume " + path("nowhere")), {"no such folder"});
  // What is no number, in the file's last tensor.
  for (uint32_t bits : {0x7fc00000u, 0xff800000u}) {
    std::string text = good;
    memcpy(&text[text.size() - 4], &bits, 4);
    for (Launcher launcher : {Threads, Mpi})
      expectFailure(init(text, 2, launcher),
                    {"bad.safetensors: tensor transformer.ln_f.bias", "not finite numbers in f32"});
  }
}

// Weights and data in formats that are not read, and what stands for a file that is not there.
TEST_F(FailureTest, OtherFormatsAreNamed) {
  std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff"
                        "69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 4943162336\n";
  std::string zip = std::string("PK\3\4\0\0", 6) + std::string(100, 'x');
  writeFile(path("pytorch_model.bin"), zip);
  std::vector<std::string> said = {"is a zip archive, as PyTorch saves weights", "convert it"};
  for (Launcher launcher : {Threads, Mpi})
    expectFailure(train("--steps 1 --init " + path("pytorch_model.bin"), 2, 1, launcher), said);
  expectFailure(train("--steps 1 --init " + scratch.directory),
                {"the folder has pytorch_model.bin", "which is not read", "save_pretrained"});
  writeFile(path("old.bin"), "\x80\2\x8a\nl\xfc");
  expectFailure(train("--steps 1 --init " + path("old.bin")), {"is a pickle"});
  writeFile(path("model.gguf"), "GGUF\3");
  expectFailure(train("--steps 1 --init " + path("model.gguf")), {"is a GGUF file"});
  writeFile(path("model.safetensors"), pointer);
  std::string lfs = "is a pointer of git-LFS to a file of 4943162336 bytes, not that file: fetch it "
                    "with 'git lfs pull'";
  for (Launcher launcher : {Threads, Mpi})
    expectFailure(train("--steps 1 --init " + scratch.directory, 2, 1, launcher),
                  {"--init " + path("model.safetensors"), lfs});
  expectFailure(train("--steps 1 --eval-data " + path("model.safetensors")), {"--eval-data", lfs});
  // Data that begins like one.
  writeFile(path("text.bin"), pointer.substr(0, 30) + std::string(2000, 'x'));
  EXPECT_EQ(train("--steps 1 --eval-data " + path("text.bin")).code, 0);
}

// What is there, but is no checkpoint.
TEST_F(FailureTest, FoldersWithoutACheckpoint) {
  ASSERT_EQ(train("--steps 1 --save " + path("a")).code, 0);
  auto resumed = [&] { return train("--steps 2 --resume " + path("a")); };
  run("mv " + path("a/step-00000001") + " " + path("a/moved"));
  expectFailure(resumed(), {"a/latest points to", "step-00000001, which does not exist"});
  run("mkdir " + path("a/step-00000001"));
  expectFailure(resumed(), {"step-00000001 has no state.json", "no whole checkpoint"});
  run("mkdir " + path("a/step-00000001/state.json"));
  expectFailure(resumed(), {"state.json is a folder"});
  run("mkdir " + path("b") + " " + path("b/latest"));
  expectFailure(train("--steps 2 --resume " + path("b")), {"b/latest has no state.json"});
  run("rmdir " + path("b/latest"));
  expectFailure(train("--steps 2 --resume " + path("b")),
                {"neither", "a folder that --save wrote"});
  EXPECT_EQ(train("--steps 2 --resume " + path("a/moved")).code, 0);
}

TEST_F(FailureTest, MisspeltFlags) {
  for (auto [given, meant] : {std::pair("--dta x", "--data"),
                              {"--stpes=2", "--steps"},
                              {"--eval-evry 2", "--eval-every"},
                              {"--save_every 2", "--save-every"},
                              {"--warmup-steps 3", "--warmup"},
                              {"--learning-rate 1", "--lr"},
                              {"--evaluate", "--eval-only"}})
    expectFailure(train(std::string("--steps 1 ") + given),
                  {"did you mean " + std::string(meant) + "?"});
  // Before what is missing because of it.
  expectFailure(train("--step 1"), {"there is no flag --step; did you mean --steps?"});
  expectFailure(train("--steps 1 --zero 3"),
                {"there is no flag --zero", "meshwright compile --help"});
  expectFailure(train("--steps 1 --steps 2"), {"--steps is given twice: see --help"});
  expectFailure(train("--steps 1 --seed 1 --seed 2 --seed 3"), {"--seed is given 3 times"});
  expectFailure(train("--steps 1 corpus.bin"), {"'corpus.bin'", "--data FILE"});
}

TEST_F(FailureTest, TooFewThreads) {
  expectFailure(
      run("ulimit -v 2000000; " + command("--steps 1", 1, 1, Threads, "OMP_NUM_THREADS=1000")),
      {"its rank of 1000 threads", "ulimit -u", "OMP_NUM_THREADS"});
}

// A model in two files and an index.
TEST_F(FailureTest, ShardedWeights) {
  ASSERT_EQ(train("--steps 0 --save " + path("a")).code, 0);
  std::string model = readFile(path("a/latest/model.safetensors"));
  auto [header, data] = parts(model);
  header.erase("__metadata__");
  nlohmann::json map, headers[2];
  std::string contents[2];
  for (const auto &[name, entry] : header.items()) {
    int part = name.find("wte") == std::string::npos;
    size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    headers[part][name] = entry;
    headers[part][name]["data_offsets"] = {contents[part].size(), contents[part].size() + end - begin};
    contents[part] += data.substr(begin, end - begin);
    map[name] = part ? "part-2.safetensors" : "part-1.safetensors";
  }
  headers[1]["mask"] = {{"dtype", "BOOL"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
  map["mask"] = "part-2.safetensors";
  for (int part = 0; part < 2; ++part)
    writeFile(path("part-" + std::to_string(part + 1) + ".safetensors"),
              safetensors(headers[part].dump(), contents[part]));
  auto init = [&](const std::string &index, int data = 1, Launcher launcher = Threads) {
    writeFile(path("model.safetensors.index.json"), index);
    return train("--steps 0 --init " + path("model.safetensors.index.json") + " --save " +
                     path("b"),
                 data, 1, launcher);
  };
  auto mapped = [](const nlohmann::json &map) {
    return nlohmann::json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump();
  };
  for (Launcher launcher : {Threads, Mpi}) {
    Result good = init(mapped(map), 2, launcher);
    ASSERT_EQ(good.code, 0) << good.output;
    EXPECT_EQ(readFile(path("b/latest/model.safetensors")), model);
  }
  std::string second = readFile(path("part-2.safetensors"));
  expectFailure(train("--steps 1 --init " + path("model.safetensors.index.json") + " --metrics " +
                      path("part-2.safetensors")),
                {"part-2.safetensors: this run reads it"});
  EXPECT_EQ(readFile(path("part-2.safetensors")), second);
  std::string name = "transformer.ln_f.bias";
  expectFailure(init(""), {"index.json", "not valid JSON"});
  expectFailure(init(mapped(map).substr(0, 50)), {"index.json", "not valid JSON"});
  for (const char *other : {"[]", "{}", "{\"weight_map\": []}", "3"})
    expectFailure(init(other), {"index.json", "no object \"weight_map\""});
  for (const nlohmann::json &place : std::vector<nlohmann::json>{
           3, "", "..", "../part-1.safetensors", path("part-1.safetensors"), nullptr}) {
    auto bad = map;
    bad[name] = place;
    expectFailure(init(mapped(bad)), {"puts tensor " + name, place.dump(), "beside it"});
  }
  auto bad = map;
  bad[name] = "part-3.safetensors";
  expectFailure(init(mapped(bad), 2, Mpi), {"index.json", "part-3.safetensors", "No such file"});
  bad[name] = "part-1.safetensors";
  expectFailure(init(mapped(bad)), {name, "part-1.safetensors", "has no such tensor"});
  bad.erase(name);
  expectFailure(init(mapped(bad)), {"index.json", "has no tensor " + name, "[13]"});
  writeFile(path("part-2.safetensors"), readFile(path("part-2.safetensors")).substr(0, 100));
  expectFailure(init(mapped(map)), {"index.json", "part-2.safetensors", "truncated"});
}

// A start that fails leaves what earlier runs wrote.
TEST_F(FailureTest, FailedStartsKeepOutputs) {
  ASSERT_EQ(train("--steps 2 --save " + path("a"), 2, 1).code, 0);
  writeFile(path("m.jsonl"), "{\"step\": 0, \"loss\": 7.0}\n");
  writeFile(path("t.json"), "[]");
  writeFile(path("empty"), "");
  std::string outputs = " --metrics " + path("m.jsonl") + " --trace " + path("t.json");
  auto expectKept = [&](const Result &result) {
    EXPECT_NE(result.code, 0) << result.output;
    EXPECT_EQ(readFile(path("m.jsonl")), "{\"step\": 0, \"loss\": 7.0}\n") << result.output;
    EXPECT_EQ(readFile(path("t.json")), "[]") << result.output;
  };
  for (Launcher launcher : {Threads, Mpi}) {
    expectKept(train("--steps 4 --init " + path("empty") + outputs, 2, 1, launcher));
    expectKept(train("--steps 4 --resume " + path("empty") + outputs, 2, 1, launcher));
    expectKept(train("--steps 4 --eval-data " + path("empty") + outputs, 2, 1, launcher));
    expectKept(train("--steps 4 --lr x" + outputs, 2, 1, launcher));
    expectKept(train("--steps 4" + outputs, 2, 1, launcher, "FAKE_ARENA=4503599627370496"));
  }
  expectKept(train("--steps 4" + outputs, 2, 1, Mpi, "FAKE_ODD_HASH_RANK=1"));
  expectKept(train("--steps 4 --save " + path("empty") + outputs, 2, 1));
  // Damage that only shows when the weights are read.
  std::string weights = path("a/latest/optimizer.safetensors");
  writeFile(weights, readFile(weights).substr(0, 3000));
  for (Launcher launcher : {Threads, Mpi})
    expectKept(train("--steps 4 --resume " + path("a") + outputs, 2, 1, launcher));
}

TEST_F(FailureTest, UnwritableOutputsAreFoundFirst) {
  writeFile(path("file"), "");
  for (const char *flag : {"--save", "--metrics", "--trace"}) {
    std::string place = path("file") + "/x";
    Result result = train(std::string("--steps 1 ") + flag + " " + place, 2, 1);
    expectFailure(result, {place});
    EXPECT_EQ(occurrences(result.output, "(1/1)"), 0) << "trained before it noticed";
  }
}

// A limit on file sizes stands for a full disk: write() fails half-way.
TEST_F(FailureTest, FullDiskWhileSaving) {
  std::string save = path("save");
  ASSERT_EQ(train("--steps 2 --save " + save, 2, 1).code, 0);
  Result result =
      run("ulimit -f 12; " + command("--steps 4 --save " + save + " --resume " + save, 2, 1));
  expectFailure(result, {"step 4", "model.safetensors", "bytes", "free space", "latest"});
  for (const auto &entry : std::filesystem::directory_iterator(save))
    EXPECT_THAT(entry.path().filename().string(), testing::AnyOf("latest", "step-00000002"));
  EXPECT_EQ(train("--steps 3 --resume " + save, 2, 1).code, 0);
}

TEST_F(FailureTest, FullFileSystemWhileSaving) {
  if (geteuid() != 0 ||
      run("mkdir " + path("tiny") + " && mount -t tmpfs -o size=160k none " + path("tiny")).code !=
          0)
    GTEST_SKIP() << "needs the right to mount a file system";
  for (Launcher launcher : {Threads, Mpi}) {
    Result result = train("--steps 20 --save-every 2 --save " + path("tiny"), 2, 1, launcher);
    Result names = run("ls -A " + path("tiny"));
    Result resumed = train("--steps 1 --resume " + path("tiny"), 2, 1);
    EXPECT_NE(result.code, 0);
    EXPECT_LT(result.seconds, 10);
    EXPECT_THAT(result.output, HasSubstr("saving the checkpoint of step 6: a checkpoint takes 51,480 bytes, but the file "
                                         "system of " + path("tiny") + " has "));
    EXPECT_THAT(result.output, HasSubstr("the last good one is " + path("tiny") + "/latest"));
    EXPECT_THAT(names.output, testing::Not(HasSubstr("partial")));
    EXPECT_EQ(resumed.code, 0) << resumed.output;
    run("rm -r " + path("tiny") + "/*");
  }
  run("umount " + path("tiny"));
  // One that has no room for a single one is no place to start.
  ASSERT_EQ(run("mount -t tmpfs -o size=40k none " + path("tiny")).code, 0);
  Result result = train("--steps 20 --save-every 2 --save " + path("tiny"), 2, 1);
  expectFailure(result, {"--save: a checkpoint takes 51,480 bytes", path("tiny"), "make room"});
  EXPECT_THAT(result.output, testing::Not(HasSubstr("step 0")));
  run("umount " + path("tiny"));
}

// A bit that one rank has otherwise than its replicas is found, with its tensor and rank, and is not saved.
TEST_F(FailureTest, CorruptReplicasAreNamed) {
  for (Launcher launcher : {Threads, Mpi}) {
    std::string save = " --save-every 2 --save " + path("a");
    Result result = train("--steps 20 --check-replicas 3" + save, 2, 2, launcher, "FAKE_FLIP_STEP=4");
    expectFailure(result, {"after step 5, tensor transformer.", ".bias has other bits on rank 3 than on ranks 0, 1 and 2",
                           "The state is not saved; go on from " + path("a/step-00000004")});
    EXPECT_FALSE(std::filesystem::exists(path("a/step-00000006")));
    std::filesystem::remove_all(path("a"));
    // Between two checks a checkpoint is one too.
    result = train("--steps 20 --check-replicas 100" + save, 2, 1, launcher, "FAKE_FLIP_STEP=4");
    expectFailure(result, {"after step 5, ", "has other bits on rank 1 than on rank 0 (which of them is right is not known)"});
    std::filesystem::remove_all(path("a"));
    // Steps that are made again after going back to an earlier one are compared again.
    result = train("--steps 20 --check-replicas 2 --on-nan rollback --save-every 4 --save " + path("a"), 2, 2, launcher,
                   "FAKE_NAN_STEP=10 FAKE_FLIP_STEP=9 FAKE_FLIP_TIME=2");
    expectFailure(result, {"after step 9, tensor transformer.", "go on from " + path("a/step-00000008")});
    std::filesystem::remove_all(path("a"));
    Result good = train("--steps 9 --check-replicas 1" + save, 2, 2, launcher);
    EXPECT_EQ(good.code, 0) << good.output;
    std::filesystem::remove_all(path("a"));
  }
  expectFailure(train("--steps 2 --check-replicas 1"), {"--check-replicas compares what several ranks hold"});
  expectFailure(train("--steps 2 --check-replicas -1", 2, 1), {"--check-replicas is -1"});
}

TEST_F(FailureTest, KilledRankEndsAll) {
  for (Launcher launcher : {Threads, Mpi})
    for (const char *overlap : {"", " FAKE_OVERLAP=1"}) {
      Result result =
          train("--steps 10", 4, 1, launcher, std::string("FAKE_KILL_STEP=3") + overlap);
      EXPECT_NE(result.code, 0) << result.output;
      EXPECT_LT(result.seconds, 10) << result.output;
      EXPECT_THAT(result.output, HasSubstr("step 1 (2/10)"));
    }
}

TEST_F(FailureTest, LossThatIsNotANumber) {
  for (Launcher launcher : {Threads, Mpi}) {
    Result result = train("--steps 10 --save " + path("a"), 2, 1, launcher, "FAKE_NAN_STEP=3");
    EXPECT_NE(result.code, 0);
    EXPECT_LT(result.seconds, 10);
    EXPECT_THAT(result.output, HasSubstr("error: step 3: the loss is nan"));
    EXPECT_THAT(result.output, HasSubstr("; its batch has the sequences "));
    // This program has no guard, and its gradient is finite.
    EXPECT_THAT(result.output, HasSubstr("the state after 4 steps is saved in " + path("a/step-00000004")));
    EXPECT_EQ(train("--steps 5 --resume " + path("a"), 2, 1).code, 0);
    run("rm -r " + path("a"));
  }
}

TEST_F(FailureTest, TooLittleMemory) {
  expectFailure(train("--steps 1", 2, 1, Threads, "FAKE_ARENA=4503599627370496"),
                {"4,503,599,627,370,496", "2 ranks", "parameter"});
}

// What OpenBLAS multiplies in is taken at the start: without memory for it OpenBLAS tries for ever.
TEST_F(FailureTest, LimitOnAddressSpace) {
  Result result = run("ulimit -v 300000; " + command("--steps 1", 2, 1, Threads, "OMP_NUM_THREADS=2"));
  expectFailure(result, {"matrix products need ", "134,217,728 for each thread", "limit of 307,200,000 bytes (ulimit -v)"});
  // How much address space libraries take differs between machines by more than 100 MB.
  result = run("ulimit -v 1000000; " + command("--steps 1", 1, 1, Threads, "OMP_NUM_THREADS=1 FAKE_ARENA=2000000000"));
  expectFailure(result, {"cannot allocate the arena of 2,000,000,000 bytes", "ulimit -v"});
}

// A lack of memory later ends all ranks at once, on any of them.
TEST_F(FailureTest, NoMemoryLater) {
  for (Launcher launcher : {Threads, Mpi}) {
    Result result = train("--steps 4", 2, 1, launcher, "FAKE_ALLOCATE_STEP=2");
    EXPECT_NE(result.code, 0) << result.output;
    EXPECT_LT(result.seconds, 3) << result.output;
    EXPECT_THAT(result.output, HasSubstr("cannot allocate 1125899906842624 bytes"));
    const char *prefix = launcher == Threads ? "error: cannot" : "error: rank 1: cannot";
    EXPECT_THAT(result.output, HasSubstr(prefix));
  }
}

// Whoever opens a pipe waits for its other end; a device has no end.
TEST_F(FailureTest, InputsAreRegularFiles) {
  ASSERT_EQ(train("--steps 1 --save " + path("a")).code, 0);
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string &place : {path("pipe"), std::string("/dev/zero"), path("a")})
    for (const char *flag : {"--data ", "--init ", "--eval-data "}) {
      if (flag == std::string("--init ") && place == path("a"))
        continue; // It has weights.
      std::string arguments = std::string(flag) + place;
      Result result = run(std::string(FAKE_PROGRAM) + " --tokens u8 --steps 1 " + arguments +
                          (flag == std::string("--data ") ? "" : " --data " + path("data.bin")));
      // A folder stands for the files of tokens in it.
      expectFailure(result, {arguments, place == path("a") ? "no file whose name ends in .bin" : "not a regular file"});
    }
  for (const char *file : {"state.json", "config.json", "optimizer.safetensors"}) {
    std::string name = path("a/latest/") + file, content = readFile(name);
    std::filesystem::remove(name);
    ASSERT_EQ(mkfifo(name.c_str(), 0600), 0);
    expectFailure(train("--steps 2 --resume " + path("a")), {file, "not a regular file"});
    std::filesystem::remove(name);
    writeFile(name, content);
  }
}

TEST_F(FailureTest, CommunicatorNeedsMoreThanPlanned) {
  Result result = train("--steps 1", 2, 1, Mpi, "FAKE_SCRATCH=1");
  EXPECT_NE(result.code, 0);
  EXPECT_THAT(result.output, HasSubstr("the communicator has allocated"));
  EXPECT_THAT(result.output, HasSubstr("bytes, but the plan has 1"));
  EXPECT_EQ(train("--steps 1", 2, 1, Threads, "FAKE_SCRATCH=0").code, 0);
}

TEST_F(FailureTest, RanksOutOfStep) {
  for (Launcher launcher : {Threads, Mpi}) {
    Result result = train("--steps 4", 2, 1, launcher, "FAKE_STRAY_STEP=2");
    EXPECT_NE(result.code, 0) << result.output;
    EXPECT_LT(result.seconds, 10) << result.output;
    for (const char *part : {"out of step", "all_reduce (collective 0, group [data]", "fake.mlir:12:3",
                             "all_reduce (collective 1, group [data,tensor]", "fake.mlir:20:7"})
      EXPECT_THAT(result.output, HasSubstr(part));
  }
}

TEST_F(FailureTest, TimeOutSaysWhoIsMissing) {
  for (Launcher launcher : {Threads, Mpi})
    for (const char *overlap : {"", " FAKE_OVERLAP=1"}) {
      Result result = train("--steps 10", 2, 2, launcher,
                            // MPI's start is a wait too, which takes seconds on a loaded machine.
                            (launcher == Mpi ? "FAKE_HANG_STEP=2 MESHWRIGHT_TIMEOUT=8"
                                             : "FAKE_HANG_STEP=2 MESHWRIGHT_TIMEOUT=1") +
                                std::string(overlap));
      EXPECT_NE(result.code, 0) << result.output;
      EXPECT_NE(result.code, 124) << result.output;
      EXPECT_LT(result.seconds, launcher == Mpi ? 30 : 10) << result.output;
      EXPECT_THAT(result.output, HasSubstr("wait report (time-out)"));
      EXPECT_THAT(result.output, HasSubstr("rank 1 (step 2): waiting for"));
      EXPECT_THAT(result.output, HasSubstr("all_reduce (collective 0, group [data]"));
      EXPECT_THAT(result.output, HasSubstr("fake.mlir:12:3) for rank 3"));
    }
  expectFailure(train("--steps 1", 1, 1, Threads, "MESHWRIGHT_TIMEOUT=soon"), {"soon", "seconds"});
}

TEST_F(FailureTest, SignalMakesRanksSayWhatTheyWaitFor) {
  for (const char *overlap : {"", " FAKE_OVERLAP=1"}) {
    Command command(
        this->command("--steps 10", 2, 2, Threads, std::string("FAKE_HANG_STEP=2") + overlap));
    while (occurrences(command.output(), "step 1 (2/10)") == 0)
      usleep(10000);
    // On a loaded machine it takes a while until all of them wait.
    for (int i = 0; i < 100 && occurrences(command.output(), ":12:3) for rank 3") == 0; ++i) {
      kill(command.pid(), SIGUSR1);
      usleep(100000);
    }
    std::string output = command.output();
    EXPECT_THAT(output, HasSubstr("wait report (SIGUSR1)"));
    EXPECT_THAT(output, HasSubstr("fake.mlir:12:3) for rank 3"));
    EXPECT_THAT(output, HasSubstr("rank 3 (step 2): busy with computing a step"));
  }
}

TEST_F(FailureTest, FullDiskForMetrics) {
  expectFailure(train("--steps 2 --metrics /dev/full", 2, 1),
                {"/dev/full", "No space left on device"});
}

// A library that cannot be loaded stands for a machine without OpenMPI.
TEST_F(FailureTest, NoMpiLibrary) {
  writeFile(path("libmpi.so.40"), "not a library");
  expectFailure(
      run("export OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 LD_LIBRARY_PATH=" + path("") +
          "; " + FAKE_PROGRAM + " --steps 1 --tokens u8 --data " + path("data.bin")),
      {"libmpi.so.40", "OpenMPI 4 or 5", "LD_LIBRARY_PATH", "--ranks"});
}
