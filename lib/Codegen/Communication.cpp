//===- Communication.cpp - what groups and collectives are ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Communication.h"

#include "Dist/Dist.h"
#include "meshwright/Cost/TripCount.h"

#include "meshwright/runtime/Traffic.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

static int64_t elements(Value memory) {
  return memory ? cast<MemRefType>(memory.getType()).getNumElements() : 0;
}

namespace {
/// How often private programs are called in one run of each that is not.
class CallCounts {
public:
  explicit CallCounts(ModuleOp module) {
    module.walk([&](exec::ProgramOp program) {
      if (!program.isPrivate())
        add(program, program, 1);
    });
  }
  /// By entry point, in their order.
  llvm::MapVector<exec::ProgramOp, llvm::MapVector<exec::ProgramOp, int64_t>> counts;

private:
  void add(exec::ProgramOp entry, exec::ProgramOp program, int64_t times) {
    counts[program][entry] += times;
    program.walk([&](exec::CallOp call) {
      add(entry, symbols.lookupNearestSymbolFrom<exec::ProgramOp>(call, call.getCalleeAttr()),
          times * cost::runsOf(call));
    });
  }
  SymbolTableCollection symbols;
};
} // namespace

Type Collective::getElementType() const {
  const Segment &first = segments.front();
  return getElementTypeOrSelf(first.source ? first.source : first.target);
}

int64_t Collective::getCount() const {
  int64_t sum = 0;
  for (const Segment &segment : segments)
    sum += segment.count;
  return sum;
}

Communication::Communication(ModuleOp module)
    : numbered(module->getAttrOfType<ArrayAttr>(exec::groupsAttr)) {
  if (!numbered)
    return;
  dist::Mesh mesh;
  for (auto op : module.getOps<dist::MeshOp>())
    mesh = op.getMesh();
  auto members = [&](ArrayAttr axes) {
    int64_t count = 1;
    for (Attribute axis : axes)
      if (int number = mesh.find(cast<StringAttr>(axis).getValue()); number >= 0)
        count *= mesh.axes[number].size;
    return count;
  };
  for (Attribute group : numbered) {
    groups.emplace_back();
    for (Attribute entry : cast<ArrayAttr>(group))
      if (auto axis = dyn_cast<StringAttr>(entry)) // else the channel
        groups.back().push_back(axis.getValue());
  }
  CallCounts calls(module);
  module.walk([&](exec::MemoryCollectiveOpInterface call) {
    Operation *op = call;
    Collective entry{op, numberOf(exec::groupOf(op))};
    entry.members = members(call.getAxes());
    SmallVector<Value> sources = call.getSources(), targets = call.getTargets();
    for (size_t i = 0; i < std::max(sources.size(), targets.size()); ++i) {
      Value source = i < sources.size() ? sources[i] : Value();
      Value target = i < targets.size() ? targets[i] : Value();
      entry.segments.push_back({source, target,
                                std::max(elements(source), elements(target)) /
                                    call.getParts(entry.members)});
    }
    std::vector<int64_t> counts;
    for (const Collective::Segment &segment : entry.segments)
      counts.push_back(segment.count);
    int64_t width = llvm::divideCeil(entry.getElementType().getIntOrFloatBitWidth(), 8);
    SmallVector<int64_t> wide = call.getTable();
    SmallVector<int32_t> table(wide.begin(), wide.end());
    if (isa<exec::ExchangeOp>(op)) {
      ExchangeTable exchange{table.data(), entry.members};
      entry.groupBytes = exchange.sentElements(counts) * width;
      for (int64_t rank = 0; rank < entry.members; ++rank)
        entry.scratch.packed =
            std::max(entry.scratch.packed, exchange.packedBytes(rank, counts, width));
    } else {
      int64_t fixed = 0;
      for (auto [to, from] : llvm::enumerate(table))
        fixed += int32_t(to) == from;
      entry.groupBytes = trafficOf(std::string_view(entry.getName()), counts, width, entry.members,
                                   call.getRootOrPeer().value_or(0), fixed);
      entry.scratch = scratchOf(std::string_view(entry.getName()), counts, width, entry.members);
    }
    for (auto &[program, times] : calls.counts[op->getParentOfType<exec::ProgramOp>()])
      entry.runs.push_back({program.getSymName(), times * cost::runsOf(op)});
    collectives.push_back(std::move(entry));
  });
  llvm::sort(collectives, [](const Collective &a, const Collective &b) {
    return exec::collectiveOf(a.op) < exec::collectiveOf(b.op);
  });
  SmallVector<Scratch> most(groups.size());
  for (const Collective &collective : collectives) {
    Scratch &scratch = most[collective.group];
    scratch.received = std::max(scratch.received, collective.scratch.received);
    scratch.packed = std::max(scratch.packed, collective.scratch.packed);
  }
  for (const Scratch &scratch : most)
    scratchBytes.push_back(scratch.received + scratch.packed);
}
