//===- Contents.cpp - whose values memory holds -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Contents.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

/// Makes a piece begin at `address` if one contains it.
void Contents::split(Pieces &pieces, int64_t address) {
  auto after = pieces.lower_bound(address);
  if (after == pieces.begin() || (after != pieces.end() && after->first == address))
    return;
  Piece &piece = std::prev(after)->second;
  if (piece.end <= address)
    return;
  pieces[address] = piece;
  piece.end = address;
}

/// Makes one of neighbours of one owner, from the piece before `from` to the one at `end`.
void Contents::unite(Pieces &pieces, Pieces::iterator from, int64_t end) {
  if (from != pieces.begin())
    --from;
  while (from != pieces.end() && from->first <= end) {
    auto next = std::next(from);
    if (next != pieces.end() && next->first == from->second.end &&
        next->second.owner == from->second.owner) {
      from->second.end = next->second.end;
      pieces.erase(next);
    } else {
      from = next;
    }
  }
}

void Contents::write(int64_t begin, int64_t end, int root) {
  if (begin == end)
    return;
  split(pieces, begin);
  split(pieces, end);
  pieces.erase(pieces.lower_bound(begin), pieces.lower_bound(end));
  auto piece = pieces.insert({begin, {end, {root, root}}}).first;
  unite(pieces, piece, end);
}

std::optional<int> Contents::other(int64_t begin, int64_t end, int root) const {
  auto at = pieces.upper_bound(begin);
  if (at != pieces.begin() && std::prev(at)->second.end > begin)
    --at;
  for (int64_t next = begin; next < end; ++at) {
    if (at == pieces.end() || at->first > next)
      return nothing;
    for (int owner : {at->second.owner.first, at->second.owner.second})
      if (owner != root)
        return owner;
    next = at->second.end;
  }
  return std::nullopt;
}

void Contents::writeWindows(const ProgramReader &reader, const Access &access) {
  for (auto &[key, window] : windows) {
    auto [root, begin, end] = key;
    if (reader.end(access) <= begin || end <= reader.begin(access))
      continue;
    if (root != access.root)
      for (int64_t part : window.written)
        window.lost[part] = access.root;
    else if (access.parts == 1)
      window.lost.clear(); // Another value begins.
    if (root != access.root || access.parts == 1)
      window.written.clear();
  }
  if (access.parts == 1)
    return;
  Window &window = windows[{access.root, reader.begin(access), reader.end(access)}];
  window.written.insert(access.shift);
  window.lost.erase(access.shift);
}

std::optional<int> Contents::lostPart(const ProgramReader &reader, const Access &access) const {
  for (auto &[key, window] : windows) {
    auto [root, begin, end] = key;
    if (root == access.root && begin < reader.end(access) && reader.begin(access) < end)
      for (auto [part, by] : window.lost)
        if (access.parts == 1 || access.shift == part)
          return by;
  }
  return std::nullopt;
}

LogicalResult Contents::refuse(const ProgramReader &reader, Operation *op, int read,
                               int written) const {
  const Root &root = reader.roots[read];
  if (written != nothing)
    return op->emitOpError("reads ") << root.name() << " where " << reader.roots[written].name()
                                     << " has been written over it";
  if (root.memory.getDefiningOp<BufferOp>())
    return op->emitOpError("reads ") << root.name() << " before anything is written there";
  return op->emitOpError("reads ")
         << root.name() << " of " << ProgramOp(reader.program).getSymNameAttr()
         << ", one of its 'outs', before anything is written there";
}

LogicalResult Contents::visit(const ProgramReader &reader, Operation *op,
                              ArrayRef<Access> accesses) {
  for (const Access &access : accesses) {
    if (!access.reads || reader.roots[access.root].isGiven)
      continue;
    std::optional<int> wrong = other(reader.begin(access), reader.end(access), access.root);
    if (!wrong)
      wrong = lostPart(reader, access);
    if (wrong)
      return refuse(reader, op, access.root, *wrong);
  }
  bool writes = false;
  for (const Access &access : accesses)
    if (access.writes && !reader.roots[access.root].isGiven) {
      writes = true;
      write(reader.begin(access), reader.end(access), access.root);
      if (access.parts > 1 || !windows.empty())
        writeWindows(reader, access);
    }
  // While an op runs, it may read after it has written.
  if (writes)
    for (const Access &access : accesses)
      if (!reader.roots[access.root].isGiven)
        if (auto wrong = other(reader.begin(access), reader.end(access), access.root))
          return refuse(reader, op, access.root, *wrong);
  return success();
}

LogicalResult Contents::checkEnd(const ProgramReader &reader) const {
  for (auto [number, root] : llvm::enumerate(reader.roots)) {
    auto argument = dyn_cast<BlockArgument>(root.memory);
    if (argument && !root.isGiven &&
        other(root.address, root.address + root.bytes, int(number)) == nothing)
      return ProgramOp(reader.program).emitOpError("does not write argument ")
             << argument.getArgNumber() << ", which is one of its 'outs'";
  }
  return success();
}

void Contents::join(const Contents &other) {
  Pieces theirs = other.pieces;
  for (auto &[begin, piece] : other.pieces)
    for (int64_t address : {begin, piece.end})
      split(pieces, address);
  for (auto &[begin, piece] : pieces)
    for (int64_t address : {begin, piece.end})
      split(theirs, address);
  for (auto &[begin, piece] : pieces)
    if (!theirs.count(begin) && piece.owner.first == piece.owner.second)
      piece.owner.second = nothing;
  for (auto &[begin, piece] : theirs) {
    auto [at, isNew] = pieces.insert({begin, piece});
    Owner &owner = at->second.owner;
    if (isNew)
      owner.second = nothing;
    else if (owner.first == owner.second && owner != piece.owner)
      owner.second = piece.owner.first == owner.first ? piece.owner.second : piece.owner.first;
  }
  if (!pieces.empty())
    unite(pieces, pieces.begin(), std::numeric_limits<int64_t>::max());
  for (auto &[key, window] : other.windows) {
    Window &mine = windows[key];
    mine.written.insert(window.written.begin(), window.written.end());
    mine.lost.insert(window.lost.begin(), window.lost.end());
  }
}
