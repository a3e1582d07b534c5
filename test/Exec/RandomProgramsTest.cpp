//===- RandomProgramsTest.cpp - floor 3 changes no result --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Random models: @step and @eval on tensors against the same after the passes
// that form kernels, and against the memory form at its planned offsets.
// MESHWRIGHT_RANDOM_PROGRAMS=n tries n models.
//
//===----------------------------------------------------------------------===//
#include "ProgramRunner.h"

#include "Dist/Dist.h"
#include "Dist/Pipeline/StagePrograms.h"
#include "Exec/Memory/Liveness.h"
#include "Exec/Memory/OffsetAssigner.h"
#include "Exec/Passes.h"
#include "Interpreter/Compare.h"
#include "Interpreter/RandomGraph.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Register.h"

#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

#include <map>
#include <vector>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace {
/// Rows of matrices begin at multiples of 16 bytes.
class RowsTarget : public Target {
public:
  StringRef getName() const override { return "rows"; }
  StringRef getDefaultDevice(Parameters) const override { return "epyc-9654"; }
  int64_t getRowAlignment() const override { return 16; }
};

class ExecRandomPrograms : public testing::Test {
protected:
  ExecRandomPrograms() {
    DialectRegistry registry;
    registerDialects(registry);
    registerTarget(std::make_unique<RowsTarget>());
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  static unsigned programs(unsigned few) {
    const char *text = std::getenv("MESHWRIGHT_RANDOM_PROGRAMS");
    return text ? std::atoi(text) : few;
  }

  /// Runs the compiler's passes from `first` to `last`.
  /// Halves are bits of f32, which programs in f64 have not.
  static CompileOptions wholeMasters() {
    CompileOptions options;
    options.masters = MasterStorage::whole;
    return options;
  }

  LogicalResult run(ModuleOp module, StringRef first, StringRef last,
                    const CompileOptions &options = wholeMasters()) {
    PassManager manager(&context);
    llvm::cantFail(buildPipeline(manager, options, first, last));
    return manager.run(module);
  }

  OwningOpRef<ModuleOp> randomStep(uint64_t seed, int64_t granularity = 1, bool biases = false,
                                   bool gates = false) {
    interp::RandomGraphOptions options;
    options.granularity = granularity;
    options.biases = biases;
    options.gates = gates;
    options.layers = 1 + seed % 3;
    options.microbatches = 1 + seed / 3 % 3;
    options.dropout = seed % 4 == 1;
    OwningOpRef<ModuleOp> module = interp::randomModel(&context, seed, options);
    // A third each in f32, bf16 and bf16 with gradients in it.
    CompileOptions how;
    how.precision = seed % 3 ? MixedPrecision::bf16 : MixedPrecision::f32;
    how.gradDtype = seed % 3 == 2 ? GradientType::bf16 : GradientType::f32;
    how.optimizer = train::optimizers()[seed % train::optimizers().size()];
    EXPECT_TRUE(succeeded(run(*module, "train-mixed-precision", "symbol-dce", how)));
    return module;
  }

  /// Pads the rows of matrices to 16 bytes, on one device.
  void pad(ModuleOp module) {
    CompileOptions how;
    how.target = findTarget("rows");
    EXPECT_TRUE(succeeded(run(module, "dist-apply-strategy", "dist-partition", how)));
    // Padding is compared too.
    for (auto variable : module.getOps<train::VariableOp>())
      variable->removeAttr(dist::DistDialect::logicalAttr);
  }

  LogicalResult formKernels(ModuleOp module) {
    return run(module, "exec-fuse-accumulate", "exec-schedule-kernels");
  }

  LogicalResult planMemory(ModuleOp module) {
    return run(module, "exec-inline-repeats", "exec-verify");
  }

  MLIRContext context;
};
} // namespace

static std::string text(ModuleOp module) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  module.print(stream);
  return result;
}

