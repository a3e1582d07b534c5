//===- SsdTest.cpp - copies between memory and a file ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/data/MappedFile.h"
#include "common/monitor/Error.h"
#include "common/ssd/SsdFile.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>

using namespace meshwright;

namespace {
constexpr int64_t block = SsdTransfers::blockBytes, stagingHalf = 4 * block * SsdTransfers::depth;

/// Memory as a file, whose results a test may change.
class FakeIo : public IoQueue {
public:
  FakeIo(std::vector<char> &file, std::deque<int64_t> &results) : file(file), results(results) {}

  void start(int number, const IoRequest &request) override {
    EXPECT_EQ(request.offset % block, 0);
    EXPECT_EQ(request.bytes % block, 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(request.memory) % block, 0u);
    int64_t result = request.bytes;
    if (!results.empty()) {
      result = std::min(result, results.front());
      results.pop_front();
    }
    if (result > 0)
      std::memcpy(request.isWrite ? &file[size_t(request.offset)] : request.memory,
                  request.isWrite ? request.memory : &file[size_t(request.offset)], size_t(result));
    ended.push_back({number, result});
  }
  Done next() override {
    Done done = ended.front();
    ended.pop_front();
    return done;
  }

private:
  std::vector<char> &file;
  std::deque<int64_t> &results;
  std::deque<Done> ended;
};

class Transfers : public testing::Test {
protected:
  Transfers() {
    for (size_t i = 0; i < file.size(); ++i)
      file[i] = char(i * 7 + i / 251);
  }
  std::vector<char> read(int64_t offset, int64_t bytes) {
    std::vector<char> to(size_t(bytes), 0);
    transfers.read(to.data(), offset, bytes);
    return to;
  }
  std::string errorOfRead() {
    try {
      read(0, 2 * block);
    } catch (const Error &error) {
      return error.what();
    }
    return "none";
  }

  std::vector<char> file = std::vector<char>(size_t(100 * block));
  std::deque<int64_t> results; ///< of the next requests; others are done whole
  Pages staging{stagingHalf};
  SsdTransfers transfers{"/disk/file", std::make_unique<FakeIo>(file, results), staging.data(), stagingHalf};
};
} // namespace

TEST_F(Transfers, AnyBytesAreCopiedAndOthersKept) {
  std::mt19937 random(1);
  std::vector<char> want = file;
  for (int i = 0; i < 500; ++i) {
    int64_t bytes = 1 + int64_t(random() % (i % 2 ? 3 * block : 60 * block));
    int64_t offset = int64_t(random() % uint64_t(int64_t(file.size()) - bytes));
    if (i % 3 == 0) // whole blocks
      offset = offset / block * block;
    auto part = want.begin() + offset;
    ASSERT_TRUE(std::equal(part, part + bytes, read(offset, bytes).begin()));
    std::vector<char> from(static_cast<size_t>(bytes));
    for (char &byte : from)
      byte = char(random());
    std::copy(from.begin(), from.end(), part);
    transfers.write(from.data(), offset, bytes);
    ASSERT_EQ(file, want) << offset << " " << bytes;
  }
}

TEST_F(Transfers, ShortOnesAreContinued) {
  // Less than a block, some blocks and a part of one, an interruption.
  results = {100, block + 1, -EINTR, 3, block, -EAGAIN, 2 * block};
  EXPECT_EQ(read(0, 30 * block), std::vector<char>(file.begin(), file.begin() + 30 * block));
  results = {100, 3 * block + 5, -EINTR};
  std::vector<char> from(size_t(9 * block), 'x');
  transfers.write(from.data(), block, 9 * block);
  EXPECT_TRUE(std::equal(from.begin(), from.end(), file.begin() + block));
}

TEST_F(Transfers, ErrorsNameFileOffsetAndErrno) {
  results = {-EIO};
  EXPECT_THAT(errorOfRead(), testing::HasSubstr("/disk/file: reading 8,192 bytes at offset 0: Input/output error (errno 5): "));
  results = {block, -ENOSPC};
  EXPECT_THAT(errorOfRead(), testing::HasSubstr("reading 4,096 bytes at offset 4,096: No space left on device (errno 28)"));
  results = {0};
  EXPECT_THAT(errorOfRead(), testing::HasSubstr("less than one block"));
  results.assign(1000, 10);
  EXPECT_THAT(errorOfRead(), testing::HasSubstr("less than one block"));
}

/// The host and copies see the same bytes, by both ways of reading and writing.
TEST(SsdFile, HostAndProgramTakeTurns) {
  Pages staging(2 * stagingHalf);
  SsdFile file(".", 0, 10 * block + 1, staging.data(), 2 * stagingHalf);
  char *there = file.data();
  std::vector<char> bytes(size_t(3 * block), 0), back = bytes;
  file.copy(back.data(), there + 100, 3 * block, /*stores=*/false);
  EXPECT_EQ(back, bytes);
  for (int turn = 1; turn < 4; ++turn) {
    std::fill_n(there + 100, 3 * block, char(turn));
    file.settle();
    file.copy(back.data(), there + 100, 3 * block, /*stores=*/false);
    EXPECT_EQ(back, std::vector<char>(size_t(3 * block), char(turn)));
    std::fill(bytes.begin(), bytes.end(), char(-turn));
    file.copy(there + 50, bytes.data(), 3 * block, /*stores=*/true);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), there + 50));
    EXPECT_EQ(there[50 + 3 * block], char(turn));
    EXPECT_EQ(there[49], 0);
    file.settle();
  }
}

// Files of data are mapped too, and what cannot be read is said of either, whichever was mapped first.
TEST(SsdFile, ErrorsOfOtherMappingsAreTheirs) {
  for (bool isFirst : {false, true})
    EXPECT_EXIT(
        {
          Pages staging(2 * stagingHalf);
          std::optional<SsdFile> file;
          if (isFirst)
            file.emplace(".", 0, block, staging.data(), 2 * stagingHalf);
          std::ofstream("data.bin") << std::string(100000, 'a');
          MappedFile data("data.bin", "--data");
          if (!isFirst)
            file.emplace(".", 0, block, staging.data(), 2 * stagingHalf);
          std::filesystem::resize_file("data.bin", 10);
          exit(data.data()[50000]);
        },
        testing::ExitedWithCode(1), "error: --data data.bin: its byte 50000 cannot be read any more");
}

TEST(SsdFile, RefusesFoldersInMemory) {
  Pages staging(2 * stagingHalf);
  try {
    SsdFile file("/dev/shm", 0, block, staging.data(), 2 * stagingHalf);
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), testing::StartsWith("--ssd /dev/shm: the folder is in memory (tmpfs)"));
  }
}
