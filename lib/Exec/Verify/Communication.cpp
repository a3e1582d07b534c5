//===- Communication.cpp - what collectives say against the mesh ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Communication.h"

#include "Dist/Dist.h"
#include "Dist/Programs.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

/// The ranks that differ only along `axes`; an error where these are not axes of the mesh.
static FailureOr<int64_t> membersOf(Operation *op, ArrayAttr axes, const dist::Mesh &mesh) {
  llvm::SmallDenseSet<int> seen;
  int64_t members = 1;
  for (StringAttr name : axes.getAsRange<StringAttr>()) {
    int axis = mesh.find(name);
    if (axis < 0)
      return op->emitOpError("names axis ") << name << ", which the mesh does not have";
    if (!seen.insert(axis).second)
      return op->emitOpError("names axis ") << name << " twice";
    members *= mesh.axes[axis].size;
  }
  return members;
}

/// How the result of a collective relates to its input, in the words of the table.
static StringRef growthOf(Operation *collective) {
  StringRef op = collective->getName().stripDialect();
#define MW_COLLECTIVE(Op, method, name, growth, ...)                                               \
  if (op == #name)                                                                                 \
    return #growth;
#include "meshwright/runtime/Collectives.def"
  return "";
}

/// Whether each of `members` ranks has its part of every tensor.
static LogicalResult verifyParts(MemoryCollectiveOpInterface call, int64_t members) {
  StringRef growth = growthOf(call);
  if (growth == "" || growth == "Same")
    return success();
  for (auto [source, target] : llvm::zip(call.getSources(), call.getTargets())) {
    int64_t in = cast<MemRefType>(source.getType()).getNumElements(),
            out = cast<MemRefType>(target.getType()).getNumElements();
    bool fine = growth == "Grows"     ? in * members == out
                : growth == "Shrinks" ? out * members == in
                                      : in == out && in % members == 0;
    if (!fine)
      return call->emitOpError("over ") << members << " ranks cannot turn " << source.getType()
                                        << " into " << target.getType();
  }
  return success();
}

static LogicalResult verifyCall(MemoryCollectiveOpInterface call, int64_t members) {
  // Numbers of channels and ranks have 32 bits in the plan and at run time.
  int64_t channel = call.getMessageChannel();
  bool message = isa<SendOp, RecvOp>(call);
  if (message && (channel < 1 || channel > std::numeric_limits<int32_t>::max()))
    return call->emitOpError("is on channel ")
           << channel - 1 << "; channels are numbered from 0, by less than 2^31";
  if (std::optional<int64_t> rank = call.getRootOrPeer(); rank && (*rank < 0 || *rank >= members))
    return call->emitOpError(message ? "has the peer " : "has the root ")
           << *rank << ", but the group's ranks are 0 to " << members - 1;
  if (call.isPermutation()) {
    SmallVector<int64_t> sorted = call.getTable();
    llvm::sort(sorted);
    if (!llvm::equal(sorted, llvm::seq<int64_t>(0, members)))
      return call->emitOpError("'from' must be a permutation of the ")
             << members << " ranks of the group";
  }
  if (auto exchange = dyn_cast<ExchangeOp>(*call); exchange && int64_t(exchange.getTo().size()) != members)
    return call->emitOpError("needs an entry for each of the ")
           << members << " ranks of the group, found " << exchange.getTo().size();
  return verifyParts(call, members);
}

/// An op that asks for the device's own part of what its group divides.
static LogicalResult verifyOwnPart(Operation *op, int64_t members) {
  if (auto window = dyn_cast<WindowOp>(op)) {
    int64_t parts = window.getBase().getType().getNumElements() / window.getType().getNumElements();
    if (parts != members)
      return op->emitOpError("takes one of ") << parts << " parts, but the group has " << members
                                              << " ranks";
  }
  if (auto offset = dyn_cast<StoreOffsetOp>(op)) {
    if (offset.getShift() != 0 && int64_t(offset.getMembers()) != members)
      return op->emitOpError("shifts by ranks of ")
             << int64_t(offset.getMembers()) << ", but the group has " << members;
    if (int64_t(offset.getSize()) > std::numeric_limits<int32_t>::max() / members)
      return op->emitOpError("of parts of ") << int64_t(offset.getSize()) << " elements on "
                                             << members << " ranks is not an index of 32 bits";
  }
  return success();
}

static LogicalResult verifyGroups(ModuleOp program, const dist::Mesh &mesh) {
  WalkResult result = program.walk([&](Operation *op) {
    auto call = dyn_cast<MemoryCollectiveOpInterface>(op);
    ArrayAttr axes = call ? call.getAxes() : groupOf(op);
    if (!axes)
      return WalkResult::advance();
    FailureOr<int64_t> members = membersOf(op, axes, mesh);
    if (failed(members) || failed(call ? verifyCall(call, *members) : verifyOwnPart(op, *members)))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Checks the numbers by which code and plan name the collectives of all programs.
static LogicalResult verifyNumbers(ModuleOp module) {
  auto groups = module->getAttrOfType<ArrayAttr>(groupsAttr);
  llvm::SmallDenseSet<Attribute> used;
  SmallVector<Operation *> collectives;
  WalkResult result = module.walk([&](Operation *op) {
    if (isa<MemoryCollectiveOpInterface>(op))
      collectives.push_back(op);
    ArrayAttr group = groupOf(op);
    if (!group)
      return WalkResult::advance();
    used.insert(group);
    if (groups && llvm::is_contained(groups, group))
      return WalkResult::advance();
    op->emitOpError("is of group ") << group << ", which the module does not have in "
                                    << groupsAttr << ", see exec-number-collectives";
    return WalkResult::interrupt();
  });
  if (result.wasInterrupted())
    return failure();
  if (groups && groups.size() != used.size())
    return module.emitError("has ") << groups.size() << " groups in " << groupsAttr << ", but "
                                    << used.size() << " communicate";
  SmallVector<Operation *> numbered(collectives.size());
  for (Operation *op : collectives) {
    std::optional<int64_t> number = collectiveOf(op);
    if (!number)
      return op->emitOpError("has no attribute ")
             << collectiveAttr << ", see exec-number-collectives";
    if (*number < 0 || *number >= int64_t(collectives.size()))
      return op->emitOpError("is collective ") << *number << " of " << collectives.size();
    if (Operation *other = std::exchange(numbered[*number], op))
      return (op->emitOpError("is collective ") << *number << ", as another one is")
                 .attachNote(other->getLoc())
             << "that is here";
  }
  return success();
}

LogicalResult exec::verifyCommunication(ModuleOp module) {
  dist::Mesh mesh; // of the module, which its programs have, too
  for (auto op : module.getOps<dist::MeshOp>())
    mesh = op.getMesh();
  for (ModuleOp program : dist::programsOf(module))
    if (failed(verifyGroups(program, mesh)))
      return failure();
  return verifyNumbers(module);
}
