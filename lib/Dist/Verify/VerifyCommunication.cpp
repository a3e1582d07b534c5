//===- VerifyCommunication.cpp - proves that all collectives meet -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"
#include "Dist/Programs.h"
#include "Dist/Verify/CommunicationSimulator.h"
#include "Dist/Verify/VerifyTasks.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTVERIFYCOMMUNICATION
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

/// Follows the calls and repetitions of `function`, which `callers` are on the way to: those that
/// cannot be followed could hide a collective.
static LogicalResult followCalls(func::FuncOp function, const SymbolTable &symbols,
                                 llvm::SetVector<Operation *> &callers,
                                 llvm::DenseSet<Operation *> &done) {
  if (done.contains(function))
    return success();
  if (!callers.insert(function))
    return function.emitOpError("calls itself, directly or through others");
  WalkResult result = function.walk([&](Operation *op) {
    auto call = dyn_cast<func::CallOp>(op);
    auto repeat = dyn_cast<train::RepeatOp>(op);
    if (!call && !repeat)
      return WalkResult::advance();
    StringRef name = call ? call.getCallee() : repeat.getCallee();
    auto callee = symbols.lookup<func::FuncOp>(name);
    if (!callee || callee.isExternal()) {
      op->emitOpError("calls @") << name << ", which is not a function with a body";
      return WalkResult::interrupt();
    }
    return failed(followCalls(callee, symbols, callers, done)) ? WalkResult::interrupt()
                                                               : WalkResult::advance();
  });
  callers.pop_back();
  done.insert(function);
  return failure(result.wasInterrupted());
}

/// Each collective of a program stands where every device that runs it comes by.
static LogicalResult verifyControlFlow(ModuleOp program) {
  MeshOp mesh = lookupMesh(program);
  if (!mesh)
    return failure();
  SymbolTable symbols(program);
  llvm::SetVector<Operation *> callers;
  llvm::DenseSet<Operation *> done;
  for (auto function : program.getOps<func::FuncOp>())
    if (!function.isExternal() && failed(followCalls(function, symbols, callers, done)))
      return failure();
  WalkResult result = program.walk([&](Operation *op) {
    for (OpResult value : op->getResults())
      if (dist::shardingOf(value.getType())) {
        op->emitOpError("result ") << value.getResultNumber() << " still has a sharding, "
                                   << value.getType() << "; run dist-partition first";
        return WalkResult::interrupt();
      }
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (!collective)
      return WalkResult::advance();
    if (collective.getGroupAttr().getMesh() != FlatSymbolRefAttr::get(mesh)) {
      op->emitOpError("runs on ") << collective.getGroupAttr().getMesh()
                                  << ", but the devices are those of @" << mesh.getSymName();
      return WalkResult::interrupt();
    }
    Operation *around = op->getParentOp();
    if (!isa<func::FuncOp>(around)) {
      (op->emitOpError("stands inside ")
       << around->getName() << ", so some devices could pass it by while others wait in it")
              .attachNote(around->getLoc())
          << "move the collective out of this op";
      return WalkResult::interrupt();
    }
    if (!around->getRegion(0).hasOneBlock()) {
      op->emitOpError("stands in a function with branches, so some devices could pass it by "
                      "while others wait in it");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// The functions called `name`, one of each program; a program without is an error.
static FailureOr<SmallVector<func::FuncOp>> entriesOf(ArrayRef<ModuleOp> programs,
                                                      func::FuncOp like) {
  SmallVector<func::FuncOp> entries;
  for (ModuleOp program : programs) {
    auto entry = program.lookupSymbol<func::FuncOp>(like.getSymName());
    if (!entry || entry.isExternal()) {
      InFlightDiagnostic error = program.emitError("program has no @")
                                 << like.getSymName() << ", in which devices meet";
      error.attachNote(like.getLoc()) << "as this one has";
      return error;
    }
    entries.push_back(entry);
  }
  return entries;
}

namespace {
class VerifyCommunicationPass
    : public dist::impl::DistVerifyCommunicationBase<VerifyCommunicationPass> {
public:
  using DistVerifyCommunicationBase::DistVerifyCommunicationBase;

private:
  void runOnModule() override {
    ModuleOp module = getOperation();
    SmallVector<ModuleOp> programs = programsOf(module);
    if (failed(verifyPrograms(module)) || failed(verifyStorage(module)) ||
        llvm::any_of(programs, [](ModuleOp program) { return failed(verifyControlFlow(program)); }))
      return signalPassFailure();
    Mesh mesh = lookupMesh(module).getMesh();
    CommunicationSimulator simulator(programs, mesh, capacity);
    if (!simulator.isNeeded())
      return; // all devices run all collectives in one order
    // What the outside calls: in each program the same.
    llvm::StringSet<> done;
    for (ModuleOp program : programs)
      for (auto function : program.getOps<func::FuncOp>()) {
        if (function.isPrivate() || function.isExternal() ||
            !done.insert(function.getSymName()).second)
          continue;
        auto entries = entriesOf(programs, function);
        if (failed(entries) || failed(simulator.run(*entries)) || failed(verifyTasks(*entries)))
          return signalPassFailure();
      }
  }
};
} // namespace
