//===- RandomProgramsTest.cpp - partitioning changes no result --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Random programs x random meshes x random seeds: the interpreter on the program
// before, and on one simulated device per mesh element after. Seeds cut any
// dimension along any axes or parts of one, leave axes out, stand on inputs,
// variables, results and boundaries, so this is not about a strategy. Uneven programs
// have sizes that seeds do not divide, so their indices are padded.
// MESHWRIGHT_RANDOM_PROGRAMS=n tries n programs of each kind.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"
#include "Interpreter/Compare.h"
#include "Interpreter/RandomGraph.h"
#include "meshwright/Certify.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Register.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <random>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace {
class RandomPrograms : public testing::Test {
protected:
  RandomPrograms() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  static unsigned programs(unsigned few) {
    const char *text = std::getenv("MESHWRIGHT_RANDOM_PROGRAMS");
    return text ? std::atoi(text) : few;
  }

  unsigned pick(unsigned n) { return random() % n; }

  /// Runs the compiler's passes from `first` to `last`.
  LogicalResult run(ModuleOp module, const CompileOptions &options, StringRef first,
                    StringRef last) {
    PassManager manager(&context);
    llvm::cantFail(buildPipeline(manager, options, first, last));
    return manager.run(module);
  }

  Mesh randomMesh() {
    static const std::vector<std::vector<int64_t>> sizes = {
        {2}, {3}, {4}, {6}, {2, 2}, {1, 2}, {3, 2}, {2, 2, 2}, {4, 2}};
    Mesh mesh;
    for (auto [i, size] : llvm::enumerate(sizes[pick(sizes.size())]))
      mesh.axes.push_back({std::string(1, char('a' + i)), size});
    // The first two as parts of one.
    if (mesh.axes.size() > 1 && pick(2)) {
      mesh.axes[0].name = "t.0";
      mesh.axes[1].name = "t.1";
    }
    return mesh;
  }

  void writeMesh(ModuleOp module, const Mesh &mesh) {
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    SmallVector<Attribute> names;
    SmallVector<int64_t> sizes;
    for (const MeshAxis &axis : mesh.axes) {
      names.push_back(b.getStringAttr(axis.name));
      sizes.push_back(axis.size);
    }
    MeshOp::create(b, module.getLoc(), b.getStringAttr("mesh"), b.getArrayAttr(names),
                   b.getDenseI64ArrayAttr(sizes), StringAttr());
  }