TEST_F(ExecRandomPrograms, KernelsComputeTheSame) {
  for (uint64_t seed = 0; seed < programs(24) && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    OwningOpRef<ModuleOp> before = randomStep(seed), formed(before->clone());
    ASSERT_TRUE(succeeded(run(*formed, "exec-fuse-accumulate", "exec-form-kernels")))
        << text(*before);
    OwningOpRef<ModuleOp> decomposed(formed->clone());
    ASSERT_TRUE(succeeded(run(*decomposed, "exec-decompose-kernels", "exec-schedule-kernels")))
        << text(*formed);
    for (StringRef function : {"step", "eval"}) {
      auto want = interp::runOnRandom(*before, function, {});
      ASSERT_TRUE(succeeded(want));
      // Decomposed kernels hold their constants in f32, and norms over two or three
      // elements multiply what that changes.
      for (auto [after, tolerance] : {std::pair(*formed, 1e-9), std::pair(*decomposed, 1e-3)}) {
        auto got = interp::runOnRandom(after, function, {});
        ASSERT_TRUE(succeeded(got)) << text(after);
        std::string report;
        llvm::raw_string_ostream os(report);
        EXPECT_TRUE(interp::agree(*want, *got, tolerance, os))
            << report << text(*before) << text(after);
      }
    }
  }
}

/// Runs both forms of a model's programs and says where the memory form `after` leaves something
/// that neither `before` does nor what it is moved to by changes of `changes` kinds; empty if nowhere.
static std::string firstDifference(ModuleOp before, ModuleOp after, uint64_t seed, int changes) {
  ProgramRunner runner(after);
  auto session = interp::Session::create(before, 1, interp::Precision::F64);
  if (failed(session))
    return "no session";
  // The same from parameters that differ in the 13th digit: what this changes,
  // another order of summation may change too. Models that divide by almost nothing
  // are moved by some changes and not by others.
  std::vector<interp::Session> nearby;
  for (int i = 0; i < changes; ++i) {
    auto another = interp::Session::create(before, 1, interp::Precision::F64);
    if (failed(another))
      return "no session";
    nearby.push_back(std::move(*another));
  }
  for (train::VariableOp variable : session->variables()) {
    interp::Tensor value =
        interp::randomTensor(variable.getTensorType(), variable.getSymName(), seed, 2);
    double *data = value.writeFloats();
    for (int64_t i = 0; i < value.size(); ++i)
      data[i] = variable.isParameter() ? 0.3 * data[i] : std::abs(data[i]);
    session->setVariable(variable, value);
    runner.write(variable.getSymName(), value);
    for (auto [n, another] : llvm::enumerate(nearby)) {
      interp::Tensor moved = value, by = interp::randomTensor(
                                        variable.getTensorType(), variable.getSymName(), n, 2);
      data = moved.writeFloats();
      for (int64_t i = 0; i < moved.size(); ++i)
        data[i] *= 1 + 1e-13 * by.floats()[i];
      another.setVariable(variable, moved);
    }
  }
  auto vocabulary = before->getAttrOfType<IntegerAttr>("train.vocabulary").getInt();
  // Twice, with an evaluation between: what a step leaves behind is not reused.
  for (StringRef program : {"step", "eval", "step"}) {
    FunctionOpInterface function = session->lookup(program);
    interp::TensorList arguments, want;
    std::vector<interp::TensorList> close(nearby.size());
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      std::string name = interp::Session::argumentName(function, i);
      arguments.push_back(
          interp::randomTensor(session->globalArgument(function, i), name, seed, vocabulary));
      if (name == "lr") // so that the second step starts near the first
        *arguments.back().writeFloats() *= 1e-3;
      runner.write(name, arguments.back());
    }
    if (failed(session->run(function, arguments, want)) || failed(runner.run(program)))
      return program.str() + " does not run";
    for (auto [another, results] : llvm::zip_equal(nearby, close))
      if (failed(another.run(function, arguments, results)))
        return program.str() + " does not run";
    std::string found;
    double amplified = 0; // An error in the gradients' norm may show in every update.
    auto compare = [&](StringRef name, const interp::Tensor &value, auto near) {
      interp::Difference apart = interp::difference(runner.read(name), value);
      double moved = amplified;
      for (size_t n = 0; n < nearby.size(); ++n)
        moved = std::max(moved, interp::difference(near(n), value).relative);
      double allowed = std::max(1e-9, 100 * moved);
      if (found.empty() && !(apart.sameKind && apart.finite && apart.relative <= allowed))
        llvm::raw_string_ostream(found)
            << program << " " << name << ": " << apart.relative << ", allowed " << allowed << "\n";
      return moved;
    };
    for (unsigned i = 0; i < want.size(); ++i)
      amplified = compare(interp::Session::resultName(function, i), want[i],
                          [&](size_t n) { return close[n][i]; });
    for (train::VariableOp variable : session->variables())
      compare(variable.getSymName(), *session->getVariable(variable),
              [&](size_t n) { return *nearby[n].getVariable(variable); });
    if (!found.empty())
      return found;
  }
  return "";
}

