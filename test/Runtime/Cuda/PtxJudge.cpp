//===- PtxJudge.cpp - who touched which memory since when ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "PtxJudge.h"

#include <algorithm>
#include <stdexcept>

namespace ptx {

Judge::Cell &Judge::global(uint64_t address) {
  if (address / pageBytes != lastNumber) {
    lastNumber = address / pageBytes;
    std::unique_ptr<Page> &page = pages[lastNumber];
    if (!page)
      page = std::make_unique<Page>();
    lastPage = page.get();
  }
  return lastPage->cells[address % pageBytes / 2];
}

void Judge::addUnwritten(uint64_t begin, uint64_t bytes) {
  for (uint64_t at = begin; at < begin + bytes; at += 2)
    global(at).isWritten = false;
}

void Judge::beginLaunch(int threads) {
  launch = ++clock;
  perBlock = uint32_t(threads + width - 1) / width * width;
}

void Judge::beginBlock(int block, uint64_t sharedBytes) {
  first = uint32_t(block) * perBlock;
  barrier = ++clock;
  warpBarriers.assign(perBlock / width, clock);
  Cell unwritten;
  unwritten.isWritten = false;
  shared.assign(sharedBytes / 2 + 1, unwritten);
}

void Judge::touch(bool isShared, bool writes, uint64_t address, int bytes, int thread) {
  uint64_t at = address;
  try {
    for (; at < address + uint64_t(bytes); at += 2) {
      Cell &cell = isShared ? shared[at / 2] : global(at);
      if (writes)
        write(cell, first + uint32_t(thread));
      else
        read(cell, first + uint32_t(thread));
    }
  } catch (const std::runtime_error &error) {
    throw std::runtime_error(std::string(error.what()) + ", at byte " + std::to_string(at) +
                             " of " + (isShared ? "shared" : "global") + " memory");
  }
}

uint32_t Judge::waited(uint32_t thread) const {
  return std::max(barrier, warpBarriers[(thread - first) / width]);
}

bool Judge::isOrdered(const Access &before, uint32_t thread) const {
  if (isPast(before) || before.thread == thread)
    return true;
  if (before.thread < first) // Of another block, which nobody waits for.
    return false;
  return before.time < (before.thread / width == thread / width ? waited(thread) : barrier);
}

std::string Judge::nameOf(uint32_t thread) const {
  return "thread " + std::to_string(thread % perBlock) + " of block " +
         std::to_string(thread / perBlock);
}

void Judge::needOrder(const Access &before, uint32_t thread, const char *now,
                      const char *then) const {
  if (!isOrdered(before, thread))
    throw std::runtime_error("race: " + nameOf(thread) + now + nameOf(before.thread) + then);
}

void Judge::read(Cell &cell, uint32_t thread) {
  needOrder(cell.writer, thread, " reads what ", " wrote");
  if (!cell.isWritten)
    throw std::runtime_error(nameOf(thread) + " reads memory that nobody wrote");
  Access &reader = cell.reader, &stranger = cell.stranger;
  bool isWarps = reader.thread / width == thread / width;
  // One of an earlier block stays.
  if (!isWarps && (isPast(stranger) || stranger.thread >= first))
    stranger = reader;
  if (!isWarps || reader.time < waited(thread))
    cell.lanes = 0;
  cell.lanes |= 1u << thread % width;
  reader = {thread, clock};
}

void Judge::write(Cell &cell, uint32_t thread) {
  const char *now = " writes what ", *then = " read";
  needOrder(cell.writer, thread, now, " wrote");
  needOrder(cell.stranger, thread, now, then);
  needOrder(cell.reader, thread, now, then);
  // The last reader is this thread, but others of its warp may have read before.
  uint32_t others = cell.lanes & ~(1u << thread % width);
  if (others && !isPast(cell.reader) && cell.reader.time >= waited(thread))
    needOrder({thread / width * width + uint32_t(__builtin_ctz(others)), clock}, thread, now, then);
  cell = {{thread, clock}, {}, 0, {}, true};
}

} // namespace ptx