  /// Axes on dimensions that they divide or, in uneven programs, that have more than
  /// one element; dimension 0 stays whole with `stacked`.
  ShardingAttr randomSeed(Type type, const Mesh &mesh, bool stacked = false) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
    Sharding s = Sharding::replicated(shape.size());
    for (unsigned axis = 0; axis < mesh.axes.size(); ++axis) {
      if (shape.empty() || pick(3) == 0)
        continue;
      unsigned d = pick(shape.size());
      bool divides = shape[d] % (mesh.size(s.dims[d]) * mesh.axes[axis].size) == 0;
      bool ids = cast<RankedTensorType>(type).getElementType().isInteger();
      if ((stacked && d == 0) || !(divides || (uneven && !ids && shape[d] > 1)))
        continue;
      s.dims[d].push_back(axis);
    }
    ShardingAttr closed = ShardingAttr::from(FlatSymbolRefAttr::get(&context, "mesh"), mesh, s);
    SmallVector<DimAttr> dims;
    for (auto [i, dim] : llvm::enumerate(closed.getDims())) {
      SmallVector<StringAttr> axes(dim.getAxes());
      for (size_t a = 0; a + 1 < axes.size(); ++a)
        if (axes[a].getValue() == "t.0" && axes[a + 1].getValue() == "t.1") {
          axes[a] = StringAttr::get(&context, "t");
          axes.erase(axes.begin() + a + 1);
        }
      dims.push_back(DimAttr::get(&context, axes, pick(2) && !(stacked && i == 0)));
    }
    SmallVector<StringAttr> replicated;
    for (auto [i, axis] : llvm::enumerate(mesh.axes))
      if (!s.uses(i) && pick(4) == 0)
        replicated.push_back(StringAttr::get(&context, axis.name));
    return ShardingAttr::get(&context, closed.getMesh(), dims, {}, false, replicated);
  }

  /// A seed for some results of an op, as gradients have.
  void seedResults(Operation *op, const Mesh &mesh) {
    SmallVector<Attribute> seeds;
    for (Type type : op->getResultTypes())
      seeds.push_back(pick(2) ? Attribute(randomSeed(type, mesh)) : UnitAttr::get(&context));
    op->setAttr(DistDialect::seedAttr, ArrayAttr::get(&context, seeds));
    if (pick(2))
      op->setAttr(DistDialect::reasonAttr, StringAttr::get(&context, "chance"));
  }

  /// Seeds on some inputs, variables, results and values in the middle.
  void writeSeeds(ModuleOp module, const Mesh &mesh) {
    for (auto variable : module.getOps<train::VariableOp>())
      if (pick(2))
        variable->setAttr(DistDialect::seedAttr,
                          randomSeed(variable.getType(), mesh, variable.getStacked()));
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isPublic())
        for (BlockArgument argument : function.getArguments())
          if (pick(2))
            function.setArgAttr(argument.getArgNumber(), DistDialect::seedAttr,
                                randomSeed(argument.getType(), mesh));
      SmallVector<Value> values;
      function.walk([&](train::ShardingRuleOpInterface op) {
        for (Value value : op->getResults())
          if (pick(6) == 0)
            values.push_back(value);
        if (pick(8) == 0)
          seedResults(op, mesh);
      });
      for (Value value : values) {
        OpBuilder b(&context);
        b.setInsertionPointAfterValue(value);
        auto constrain = ConstrainOp::create(b, value.getLoc(), value.getType(), value,
                                             randomSeed(value.getType(), mesh), pick(2) == 0);
        value.replaceAllUsesExcept(constrain, constrain);
      }
    }
  }

  /// Changes one op of a rank's program: what it reads, which device's part it takes or gets, or
  /// whether it is there at all. False if this one cannot be changed so.
  bool plantFault(ModuleOp module) {
    SmallVector<Operation *> ops;
    module.walk([&](Operation *op) {
      if (op->getNumOperands() && op->getParentOfType<func::FuncOp>())
        ops.push_back(op);
    });
    Operation *op = ops[pick(ops.size())];
    OpBuilder b(op);
    switch (pick(3)) {
    case 0: {
      OpOperand &operand = op->getOpOperand(pick(op->getNumOperands()));
      SmallVector<Value> others(op->getBlock()->getArguments());
      for (Operation &before : *op->getBlock()) {
        if (&before == op)
          break;
        llvm::append_range(others, before.getResults());
      }
      llvm::erase_if(others, [&](Value other) {
        return other == operand.get() || other.getType() != operand.get().getType();
      });
      if (others.empty())
        return false;
      operand.set(others[pick(others.size())]);
      return true;
    }
    case 1:
      if (auto slice = dyn_cast<SliceOp>(op)) {
        op->setAttr("shift", b.getI64IntegerAttr(slice.getShift() + 1));
        return true;
      }
      if (auto permute = dyn_cast<PermuteOp>(op)) {
        SmallVector<int64_t> from(permute.getFrom());
        std::swap(from[0], from[1 + pick(from.size() - 1)]);
        op->setAttr("from", b.getDenseI64ArrayAttr(from));
        return true;
      }
      return false;
    default:
      if (op->getNumResults() != 1 || op->getResult(0).getType() != op->getOperand(0).getType())
        return false;
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
      return true;
    }
  }

  /// A program with one fault has no proof, or computes the same, as where it reads a copy.
  void certifyFaults(ModuleOp before, ModuleOp after, StringRef function,
                     const interp::RandomOptions &options, ArrayRef<interp::NamedTensor> want,
                     uint64_t seed) {
    for (unsigned i = 0; i < 8; ++i) {
      OwningOpRef<ModuleOp> faulty(after.clone());
      ScopedDiagnosticHandler handler(&context, [](Diagnostic &) { return success(); });
      if (!plantFault(*faulty) || failed(verify(*faulty)))
        continue;
      ++faults;
      if (failed(certify::certify(before, *faulty)))
        continue;
      ++harmless;
      auto got = interp::runOnRandom(*faulty, function, options);
      std::string report;
      llvm::raw_string_ostream os(report);
      EXPECT_TRUE(succeeded(got) && interp::agree(want, *got, 1e-9, os))
          << "seed " << seed << ": a wrong program is proved: " << report << "\n"
          << textOf(*faulty);
    }
  }

  static std::string textOf(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream os(text);
    module.print(os);
    return text;
  }

  /// Counts proofs, and why there is none. The interpreter says that the programs are right.
  void certify(ModuleOp before, ModuleOp after, uint64_t seed) {
    std::string reason;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (reason.empty())
        reason = diagnostic.str();
      return success();
    });
    bool isProved = succeeded(certify::certify(before, after));
    if (isProved)
      ++certified;
    else
      unproved[reason].push_back(seed);
  }

  /// Whether most programs have a proof; lists why others have none.
  void expectProofs(double share) {
    unsigned others = 0;
    for (auto &[reason, seeds] : unproved) {
      others += seeds.size();
      std::cout << seeds.size() << " x " << reason << " (seed " << seeds.front() << ")\n";
    }
    std::cout << certified << " of " << certified + others << " programs are certified\n";
    EXPECT_GE(certified, share * (certified + others));
  }

  void compare(ModuleOp before, StringRef function, uint64_t seed) {
    OwningOpRef<ModuleOp> after(before.clone());
    Mesh mesh = randomMesh();
    writeMesh(*after, mesh);
    writeSeeds(*after, mesh);
    std::string text;
    llvm::raw_string_ostream os(text);
    after->print(os);

    // What padding refuses, in the middle of a dimension and of layers, is no case.
    bool refused = false;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
        return success(); // what stays one call
      for (const char *reason : {"inside its dimension", "layers and microbatches are never",
                                 "sequences are never padded"})
        refused |= diagnostic.str().find(reason) != std::string::npos;
      return success(refused);
    });
    CompileOptions how;
    // Every second program with products and their collectives in steps.
    how.collectiveMatmul = seed % 2 ? Toggle::on : Toggle::off;
    using A = CollectiveAlgorithm;
    static constexpr A algorithms[] = {A::Native,   A::ParameterServer, A::Ring,
                                       A::Parallel, A::Doubling,        A::HalvingDoubling};
    how.collectiveAlgorithm = algorithms[seed % std::size(algorithms)];
    bool passed = succeeded(run(*after, how, "dist-split-reductions", "dist-partition"));
    if (passed)
      certify(before, *after, seed);
    passed = passed && succeeded(run(*after, how, "dist-ring-attention", "dist-verify-communication"));
    if (refused)
      return;
    ASSERT_TRUE(passed) << "seed " << seed << "\n" << text;
    ++compared;
    certify(before, *after, seed);
    after->walk([&](Operation *op) {
      auto slice = dyn_cast<SliceOp>(op);
      looped += isa<ConcatOp>(op) || (slice && slice.getShift());
    });

    interp::RandomOptions options;
    options.seed = seed;
    options.integersBelow = 4;
    auto want = interp::runOnRandom(before, function, options);
    options.ranks = mesh.size();
    auto got = interp::runOnRandom(*after, function, options);
    ASSERT_TRUE(succeeded(want) && succeeded(got)) << "seed " << seed << "\n" << text;
    std::string report;
    llvm::raw_string_ostream reportOs(report);
    EXPECT_TRUE(interp::agree(*want, *got, 1e-9, reportOs))
        << "seed " << seed << ": " << report << "\n"
        << text;
    if (plantsFaults)
      certifyFaults(before, *after, function, options, *want, seed);
  }

  /// A training step as train passes make it.
  OwningOpRef<ModuleOp> trainingStep(uint64_t seed, interp::RandomGraphOptions options,
                                     const CompileOptions &types = {}) {
    options.microbatches = 1 + seed % 3;
    OwningOpRef<ModuleOp> module = interp::randomModel(&context, seed, options);
    if (failed(run(*module, types, "train-mixed-precision", "train-build-optimizer")))
      return {};
    for (auto function : llvm::make_early_inc_range(module->getOps<func::FuncOp>()))
      if (function.getSymName() == "loss")
        function.setPrivate();
    return module;
  }

  /// Graphs of ops, each fourth with dropout.
  void compareGraphs(unsigned few, interp::RandomGraphOptions options) {
    for (unsigned seed = 0; seed < programs(few) && !HasFailure(); ++seed) {
      random.seed(seed);
      options.dropout = seed % 4 == 0;
      OwningOpRef<ModuleOp> module = interp::randomGraph(&context, seed, options);
      compare(*module, "main", seed);
    }
  }

  void compareSteps(unsigned few, interp::RandomGraphOptions options) {
    for (unsigned seed = 0; seed < programs(few) && !HasFailure(); ++seed) {
      random.seed(seed);
      // A third each in f32, bf16 and bf16 with gradients in it.
      CompileOptions types;
      types.precision = seed % 3 ? MixedPrecision::bf16 : MixedPrecision::f32;
      types.gradDtype = seed % 3 == 2 ? GradientType::bf16 : GradientType::f32;
      OwningOpRef<ModuleOp> module = trainingStep(seed, options, types);
      ASSERT_TRUE(module);
      compare(*module, "step", seed);
    }
  }

  /// Two forms of a partitioned step compute the same.
  void expectSameStep(ModuleOp before, ModuleOp after, const Mesh &mesh, uint64_t seed,
                      double tolerance) {
    interp::RandomOptions options;
    options.seed = seed;
    options.integersBelow = 4;
    options.ranks = mesh.size();
    auto want = interp::runOnRandom(before, "step", options);
    auto got = interp::runOnRandom(after, "step", options);
    ASSERT_TRUE(succeeded(want) && succeeded(got)) << "seed " << seed;
    std::string report;
    llvm::raw_string_ostream os(report);
    EXPECT_TRUE(interp::agree(*want, *got, tolerance, os)) << "seed " << seed << ": " << report;
  }

  MLIRContext context;
  std::mt19937_64 random;
  bool uneven = false, plantsFaults = false;
  unsigned faults = 0, harmless = 0;
  unsigned compared = 0, looped = 0, certified = 0;
  std::map<std::string, std::vector<uint64_t>> unproved; ///< seeds by reason
};
} // namespace