/// With few changes first. Where a number is by chance at a kink, such as that of relu, some changes
/// jump and others do not, and all few may be of one kind.
static std::string firstDifference(ModuleOp before, ModuleOp after, uint64_t seed) {
  std::string found = firstDifference(before, after, seed, 3);
  return found.empty() ? found : firstDifference(before, after, seed, 30);
}

/// The arena of a plan in which no stacks share memory.
static int64_t arenaOfWholeStacks(ModuleOp module) {
  SmallVector<Lifetime> lifetimes;
  llvm::StringMap<int64_t> persistent;
  int64_t time = 0;
  for (auto program : module.getOps<ProgramOp>()) {
    if (program.isPrivate())
      continue;
    ProgramLiveness liveness(program);
    for (auto buffer : program.getBlock().getOps<BufferOp>()) {
      if (isOffloaded(buffer.getType()))
        continue;
      if (buffer.isPersistent()) {
        persistent[buffer.getName()] = llvm::alignTo(buffer.getBytes(), MW_ALIGNMENT);
        continue;
      }
      Lifetime life = liveness.life(buffer)->after(time);
      life.filled = life.emptied = std::nullopt;
      lifetimes.push_back(life);
    }
    time += liveness.size();
  }
  int64_t bytes = computeOffsets(lifetimes, MW_ALIGNMENT).size;
  for (const auto &entry : persistent)
    bytes += entry.second;
  return bytes;
}

TEST_F(ExecRandomPrograms, MemoryHoldsTheSame) {
  for (uint64_t seed = 0; seed < programs(20) && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    OwningOpRef<ModuleOp> before = randomStep(seed);
    ASSERT_TRUE(succeeded(formKernels(*before)));
    OwningOpRef<ModuleOp> after(before->clone());
    ASSERT_TRUE(succeeded(planMemory(*after))) << text(*before);
    int64_t arena = (*after)->getAttrOfType<IntegerAttr>(arenaBytesAttr).getInt();
    int64_t live = (*after)->getAttrOfType<IntegerAttr>(liveBytesAttr).getInt();
    // A slot that a loop has emptied lies inside its stack, where no other buffer may fit: so more
    // memory beside what is live may be left, as long as sharing slots saves more.
    if (double(arena) > 1.03 * double(live))
      EXPECT_LT(arena, arenaOfWholeStacks(*after)) << live << " bytes are live";
    EXPECT_EQ(firstDifference(*before, *after, seed), "") << text(*after);
  }
}

/// The upper half of a number in f32, and what is behind it.
static std::pair<double, int64_t> halvesOf(double value) {
  auto bits = llvm::bit_cast<uint32_t>(float(value));
  auto lower = int16_t(uint16_t(bits));
  return {llvm::bit_cast<float>(bits - uint32_t(int32_t(lower))), lower};
}

