//===- HalveMasters.cpp - exec-halve-masters --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The bits of a master in f32 are those of its rounded value, a number of bf16, shifted left
// by 16, plus a number of 16 bits with a sign. Where the parameter is that rounded value
// whenever a kernel looks, the master need only keep the second number, its lower half.
//
//===----------------------------------------------------------------------===//
#include "Liveness.h"

#include "../Kernels/Schedule.h"
#include "Exec/Passes.h"
#include "Exec/Target.h"
#include "Train/Train.h"

#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECHALVEMASTERS
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

namespace {
/// What a kernel does to a master: argument `master` is replaced by result `updated`, and
/// result `rounded` is what that becomes in bf16.
struct Place {
  unsigned master, updated, rounded;

  bool operator==(const Place &other) const {
    return master == other.master && updated == other.updated && rounded == other.rounded;
  }
};

/// A launch that updates a master and its parameter.
struct Update {
  LaunchOp launch;
  func::FuncOp kernel;
  Place place;
};

struct Master {
  train::VariableOp variable, parameter;
  SmallVector<Update> updates;
};

class MasterHalver {
public:
  explicit MasterHalver(ModuleOp module) : module(module), symbols(module) {
    module.walk([&](ProgramOp program) {
      ProgramMemory &memory = programs.emplace_back(program);
      for (auto buffer : program.getBody().getOps<BufferOp>())
        if (auto variable = buffer.getVariable())
          memory.buffers[*variable].push_back(buffer);
    });
  }

  LogicalResult run();

private:
  /// A program's memory of variables.
  struct ProgramMemory {
    explicit ProgramMemory(ProgramOp program) : liveness(program) {}
    ProgramLiveness liveness;
    llvm::StringMap<SmallVector<BufferOp, 1>> buffers; ///< by variable
  };

  /// Whether each op that touches the master's memory updates it and its parameter, and nothing
  /// else writes the parameter.
  bool find(Master &master);
  /// The update that `launch` is of `master`.
  std::optional<Update> updateOf(LaunchOp launch, Master &master);
  /// Drops masters that must stay whole: another launch of their kernel does something else in
  /// their place, or the kernel would have more operands than the target allows.
  void leaveUnfit();
  void rewriteKernel(func::FuncOp kernel, ArrayRef<Place> places);
  void rewriteLaunch(LaunchOp launch, ArrayRef<Place> places);
  void rewriteVariables();

  ModuleOp module;
  SymbolTable symbols;
  std::vector<ProgramMemory> programs;
  SmallVector<Master> masters;
  int64_t wholeBytes = 0; ///< of masters on the device whose parameter is on the host
};
} // namespace

static Type element(Value value) { return getElementTypeOrSelf(value.getType()); }

/// Whether `view` is all of its memory, in another shape.
static bool isWhole(ViewOp view) {
  return cast<MemRefType>(view.getResult().getType()).getNumElements() ==
         cast<MemRefType>(view.getBase().getType()).getNumElements();
}

static StringRef variableOf(Value memory) {
  if (auto view = memory.getDefiningOp<ViewOp>(); view && isWhole(view))
    memory = view.getBase();
  auto buffer = memory.getDefiningOp<BufferOp>();
  return buffer && !isOffloaded(memory.getType()) ? buffer.getVariable().value_or("") : "";
}

/// Whether `narrow` is `wide` rounded to bf16: perhaps both have zeros in the same padding.
static bool isRounded(Value narrow, Value wide) {
  if (auto cast = narrow.getDefiningOp<arith::TruncFOp>())
    return cast.getIn() == wide && element(wide).isF32() && element(narrow).isBF16();
  auto n = narrow.getDefiningOp<arith::SelectOp>(), w = wide.getDefiningOp<arith::SelectOp>();
  return n && w && n.getCondition() == w.getCondition() &&
         isRounded(n.getTrueValue(), w.getTrueValue()) &&
         matchPattern(n.getFalseValue(), m_AnyZeroFloat()) &&
         matchPattern(w.getFalseValue(), m_AnyZeroFloat());
}

std::optional<Update> MasterHalver::updateOf(LaunchOp launch, Master &master) {
  auto numberOf = [](OperandRange memory, StringRef name) -> std::optional<unsigned> {
    std::optional<unsigned> found;
    for (auto [i, value] : llvm::enumerate(memory))
      if (variableOf(value) == name) {
        if (found)
          return {};
        found = i;
      }
    return found;
  };
  StringRef parameter = master.parameter.getSymName(), own = master.variable.getSymName();
  auto read = numberOf(launch.getInputs(), own), written = numberOf(launch.getOutputs(), own);
  auto rounded = numberOf(launch.getOutputs(), parameter);
  auto isParameter = [&](Value memory) { return variableOf(memory) == parameter; };
  if (!read || !written || !rounded || llvm::any_of(launch.getInputs(), isParameter))
    return {};
  auto kernel = symbols.lookup<func::FuncOp>(launch.getKernel());
  Operation *results = kernel.getBody().front().getTerminator();
  if (!isRounded(results->getOperand(*rounded), results->getOperand(*written)) ||
      launch.getWorkspace())
    return {};
  return Update{launch, kernel, {*read, *written, *rounded}};
}