TEST_F(RandomPrograms, GraphsOfOps) {
  interp::RandomGraphOptions options;
  options.granularity = 4;
  compareGraphs(110, options);
  EXPECT_GT(looped, programs(110) / 4);
  expectProofs(0.99);
}

// What is proved is right: also of programs that no pass makes.
TEST_F(RandomPrograms, FaultsHaveNoProof) {
  plantsFaults = true;
  interp::RandomGraphOptions options;
  options.granularity = 4;
  compareGraphs(40, options);
  compareSteps(6, interp::RandomGraphOptions());
  std::cout << faults << " faults, of which " << harmless << " change nothing\n";
  EXPECT_GT(faults - harmless, programs(40));
}

TEST_F(RandomPrograms, TrainingSteps) {
  interp::RandomGraphOptions options;
  options.granularity = 4;
  compareSteps(42, options);
  EXPECT_GT(looped, programs(42) / 4);
  expectProofs(0.99);
}

TEST_F(RandomPrograms, UnevenGraphsOfOps) {
  uneven = true;
  interp::RandomGraphOptions options;
  compareGraphs(30, options);
  EXPECT_GT(compared, programs(30) / 2);
  expectProofs(0.8);
}

TEST_F(RandomPrograms, UnevenTrainingSteps) {
  uneven = true;
  interp::RandomGraphOptions options;
  // Sequences and layers are never padded; most meshes divide them.
  options.rowsMultiple = 8;
  options.layers = 4;
  compareSteps(26, options);
  EXPECT_GT(compared, programs(26) / 3);
  expectProofs(0.8);
}