TEST_F(ExecRandomPrograms, HalvedMastersAreUpdatedAlike) {
  unsigned halved = 0, gathered = 0;
  for (uint64_t seed = 0; seed < programs(20) && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    OwningOpRef<ModuleOp> before = randomStep(seed);
    ASSERT_TRUE(succeeded(formKernels(*before)));
    OwningOpRef<ModuleOp> whole(before->clone()), halves(before->clone());
    ASSERT_TRUE(succeeded(planMemory(*whole)));
    ASSERT_TRUE(succeeded(run(*halves, "exec-inline-repeats", "exec-verify", CompileOptions())))
        << text(*before);
    ProgramRunner a(*whole), b(*halves);
    auto isHalved = [&](train::VariableOp master) {
      auto there = halves->lookupSymbol<train::VariableOp>(master.getSymName());
      return there.getTensorType().getElementType().isInteger(16);
    };
    for (auto variable : before->getOps<train::VariableOp>()) {
      interp::Tensor value =
          interp::randomTensor(variable.getTensorType(), variable.getSymName(), seed, 2);
      double *data = value.writeFloats();
      if (variable.getRole() == "master") {
        auto parameter = before->lookupSymbol<train::VariableOp>(*variable.getOf());
        interp::Tensor upper(parameter.getTensorType());
        interp::Tensor lower(value.type().clone(IntegerType::get(&context, 16)));
        for (int64_t i = 0; i < value.size(); ++i) {
          data[i] = float(0.3 * data[i]);
          std::tie(upper.writeFloats()[i], lower.writeIntegers()[i]) = halvesOf(data[i]);
        }
        for (ProgramRunner *runner : {&a, &b})
          runner->write(parameter.getSymName(), upper);
        b.write(variable.getSymName(), isHalved(variable) ? lower : value);
        a.write(variable.getSymName(), value);
        continue;
      }
      for (int64_t i = 0; i < value.size(); ++i)
        data[i] = variable.isParameter() ? 0.3 * data[i] : std::abs(data[i]);
      for (ProgramRunner *runner : {&a, &b})
        runner->write(variable.getSymName(), value);
    }
    auto session = interp::Session::create(*before, 1, interp::Precision::F64);
    ASSERT_TRUE(succeeded(session));
    FunctionOpInterface function = session->lookup("step");
    auto vocabulary = (*before)->getAttrOfType<IntegerAttr>("train.vocabulary").getInt();
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      std::string name = interp::Session::argumentName(function, i);
      interp::Tensor value =
          interp::randomTensor(session->globalArgument(function, i), name, seed, vocabulary);
      for (ProgramRunner *runner : {&a, &b})
        runner->write(name, value);
    }
    ASSERT_TRUE(succeeded(a.run("step")) && succeeded(b.run("step")));
    for (auto variable : before->getOps<train::VariableOp>()) {
      if (variable.getRole() != "master")
        continue;
      interp::Tensor want = a.read(variable.getSymName()), have = b.read(variable.getSymName());
      if (isHalved(variable)) {
        ++halved;
        interp::Tensor upper = b.read(*variable.getOf()), joined(want.type());
        for (int64_t i = 0; i < joined.size(); ++i) {
          uint32_t bits = llvm::bit_cast<uint32_t>(float(upper.floats()[i])) +
                          uint32_t(int32_t(have.integers()[i]));
          joined.writeFloats()[i] = llvm::bit_cast<float>(bits);
          EXPECT_EQ(halvesOf(joined.floats()[i]), std::pair(upper.floats()[i], have.integers()[i]));
        }
        have = joined;
      } else {
        ++gathered;
      }
      EXPECT_LE(interp::difference(have, want).relative, 1e-6) << variable.getSymName().str();
    }
  }
  EXPECT_GE(halved, 20u);
  EXPECT_GE(gathered, 5u); // whose parameters lend their memory to gradients
}

