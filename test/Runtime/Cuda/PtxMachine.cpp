//===- PtxMachine.cpp - warps that run PTX ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "PtxMachine.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace ptx {

namespace {
/// Lanes that run together from an instruction until they meet others.
struct Group {
  int at, join;
  uint32_t lanes;
};

/// 32 threads of a block, with their registers. The last group runs; lanes that it is to
/// meet are in the one before.
struct Warp {
  std::vector<uint32_t> file32;
  std::vector<uint64_t> file64;
  std::vector<Group> groups;
  uint32_t alive;
  int first; ///< thread
};

class Block {
public:
  Block(const Entry &entry, Machine &machine, int threads) : entry(entry), machine(machine) {
    for (int first = 0; first < threads; first += width) {
      Warp warp;
      warp.file32.assign(size_t(entry.rows32) * width, 0xDEADBEEFu);
      warp.file64.assign(size_t(entry.rows64) * width, 0xDEADBEEFDEADBEEFull);
      for (auto [row, value] : entry.constants32)
        std::fill_n(&warp.file32[size_t(row) * width], width, value);
      for (auto [row, value] : entry.constants64)
        std::fill_n(&warp.file64[size_t(row) * width], width, value);
      int count = std::min(width, threads - first);
      warp.alive = count == width ? ~0u : (1u << count) - 1;
      warp.groups = {{0, int(entry.code.size()), warp.alive}};
      warp.first = first;
      warps.push_back(std::move(warp));
    }
  }

  void run() {
    for (;;) {
      bool anyWaits = false, anyEnded = false;
      for (Warp &warp : warps)
        (run(warp) ? anyWaits : anyEnded) = true;
      if (!anyWaits)
        return;
      if (anyEnded)
        throw std::runtime_error("some warps end where others wait at a barrier");
      if (machine.judge)
        machine.judge->passBarrier();
    }
  }

private:
  /// To the next barrier, or to the end; whether it waits.
  bool run(Warp &warp) {
    machine.r32 = reinterpret_cast<uint32_t(*)[width]>(warp.file32.data());
    machine.r64 = reinterpret_cast<uint64_t(*)[width]>(warp.file64.data());
    machine.firstThread = warp.first;
    while (!warp.groups.empty()) {
      Group &group = warp.groups.back();
      if (group.at == group.join || group.lanes == 0) {
        warp.groups.pop_back();
        continue;
      }
      machine.setMask(group.lanes, warp.alive);
      if (goOn(warp, group))
        return true;
    }
    return false;
  }

  /// Runs a group until it parts, meets others or ends; whether it waits at a barrier.
  bool goOn(Warp &warp, Group &group) {
    int at = group.at;
    const int join = group.join;
    const uint32_t lanes = group.lanes;
    while (at != join) {
      const Instruction &i = entry.code[size_t(at)];
      machine.line = i.line;
      uint32_t taken = lanes;
      if (i.guard >= 0) {
        taken = 0;
        for (int lane = 0; lane < width; ++lane)
          taken |= uint32_t((machine.r32[i.guard][lane] != 0) != i.negated) << lane;
        taken &= lanes;
      }
      switch (i.kind) {
      case Instruction::plain:
        if (taken == lanes) {
          i.action(machine, i);
        } else if (taken) {
          machine.setMask(taken, warp.alive);
          i.action(machine, i);
          machine.setMask(lanes, warp.alive);
        }
        ++at;
        break;
      case Instruction::branch:
        if (taken == 0 || taken == lanes) {
          at = taken ? i.target : at + 1;
          break;
        }
        group.at = i.join;
        warp.groups.push_back({at + 1, i.join, lanes & ~taken}); // `group` is no longer there.
        warp.groups.push_back({i.target, i.join, taken});
        return false;
      case Instruction::ret:
        if (i.guard >= 0)
          throw std::runtime_error("an end of some lanes is not known");
        warp.alive &= ~lanes;
        for (Group &other : warp.groups)
          other.lanes &= ~lanes;
        return false;
      case Instruction::barrier:
        if (lanes != warp.alive || i.guard >= 0)
          throw std::runtime_error("some lanes miss a barrier");
        group.at = at + 1;
        return true;
      }
    }
    group.at = at;
    return false;
  }

  const Entry &entry;
  Machine &machine;
  std::vector<Warp> warps;
};
} // namespace

/// The runs of bits that are set, as memory.
static void collect(const Region &region, const std::vector<uint8_t> &bits, bool written,
                    std::vector<Touched> &into) {
  uint64_t begin = 0;
  bool inside = false;
  for (uint64_t i = 0; i <= bits.size(); ++i) {
    uint8_t byte = i < bits.size() ? bits[i] : 0;
    if (byte == (inside ? 0xFF : 0))
      continue;
    for (uint64_t bit = 0; bit < 8; ++bit)
      if (bool(byte >> bit & 1) != inside) {
        uint64_t at = region.begin + 2 * (8 * i + bit);
        if (inside)
          into.push_back({begin, at, written});
        begin = at;
        inside = !inside;
      }
  }
}

std::vector<Touched> run(const Entry &entry, int blocks, int threads, int64_t sharedBytes,
                         const std::vector<uint64_t> &parameters, Memories &memories, Judge *judge) {
  std::vector<char> shared(size_t(entry.sharedBytes + sharedBytes) + 16);
  Machine machine(memories, parameters, judge);
  machine.threads = threads;
  machine.blocks = blocks;
  machine.shared = reinterpret_cast<char *>((uint64_t(shared.data()) + 15) / 16 * 16);
  machine.sharedBytes = uint64_t(entry.sharedBytes + sharedBytes);
  if (judge)
    judge->beginLaunch(threads);
  for (int block = 0; block < blocks; ++block) {
    machine.block = block;
    if (judge)
      judge->beginBlock(block, machine.sharedBytes);
    machine.copies.clear();
    machine.arriving.clear();
    std::fill(shared.begin(), shared.end(), char(0xA5)); // Nothing that a kernel could mean.
    try {
      Block(entry, machine, threads).run();
    } catch (const std::exception &error) {
      throw std::runtime_error(entry.name + ", block " + std::to_string(block) + ", line " +
                               std::to_string(machine.line) + " of the PTX: " + error.what());
    }
  }
  std::vector<Touched> touched;
  for (auto &[begin, region] : machine.regions) {
    collect(*region, region->written, true, touched);
    collect(*region, region->read, false, touched);
  }
  return touched;
}

} // namespace ptx
