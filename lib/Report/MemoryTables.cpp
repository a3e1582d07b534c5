//===- MemoryTables.cpp - memory over time as data ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MemoryTables.h"

#include "meshwright/LocationText.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::report;

/// The task that runs at op `op`, or null.
static StringAttr taskAt(const exec::MemoryProfile &profile, int64_t op) {
  for (auto &[at, task] : profile.tasks)
    if (at == op)
      return task;
  return {};
}

static std::string nameOf(Operation *op) {
  if (!op)
    return "";
  if (auto launch = dyn_cast<exec::LaunchOp>(op))
    return ("launch @" + launch.getKernel()).str();
  return op->getName().stripDialect().str();
}

std::optional<plan::Peak>
report::peakOf(const std::map<std::string, exec::MemoryProfile> &profiles) {
  const std::pair<const std::string, exec::MemoryProfile> *most = nullptr;
  for (auto &entry : profiles)
    // What ranks do most often stands for what is as large.
    if (!most || entry.second.peakBytes > most->second.peakBytes ||
        (entry.second.peakBytes == most->second.peakBytes && entry.first == "step"))
      most = &entry;
  if (!most)
    return std::nullopt;
  const exec::MemoryProfile &profile = most->second;
  plan::Peak peak;
  peak.program = most->first;
  peak.op = profile.peakOp;
  peak.ops = profile.ops;
  if (StringAttr task = taskAt(profile, profile.peakOp))
    peak.task = task.str();
  peak.bytes = peak.others = profile.peakBytes;
  for (const exec::HeldBuffer &held : profile.atPeak) {
    exec::BufferOp buffer = held.buffer;
    if (buffer.isPersistent()) {
      peak.lasting += held.bytes;
      peak.others -= held.bytes;
    }
    if (buffer.isPersistent() || peak.buffers.size() == exec::MemoryProfile::attributed)
      continue;
    // What the writer is made from says more than the buffer, where there is one.
    Location location = held.writer ? held.writer->getLoc() : buffer.getLoc();
    peak.buffers.push_back({buffer.getName().str(), stringifyCategory(buffer.getCategory()).str(),
                            held.bytes, held.slices, held.task ? held.task.str() : "",
                            nameOf(held.writer), codegen::locationText(location)});
    peak.others -= held.bytes;
  }
  return peak;
}

MemoryOverTime report::overTime(const exec::MemoryProfile &profile) {
  MemoryOverTime entry;
  entry.ops = profile.ops;
  entry.peakOp = profile.peakOp;
  entry.peakBytes = profile.peakBytes;
  for (const exec::MemoryProfile::Point &point : profile.points) {
    entry.points.push_back({point.op, {}});
    for (unsigned i = 0; i < point.live.bytes.size(); ++i)
      if (int64_t bytes = point.live.bytes[i])
        entry.points.back().live[stringifyCategory(exec::Category(i)).str()] = bytes;
  }
  for (auto &[op, task] : profile.tasks)
    entry.tasks.push_back({op, task.str()});
  llvm::StringMap<int64_t> calls;
  for (Operation *op : profile.at) {
    std::string name = nameOf(op), place = codegen::locationText(op->getLoc());
    if (!place.empty())
      name += ", " + place;
    auto [call, isNew] = calls.try_emplace(name, entry.calls.size());
    if (isNew)
      entry.calls.push_back(name);
    entry.callAt.push_back(call->second);
  }
  for (auto [op, begin] : profile.begins)
    entry.begins[op] = {begin.buffer.getName().str(), begin.bytes};
  entry.firstUpdate = profile.firstUpdate;
  return entry;
}

std::string report::peakLocation(const plan::Peak &peak) {
  std::string location =
      llvm::formatv("in @{0} at op {1} of {2}", peak.program, peak.op, peak.ops).str();
  return peak.task.empty() ? location : location + ", in " + peak.task;
}
