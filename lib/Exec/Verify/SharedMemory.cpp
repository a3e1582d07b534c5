//===- SharedMemory.cpp - buffers that share memory slot by slot ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "SharedMemory.h"
#include "ProgramWalk.h"

#include <map>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace {
/// Which buffer was written last, by address; of bytes that none was written to, nothing.
class Owners {
public:
  void write(int64_t begin, int64_t end, BufferOp buffer) {
    split(begin);
    split(end);
    owners.erase(owners.lower_bound(begin), owners.lower_bound(end));
    owners[begin] = {end, buffer};
  }

  /// A buffer that is not `buffer` and was written last somewhere in [begin, end), or null.
  BufferOp otherThan(BufferOp buffer, int64_t begin, int64_t end) {
    split(begin);
    for (auto at = owners.lower_bound(begin); at != owners.end() && at->first < end; ++at)
      if (at->second.second != buffer)
        return at->second.second;
    return {};
  }

private:
  /// Makes an interval begin at `address` if one contains it.
  void split(int64_t address) {
    auto after = owners.lower_bound(address);
    if (after == owners.begin() || (after != owners.end() && after->first == address))
      return;
    auto &[end, buffer] = std::prev(after)->second;
    if (end <= address)
      return;
    owners[address] = {end, buffer};
    end = address;
  }

  std::map<int64_t, std::pair<int64_t, BufferOp>> owners; ///< by begin
};
} // namespace

LogicalResult exec::verifySharedMemory(ProgramOp program, ArrayRef<BufferOp> buffers) {
  Owners arena, host;
  llvm::DenseSet<Operation *> known;
  for (BufferOp buffer : buffers)
    known.insert(buffer);
  ProgramWalk walk(program, /*inArena=*/false);
  walk.everyIteration = true;
  bool fine = walk.run([&](Operation *op) {
    struct Part {
      BufferOp buffer;
      int64_t begin, end;
      bool writes;
    };
    SmallVector<Part> parts;
    for (const PartAccess &access : walk.accesses(op)) {
      auto buffer = access.root.getDefiningOp<BufferOp>();
      if (!buffer || !known.contains(buffer))
        continue;
      int64_t offset = *buffer.getOffset();
      parts.push_back({buffer, offset + access.begin, offset + access.end, access.writes});
    }
    auto refuse = [&](BufferOp read, BufferOp written) {
      op->emitOpError("reads '") << read.getName() << "' where '" << written.getName()
                                 << "' has been written over it";
      return false;
    };
    auto ownersOf = [&](BufferOp buffer) -> Owners & {
      return isOnHost(buffer.getType()) ? host : arena;
    };
    for (Part &part : parts)
      if (!part.writes)
        if (BufferOp other = ownersOf(part.buffer).otherThan(part.buffer, part.begin, part.end))
          return refuse(part.buffer, other);
    for (Part &part : parts) {
      if (!part.writes)
        continue;
      for (Part &other : parts)
        if (other.buffer != part.buffer && other.begin < part.end && part.begin < other.end &&
            isOnHost(other.buffer.getType()) == isOnHost(part.buffer.getType()))
          return refuse(other.buffer, part.buffer);
      ownersOf(part.buffer).write(part.begin, part.end, part.buffer);
    }
    return true;
  });
  return success(fine);
}
