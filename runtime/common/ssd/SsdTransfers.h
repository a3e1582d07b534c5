//===- SsdTransfers.h - copies between memory and a file ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_SSDTRANSFERS_H
#define MESHWRIGHT_RUNTIME_COMMON_SSDTRANSFERS_H

#include "common/ssd/IoQueue.h"

#include <functional>
#include <string>
#include <vector>

namespace meshwright {

/// The copies of one copy engine, one after the other. What is copied may begin and end anywhere in the file, and
/// whole blocks go through staging memory, in pieces of which several are under way. Writes keep what other
/// tensors have in the first and the last block. Errors name the file, the offset and what the system said.
class SsdTransfers {
public:
  /// Offsets, sizes and addresses of what is read and written past the page cache are multiples of it.
  static constexpr int64_t blockBytes = 4096;
  static constexpr int depth = 8; ///< pieces under way, each with its part of the staging memory

  SsdTransfers(std::string path, std::unique_ptr<IoQueue> queue, char *staging, int64_t bytes)
      : path(std::move(path)), queue(std::move(queue)), staging(staging), pieceBytes(bytes / depth) {}

  void read(char *to, int64_t offset, int64_t bytes);
  void write(const char *from, int64_t offset, int64_t bytes);

private:
  /// Blocks of the file, the first `done` bytes of which have been read or written.
  struct Piece {
    bool isWrite;
    int64_t begin, end, done = 0;
    int fruitless = 0; ///< calls since then that have not brought it on
  };
  char *memoryOf(int number) const { return staging + number * pieceBytes; }
  /// Reads or writes the blocks that have bytes from `begin` to `end`, piece by piece.
  void run(bool isWrite, int64_t begin, int64_t end, const std::function<void(char *, const Piece &)> &before,
           const std::function<void(const char *, const Piece &)> &after);
  void start(int number);
  /// Whether all of the piece that `done` tells of has been read or written.
  bool advance(const IoQueue::Done &done);

  const std::string path;
  std::unique_ptr<IoQueue> queue;
  char *staging;
  const int64_t pieceBytes;
  std::vector<Piece> pieces{size_t(depth)};
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_SSDTRANSFERS_H
