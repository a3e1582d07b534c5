//===- HostCopies.cpp - what the device has copies of ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "HostCopies.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

static bool overlap(const PartAccess &a, const PartAccess &b) {
  return a.root == b.root && a.begin < b.end && b.begin < a.end;
}

static bool covers(const PartAccess &a, const PartAccess &b) {
  return a.root == b.root && a.begin <= b.begin && b.end <= a.end;
}

static std::string nameOf(Value root) {
  if (auto buffer = root.getDefiningOp<BufferOp>())
    return ("'" + buffer.getName() + "'").str();
  return "argument " + std::to_string(cast<BlockArgument>(root).getArgNumber());
}

LogicalResult HostCopies::verify() {
  bool any = llvm::any_of(program.getBlock().getArgumentTypes(), isOnHost) ||
             llvm::any_of(program.getBlock().getOps<BufferOp>(),
                          [](BufferOp buffer) { return isOnHost(buffer.getType()); });
  if (!any)
    return success();
  ProgramWalk walk(program, /*inArena=*/false);
  // Of iterations that are left out nothing is known.
  walk.onSkip = [&] { copies.clear(); };
  if (!walk.run([&](Operation *op) { return succeeded(visit(op, walk)); }))
    return failure();
  return checkEnd();
}

LogicalResult HostCopies::visit(Operation *op, const ProgramWalk &walk) {
  SmallVector<PartAccess> accesses = walk.accesses(op);
  for (const PartAccess &part : accesses)
    if (!part.writes && failed(read(op, part)))
      return failure();
  std::optional<Queue> queue = isa<CopyOp>(op) ? queueOf(op) : std::nullopt;
  const PartAccess *source = nullptr, *target = nullptr;
  for (const PartAccess &part : accesses)
    (part.writes ? target : source) = &part;
  if (queue && source && target) {
    queue == Queue::ToDevice ? fetch(*source, *target) : store(op, *source, *target);
    return success();
  }
  for (const PartAccess &part : accesses)
    if (part.writes)
      write(op, part);
  return success();
}

LogicalResult HostCopies::read(Operation *op, const PartAccess &part) {
  for (const Lost &other : lost)
    if (overlap(other.host, part)) {
      InFlightDiagnostic error = op->emitOpError("reads ")
                                 << nameOf(part.root)
                                 << " on the host, of which a changed copy was not copied back";
      error.attachNote(other.changed->getLoc()) << "the copy is changed here";
      return failure();
    }
  for (const Copy &copy : copies)
    if (copy.outdated && overlap(copy.device, part)) {
      InFlightDiagnostic error = op->emitOpError("reads a copy of ")
                                 << nameOf(copy.host.root) << ", which has changed on the host";
      error.attachNote(copy.outdated->getLoc()) << "it is changed here";
      return failure();
    }
  return success();
}

void HostCopies::write(Operation *op, const PartAccess &part) {
  for (Copy &copy : copies) {
    if (overlap(copy.device, part)) {
      copy.changed = op;
      copy.outdated = nullptr;
    }
  }
  overwriteHost(op, part);
}

/// What was changed in copies of what is written is wanted no more.
void HostCopies::overwriteHost(Operation *op, const PartAccess &host) {
  for (Copy &copy : copies) {
    if (overlap(copy.host, host))
      copy.outdated = op;
    if (covers(host, copy.host))
      copy.changed = nullptr;
  }
  llvm::erase_if(lost, [&](const Lost &other) { return covers(host, other.host); });
}

void HostCopies::dropCopies(const PartAccess &device) {
  for (const Copy &copy : copies)
    if (copy.changed && overlap(copy.device, device))
      lost.push_back({copy.host, copy.changed});
  llvm::erase_if(copies, [&](const Copy &copy) { return overlap(copy.device, device); });
}

void HostCopies::fetch(const PartAccess &host, const PartAccess &device) {
  dropCopies(device);
  copies.push_back({device, host});
}

void HostCopies::store(Operation *op, const PartAccess &device, const PartAccess &host) {
  overwriteHost(op, host);
  for (Copy &copy : copies)
    if (overlap(copy.device, device) && copy.host.root == host.root)
      copy.changed = copy.outdated = nullptr;
}

/// What outlasts the program: variables, and what a caller has said it wants changed.
LogicalResult HostCopies::checkEnd() {
  for (const Copy &copy : copies)
    if (copy.changed)
      lost.push_back({copy.host, copy.changed});
  for (const Lost &other : lost) {
    auto buffer = other.host.root.getDefiningOp<BufferOp>();
    bool lasts =
        buffer ? buffer.isPersistent() : llvm::is_contained(program.getUpdated(), other.host.root);
    if (lasts)
      return other.changed->emitOpError("changes a copy of ")
             << nameOf(other.host.root) << ", which is not copied back to the host";
  }
  return success();
}
