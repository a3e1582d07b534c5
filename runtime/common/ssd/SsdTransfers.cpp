//===- SsdTransfers.cpp - copies between memory and a file -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/ssd/SsdTransfers.h"

#include "common/monitor/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

using namespace meshwright;

static int64_t down(int64_t offset) { return offset / SsdTransfers::blockBytes * SsdTransfers::blockBytes; }
static int64_t up(int64_t offset) { return down(offset + SsdTransfers::blockBytes - 1); }

void SsdTransfers::read(char *to, int64_t offset, int64_t bytes) {
  run(false, offset, offset + bytes, nullptr, [&](const char *memory, const Piece &piece) {
    int64_t begin = std::max(offset, piece.begin), end = std::min(offset + bytes, piece.end);
    std::memcpy(to + (begin - offset), memory + (begin - piece.begin), size_t(end - begin));
  });
}

void SsdTransfers::write(const char *from, int64_t offset, int64_t bytes) {
  // What is beside these bytes in their first and last block is written again as it is.
  char first[blockBytes], last[blockBytes];
  int64_t end = offset + bytes, firstBlock = down(offset), lastBlock = down(end);
  if (offset > firstBlock)
    read(first, firstBlock, blockBytes);
  if (end > lastBlock)
    read(last, lastBlock, blockBytes);
  auto fill = [&](char *memory, const Piece &piece) {
    if (offset > firstBlock && piece.begin == firstBlock)
      std::memcpy(memory, first, blockBytes);
    if (end > lastBlock && piece.end == up(end))
      std::memcpy(memory + (lastBlock - piece.begin), last, blockBytes);
    int64_t begin = std::max(offset, piece.begin), here = std::min(end, piece.end);
    std::memcpy(memory + (begin - piece.begin), from + (begin - offset), size_t(here - begin));
  };
  run(true, offset, end, fill, nullptr);
}

void SsdTransfers::run(bool isWrite, int64_t begin, int64_t end,
                       const std::function<void(char *, const Piece &)> &before,
                       const std::function<void(const char *, const Piece &)> &after) {
  std::vector<int> free;
  for (int number = depth; number-- > 0;)
    free.push_back(number);
  int64_t next = down(begin), last = up(end);
  while (next < last || free.size() < size_t(depth)) {
    while (next < last && !free.empty()) {
      int number = free.back();
      free.pop_back();
      pieces[size_t(number)] = {isWrite, next, std::min(next + pieceBytes, last)};
      next = pieces[size_t(number)].end;
      if (before)
        before(memoryOf(number), pieces[size_t(number)]);
      start(number);
    }
    IoQueue::Done done = queue->next();
    if (!advance(done)) {
      start(done.number);
      continue;
    }
    if (after)
      after(memoryOf(done.number), pieces[size_t(done.number)]);
    free.push_back(done.number);
  }
}

void SsdTransfers::start(int number) {
  const Piece &piece = pieces[size_t(number)];
  queue->start(number, {piece.isWrite, memoryOf(number) + piece.done, piece.end - piece.begin - piece.done,
                        piece.begin + piece.done});
}

bool SsdTransfers::advance(const IoQueue::Done &done) {
  constexpr int patience = 100;
  Piece &piece = pieces[size_t(done.number)];
  bool isRefused = done.result < 0 && done.result != -EINTR && done.result != -EAGAIN;
  if (isRefused || done.result == 0 || piece.fruitless == patience)
    fail(path, ": ", piece.isWrite ? "writing " : "reading ", grouped(uint64_t(piece.end - piece.begin - piece.done)),
         " bytes at offset ", grouped(uint64_t(piece.begin + piece.done)), ": ",
         isRefused ? text(errnoText(int(-done.result)), " (errno ", -done.result, ")")
                   : "the file system reads and writes less than one block",
         ": what --offload keeps there is lost; go on from the last checkpoint, with another folder of --ssd if the "
         "disk has failed or is full");
  // Part of a block is read or written once more.
  int64_t whole = done.result > 0 ? piece.done + done.result : piece.done;
  bool isAll = whole == piece.end - piece.begin;
  whole = isAll ? whole : down(whole);
  piece.fruitless = whole > piece.done ? 0 : piece.fruitless + 1;
  piece.done = whole;
  return isAll;
}