/// Makes a step what a zero-bubble pipeline of one stage would run: calls of a forward, a backward
/// and a function of the weights' gradients for each of several microbatches. What one leaves
/// another reads.
static void splitIntoTasks(ModuleOp module) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  module.walk([](train::RepeatOp repeat) {
    if (train::isLayers(repeat))
      repeat->setAttr(train::TrainDialect::chunkAttr,
                      Builder(repeat.getContext()).getI64IntegerAttr(0));
  });
  FailureOr<dist::MicrobatchOps> ops = dist::findParts(step, /*chunks=*/1);
  ASSERT_TRUE(succeeded(ops));
  dist::splitWeights(*ops);
  dist::PartFunctions functions = dist::makeFunctions(*ops, "");
  int64_t stages[] = {0};
  dist::StageAssignment after =
      dist::assignStages(*ops, stages, 1, [&](StringRef) { return ArrayRef(stages); });
  MLIRContext *context = module.getContext();
  auto group = dist::GroupAttr::get(context, FlatSymbolRefAttr::get(context, "mesh"),
                                    StringAttr::get(context, "pipe"));
  llvm::DenseMap<Value, dist::StageInputs::Shares> shares;
  OwningOpRef<ModuleOp> program = ModuleOp::create(module.getLoc());
  dist::emitStage({*ops, functions, &after, stages, 1, group, shares}, 0, *program);
  step.erase();
  auto made = program->lookupSymbol<func::FuncOp>("step");
  made->moveBefore(module.getBody(), module.getBody()->end());
  // Among stages of which there are no others.
  made.walk([](dist::CollectiveOpInterface op) {
    op->replaceAllUsesWith(op->getOperands());
    op->erase();
  });
}

/// States and stacks on the host, whose copies are made as late as waits allow. Some models have
/// padding, which updates mask, some are tasks.
TEST_F(ExecRandomPrograms, MemoryOfTheHostHoldsTheSame) {
  unsigned loops = 0, copies = 0, masks = 0, changed = 0, inPlace = 0, layers = 0;
  for (uint64_t seed = 0; seed < programs(48) && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    // Such schedules have more microbatches than stages.
    bool tasks = seed % 3 != 2 && seed / 3 % 3 > 0;
    OwningOpRef<ModuleOp> before =
        randomStep(seed, /*granularity=*/1, /*biases=*/false, /*gates=*/tasks);
    if (seed % 4 < 2)
      pad(*before);
    if (tasks)
      splitIntoTasks(*before);
    OwningOpRef<ModuleOp> after(before->clone());
    ASSERT_TRUE(succeeded(formKernels(*before)));
    CompileOptions how = wholeMasters();
    how.offload.optimizer = MemorySpace::Host;
    how.offloadBuffer.count = 64 << seed % 4;
    ASSERT_TRUE(succeeded(run(*after, "exec-slice-updates", "exec-slice-updates", how)))
        << text(*before);
    after->walk([&](train::MaskOp mask) {
      masks += mask->getParentOfType<func::FuncOp>().getSymName().starts_with("update.part");
    });
    ASSERT_TRUE(succeeded(formKernels(*after)));
    auto space = [](bool isOffload) { return isOffload ? MemorySpace::Host : MemorySpace::Device; };
    how.offload = {space(seed % 3 != 1), /*activations=*/space(seed % 3 != 2), /*parameters=*/space(seed % 5 < 3)};
    ASSERT_TRUE(succeeded(run(*after, "exec-inline-repeats", "exec-verify", how))) << text(*before);
    after->walk([&](CopyOp copy) {
      copies += queueOf(copy).has_value();
      loops += queueOf(copy) && copy->getParentOfType<LoopOp>();
    });
    after->walk([&](LaunchOp launch) {
      inPlace += llvm::any_of(launch->getOperandTypes(), isOffloaded);
    });
    after->walk([&](BufferOp buffer) {
      layers += buffer.getCategory() == Category::Parameter && isOffloaded(buffer.getType());
    });
    after->walk(
        [&](CallOp call) { changed += llvm::any_of(call.getUpdated().getTypes(), isOffloaded); });
    EXPECT_EQ(firstDifference(*before, *after, seed), "") << text(*after);
  }
  EXPECT_GE(copies, 200u);
  EXPECT_GE(loops, 100u);
  EXPECT_GE(masks, 20u);
  EXPECT_GE(inPlace, 20u);
  EXPECT_GE(layers, 20u);
  EXPECT_GE(changed, 5u);
}