// What runs again computes the same, to the last bit, whatever is kept.
TEST_F(RandomPrograms, Rematerialized) {
  static constexpr StringLiteral policies[] = {
      "full",    "selective",       "sqrt",      "every:2",      "every:3", "price:1",
      "price:100", "every:2+price:10", "sqrt+full", "every:6+price:1e4"};
  unsigned again = 0;
  for (unsigned seed = 0; seed < programs(26) && !HasFailure(); ++seed) {
    random.seed(seed);
    std::string policy = policies[seed % std::size(policies)].str();
    interp::RandomGraphOptions graph;
    graph.granularity = 4;
    graph.layers = policy == "full" || policy == "sqrt" ? 1 + pick(6) : 6;
    if (policy == "sqrt" && graph.layers == 5)
      graph.layers = 4; // Groups of two do not divide five, which train-split-layers would split.
    OwningOpRef<ModuleOp> before = trainingStep(seed, graph);
    ASSERT_TRUE(before);
    OwningOpRef<ModuleOp> global(before->clone());
    Mesh mesh = randomMesh();
    writeMesh(*before, mesh);
    writeSeeds(*before, mesh);
    CompileOptions how;
    llvm::cantFail(parseOption(policy, how.remat));
    ASSERT_TRUE(succeeded(run(*before, how, "dist-propagate", "dist-partition")))
        << "seed " << seed;
    OwningOpRef<ModuleOp> after(before->clone());
    ASSERT_TRUE(succeeded(run(*after, how, "dist-rematerialize", "dist-rematerialize")))
        << "seed " << seed << " " << policy;

    SCOPED_TRACE(policy);
    certify(*global, *after, seed);
    expectSameStep(*before, *after, mesh, seed, /*tolerance=*/0);
    after->walk([&](Operation *op) {
      again += op->hasAttr(train::recomputedAttr);
    });
  }
  // The policies do something.
  EXPECT_GT(again, programs(26));
  expectProofs(0.95);
}

