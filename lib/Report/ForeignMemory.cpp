//===- ForeignMemory.cpp - memory as another system would have it -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/ForeignMemory.h"

#include "Exec/Exec.h"
#include "Train/Train.h"
#include "meshwright/Cost/CallWork.h"
#include "meshwright/MemoryProfile.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace meshwright;

/// Bytes of the arena that a system without them saves, which reduces gradients in their own memory: most of what is
/// live where results of reductions count nothing is less than what is live with them.
static double savedInPlace(const exec::MemoryProfile &step) {
  std::optional<int64_t> first;
  for (auto [number, op] : llvm::enumerate(step.at)) {
    if (isa_and_nonnull<exec::ReduceScatterOp>(op) && !op->getParentOfType<exec::LoopOp>() &&
        op->getParentOfType<exec::ProgramOp>().getSymName() == "step") {
      first = number;
      break;
    }
  }
  if (!first)
    return 0;
  // Full gradients are there until the first of them is reduced.
  int64_t whole = 0, most = 0;
  for (const exec::MemoryProfile::Point &point : step.points)
    if (point.op < *first)
      whole = point.live[exec::Category::Gradient];
  for (const exec::MemoryProfile::Point &point : step.points) {
    int64_t results = point.op < *first ? 0 : point.live[exec::Category::Gradient] - whole;
    most = std::max(most, point.live.total() - std::max<int64_t>(0, results));
  }
  return double(step.peakBytes - most);
}

/// Elements of the matrices of one layer, each shape of layers once, and of the largest matrix outside of layers that
/// products read, the head.
static std::pair<double, double> matricesOf(ModuleOp program) {
  llvm::StringSet<> read;
  program.walk([&](exec::MatmulOp product) {
    for (Value operand : product->getOperands())
      if (auto buffer = operand.getDefiningOp<exec::BufferOp>(); buffer && buffer.getVariable())
        read.insert(*buffer.getVariable());
  });
  double layer = 0, head = 0;
  llvm::StringSet<> known;
  SymbolTable symbols(program);
  llvm::StringSet<> named;
  program.walk([&](exec::BufferOp buffer) {
    if (buffer.getCategory() != exec::Category::Parameter || !buffer.getVariable() ||
        !named.insert(*buffer.getVariable()).second)
      return;
    auto variable = SymbolTable::lookupNearestSymbolFrom<train::VariableOp>(
        buffer, buffer.getVariableAttr());
    auto type = cast<MemRefType>(buffer.getType());
    auto elements = double(type.getNumElements());
    if (variable && variable.getStacked() && type.getRank() > 2) {
      // "model.layers.{layer+4}.mlp.up_proj.weight" of several chunks is one matrix; parts of a tensor are several.
      std::string name = variable.getSymName().str();
      if (train::StorageAttr storage = variable.getStorageAttr())
        name = (StringRef(storage.getTensor()).split('}').second + Twine(storage.getOffset())).str();
      if (known.insert(name).second)
        layer += elements / double(type.getDimSize(0));
    } else if (type.getRank() == 2 && read.contains(*buffer.getVariable())) {
      head = std::max(head, elements);
    }
  });
  return {layer, head};
}

double meshwright::foreignArena(ModuleOp program, const plan::Program &entry,
                                const cost::Profile &profile) {
  auto bytes = double(entry.arenaBytes);
  for (const plan::MemoryLine &line : entry.memory)
    if (auto factor = profile.memory.find(line.category); factor != profile.memory.end())
      bytes += (factor->second - 1) * double(line.bytes);
  auto profiles = exec::profileMemory(program);
  auto step = profiles.find("step");
  if (step == profiles.end())
    return bytes;
  if (profile.gradientsInPlace)
    bytes -= savedInPlace(step->second);
  if (profile.unusedGradients > 0) {
    auto [layer, head] = matricesOf(program);
    cost::WorkReader work;
    double logits = 0;
    program.walk([&](exec::LaunchOp launch) { logits = std::max(logits, work.of(launch).logits); });
    // That of the head comes when the logits in f32 have gone.
    constexpr double bytesOfLogit = 4;
    bytes += profile.unusedGradients * layer +
             (logits > 0 ? std::max(0.0, profile.unusedGradients * head - bytesOfLogit * logits) : 0);
  }
  return bytes;
}