bool MasterHalver::find(Master &master) {
  for (ProgramMemory &memory : programs) {
    SmallVector<BufferOp> buffers = llvm::to_vector(memory.buffers[master.variable.getSymName()]);
    if (llvm::any_of(buffers, [](BufferOp buffer) { return isOffloaded(buffer.getType()); }))
      return false;
    ArrayRef<BufferOp> parameters = memory.buffers[master.parameter.getSymName()];
    if (auto *onDevice = buffers.begin();
        onDevice != buffers.end() &&
        llvm::any_of(parameters, [](BufferOp buffer) { return isOffloaded(buffer.getType()); })) {
      wholeBytes += bytesOf(onDevice->getType());
      return false;
    }
    llvm::append_range(buffers, parameters);
    llvm::sort(buffers, [](BufferOp a, BufferOp b) { return a->isBeforeInBlock(b); });
    for (BufferOp buffer : buffers) {
      bool isMaster = buffer.getVariable() == master.variable.getSymName();
      for (const OpAccess &access : memory.liveness.accesses(buffer)) {
        if (!isMaster && !access.writes)
          continue;
        auto launch = dyn_cast<LaunchOp>(access.op);
        std::optional<Update> update = launch ? updateOf(launch, master) : std::nullopt;
        if (!update)
          return false;
        if (llvm::none_of(master.updates,
                          [&](const Update &known) { return known.launch == launch; }))
          master.updates.push_back(*update);
      }
    }
  }
  return !master.updates.empty();
}

void MasterHalver::leaveUnfit() {
  llvm::MapVector<Operation *, SmallVector<LaunchOp>> launches;
  module.walk(
      [&](LaunchOp launch) { launches[symbols.lookup(launch.getKernel())].push_back(launch); });
  unsigned most = targetOf(module).getTarget().getMostLaunchOperands();
  // Leaving one can make others unfit.
  for (bool changed = true; changed;) {
    llvm::DenseMap<Operation *, unsigned> added;            // by kernel
    llvm::DenseMap<Operation *, SmallVector<Place>> places; // by launch
    for (const Master &master : masters)
      for (const Update &update : master.updates)
        places[update.launch].push_back(update.place);
    changed = llvm::any_of(masters, [&](const Master &master) {
      return llvm::any_of(master.updates, [&](const Update &update) {
        // The same place in every launch, of whichever master.
        bool everywhere = llvm::all_of(launches[update.kernel], [&](LaunchOp launch) {
          return llvm::is_contained(places[launch], update.place);
        });
        unsigned operands =
            update.launch->getNumOperands() +
            (update.launch == launches[update.kernel].front() ? ++added[update.kernel] : 0);
        if (everywhere && (!most || operands <= most))
          return false;
        masters.erase(masters.begin() + (&master - masters.data()));
        return true;
      });
    });
  }
}

