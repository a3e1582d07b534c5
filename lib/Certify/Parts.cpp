//===- Parts.cpp - parts of a tensor that are not equal ones in order --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Parts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <algorithm>

using llvm::ArrayRef;
using namespace meshwright::certify;

//===--- coordinates ---------------------------------------------------------===//

Coordinates Coordinates::at(int64_t position, ArrayRef<unsigned> axes, const Mesh &mesh) {
  Coordinates made;
  for (unsigned axis : llvm::reverse(axes)) {
    made.of[axis] = position % mesh.axes[axis].size;
    position /= mesh.axes[axis].size;
  }
  return made;
}

int64_t Coordinates::position(ArrayRef<unsigned> axes, const Mesh &mesh) const {
  int64_t position = 0;
  for (unsigned axis : axes)
    position = position * mesh.axes[axis].size + of.at(axis);
  return position;
}

void Coordinates::move(const Coordinates &to) {
  for (auto [axis, coordinate] : to.of)
    of[axis] = coordinate;
}

//===--- pieces -------------------------------------------------------------===//

/// Appends a block, to the last one if it goes on there.
static void append(Spans &blocks, const Span &block) {
  if (block.size == 0)
    return;
  if (!blocks.empty()) {
    Span &last = blocks.back();
    if (last.isZeros() && block.isZeros()) {
      last.size += block.size;
      return;
    }
    if (!last.isZeros() && !block.isZeros()) {
      int64_t stride = last.size > 1    ? last.stride
                       : block.size > 1 ? block.stride
                                        : block.first - last.first;
      if (stride > 0 && block.first == last.first + last.size * stride &&
          (block.size == 1 || block.stride == stride)) {
        last = {last.first, last.size + block.size, stride};
        return;
      }
    }
  }
  blocks.push_back(block);
}

Pieces Pieces::ofShards(const Axes &group, int64_t extent, const Mesh &mesh) {
  Pieces pieces{group, {}};
  int64_t devices = mesh.size(group), size = extent / devices;
  for (int64_t p = 0; p < devices; ++p)
    pieces.of.push_back({{p * size, size}});
  return pieces;
}

int64_t Pieces::size() const {
  int64_t size = 0;
  for (const Span &block : of.front())
    size += block.size;
  return size;
}

bool Pieces::hasZeros() const {
  return llvm::any_of(of, [](const Spans &blocks) {
    return llvm::any_of(blocks, [](const Span &block) { return block.isZeros(); });
  });
}

std::optional<std::vector<Span>> Pieces::single() const {
  std::vector<Span> blocks;
  for (const Spans &own : of) {
    if (own.size() != 1 || own[0].isZeros())
      return {};
    blocks.push_back(own[0]);
  }
  return blocks;
}

Pieces Pieces::slice(int64_t from, int64_t rows) const {
  Pieces result{group, {}};
  for (const Spans &blocks : of) {
    Spans &made = result.of.emplace_back();
    int64_t begin = 0;
    for (const Span &block : blocks) {
      int64_t first = std::max(from, begin), end = std::min(from + rows, begin + block.size);
      if (first < end)
        append(made, {block.isZeros() ? -1 : block.first + (first - begin) * block.stride,
                      end - first, block.stride});
      begin += block.size;
    }
  }
  return result;
}

Pieces Pieces::divided(const Axes &along, ArrayRef<int64_t> from) const {
  Pieces result{group, {}};
  result.group.append(along);
  int64_t rows = size() / int64_t(from.size());
  llvm::SmallVector<Pieces> parts;
  for (int64_t part : from)
    parts.push_back(slice(part * rows, rows));
  for (size_t position = 0; position < of.size(); ++position)
    for (const Pieces &part : parts)
      result.of.push_back(part.of[position]);
  return result;
}

Pieces Pieces::pad(int64_t from, int64_t rows) const {
  Pieces result{group, {}};
  int64_t own = size();
  for (const Spans &blocks : of) {
    Spans &made = result.of.emplace_back();
    append(made, {-1, from});
    for (const Span &block : blocks)
      append(made, block);
    append(made, {-1, rows - from - own});
  }
  return result;
}

std::optional<Pieces> Pieces::plus(const Pieces &other) const {
  if (group != other.group || size() != other.size())
    return {};
  Pieces result{group, {}};
  for (auto [mine, others] : llvm::zip_equal(of, other.of)) {
    Spans &made = result.of.emplace_back();
    size_t i = 0, j = 0;
    int64_t inLeft = 0, inRight = 0; // elements of the blocks that are behind us
    while (i < mine.size() && j < others.size()) {
      const Span &left = mine[i], &right = others[j];
      if (!left.isZeros() && !right.isZeros())
        return {};
      int64_t count = std::min(left.size - inLeft, right.size - inRight);
      const Span &block = left.isZeros() ? right : left;
      int64_t done = left.isZeros() ? inRight : inLeft;
      append(made,
             {block.isZeros() ? -1 : block.first + done * block.stride, count, block.stride});
      inLeft += count;
      inRight += count;
      if (inLeft == left.size) {
        ++i;
        inLeft = 0;
      }
      if (inRight == right.size) {
        ++j;
        inRight = 0;
      }
    }
  }
  return result;
}

