//===- CommunicationSimulator.cpp - what devices tell each other, in order --===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Verify/CommunicationSimulator.h"
#include "Dist/Programs.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

static Axes groupAxesOf(Operation *op, const Mesh &mesh) {
  return cast<CollectiveOpInterface>(op).getGroupAttr().on(mesh);
}

CommunicationSimulator::CommunicationSimulator(ArrayRef<ModuleOp> modules, const Mesh &mesh,
                                               int64_t capacity)
    : programs(modules), mesh(mesh), capacity(capacity) {
  auto tellApart = [&](unsigned axis) {
    if (mesh.axes[axis].size > 1 && !llvm::is_contained(apart, axis))
      apart.push_back(axis);
  };
  for (ModuleOp program : programs) {
    if (auto at = program->getAttrOfType<DictionaryAttr>(coordinatesAttr))
      for (NamedAttribute entry : at)
        tellApart(mesh.find(entry.getName()));
    program.walk([&](Operation *op) {
      if (isa<SendOp, RecvOp>(op))
        for (unsigned axis : groupAxesOf(op, mesh))
          tellApart(axis);
    });
  }
  llvm::sort(apart);
}

/// Among devices that do the same at the same time a collective is always complete.
bool CommunicationSimulator::isRelevant(Operation *op) const {
  return isa<CollectiveOpInterface>(op) && llvm::any_of(groupAxesOf(op, mesh), [&](unsigned axis) {
           return llvm::is_contained(apart, axis);
         });
}

/// What a function does, with its calls and repetitions written out.
const SmallVector<Operation *, 0> &CommunicationSimulator::opsOf(func::FuncOp function) {
  auto [it, isNew] = expanded.try_emplace(function);
  if (!isNew)
    return it->second;
  SmallVector<Operation *, 0> ops;
  auto module = function->getParentOfType<ModuleOp>();
  for (Operation &op : function.getBody().front()) {
    if (isRelevant(&op))
      ops.push_back(&op);
    auto call = dyn_cast<func::CallOp>(op);
    auto repeat = dyn_cast<train::RepeatOp>(op);
    if (!call && !repeat)
      continue;
    const auto &inner = opsOf(
        module.lookupSymbol<func::FuncOp>(call ? call.getCallee() : repeat.getCallee()));
    for (int64_t i = 0, count = repeat ? int64_t(repeat.getCount()) : 1;
         i < count && !inner.empty(); ++i)
      ops.append(inner.begin(), inner.end());
  }
  return expanded[function] = std::move(ops);
}

/// "device pipe = 1": its coordinates along the axes that tell devices apart.
std::string CommunicationSimulator::describe(int64_t rank) const {
  std::string text = "device";
  for (unsigned axis : apart)
    text += (axis == apart.front() ? " " : ", ") + mesh.axes[axis].name + " = " +
            std::to_string(mesh.coordinate(rank, axis));
  return text;
}

int64_t CommunicationSimulator::peerOf(const Device &device, Operation *op,
                                       int64_t groupRank) const {
  return mesh.group(device.rank, groupAxesOf(op, mesh))[groupRank];
}

std::optional<bool> CommunicationSimulator::send(Device &device, SendOp op) {
  int64_t peer = peerOf(device, op, op.getTo());
  if (peer == device.rank) {
    op.emitOpError("sends from ") << describe(peer) << " to itself";
    return std::nullopt;
  }
  Channel channel{device.rank, peer, groupAxesOf(op, mesh), op.getChannel()};
  auto &messages = mail[channel];
  if (device.begun) // taken
    return llvm::none_of(messages, [](const Message &message) { return message.waitedFor; });
  if (capacity > 0 && int64_t(messages.size()) >= capacity)
    return false;
  messages.push_back({op, capacity == 0});
  wake(peer);
  device.begun = true;
  return capacity > 0;
}

std::optional<bool> CommunicationSimulator::receive(Device &device, RecvOp op) {
  int64_t peer = peerOf(device, op, op.getFrom());
  if (peer == device.rank) {
    op.emitOpError("receives on ") << describe(peer) << " from itself";
    return std::nullopt;
  }
  auto &messages = mail[{peer, device.rank, groupAxesOf(op, mesh), op.getChannel()}];
  if (messages.empty())
    return false;
  SendOp sent = messages.front().op;
  messages.pop_front();
  if (sent.getX().getType() != op.getY().getType()) {
    InFlightDiagnostic error = op.emitOpError("receives ")
                               << op.getY().getType() << " on " << describe(device.rank)
                               << ", but the next message from " << describe(peer)
                               << " on channel " << op.getChannel() << " is "
                               << sent.getX().getType();
    error.attachNote(sent.getLoc()) << "which is sent here";
    return std::nullopt;
  }
  wake(peer);
  return true;
}

