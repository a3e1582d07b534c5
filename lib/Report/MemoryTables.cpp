//===- MemoryTables.cpp - memory over time as data ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MemoryTables.h"

#include "Codegen/LocationText.h"

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

llvm::json::Object report::peakOf(const std::map<std::string, exec::MemoryProfile> &profiles) {
  const std::pair<const std::string, exec::MemoryProfile> *most = nullptr;
  for (auto &entry : profiles)
    // What ranks do most often stands for what is as large.
    if (!most || entry.second.peakBytes > most->second.peakBytes ||
        (entry.second.peakBytes == most->second.peakBytes && entry.first == "step"))
      most = &entry;
  if (!most)
    return {};
  const exec::MemoryProfile &profile = most->second;
  llvm::json::Array buffers;
  int64_t lasting = 0, others = profile.peakBytes;
  for (const exec::HeldBuffer &held : profile.atPeak) {
    exec::BufferOp buffer = held.buffer;
    if (buffer.isPersistent()) {
      lasting += held.bytes;
      others -= held.bytes;
    }
    if (buffer.isPersistent() || buffers.size() == exec::MemoryProfile::attributed)
      continue;
    // What the writer is made from says more than the buffer, where there is one.
    Location location = held.writer ? held.writer->getLoc() : buffer.getLoc();
    buffers.push_back(llvm::json::Object{
        {"name", buffer.getName()},
        {"category", stringifyCategory(buffer.getCategory())},
        {"bytes", held.bytes},
        {"slices", held.slices},
        {"task", held.task ? held.task.getValue() : ""},
        {"op", nameOf(held.writer)},
        {"location", codegen::locationText(location)}});
    others -= held.bytes;
  }
  StringAttr task = taskAt(profile, profile.peakOp);
  return llvm::json::Object{{"program", most->first},
                            {"op", profile.peakOp},
                            {"ops", profile.ops},
                            {"task", task ? task.getValue() : ""},
                            {"bytes", profile.peakBytes},
                            {"lasting", lasting},
                            {"buffers", std::move(buffers)},
                            {"others", others}};
}

llvm::json::Object report::overTime(const exec::MemoryProfile &profile) {
  llvm::json::Array points, tasks;
  for (const exec::MemoryProfile::Point &point : profile.points) {
    llvm::json::Object live{{"op", point.op}};
    for (unsigned i = 0; i < point.live.bytes.size(); ++i)
      if (int64_t bytes = point.live.bytes[i])
        live[stringifyCategory(exec::Category(i))] = bytes;
    points.push_back(std::move(live));
  }
  for (auto &[op, task] : profile.tasks)
    tasks.push_back(llvm::json::Object{{"op", op}, {"task", task.getValue()}});
  return llvm::json::Object{{"ops", profile.ops},
                            {"peak_op", profile.peakOp},
                            {"peak_bytes", profile.peakBytes},
                            {"points", std::move(points)},
                            {"tasks", std::move(tasks)}};
}

std::vector<PeakRow> report::peakRows(const llvm::json::Object &program) {
  std::vector<PeakRow> rows;
  const llvm::json::Object *peak = program.getObject("peak");
  const llvm::json::Array *buffers = peak ? peak->getArray("buffers") : nullptr;
  if (!buffers)
    return rows;
  for (const llvm::json::Value &value : *buffers) {
    const llvm::json::Object *row = value.getAsObject();
    if (!row)
      continue;
    auto text = [&](StringRef key) { return row->getString(key).value_or("").str(); };
    rows.push_back({text("name"), text("category"), text("task"), text("op"), text("location"),
                    row->getInteger("bytes").value_or(0), row->getInteger("slices").value_or(1)});
  }
  return rows;
}

std::string report::peakPlace(const llvm::json::Object &program) {
  const llvm::json::Object *peak = program.getObject("peak");
  if (!peak)
    return "";
  std::string place = llvm::formatv("in @{0} at op {1} of {2}",
                                    peak->getString("program").value_or("?"),
                                    peak->getInteger("op").value_or(0),
                                    peak->getInteger("ops").value_or(0));
  StringRef task = peak->getString("task").value_or("");
  return task.empty() ? place : place + ", in " + task.str();
}

int64_t report::peakOthers(const llvm::json::Object &program) {
  const llvm::json::Object *peak = program.getObject("peak");
  return peak ? peak->getInteger("others").value_or(0) : 0;
}
