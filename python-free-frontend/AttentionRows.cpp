//===- AttentionRows.cpp - where queries, keys and values lie in files -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "AttentionRows.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;

bool meshwright::frontend::isPermuted(const Model &m) {
  return m.family.rotary.used && (m.turned < m.headDim || m.family.rotary.interleaved);
}

void meshwright::frontend::addHead(SmallVectorImpl<int64_t> &runs, const Model &m, int64_t base, bool permuted) {
  int64_t half = m.turned / 2, rest = m.headDim - m.turned;
  bool interleaved = m.family.rotary.interleaved;
  if (!permuted) {
    runs.append({base, m.headDim, 1});
    return;
  }
  for (int64_t second : {0, 1}) {
    runs.append({base + (interleaved ? second : second * half), half, interleaved ? 2 : 1});
    if (rest)
      runs.append({base + m.turned + second * (rest / 2), rest / 2, 1});
  }
}

/// Rows of `heads` heads of which `group` at once and as many from the second half of all follow each other.
static FileRows pairedRows(const Model &m, int64_t heads, int64_t group) {
  int64_t d = m.headDim, all = heads * d;
  FileRows rows{0, all, all};
  for (int64_t first = 0; first < heads / 2; first += group)
    for (int64_t half : {0, 1})
      rows.runs.append({(first + half * heads / 2) * d, group * d, 1});
  return rows;
}

FileRows meshwright::frontend::rowsOf(const Model &m, int part) {
  int64_t d = m.headDim, group = m.heads / m.kvHeads;
  if (m.family.differential.used)
    return pairedRows(m, part == 0 ? m.heads : m.kvHeads, part == 0 ? group : 1);
  int64_t sizes[] = {m.heads * d, m.kvHeads * d, m.kvHeads * d};
  int64_t all = sizes[0] + sizes[1] + sizes[2];
  bool permuted = part < 2 && isPermuted(m);
  FileRows rows;
  if (m.family.qkv == QKVStorage::ByGroup) {
    rows.full = all;
    rows.period = (group + 2) * d;
    rows.offset = part == 0 ? 0 : (group + part - 1) * d;
    for (int64_t head = 0; head < (part == 0 ? group : 1); ++head)
      addHead(rows.runs, m, head * d, permuted);
    return rows;
  }
  if (m.family.qkv == QKVStorage::Shards) {
    static constexpr int64_t parts = 4, places[] = {0, 2, 1};
    int64_t heads = m.heads / parts;
    rows.full = all;
    rows.period = all / parts;
    rows.offset = places[part] * heads * d;
    for (int64_t head = 0; head < heads; ++head)
      addHead(rows.runs, m, head * d, permuted);
    return rows;
  }
  if (m.family.gatedAttention && part == 0) {
    rows.full = 2 * sizes[0];
    rows.period = 2 * d;
    addHead(rows.runs, m, 0, permuted);
    return rows;
  }
  bool fused = m.family.qkv == QKVStorage::Thirds;
  for (int before = 0; fused && before < part; ++before)
    rows.offset += sizes[before];
  if (fused || permuted)
    rows.full = fused ? all : sizes[part];
  if (permuted) {
    rows.period = d;
    addHead(rows.runs, m, 0, true);
  }
  return rows;
}
