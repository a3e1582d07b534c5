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
    if (begin == end)
      return;
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

namespace {
/// What an op reads or writes of a buffer, by address.
struct Part {
  BufferOp buffer;
  int64_t begin, end;
  bool writes;
};

class Sharing {
public:
  Sharing(ProgramOp program, ArrayRef<BufferOp> buffers) : walk(program, /*inArena=*/false) {
    for (BufferOp buffer : buffers) {
      known.insert(buffer);
      findUsers(buffer.getMemory());
    }
    walk.takesAll = [this](LoopOp loop) { return loops.contains(loop); };
  }

  LogicalResult verify() {
    return success(walk.run([&](Operation *op) { return visit(op); }));
  }

private:
  /// An asynchronous op that has not been waited for.
  struct Running {
    Operation *op;
    int64_t token;
    SmallVector<Part> parts;
  };

  void findUsers(Value memory);
  bool visit(Operation *op);
  SmallVector<Part> partsOf(Operation *op) const;
  bool refuse(Operation *op, BufferOp read, BufferOp written) const {
    op->emitOpError("reads '") << read.getName() << "' where '" << written.getName()
                               << "' has been written over it";
    return false;
  }
  Owners &ownersOf(BufferOp buffer) { return isOnHost(buffer.getType()) ? host : arena; }
  BufferOp otherThan(const Part &part) {
    BufferOp buffer = part.buffer;
    return ownersOf(buffer).otherThan(buffer, part.begin, part.end);
  }

  ProgramWalk walk;
  Owners arena, host;
  llvm::DenseSet<Operation *> known; ///< buffers
  llvm::DenseSet<Operation *> users; ///< ops that read or write them
  llvm::DenseSet<Operation *> loops; ///< whose iterations have slots of their own of them
  SmallVector<Running> running;
};
} // namespace

void Sharing::findUsers(Value memory) {
  for (Operation *user : memory.getUsers()) {
    if (!isa<SlotOp, ViewOp, WindowOp>(user)) {
      users.insert(user);
      continue;
    }
    if (auto slot = dyn_cast<SlotOp>(user)) {
      auto shift = slot.getIndex().getDefiningOp<ShiftOp>();
      Value index = shift ? shift.getIndex() : slot.getIndex();
      // Iterations that take few slots in turns are like those that the walk leaves out.
      if (!shift || !shift.getModulo())
        loops.insert(index.getParentBlock()->getParentOp());
    }
    findUsers(user->getResult(0));
  }
}

SmallVector<Part> Sharing::partsOf(Operation *op) const {
  SmallVector<Part> parts;
  for (const PartAccess &access : walk.accesses(op)) {
    auto buffer = access.root.getDefiningOp<BufferOp>();
    if (!buffer || !known.contains(buffer))
      continue;
    int64_t offset = *buffer.getOffset();
    parts.push_back({buffer, offset + access.begin, offset + access.end, access.writes});
  }
  return parts;
}

bool Sharing::visit(Operation *op) {
  if (auto wait = dyn_cast<WaitOp>(op)) {
    for (const Running &other : running)
      if (other.token == int64_t(wait.getAsyncToken()))
        for (const Part &part : other.parts)
          if (BufferOp written = otherThan(part))
            return refuse(other.op, part.buffer, written);
    llvm::erase_if(running, [&](const Running &other) {
      return other.token == int64_t(wait.getAsyncToken());
    });
    return true;
  }
  if (!users.contains(op))
    return true;
  SmallVector<Part> parts = partsOf(op);
  for (const Part &part : parts)
    if (!part.writes)
      if (BufferOp other = otherThan(part))
        return refuse(op, part.buffer, other);
  for (Part &part : parts) {
    if (!part.writes)
      continue;
    for (Part &other : parts)
      if (other.buffer != part.buffer && other.begin < part.end && part.begin < other.end &&
          isOnHost(other.buffer.getType()) == isOnHost(part.buffer.getType()))
        return refuse(op, other.buffer, part.buffer);
    ownersOf(part.buffer).write(part.begin, part.end, part.buffer);
  }
  if (std::optional<int64_t> token = asyncTokenOf(op))
    running.push_back({op, *token, std::move(parts)});
  return true;
}

LogicalResult exec::verifySharedMemory(ProgramOp program, ArrayRef<BufferOp> buffers) {
  return Sharing(program, buffers).verify();
}
