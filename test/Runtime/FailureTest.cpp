//===- FailureTest.cpp - runs that must end with one clear message --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Fake.h"

#include <csignal>
#include <filesystem>

using namespace testing_process;
using testing::HasSubstr;

class FailureTest : public FakeTest {};

TEST_F(FailureTest, BadFlags) {
  for (auto [arguments, part] : {std::pair("--steps 2 --stepps 3", "--stepps"),
                                 {"--steps -2", "--steps is -2"},
                                 {"--steps two", "--steps"},
                                 {"--steps 2 --lr abc", "--lr"},
                                 {"--steps 2 --lr nan", "--lr"},
                                 {"--steps 2 --beta2 1", "--beta2 is 1"},
                                 {"--steps 2 --lr-schedule step", "constant|cosine"},
                                 {"--steps 2 --save-every 2", "--save-every needs --save"},
                                 {"", "--steps"},
                                 {"--steps 2 extra", "extra"},
                                 {"--steps 1e3", "--steps"},
                                 {"--steps 2 --init x --resume y", "drop one"},
                                 {"--steps 2 --save ''", "--save"}})
    expectFailure(run(std::string(FAKE_PROGRAM) + " --data " + path("data.bin") + " --tokens u8 " +
                      arguments),
                  {part});
  expectFailure(train("--steps 2 --lr x", 4, 1, Mpi), {"--lr"});
  expectFailure(run(std::string(FAKE_PROGRAM) + " --steps 2"), {"--data"});
}