void MasterHalver::rewriteKernel(func::FuncOp kernel, ArrayRef<Place> places) {
  Block &block = kernel.getBody().front();
  Operation *results = block.getTerminator();
  OpBuilder b = OpBuilder::atBlockBegin(&block);
  auto as = [](Value value, Type element) {
    return train::withElementType(value.getType(), element);
  };
  Type word = b.getI32Type(), half = b.getI16Type(), wide = b.getF32Type();
  for (const Place &place : places) {
    BlockArgument lower = block.getArgument(place.master);
    Value updated = results->getOperand(place.updated);
    Value parameter = results->getOperand(place.rounded);
    Location loc = updated.getLoc();

    b.setInsertionPointToStart(&block);
    Value upper = block.addArgument(parameter.getType(), parameter.getLoc());
    lower.setType(as(lower, half));
    Value high = arith::ExtFOp::create(b, loc, as(upper, wide), upper);
    high = arith::BitcastOp::create(b, loc, as(upper, word), high);
    Value low = arith::ExtSIOp::create(b, loc, as(lower, word), lower);
    Value bits = arith::AddIOp::create(b, loc, high, low);
    Value whole = arith::BitcastOp::create(b, loc, as(lower, wide), bits);
    lower.replaceAllUsesExcept(whole, low.getDefiningOp());

    // Conversions of some processors to bf16 make zeros of numbers below the normal ones, whose lower
    // halves would then add up to something else. They are zeros in both halves.
    b.setInsertionPoint(results);
    auto number = [&](float value) -> Value {
      auto type = cast<RankedTensorType>(updated.getType());
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, value));
    };
    constexpr float least = std::numeric_limits<float>::min();
    auto compare = [&](arith::CmpFPredicate how, Value other) {
      return arith::CmpFOp::create(b, loc, how, updated, other);
    };
    Value isBelow = compare(arith::CmpFPredicate::OLT, number(least));
    Value isAbove = compare(arith::CmpFPredicate::OGT, number(-least));
    Value zero = arith::MulFOp::create(b, loc, updated, number(0)); // with its sign
    zero = arith::SelectOp::create(b, loc, isAbove, zero, updated);
    updated = arith::SelectOp::create(b, loc, isBelow, zero, updated);

    // What is no number stays none, whatever its bits.
    bits = arith::BitcastOp::create(b, loc, as(updated, word), updated);
    Value rest = arith::TruncIOp::create(b, loc, as(updated, half), bits);
    low = arith::ExtSIOp::create(b, loc, as(updated, word), rest);
    high = arith::SubIOp::create(b, loc, bits, low);
    Value rounded = arith::BitcastOp::create(b, loc, updated.getType(), high);
    Value isNumber = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, updated, updated);
    rounded = arith::SelectOp::create(b, loc, isNumber, rounded, updated);
    rounded = arith::TruncFOp::create(b, parameter.getLoc(), parameter.getType(), rounded);
    results->setOperand(place.updated, rest);
    results->setOperand(place.rounded, rounded);
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  kernel.setType(b.getFunctionType(block.getArgumentTypes(), results->getOperandTypes()));
}

void MasterHalver::rewriteLaunch(LaunchOp launch, ArrayRef<Place> places) {
  for (const Place &place : places)
    launch.getInputsMutable().append(launch.getOutputs()[place.rounded]);
}

/// Gives memory, and its views, elements of another type.
static void setElementType(Value memory, Type element) {
  memory.setType(MemRefType::get(cast<MemRefType>(memory.getType()).getShape(), element));
  for (Operation *user : memory.getUsers())
    if (auto view = dyn_cast<ViewOp>(user))
      setElementType(view.getResult(), element);
}

void MasterHalver::rewriteVariables() {
  Type half = IntegerType::get(module.getContext(), 16);
  for (const Master &master : masters) {
    train::VariableOp variable = master.variable;
    variable.setType(train::withElementType(variable.getType(), half));
    for (StringRef name : {dist::DistDialect::globalAttr, dist::DistDialect::logicalAttr})
      if (auto type = variable->getAttrOfType<TypeAttr>(name))
        variable->setAttr(name, TypeAttr::get(train::withElementType(type.getValue(), half)));
    for (ProgramMemory &memory : programs)
      for (BufferOp buffer : memory.buffers[variable.getSymName()])
        setElementType(buffer.getMemory(), half);
  }
}

LogicalResult MasterHalver::run() {
  for (auto variable : module.getOps<train::VariableOp>()) {
    if (variable.getRole() != "master" || !variable.getTensorType().getElementType().isF32())
      continue;
    Master master{variable, symbols.lookup<train::VariableOp>(*variable.getOf()), {}};
    if (master.parameter.getTensorType().getElementType().isBF16() && find(master))
      masters.push_back(master);
  }
  if (wholeBytes > 0)
    module.emitRemark() << "masters: parameters on the host leave their f32 masters whole, which takes "
                        << wholeBytes / 2
                        << " bytes of the device more than lower halves; --offload optimizer,parameters "
                           "keeps them on the host too";
  leaveUnfit();
  llvm::MapVector<Operation *, SmallVector<Place>> kernels;
  for (const Master &master : masters)
    for (const Update &update : master.updates)
      if (SmallVector<Place> &places = kernels[update.kernel];
          !llvm::is_contained(places, update.place))
        places.push_back(update.place);
  rewriteVariables();
  module.walk([&](LaunchOp launch) {
    if (auto it = kernels.find(symbols.lookup(launch.getKernel())); it != kernels.end())
      rewriteLaunch(launch, it->second);
  });
  ScheduleLimits limits = targetOf(module).getTarget().getScheduleLimits();
  for (auto &[op, places] : kernels) {
    auto kernel = cast<func::FuncOp>(op);
    rewriteKernel(kernel, places);
    if (failed(scheduleKernel(kernel, limits)))
      return failure();
  }
  return success();
}

namespace {
struct ExecHalveMasters : exec::impl::ExecHalveMastersBase<ExecHalveMasters> {
  void runOnModule() override {
    if (failed(MasterHalver(getOperation()).run()))
      signalPassFailure();
  }
};
} // namespace
