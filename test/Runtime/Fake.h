//===- Fake.h - running the hand-written program --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_FAKE_H
#define MESHWRIGHT_TEST_RUNTIME_FAKE_H

#include "Process.h"
#include "common/checkpoint/Checksum.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace testing_process {

/// Runs fake_program with a data file and a directory for what it writes.
class FakeTest : public testing::Test {
protected:
  enum Launcher { Threads, Mpi };

  FakeTest() {
    std::string tokens;
    for (int i = 0; i < 5000; ++i)
      tokens += char((i * i / 7 + i % 13) % 251);
    writeFile(path("data.bin"), tokens);
  }

  std::string path(const std::string &name) const { return scratch.path(name); }

  /// The command for `data` x `tensor` ranks; `environment` as NAME=value words.
  std::string command(const std::string &arguments, int data = 1, int tensor = 1,
                      Launcher launcher = Threads, const std::string &environment = "") const {
    std::string variables = "export FAKE_DATA=" + std::to_string(data) +
                            " FAKE_TENSOR=" + std::to_string(tensor) + " " + environment + "; ";
    std::string exe =
        std::string(FAKE_PROGRAM) + " --data " + path("data.bin") + " --tokens u8 " + arguments;
    std::string count = std::to_string(data * tensor);
    if (launcher == Mpi)
      return variables + "exec mpirun --allow-run-as-root --oversubscribe -n " + count + " " + exe;
    return variables + "exec " + exe + " --ranks " + count;
  }

  Result train(const std::string &arguments, int data = 1, int tensor = 1,
               Launcher launcher = Threads, const std::string &environment = "") const {
    return run(command(arguments, data, tensor, launcher, environment));
  }

  /// The metrics of the file `name`, one object per step, without the times.
  std::vector<nlohmann::json> metrics(const std::string &name) const {
    std::vector<nlohmann::json> result;
    std::istringstream lines(readFile(path(name)));
    for (std::string line; std::getline(lines, line);) {
      result.push_back(nlohmann::json::parse(line));
      result.back().erase("step_ms");
      result.back().erase("tokens_per_s");
    }
    return result;
  }

  /// Makes `change(state)` to state.json of `checkpoint`, as if it had been saved so.
  template <typename Change> void editState(const std::string &checkpoint, Change change) const {
    auto state = nlohmann::ordered_json::parse(readFile(checkpoint + "/state.json"));
    change(state);
    if (state.contains("checksum"))
      state["checksum"] = meshwright::noChecksum;
    std::string text = state.dump();
    if (state.contains("checksum"))
      meshwright::seal(text);
    writeFile(checkpoint + "/state.json", text);
  }

  /// The header and the data of the safetensors file `content`.
  static std::pair<nlohmann::json, std::string> parts(const std::string &content) {
    uint64_t length;
    memcpy(&length, content.data(), 8);
    return {nlohmann::json::parse(content.substr(8, length)), content.substr(8 + length)};
  }
  static std::string safetensors(const std::string &header, const std::string &data) {
    uint64_t length = header.size();
    return std::string(reinterpret_cast<const char *>(&length), 8) + header + data;
  }
  /// The same file without checksums, as others write it.
  static std::string plain(const std::string &content) {
    auto [header, data] = parts(content);
    header.erase("__metadata__");
    return safetensors(header.dump(), data);
  }

  /// One message, a non-zero code, soon, and no partial checkpoint.
  void expectFailure(const Result &result, const std::vector<std::string> &parts) const {
    EXPECT_NE(result.code, 0) << result.output;
    EXPECT_NE(result.code, 124) << result.output;
    EXPECT_LT(result.seconds, 10) << result.output;
    EXPECT_EQ(occurrences(result.output, "error: "), 1) << result.output;
    for (const std::string &part : parts)
      EXPECT_THAT(result.output, testing::HasSubstr(part));
  }

  TemporaryDirectory scratch;
};

} // namespace testing_process

#endif // MESHWRIGHT_TEST_RUNTIME_FAKE_H