TEST_F(FailureTest, HelpComesFromTheTable) {
  Result result = run(std::string(FAKE_PROGRAM) + " --help");
  EXPECT_EQ(result.code, 0);
  for (const char *part : {"--data FILE", "--lr-schedule constant|cosine|linear", "--trace FILE"})
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

TEST_F(FailureTest, DifferentPlans) {
  expectFailure(train("--steps 2", 2, 2, Mpi, "FAKE_ODD_HASH_RANK=2"),
                {"0123456789abcdef", "rank 2", "00000000deadbeef", "same executable"});
}

TEST_F(FailureTest, BadDataFiles) {
  auto withData = [&](const std::string &content, const std::string &flags) {
    writeFile(path("bad.bin"), content);
    return run(std::string(FAKE_PROGRAM) + " --steps 2 --data " + path("bad.bin") + flags);
  };
  expectFailure(run(std::string(FAKE_PROGRAM) + " --steps 2 --data " + path("none.bin")),
                {"none.bin", "No such file"});
  expectFailure(run(std::string(FAKE_PROGRAM) + " --steps 2 --data /tmp"), {"/tmp", "regular"});
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

  int32_t header[256] = {20240520, 1, 100};
  std::string bytes(reinterpret_cast<char *>(header), sizeof(header));
  EXPECT_EQ(withData(bytes + std::string(200, 0), "").code, 0);
  expectFailure(withData(bytes + std::string(198, 0), ""), {"100 tokens", "1222"});
  expectFailure(withData(bytes + std::string(200, 0), " --tokens u8"), {"--tokens says u8"});
  expectFailure(withData(bytes.substr(0, 100), ""), {"header", "truncated"});
  header[1] = 9;
  expectFailure(withData(std::string(reinterpret_cast<char *>(header), sizeof(header)), ""),
                {"version 9"});
  writeFile(path("short.bin"), std::string(100, 'a'));
  expectFailure(train("--steps 2 --eval-data " + path("short.bin")), {"short.bin", "needs 129"});
}

TEST_F(FailureTest, BadWeightFiles) {
  ASSERT_EQ(train("--steps 0 --save " + path("a")).code, 0);
  std::string good = readFile(path("a/latest/model.safetensors"));
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
  expectFailure(train("--steps 1 --resume " + path("nowhere")), {"no checkpoint"});
}

TEST_F(FailureTest, UnwritableOutputsAreFoundFirst) {
  writeFile(path("file"), "");
  for (const char *flag : {"--save", "--metrics", "--trace"}) {
    std::string place = path("file") + "/x";
    Result result = train(std::string("--steps 1 ") + flag + " " + place, 2, 1);
    expectFailure(result, {place});
    EXPECT_EQ(occurrences(result.output, "step 1/1"), 0) << "trained before it noticed";
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
  for (Launcher launcher : {Threads, Mpi, Tcp}) {
    Result result = train("--steps 20 --save-every 2 --save " + path("tiny"), 2, 1, launcher);
    Result names = run("ls -A " + path("tiny"));
    Result resumed = train("--steps 1 --resume " + path("tiny"), 2, 1);
    EXPECT_NE(result.code, 0);
    EXPECT_LT(result.seconds, 10);
    EXPECT_THAT(result.output, HasSubstr("No space left on device"));
    EXPECT_THAT(result.output, HasSubstr("safetensors"));
    EXPECT_THAT(names.output, testing::Not(HasSubstr("partial")));
    EXPECT_EQ(resumed.code, 0) << resumed.output;
    run("rm -r " + path("tiny") + "/*");
  }
  run("umount " + path("tiny"));
}

TEST_F(FailureTest, KilledRankEndsAll) {
  for (Launcher launcher : {Threads, Mpi, Tcp}) {
    Result result = train("--steps 10", 4, 1, launcher, "FAKE_KILL_STEP=3");
    EXPECT_NE(result.code, 0) << result.output;
    EXPECT_LT(result.seconds, 10) << result.output;
    EXPECT_THAT(result.output, HasSubstr("step 2/10"));
  }
}

TEST_F(FailureTest, LossThatIsNotANumber) {
  for (Launcher launcher : {Threads, Mpi, Tcp}) {
    Result result = train("--steps 10 --save " + path("a"), 2, 1, launcher, "FAKE_NAN_STEP=3");
    EXPECT_NE(result.code, 0);
    EXPECT_LT(result.seconds, 10);
    EXPECT_THAT(result.output, HasSubstr("error: step 3: the loss is nan"));
    EXPECT_FALSE(std::filesystem::exists(path("a/latest")));
  }
}

TEST_F(FailureTest, TooLittleMemory) {
  expectFailure(train("--steps 1", 2, 1, Threads, "FAKE_ARENA=4503599627370496"),
                {"4,503,599,627,370,496", "2 ranks", "parameter"});
}

TEST_F(FailureTest, TimeOutSaysWhoIsMissing) {
  for (Launcher launcher : {Threads, Mpi, Tcp}) {
    Result result = train("--steps 10", 2, 2, launcher, "FAKE_HANG_STEP=2 MESHWRIGHT_TIMEOUT=1");
    EXPECT_NE(result.code, 0) << result.output;
    EXPECT_NE(result.code, 124) << result.output;
    EXPECT_LT(result.seconds, 10) << result.output;
    EXPECT_THAT(result.output, HasSubstr("wait report (time-out)"));
    EXPECT_THAT(result.output, HasSubstr("rank 1 (step 2): waiting for"));
    EXPECT_THAT(result.output, HasSubstr("all_reduce (collective 0, group [data]"));
    EXPECT_THAT(result.output, HasSubstr("fake.mlir:12:3) for rank 3"));
  }
  expectFailure(train("--steps 1", 1, 1, Threads, "MESHWRIGHT_TIMEOUT=soon"), {"soon", "seconds"});
}

TEST_F(FailureTest, SignalMakesRanksSayWhatTheyWaitFor) {
  Command command(this->command("--steps 10", 2, 2, Threads, "FAKE_HANG_STEP=2"));
  while (occurrences(command.output(), "step 2/10") == 0)
    usleep(10000);
  usleep(300000);
  kill(command.pid(), SIGUSR1);
  for (int i = 0; i < 100 && occurrences(command.output(), "rank 3 (step 2)") == 0; ++i)
    usleep(20000);
  std::string output = command.output();
  EXPECT_THAT(output, HasSubstr("wait report (SIGUSR1)"));
  EXPECT_THAT(output, HasSubstr("fake.mlir:12:3) for rank 3"));
  EXPECT_THAT(output, HasSubstr("rank 3 (step 2): busy with computing a step"));
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

TEST_F(FailureTest, IncompleteTcpEnvironment) {
  std::string exe = std::string(FAKE_PROGRAM) + " --steps 1 --tokens u8 --data " + path("data.bin");
  expectFailure(run("RANK=0 WORLD_SIZE=1 MASTER_ADDR=localhost MASTER_PORT=0 " + exe),
                {"MASTER_PORT is \"0\""});
  expectFailure(run("RANK=3 WORLD_SIZE=2 MASTER_ADDR=localhost " + exe), {"RANK is 3"});
  expectFailure(run("RANK=x WORLD_SIZE=2 MASTER_ADDR=localhost " + exe), {"RANK is \"x\""});
}
