//===- Verify.cpp - exec-verify ---------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Communication.h"
#include "Exec/Passes.h"
#include "Facts.h"
#include "Run.h"

#include "Dist/Programs.h"
#include "Train/Sizes.h"
#include "meshwright/runtime/Staging.h"

#include "mlir/IR/Threading.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECVERIFY
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

/// What `memory` is part of.
static Value wholeOf(Value memory) {
  while (isa_and_nonnull<SlotOp, ViewOp, WindowOp>(memory.getDefiningOp()))
    memory = memory.getDefiningOp()->getOperand(0);
  return memory;
}

/// Whether `memory` is part of a buffer, or of a program's argument.
static bool isPlanned(Value memory) {
  Value whole = wholeOf(memory);
  return whole.getDefiningOp<BufferOp>() || isa<ProgramOp>(whole.getParentBlock()->getParentOp());
}

namespace {
class ProgramVerifier {
public:
  /// With the size of each space's arena.
  ProgramVerifier(ProgramOp program, const BySpace<int64_t> &arenas)
      : program(program), arenas(arenas) {}

  LogicalResult run() {
    if (failed(checkOps()) || failed(checkBuffers()) || failed(checkWrites()) ||
        failed(checkTokens()) || failed(checkConditions()))
      return failure();
    return verifyRun(program);
  }

private:
  LogicalResult checkOps();
  LogicalResult checkLaunch(LaunchOp launch);
  LogicalResult checkCall(CallOp call);
  LogicalResult checkBuffers();
  LogicalResult checkWrites();
  LogicalResult checkTokens();
  LogicalResult checkConditions();

  ProgramOp program;
  BySpace<int64_t> arenas;
  SymbolTableCollection symbols;
};
} // namespace