/// The judge itself: a wait that is missing shows.
TEST_F(ExecRandomPrograms, MissingWaitsAreNoticed) {
  unsigned noticed = 0, tried = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    OwningOpRef<ModuleOp> before = randomStep(seed);
    ASSERT_TRUE(succeeded(formKernels(*before)));
    OwningOpRef<ModuleOp> after(before->clone());
    CompileOptions how = wholeMasters();
    how.offload = {MemorySpace::Host, MemorySpace::Host, MemorySpace::Device};
    ASSERT_TRUE(succeeded(run(*after, "exec-inline-repeats", "exec-assign-offsets", how)));
    // The first wait for something that comes to the device.
    llvm::DenseSet<int64_t> fetched;
    after->walk([&](CopyOp copy) {
      if (std::optional<CopyEngine> engine = copyEngineOf(copy); engine && !engine->stores)
        fetched.insert(*asyncTokenOf(copy));
    });
    bool removed = false;
    after->walk([&](WaitOp wait) {
      if (removed || !fetched.contains(int64_t(wait.getAsyncToken())))
        return;
      wait.erase();
      removed = true;
    });
    if (!removed)
      continue;
    ++tried;
    ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
    EXPECT_TRUE(failed(run(*after, "exec-verify", "exec-verify")));
    noticed += !firstDifference(*before, *after, seed).empty();
  }
  EXPECT_GE(tried, 4u);
  EXPECT_EQ(noticed, tried);
}

/// As MemoryHoldsTheSame, for the target whose library does more than products.
TEST_F(ExecRandomPrograms, EpiloguesHoldTheSame) {
  std::map<StringRef, unsigned> found;
  // From the first that has one microbatch and the next ones, which have two. Such a program takes as
  // long as ten of the others.
  for (uint64_t seed = 2; seed < 2 + std::max(3u, programs(3) / 10) && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    // The library keeps rows of 16 bytes.
    OwningOpRef<ModuleOp> before = randomStep(seed, 8, /*biases=*/true), fused(before->clone());
    CompileOptions how;
    how.target = findTarget("cuda");
    ASSERT_TRUE(succeeded(run(*fused, "exec-assign-target", "exec-fuse-epilogues", how)))
        << text(*before);
    auto want = interp::runOnRandom(*before, "step", {}),
         got = interp::runOnRandom(*fused, "step", {});
    ASSERT_TRUE(succeeded(want) && succeeded(got));
    std::string report;
    llvm::raw_string_ostream os(report);
    EXPECT_TRUE(interp::agree(*want, *got, 1e-9, os)) << report << text(*fused);
    ASSERT_TRUE(succeeded(formKernels(*fused)));
    OwningOpRef<ModuleOp> after(fused->clone());
    ASSERT_TRUE(succeeded(planMemory(*after))) << text(*fused);
    after->walk([&](MatmulOp op) {
      bool sums = op.getSumA() || op.getSumB();
      found["addend"] += bool(op.getAddend());
      found["addend in place"] += op.getAddend() == op.getC();
      found["bias"] += bool(op.getBias());
      found["gelu"] += bool(op.getGelu());
      found["preactivation"] += bool(op.getPreactivation());
      found["gelu-grad"] += bool(op.getSlopeAt());
      found["bias-grad"] += sums;
      found["bias-grad and addend"] += sums && op.getAddend();
    });
    EXPECT_EQ(firstDifference(*fused, *after, seed), "") << text(*after);
  }
  EXPECT_EQ(found.size(), 8u);
  for (auto [what, times] : found)
    EXPECT_GE(times, what.starts_with("addend") ? 10u : 1u) << what.str();
}

