//===- PtxTensor.cpp - tensor cores, and copies beside the threads ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Fragments.h"
#include "PtxLanes.h"

#include <stdexcept>
#include <unordered_map>

namespace ptx {

/// .aligned: all of a warp's lanes run it.
static void needWarp(const Machine &m, const char *what) {
  if (m.mask != ~0u)
    throw std::runtime_error(std::string("some lanes miss ") + what);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static double number(Bf16 value) { return toFloat(value); }
static double number(_Float16 value) { return double(value); }

/// Of four rows of registers of A, two of B, four of C.
template <typename T> static void multiply(Machine &m, const Instruction &i) {
  needWarp(m, "an mma");
  auto element = [&](int row, int lane, int e) {
    return number(Register<T>::get(m.r32[i.from[size_t(row + e / 2)]][lane] >> 16 * (e % 2)));
  };
  float results[4][width];
  fragments::multiply([&](int lane, int e) { return element(0, lane, e); },
                      [&](int lane, int e) { return element(4, lane, e); },
                      [&](int lane, int e) {
                        return Register<float>::get(m.r32[i.from[size_t(6 + e)]][lane]);
                      },
                      [&](int lane, int e, float x) { results[e][lane] = x; });
  for (size_t e = 0; e < 4; ++e)
    for (int l = 0; l < width; ++l)
      m.r32[i.to[e]][l] = Register<float>::put(results[e][l]);
}

template <bool isTransposed> static void loadMatrices(Machine &m, const Instruction &i) {
  needWarp(m, "an ldmatrix");
  uint16_t rows[width][8];
  for (int l = 0; l < width; ++l)
    memcpy(rows[l], place<true, false>(m, l, m.r64[i.from[0]][l] + uint64_t(i.offset), 16), 16);
  for (int matrix = 0; matrix < 4; ++matrix)
    for (int l = 0; l < width; ++l) {
      uint32_t word = 0;
      for (int e = 0; e < 2; ++e) {
        auto [row, column] = fragments::loaded(l, e, isTransposed);
        word |= uint32_t(rows[8 * matrix + row][column]) << 16 * e;
      }
      m.r32[i.to[size_t(matrix)]][l] = word;
    }
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// cp.async of 16 bytes, of which the last operand says how many are read; zeros follow.
static void copy(Machine &m, const Instruction &i) {
  for (int l = 0; l < width; ++l) {
    if (!(m.mask >> l & 1))
      continue;
    uint32_t size = m.r32[i.from[2]][l], read = m.r32[i.from[3]][l];
    if (size != 16 || (read != 0 && read != 16))
      throw std::runtime_error("cp.async of " + std::to_string(read) + " of " +
                               std::to_string(size) + " bytes is not known");
    Copy copy = {};
    char *to = place<true, true>(m, l, m.r64[i.from[0]][l] + uint64_t(i.offset), 16);
    copy.to = uint64_t(to - m.shared);
    uint64_t from = m.r64[i.from[1]][l] + uint64_t(i.offset2);
    if (from % 16)
      throw std::runtime_error("cp.async from " + std::to_string(from) + " is misaligned");
    if (read)
      memcpy(copy.bytes, place<false, false>(m, l, from, 16), 16);
    m.copies[m.firstThread + l].open.push_back(copy);
    ++m.arriving[copy.to / 16];
  }
}
static void commit(Machine &m, const Instruction &) {
  for (int l = 0; l < width; ++l)
    if (m.mask >> l & 1) {
      Copies &copies = m.copies[m.firstThread + l];
      copies.groups.push_back(std::move(copies.open));
      copies.open.clear();
    }
}
static void wait(Machine &m, const Instruction &i) {
  for (int l = 0; l < width; ++l) {
    if (!(m.mask >> l & 1))
      continue;
    auto &groups = m.copies[m.firstThread + l].groups;
    size_t kept = std::min(groups.size(), size_t(m.r32[i.from[0]][l]));
    for (size_t g = 0; g + kept < groups.size(); ++g)
      for (const Copy &copy : groups[g]) {
        memcpy(m.shared + copy.to, copy.bytes, 16);
        if (m.judge)
          m.judge->touch(true, true, copy.to, 16, m.firstThread + l);
        auto found = m.arriving.find(copy.to / 16);
        if (--found->second == 0)
          m.arriving.erase(found);
      }
    groups.erase(groups.begin(), groups.end() - int64_t(kept));
  }
}

const Form *tensorFormOf(const std::string &opcode) {
  static const std::unordered_map<std::string, Form> forms = {
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", {multiply<Bf16>, "W", "WWW"}},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", {multiply<_Float16>, "W", "WWW"}},
      {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", {loadMatrices<false>, "W", "a"}},
      {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", {loadMatrices<true>, "W", "a"}},
      {"cp.async.cg.shared.global", {copy, "", "aaww"}},
      {"cp.async.commit_group", {commit, "", ""}},
      {"cp.async.wait_group", {wait, "", "w"}}};
  auto found = forms.find(opcode);
  return found == forms.end() ? nullptr : &found->second;
}

} // namespace ptx