LogicalResult ProgramVerifier::checkOps() {
  WalkResult result = program.walk([&](Operation *op) {
    for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
      if (isa<TensorType>(type)) {
        op->emitOpError("uses ") << type << "; programs hold memory only, see exec-bufferize";
        return WalkResult::interrupt();
      }
    if (!isa<SlotOp, ViewOp, WindowOp, CallOp, CopyOp>(op))
      for (Value operand : op->getOperands())
        if (isOffloaded(operand.getType()) &&
            !(isa<LaunchOp>(op) && spaceRow(spaceOf(operand.getType())).hasAddresses())) {
          op->emitOpError("uses ") << operand.getType() << " of "
                                   << spaceRow(spaceOf(operand.getType())).text
                                   << "; copy it, see exec-offload";
          return WalkResult::interrupt();
        }
    if (auto call = dyn_cast<CallOp>(op); call && failed(checkCall(call)))
      return WalkResult::interrupt();
    if (failed(verifyScratchMemory(op)) || failed(verifyAttentionFacts(op)))
      return WalkResult::interrupt();
    auto launch = dyn_cast<LaunchOp>(op);
    return launch && failed(checkLaunch(launch)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult ProgramVerifier::checkLaunch(LaunchOp launch) {
  auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(launch, launch.getKernelAttr());
  auto allowed = kernel->getAttrOfType<ArrayAttr>(inplaceAttr);
  for (unsigned o = 0; o < launch.getOutputs().size(); ++o) {
    Value out = launch.getOutputs()[o];
    for (unsigned i = 0; i < launch.getInputs().size(); ++i) {
      if (launch.getInputs()[i] != out)
        continue;
      bool fine = allowed && llvm::any_of(allowed, [&](Attribute pair) {
                    auto indices = cast<ArrayAttr>(pair);
                    return cast<IntegerAttr>(indices[0]).getInt() == int64_t(i) &&
                           cast<IntegerAttr>(indices[1]).getInt() == int64_t(o);
                  });
      if (!fine)
        return launch.emitOpError("writes output ") << o << " over input " << i << ", which "
                                                    << launch.getKernelAttr() << " does not allow";
    }
    for (Value other : launch.getOutputs().drop_front(o + 1))
      if (other == out)
        return launch.emitOpError("writes two outputs to the same memory");
  }
  return success();
}

/// A callee writes its arguments while it reads others: those are apart. Of one that does two tasks at
/// once the plan counts the programs of both alone.
LogicalResult ProgramVerifier::checkCall(CallOp call) {
  if (auto pair = call->getAttrOfType<ArrayAttr>(pairAttr)) {
    auto task = call->getAttrOfType<StringAttr>(dist::taskAttr);
    if (!task || task.getValue().count('+') != 1)
      return call.emitOpError("has '") << pairAttr << "' but no '" << dist::taskAttr
                                       << "' of two tasks, e.g. \"F0.1+B0.0\"";
    for (Attribute alone : pair)
      if (!symbols.lookupNearestSymbolFrom<ProgramOp>(call, cast<FlatSymbolRefAttr>(alone)))
        return call.emitOpError("attribute '") << pairAttr << "' names " << alone
                                               << ", which is not a program";
  }
  SmallVector<Value> written(call.getUpdated());
  llvm::append_range(written, call.getOutputs());
  for (Value memory : written)
    if (llvm::count(call->getOperands(), memory) > 1)
      return call.emitOpError("gives memory that ")
             << call.getCalleeAttr() << " writes as another argument as well";
  return success();
}

/// Nothing writes inputs, of the program or of those that call it.
LogicalResult ProgramVerifier::checkWrites() {
  WalkResult result = program.walk([&](MemoryEffectOpInterface op) {
    SmallVector<MemoryEffects::EffectInstance> effects;
    op.getEffects(effects);
    for (MemoryEffects::EffectInstance &effect : effects) {
      auto *operand = effect.getEffectValue<OpOperand *>();
      if (!operand || !isa<MemoryEffects::Write>(effect.getEffect()) ||
          !isa<MemRefType>(operand->get().getType()))
        continue;
      Value whole = wholeOf(operand->get());
      if (auto buffer = whole.getDefiningOp<BufferOp>(); buffer && buffer.getInput())
        return op->emitOpError("writes the input '") << buffer.getName() << "'",
               WalkResult::interrupt();
      if (llvm::is_contained(program.getInputs(), whole))
        return op->emitOpError("writes argument ")
                   << cast<BlockArgument>(whole).getArgNumber() << " of "
                   << program.getSymNameAttr() << ", which is one of its 'ins'",
               WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult ProgramVerifier::checkBuffers() {
  llvm::StringMap<BufferOp> names;
  for (auto buffer : program.getBody().front().getOps<BufferOp>()) {
    auto [entry, isNew] = names.try_emplace(buffer.getName(), buffer);
    if (!isNew)
      return buffer.emitOpError("is the second one named '") << buffer.getName() << "'";
    if (program.isPrivate() && buffer.isPersistent())
      return buffer.emitOpError("'") << buffer.getName()
                                     << "' outlives a program that is called: only its callers "
                                        "have variables, inputs and outputs";
    if (!buffer.getOffset())
      return buffer.emitOpError("'")
             << buffer.getName() << "' has no offset, see exec-assign-offsets";
    int64_t offset = *buffer.getOffset();
    MemorySpace space = spaceOf(buffer.getType());
    if (offset % spaceRow(space).alignment)
      return buffer.emitOpError("'") << buffer.getName() << "' is at offset " << offset << " of "
                                     << arenaText(space) << ", not at a multiple of "
                                     << spaceRow(space).alignment;
    if (int64_t size = arenas[space]; offset > size - buffer.getBytes())
      return buffer.emitOpError("'") << buffer.getName() << "' ends at "
                                     << offset + buffer.getBytes() << ", outside "
                                     << arenaText(space) << " of " << size << " bytes";
  }
  WalkResult result = program.walk([&](Operation *op) {
    if (isa<BufferOp>(op) && op->getBlock() != &program.getBody().front()) {
      op->emitOpError("is inside a loop; buffers belong at the program's top");
      return WalkResult::interrupt();
    }
    for (Value operand : op->getOperands())
      if (isa<MemRefType>(operand.getType()) && !isPlanned(operand)) {
        op->emitOpError("uses memory that is not part of a buffer");
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Waits are for what is started, whatever data says.
LogicalResult ProgramVerifier::checkTokens() {
  llvm::DenseMap<int64_t, SmallVector<Operation *, 2>> started;
  WalkResult result = program.walk([&](Operation *op) {
    std::optional<int64_t> number = asyncTokenOf(op);
    if (!number)
      return WalkResult::advance();
    if (!queueOf(op) || isa<FinishSendsOp>(op)) {
      op->emitOpError("has '") << asyncTokenAttr
                               << "' but is neither communication nor a copy from or to the host";
      return WalkResult::interrupt();
    }
    started[*number].push_back(op);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  result = program.walk([&](WaitOp wait) {
    int64_t number = wait.getAsyncToken();
    auto found = started.find(number);
    if (found == started.end()) {
      wait.emitOpError("waits for ") << number << ", which nothing starts";
      return WalkResult::interrupt();
    }
    for (auto loop = wait->getParentOfType<LoopOp>(); loop; loop = loop->getParentOfType<LoopOp>())
      // A step has at least one microbatch.
      if (loop.getTimes() && !train::isOverMicrobatches(loop) && !llvm::all_of(found->second, [&](Operation *op) {
            return loop->isAncestor(op);
          })) {
        wait.emitOpError("waits for ")
            << number << " in a loop that data may leave out, but it is started around that";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// A loop with `times` may end after its first iteration, so that communication of later ones alone might never start. A
/// wait for it would not notice: what has not started does not run.
LogicalResult ProgramVerifier::checkConditions() {
  WalkResult result = program.walk([&](WhenOp when) {
    LoopOp loop = when.getLoop();
    int64_t first = loop.getFrom(), begin = when.getBegin(), end = when.getEnd();
    if (!loop.getTimes() || (begin <= first && first < end))
      return WalkResult::advance();
    return when.walk([&](Operation *op) {
      if (!queueOf(op))
        return WalkResult::advance();
      op->emitOpError("runs in iterations from ") << begin << " to " << end << " of a loop that may end after iteration " << first
                                                  << ": data may leave it out";
      return WalkResult::interrupt();
    });
  });
  return failure(result.wasInterrupted());
}

/// Bytes by category are those of a moment: as many as are live, and no more than the arena has.
static LogicalResult verifyMemoryLines(Operation *op, const MemoryAttributes &names) {
  bool exact = !names.live.empty();
  StringRef lines = names.memory, total = exact ? names.live : names.bytes;
  auto list = op->getAttrOfType<DictionaryAttr>(lines);
  auto whole = op->getAttrOfType<IntegerAttr>(total);
  if (!list || !whole)
    return success();
  int64_t sum = 0;
  for (NamedAttribute line : list)
    if (llvm::AddOverflow(sum, cast<IntegerAttr>(line.getValue()).getInt(), sum))
      sum = std::numeric_limits<int64_t>::max();
  if (exact ? sum != whole.getInt() : sum > whole.getInt())
    return op->emitOpError("attribute '") << lines << "' is of " << sum << " bytes, but '" << total
                                          << "' is " << whole.getInt();
  return success();
}

/// Checks one of the programs that devices run.
static LogicalResult verifyProgram(ModuleOp module) {
  auto arena = module->getAttrOfType<IntegerAttr>(arenaBytesAttr);
  if (!arena)
    return module.emitError("has no attribute ") << arenaBytesAttr << ", see exec-assign-offsets";
  ScheduleLimits limits = targetOf(module).getTarget().getScheduleLimits();
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function->hasAttr(kernelAttr))
      return function.emitError("is neither a program nor a kernel");
    if (failed(verifyKernelFacts(function, limits)))
      return failure();
  }
  BySpace<int64_t> arenas = {};
  for (MemorySpace space : memorySpaces) {
    if (failed(verifyMemoryLines(module, memoryAttributes[space])))
      return failure();
    if (auto bytes = module->getAttrOfType<IntegerAttr>(memoryAttributes[space].bytes))
      arenas[space] = bytes.getInt();
  }
  int64_t staging = stagingBytes(arenas), &host = arenas[MemorySpace::Host];
  if (staging > 0 && (host < staging || host % stagingAlignment))
    return module.emitError("has ") << host << " bytes in " << arenaText(MemorySpace::Host)
                                    << ", which ends with " << staging
                                    << " for copies, page-aligned; see exec-assign-offsets";
  host -= staging; // No buffer is there.
  // Persistent memory of one name is one range, and apart from all other.
  llvm::StringMap<BufferOp> persistent;
  for (auto program : module.getOps<ProgramOp>()) {
    auto own = program->getAttrOfType<IntegerAttr>(arenaBytesAttr);
    if (program.isPrivate() && !own)
      return program.emitOpError("has no attribute ")
             << arenaBytesAttr << ", see exec-assign-offsets";
    for (const MemoryAttributes &names : memoryAttributes.values)
      if (failed(verifyMemoryLines(program, names)))
        return failure();
    // A called program has a workspace, which is in the arena.
    if (failed(ProgramVerifier(program, program.isPrivate() ? BySpace<int64_t>{{own.getInt()}} : arenas)
                   .run()))
      return failure();
    for (auto buffer : program.getBody().front().getOps<BufferOp>()) {
      if (!buffer.isPersistent())
        continue;
      auto [entry, isNew] = persistent.try_emplace(buffer.getName(), buffer);
      if (!isNew && entry->second.getOffset() != buffer.getOffset())
        return buffer.emitOpError("'") << buffer.getName() << "' lies elsewhere in another program";
    }
  }
  // By offset, each with the largest end of those up to it.
  struct Outlived {
    BufferOp buffer;
    int64_t begin, end, largestEnd;
  };
  BySpace<std::vector<Outlived>> outlived;
  for (auto &entry : persistent) {
    int64_t begin = *entry.second.getOffset(), end = begin + entry.second.getBytes();
    outlived[spaceOf(entry.second.getType())].push_back({entry.second, begin, end, end});
  }
  for (auto &buffers : outlived.values) {
    llvm::sort(buffers, [](auto &a, auto &b) { return a.begin < b.begin; });
    for (size_t i = 1; i < buffers.size(); ++i) {
      const Outlived &before = buffers[i - 1];
      if (buffers[i].begin < before.end)
        return buffers[i].buffer.emitOpError("'")
               << buffers[i].buffer.getName() << "' overlaps '"
               << BufferOp(before.buffer).getName() << "', which outlives the program";
      buffers[i].largestEnd = std::max(buffers[i].end, before.largestEnd);
    }
  }
  for (auto program : module.getOps<ProgramOp>()) {
    if (program.isPrivate())
      continue; // its offsets count from its workspace
    for (auto buffer : program.getBody().front().getOps<BufferOp>()) {
      if (buffer.isPersistent())
        continue;
      int64_t begin = *buffer.getOffset(), end = begin + buffer.getBytes();
      ArrayRef<Outlived> others = outlived[spaceOf(buffer.getType())];
      others = others.take_front(
          llvm::partition_point(others, [&](const Outlived &o) { return o.begin < end; }) -
          others.begin());
      for (; !others.empty() && others.back().largestEnd > begin; others = others.drop_back())
        if (others.back().end > begin)
          return buffer.emitOpError("'")
                 << buffer.getName() << "' overlaps '" << BufferOp(others.back().buffer).getName()
                 << "', which outlives the program";
    }
  }
  return success();
}

/// The runtime fills inputs by the sizes of the module.
static LogicalResult verifyInputs(ModuleOp module) {
  int64_t ranks = 1;
  for (auto op : module.getOps<dist::MeshOp>())
    ranks = op.getMesh().size();
  for (ModuleOp program : dist::programsOf(module))
    for (auto entry : program.getOps<ProgramOp>())
      for (auto buffer : entry.getBody().front().getOps<BufferOp>())
        if (buffer.getInput() && train::isByToken(*buffer.getInput()) &&
            failed(train::verifySizes(module, buffer, *buffer.getInput(), buffer.getType().getShape(), ranks)))
          return failure();
  return success();
}

namespace {
struct ExecVerify : exec::impl::ExecVerifyBase<ExecVerify> {
  void runOnModule() override {
    if (failed(failableParallelForEach(&getContext(), dist::programsOf(getOperation()),
                                       verifyProgram)) ||
        failed(verifyInputs(getOperation())) || failed(verifyCommunication(getOperation())) ||
        failed(dist::verifyStorage(getOperation())))
      signalPassFailure();
  }
};
} // namespace