Pieces Pieces::permuted(ArrayRef<int64_t> from) const {
  Pieces result{group, {}};
  for (int64_t device : from)
    result.of.push_back(of[device]);
  return result;
}

/// The position of the device whose tensor each device of `group` gets.
static std::vector<int64_t> sendersIn(const Axes &group, ArrayRef<int64_t> from, const Axes &along,
                                      const Mesh &mesh) {
  std::vector<int64_t> senders;
  for (int64_t position = 0, count = mesh.size(group); position < count; ++position) {
    Coordinates device = Coordinates::at(position, group, mesh);
    device.move(Coordinates::at(from[device.position(along, mesh)], along, mesh));
    senders.push_back(device.position(group, mesh));
  }
  return senders;
}

Pieces Pieces::permuted(ArrayRef<int64_t> from, const Axes &along, const Mesh &mesh) const {
  return permuted(sendersIn(group, from, along, mesh));
}

//===--- pairs of queries and keys ------------------------------------------===//

std::pair<int64_t, int64_t> View::keysOf(int64_t query) const {
  int64_t first = 0, last = seen - 1;
  if (causal)
    last = std::min(last, query);
  if (window) {
    first = std::max(first, query - window + 1);
    if (!causal)
      last = std::min(last, query + window - 1);
  }
  if (chunk) {
    first = std::max(first, query / chunk * chunk);
    last = std::min(last, query / chunk * chunk + chunk - 1);
  }
  return {first, last};
}

/// Whether a block has an index from `first` to `last`.
static bool hasSome(const Span &block, int64_t first, int64_t last) {
  // The first one that is not before `first`.
  int64_t index = first <= block.first ? 0 : (first - block.first + block.stride - 1) / block.stride;
  return index < block.size && block.first + index * block.stride <= last;
}

bool View::sees(const Span &queries, const Span &keys) const {
  for (int64_t i = 0; i < queries.size; ++i)
    if (int64_t query = queries.first + i * queries.stride; query < asked)
      if (auto [first, last] = keysOf(query); hasSome(keys, first, last))
        return true;
  return false;
}

int64_t View::blind(const Span &queries, ArrayRef<Span> keys) const {
  for (int64_t i = 0; i < queries.size; ++i) {
    int64_t query = queries.first + i * queries.stride;
    auto [first, last] = keysOf(query);
    first = std::max(first, sure.first);
    last = std::min(last, sure.first + sure.size - 1);
    if (query >= asked &&
        llvm::none_of(keys, [&](const Span &block) { return hasSome(block, first, last); }))
      return query;
  }
  return -1;
}

std::optional<Terms> Terms::plus(const Terms &other) const {
  if (kind != other.kind || side != other.side || group != other.group || !(view == other.view))
    return {};
  Terms result = *this;
  for (auto [pairs, more] : llvm::zip_equal(result.of, other.of))
    pairs.append(more);
  return result;
}

Terms Terms::permuted(ArrayRef<int64_t> from) const {
  Terms result = *this;
  result.of.clear();
  for (int64_t device : from)
    result.of.push_back(of[device]);
  return result;
}

namespace {
/// How often each index of a dimension is in some blocks.
class Counts {
public:
  explicit Counts(int64_t extent) : counts(extent) {}
  /// Whether all indices of the block are in the dimension.
  bool add(const Span &block) {
    for (int64_t i = 0; i < block.size; ++i) {
      int64_t index = block.first + i * block.stride;
      if (index < 0 || index >= int64_t(counts.size()))
        return false;
      ++counts[index];
    }
    return true;
  }
  /// The first index that is there twice, or -1.
  int64_t twice() const {
    auto found = llvm::find_if(counts, [](int count) { return count > 1; });
    return found == counts.end() ? -1 : found - counts.begin();
  }
  int operator[](int64_t index) const { return counts[index]; }
  /// The intervals of indices of `domain` that are in no block.
  Spans missing(const Span &domain) const {
    Spans blocks;
    for (int64_t i = 0; i < domain.size; ++i) {
      int64_t index = domain.first + i * domain.stride;
      if (counts[index] == 0)
        append(blocks, {index, 1});
    }
    return blocks;
  }

private:
  std::vector<int> counts;
};
} // namespace

static std::string str(const Span &block) {
  std::string text = std::to_string(block.first);
  if (block.size == 1)
    return text;
  text += " to " + std::to_string(block.first + (block.size - 1) * block.stride);
  return block.stride == 1 ? text : text + " in steps of " + std::to_string(block.stride);
}

