//===- DeviceCopies.cpp - what the device has copies of ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "DeviceCopies.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

static bool overlap(const Access &a, const Access &b) {
  return a.root == b.root && a.begin < b.end && b.begin < a.end;
}

static bool covers(const Access &a, const Access &b) {
  return a.root == b.root && a.parts == 1 && a.begin <= b.begin && b.end <= a.end;
}

LogicalResult DeviceCopies::visit(const ProgramReader &reader, Operation *op,
                                  ArrayRef<Access> accesses) {
  for (const Access &access : accesses)
    if (access.reads && failed(read(reader, op, access)))
      return failure();
  if (std::optional<CopyEngine> engine = copyEngineOf(op))
    engine->stores ? store(op, accesses[0], accesses[1]) : fetch(accesses[0], accesses[1]);
  else
    for (const Access &access : accesses)
      if (access.writes)
        write(op, access);
  return success();
}

LogicalResult DeviceCopies::read(const ProgramReader &reader, Operation *op,
                                 const Access &part) const {
  auto refuse = [&](Operation *changed) {
    InFlightDiagnostic error = op->emitOpError("reads ")
                               << reader.roots[part.root].name() << " on "
                               << reader.roots[part.root].spaceText()
                               << ", of which a changed copy was not copied back";
    error.attachNote(changed->getLoc()) << "the copy is changed here";
    return failure();
  };
  for (const Lost &other : lost)
    if (overlap(other.origin, part))
      return refuse(other.changed);
  for (const Copy &copy : copies)
    if (copy.changed && overlap(copy.origin, part))
      return refuse(copy.changed);
  for (const Copy &copy : copies)
    if (copy.outdated && overlap(copy.device, part)) {
      InFlightDiagnostic error = op->emitOpError("reads a copy of ")
                                 << reader.roots[copy.origin.root].name() << ", which has changed on "
                                 << reader.roots[copy.origin.root].spaceText();
      error.attachNote(copy.outdated->getLoc()) << "it is changed here";
      return failure();
    }
  return success();
}

void DeviceCopies::write(Operation *op, const Access &part) {
  for (Copy &copy : copies) {
    if (overlap(copy.device, part)) {
      copy.changed = op;
      copy.outdated = nullptr;
    }
  }
  overwriteOrigin(op, part);
}

/// What was changed in copies of what is written is wanted no more.
void DeviceCopies::overwriteOrigin(Operation *op, const Access &origin) {
  for (Copy &copy : copies) {
    if (overlap(copy.origin, origin))
      copy.outdated = op;
    if (covers(origin, copy.origin))
      copy.changed = nullptr;
  }
  llvm::erase_if(lost, [&](const Lost &other) { return covers(origin, other.origin); });
}

void DeviceCopies::dropCopies(const Access &device) {
  for (const Copy &copy : copies)
    if (copy.changed && overlap(copy.device, device))
      lost.push_back({copy.origin, copy.changed});
  llvm::erase_if(copies, [&](const Copy &copy) { return overlap(copy.device, device); });
}

void DeviceCopies::fetch(const Access &origin, const Access &device) {
  dropCopies(device);
  copies.push_back({device, origin});
}

void DeviceCopies::store(Operation *op, const Access &device, const Access &origin) {
  overwriteOrigin(op, origin);
  for (Copy &copy : copies) {
    // What goes to another place leaves the change where it is.
    bool goesBack = copy.origin.root == origin.root &&
                    origin.begin - device.begin == copy.origin.begin - copy.device.begin;
    if (!goesBack || !overlap(copy.device, device))
      continue;
    copy.outdated = nullptr;
    if (covers(device, copy.device))
      copy.changed = nullptr;
  }
}

/// What outlasts the program: variables, and what a caller has said it wants changed.
LogicalResult DeviceCopies::checkEnd(const ProgramReader &reader) const {
  SmallVector<Lost> changes(lost);
  for (const Copy &copy : copies)
    if (copy.changed)
      changes.push_back({copy.origin, copy.changed});
  for (const Lost &change : changes) {
    const Root &root = reader.roots[change.origin.root];
    auto buffer = root.memory.getDefiningOp<BufferOp>();
    bool lasts = buffer ? buffer.isPersistent()
                        : llvm::is_contained(ProgramOp(reader.program).getUpdated(), root.memory);
    if (lasts)
      return change.changed->emitOpError("changes a copy of ")
             << root.name() << ", which is not copied back to " << root.spaceText();
  }
  return success();
}

void DeviceCopies::join(const DeviceCopies &other) {
  for (const Copy &copy : other.copies)
    if (!llvm::is_contained(copies, copy))
      copies.push_back(copy);
  for (const Lost &change : other.lost)
    if (!llvm::is_contained(lost, change))
      lost.push_back(change);
}