// A loss in parts is the same sum, in another order, and so are its gradients.
TEST_F(RandomPrograms, LossInParts) {
  unsigned loops = 0;
  for (unsigned seed = 0; seed < programs(26) && !HasFailure(); ++seed) {
    random.seed(seed);
    interp::RandomGraphOptions graph;
    graph.granularity = 4;
    OwningOpRef<ModuleOp> before = trainingStep(seed, graph);
    ASSERT_TRUE(before);
    Mesh mesh = randomMesh();
    writeMesh(*before, mesh);
    writeSeeds(*before, mesh);
    CompileOptions how;
    how.lossParts.value = 2 + pick(3);
    ASSERT_TRUE(
        succeeded(run(*before, how, "dist-split-reductions", "dist-split-reductions")) &&
        succeeded(run(*before, how, "dist-propagate", "dist-partition")))
        << "seed " << seed;
    OwningOpRef<ModuleOp> after(before->clone());
    bool refused = false;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      refused |= diagnostic.str().find("--loss-parts") != std::string::npos;
      return success(refused);
    });
    bool passed = succeeded(run(*after, how, "dist-divide-loss", "dist-divide-loss"));
    if (refused)
      continue;
    ASSERT_TRUE(passed) << "seed " << seed;
    after->walk([&](train::RepeatOp repeat) {
      loops += train::roleOf(repeat) == train::Role::Loss;
    });

    expectSameStep(*before, *after, mesh, seed, /*tolerance=*/1e-9);
  }
  EXPECT_GT(loops, programs(26) / 4);
}