/// What is missing, or there twice, of the pairs of a query and a key that sees it.
static std::string flawOf(ArrayRef<Terms::Pair> pairs, const Span &queries, const Span &keys,
                          const View &view, bool isSoftmax) {
  std::vector<std::pair<Span, Spans>> byQueries;
  for (const Terms::Pair &pair : pairs) {
    auto found = llvm::find_if(byQueries, [&](auto &of) { return of.first == pair.queries; });
    if (found == byQueries.end())
      byQueries.push_back({pair.queries, {pair.keys}});
    else
      found->second.push_back(pair.keys);
  }
  Counts ofQueries(view.queries);
  for (auto &[block, others] : byQueries)
    if (!ofQueries.add(block))
      return "has queries that are none";
  if (int64_t query = ofQueries.twice(); query >= 0)
    return "has query " + std::to_string(query) + " in two blocks of queries";
  for (auto &[block, blocks] : byQueries) {
    Counts ofKeys(view.keys);
    for (const Span &own : blocks)
      if (!ofKeys.add(own))
        return "has keys that are none";
    if (int64_t key = ofKeys.twice(); key >= 0)
      return "has key " + std::to_string(key) + " twice for queries " + str(block);
    for (const Span &gap : ofKeys.missing(keys))
      if (view.sees(block, gap))
        return "lacks keys " + str(gap) + " for queries " + str(block);
    if (int64_t query = isSoftmax ? view.blind(block, blocks) : -1; query >= 0)
      return "has query " + std::to_string(query) + ", which is padding, see no key";
  }
  for (const Span &gap : ofQueries.missing(queries))
    if (view.sees(gap, keys) || (isSoftmax && view.blind(gap, {}) >= 0))
      return "lacks queries " + str(gap) + " for keys " + str(keys);
  return "";
}

std::string Terms::flaw(const std::optional<Pieces> &parts) const {
  Span allQueries = {0, view.queries}, allKeys = {0, view.keys};
  if (side == none) {
    Pairs all;
    for (const Pairs &pairs : of)
      all.append(pairs);
    return flawOf(all, allQueries, allKeys, view, kind == softmax);
  }
  std::optional<std::vector<Span>> blocks;
  if (parts && parts->group == group)
    blocks = parts->single();
  if (!blocks)
    return "is divided otherwise than its terms";
  for (auto [pairs, block] : llvm::zip_equal(of, *blocks)) {
    for (const Pair &pair : pairs)
      if ((side == queries ? pair.queries : pair.keys) != block)
        return "has terms of " + str(side == queries ? pair.queries : pair.keys) + " beside those of " +
               str(block);
    std::string flaw = flawOf(pairs, side == queries ? block : allQueries,
                              side == keys ? block : allKeys, view, kind == softmax);
    if (!flaw.empty())
      return flaw;
  }
  return "";
}

//===--- terms of a sum -----------------------------------------------------===//

std::optional<Summands> Summands::ofBlocks(const Pieces &blocks, int64_t extent) {
  auto spans = blocks.single();
  int64_t size = spans ? spans->front().size : 0;
  if (size == 0 || extent % size)
    return {};
  Summands summands{blocks.group, nullptr, extent / size};
  for (const Span &span : *spans) {
    if (span.size != size || span.first % size || span.first + size > extent ||
        (size > 1 && span.stride != 1))
      return {};
    summands.of.emplace_back(summands.count).set(span.first / size);
  }
  return summands;
}

Summands Summands::ofDevices(const Axes &group, const Mesh &mesh) {
  Summands summands{group, nullptr, mesh.size(group)};
  for (int64_t position = 0; position < summands.count; ++position)
    summands.of.emplace_back(summands.count).set(position);
  return summands;
}

std::optional<Summands> Summands::plus(const Summands &other) const {
  if (group != other.group || term != other.term || count != other.count)
    return {};
  Summands result = *this;
  for (auto [own, more] : llvm::zip_equal(result.of, other.of)) {
    if (own.anyCommon(more))
      return {};
    own |= more;
  }
  return result;
}

Summands Summands::times(const Summands &other) const {
  Summands result{group, nullptr, count * other.count};
  result.group.append(other.group);
  for (const llvm::BitVector &mine : of)
    for (const llvm::BitVector &others : other.of) {
      llvm::BitVector &both = result.of.emplace_back(result.count);
      for (unsigned term : mine.set_bits())
        for (unsigned more : others.set_bits())
          both.set(term * other.count + more);
    }
  return result;
}

Summands Summands::permuted(ArrayRef<int64_t> from, const Axes &along, const Mesh &mesh) const {
  Summands result = *this;
  for (auto [own, sender] : llvm::zip_equal(result.of, sendersIn(group, from, along, mesh)))
    own = of[sender];
  return result;
}

bool Summands::isComplete() const {
  return llvm::all_of(of, [](const llvm::BitVector &terms) { return terms.all(); });
}