std::optional<bool> CommunicationSimulator::meet(size_t number, Operation *op) {
  Device &device = devices[number];
  if (device.begun)
    return false; // the last one to come moves all on
  // Those who stand for others meet for them.
  Axes axes;
  for (unsigned axis : groupAxesOf(op, mesh))
    if (llvm::is_contained(apart, axis))
      axes.push_back(axis);
  SmallVector<int64_t> members = mesh.group(device.rank, axes);
  // In terms of the runtime: communicators are of all of the group's axes.
  Meeting &meeting = meetings[{groupAxesOf(op, mesh), members.front()}];
  if (!meeting.first) {
    meeting.first = op;
    meeting.firstRank = device.rank;
  }
  Operation *first = meeting.first;
  if (first->getName() != op->getName() ||
      first->getAttrDictionary() != op->getAttrDictionary() ||
      first->getOperandTypes() != op->getOperandTypes() ||
      first->getResultTypes() != op->getResultTypes()) {
    InFlightDiagnostic error = op->emitOpError("is what ")
                               << describe(device.rank) << " does next among "
                               << mesh.str(groupAxesOf(op, mesh)) << ", but "
                               << describe(meeting.firstRank) << " does another collective";
    error.attachNote(first->getLoc()) << "which is this";
    return std::nullopt;
  }
  device.begun = true;
  meeting.here.push_back(number);
  if (meeting.here.size() < members.size())
    return false;
  SmallVector<size_t> here = std::move(meeting.here);
  meetings.erase({groupAxesOf(op, mesh), members.front()});
  for (size_t member : here)
    if (member != number) {
      ++devices[member].next;
      devices[member].begun = false;
      ready.push_back(member);
    }
  return true;
}

bool CommunicationSimulator::advance(size_t number) {
  Device &device = devices[number];
  while (device.next < device.ops->size()) {
    Operation *op = (*device.ops)[device.next];
    std::optional<bool> done;
    if (auto message = dyn_cast<SendOp>(op))
      done = send(device, message);
    else if (auto message = dyn_cast<RecvOp>(op))
      done = receive(device, message);
    else
      done = meet(number, op);
    if (!done)
      return false;
    if (!*done)
      return true;
    ++device.next;
    device.begun = false;
  }
  return true;
}

SmallVector<int64_t> CommunicationSimulator::awaited(const Device &device) const {
  Operation *op = (*device.ops)[device.next];
  if (auto message = dyn_cast<SendOp>(op))
    return {peerOf(device, op, message.getTo())};
  if (auto message = dyn_cast<RecvOp>(op))
    return {peerOf(device, op, message.getFrom())};
  Axes axes;
  for (unsigned axis : groupAxesOf(op, mesh))
    if (llvm::is_contained(apart, axis))
      axes.push_back(axis);
  SmallVector<int64_t> members = mesh.group(device.rank, axes);
  const Meeting &meeting = meetings.at({groupAxesOf(op, mesh), members.front()});
  llvm::erase_if(members, [&](int64_t rank) {
    return llvm::is_contained(meeting.here, numbers.at(rank));
  });
  return members;
}

/// Nobody can go on. Follows who waits for whom to somebody who has ended, or round.
LogicalResult CommunicationSimulator::reportStandstill() {
  auto stuck = llvm::find_if(devices, [](const Device &d) { return d.next < d.ops->size(); });
  if (stuck == devices.end())
    return success();
  SmallVector<const Device *> path;
  const Device *at = &*stuck;
  while (at->next < at->ops->size() && !llvm::is_contained(path, at)) {
    path.push_back(at);
    at = &devices[numbers.at(awaited(*at).front())];
  }
  auto opOf = [](const Device *device) { return (*device->ops)[device->next]; };
  if (at->next == at->ops->size()) {
    const Device *last = path.back();
    InFlightDiagnostic error = opOf(last)->emitOpError("waits on ")
                               << describe(last->rank) << " for " << describe(at->rank)
                               << ", which has ended";
    error.attachNote(func::FuncOp(at->entry).getLoc()) << "which runs this";
    return error;
  }
  path.erase(path.begin(), llvm::find(path, at));
  InFlightDiagnostic error = opOf(at)->emitOpError("never ends: ") << describe(at->rank)
                             << " waits here for " << describe(awaited(*at).front());
  for (const Device *device : ArrayRef(path).drop_front())
    error.attachNote(opOf(device)->getLoc()) << describe(device->rank) << " waits here for "
                                             << describe(awaited(*device).front());
  return error;
}

LogicalResult CommunicationSimulator::run(ArrayRef<func::FuncOp> entries) {
  devices.clear();
  numbers.clear();
  mail.clear();
  meetings.clear();
  // One device for each coordinate along the axes that tell them apart.
  for (int64_t rank : mesh.group(0, apart))
    for (auto [program, entry] : llvm::zip(programs, entries))
      if (runsOn(program, mesh, rank)) {
        numbers[rank] = devices.size();
        ready.push_back(devices.size());
        devices.push_back({rank, entry, nullptr});
      }
  for (func::FuncOp entry : entries)
    (void)opsOf(entry);
  for (Device &device : devices)
    device.ops = &expanded.at(device.entry);
  while (!ready.empty()) {
    size_t number = ready.front();
    ready.pop_front();
    if (!advance(number))
      return failure();
  }
  if (failed(reportStandstill()))
    return failure();
  for (auto &[channel, messages] : mail)
    if (!messages.empty()) {
      InFlightDiagnostic error = messages.front().op.emitOpError("sends from ")
                                 << describe(std::get<0>(channel)) << " what "
                                 << describe(std::get<1>(channel)) << " never receives";
      error.attachNote(devices[numbers.at(std::get<1>(channel))].entry.getLoc())
          << "which runs this";
      return error;
    }
  return success();
}