/// Makes each microbatch, or layer, of a program a call of one function, as the schedule of
/// a pipeline does. Returns how many calls there are.
static unsigned unrollIntoCalls(ModuleOp module) {
  SymbolTableCollection symbols;
  SmallVector<train::RepeatOp> repeats;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isPrivate())
      for (auto repeat : function.getOps<train::RepeatOp>())
        if (repeat.getStacks().empty() && !repeat.getIndexed())
          repeats.push_back(repeat);
  unsigned calls = 0;
  for (train::RepeatOp repeat : repeats) {
    OpBuilder builder(repeat);
    func::FuncOp callee = repeat.lookupCallee(symbols);
    SmallVector<Value> carry(repeat.getCarry());
    for (int64_t i = 0, count = repeat.getCount(); i < count; ++i, ++calls) {
      SmallVector<Value> arguments(callee.getNumArguments());
      for (unsigned n = 0; n < repeat->getNumOperands(); ++n) {
        Value value = repeat->getOperand(n);
        Type type = callee.getArgumentTypes()[repeat.getCalleeArgument(n)];
        if (n < carry.size())
          value = carry[n];
        else if (n < carry.size() + repeat.getEach().size())
          value = dist::TakeOp::create(builder, repeat.getLoc(), type, value,
                                       repeat.getReverse() ? count - 1 - i : i);
        arguments[repeat.getCalleeArgument(n)] = value;
      }
      auto call = func::CallOp::create(builder, repeat.getLoc(), callee, arguments);
      carry.assign(call.result_begin(), call.result_end());
    }
    repeat.replaceAllUsesWith(carry);
    repeat.erase();
  }
  return calls;
}

TEST_F(ExecRandomPrograms, CallsHoldTheSame) {
  unsigned calls = 0, inPlace = 0;
  for (uint64_t seed = 0; seed < programs(16) && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    OwningOpRef<ModuleOp> before = randomStep(seed);
    calls += unrollIntoCalls(*before);
    ASSERT_TRUE(succeeded(formKernels(*before)));
    OwningOpRef<ModuleOp> after(before->clone());
    ASSERT_TRUE(succeeded(planMemory(*after))) << text(*before);
    after->walk([&](CallOp call) { inPlace += call.getUpdated().size(); });
    EXPECT_EQ(firstDifference(*before, *after, seed), "") << text(*after);
  }
  // Gradients are added to their accumulators by the callee.
  EXPECT_GE(calls, 30u);
  EXPECT_GE(inPlace, calls);
}

/// The judge itself: buffers that are put on top of one another show.
TEST_F(ExecRandomPrograms, SharedMemoryIsNoticed) {
  unsigned noticed = 0, tried = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    OwningOpRef<ModuleOp> before = randomStep(seed);
    ASSERT_TRUE(succeeded(formKernels(*before)));
    OwningOpRef<ModuleOp> after(before->clone());
    ASSERT_TRUE(succeeded(planMemory(*after)));
    // Every gradient where the first one is.
    std::optional<uint64_t> place;
    unsigned moved = 0;
    after->walk([&](BufferOp buffer) {
      if (buffer.getCategory() != Category::Gradient)
        return;
      if (place)
        buffer.setOffset(*place);
      else
        place = buffer.getOffset();
      ++moved;
    });
    // Large ones might reach beyond the arena.
    (*after)->setAttr(arenaBytesAttr, Builder(&context).getI64IntegerAttr(1 << 24));
    if (moved < 2)
      continue;
    ++tried;
    noticed += !firstDifference(*before, *after, seed).empty();
  }
  EXPECT_GE(tried, 5u);
  EXPECT_EQ(noticed, tried);
}
