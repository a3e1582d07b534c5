//===- TensorSearchTest.cpp - the search of shardings finds the optimum -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Sums of drawn tables, and those of drawn programs on drawn meshes: the search's least cost is that of
// COIN-OR's CBC, a solver of integer linear programs, for the same tables. What propagation makes of
// tensor parallelism is one of the choices, so it never costs less.
// MESHWRIGHT_RANDOM_PROGRAMS=n tries n of each kind, but no more than 40, and 8 whole steps, for which
// CBC takes minutes. Without CBC on the PATH these tests fail: .ci/setup installs it.
//
//===----------------------------------------------------------------------===//
#include "Dist/Search/TensorSearch.h"

#include "Dist/Dist.h"
#include "Interpreter/RandomGraph.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Register.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

#include <iostream>
#include <random>
#include <set>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace {
class TensorSearchTest : public testing::Test {
protected:
  TensorSearchTest() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  static unsigned programs(unsigned few) {
    const char *text = std::getenv("MESHWRIGHT_RANDOM_PROGRAMS");
    return text ? std::min(std::atoi(text), 40) : few;
  }

  /// Devices on which dividing work is worth its communication, or not.
  cost::Cluster cluster(double products, double bandwidth, double memory) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "name = \"test\"\ntarget = \"cpu\"\n[[devices]]\nname = \"device\"\nmemory = 1e12\nproducts = {f32 = " << products
       << ", bf16 = " << products << "}\nkernels = 1e15\nmemory_bandwidth = " << memory
       << "\nlaunch = 1e-6\nhost = {latency = 0, bandwidth = 1e10}\nsource = \"a test\"\n[[levels]]\nname = \"links\"\n"
       << "count = 64\nlatency = 1e-7\nbandwidth = " << bandwidth << "\nsource = \"a test\"\n";
    return llvm::cantFail(cost::readCluster(text, "c.toml"));
  }
  cost::Cluster drawnCluster() {
    static const double rates[] = {1e6, 1e7, 1e8};
    // One after the other: the order in which arguments are evaluated is the compiler's.
    double products = rates[random() % 3], bandwidth = rates[random() % 3];
    return cluster(products, bandwidth, 1e9);
  }

  Mesh drawnMesh() {
    static const std::vector<std::vector<int64_t>> sizes = {{2}, {4}, {2, 2}};
    Mesh mesh;
    for (auto [i, size] : llvm::enumerate(sizes[random() % sizes.size()]))
      mesh.axes.push_back({i ? "tensor" : "data", size});
    return mesh;
  }
  static Axes all(const Mesh &mesh) {
    Axes axes;
    for (unsigned i = 0; i < mesh.axes.size(); ++i)
      axes.push_back(i);
    return axes;
  }

  /// The optimum by CBC.
  double judge(const TableSum &sum, double scale) {
    llvm::SmallString<128> problem, solution;
    std::error_code failed = llvm::sys::fs::createTemporaryFile("tables", "lp", problem);
    EXPECT_FALSE(failed) << failed.message();
    failed = llvm::sys::fs::createTemporaryFile("tables", "txt", solution);
    EXPECT_FALSE(failed) << failed.message();
    {
      llvm::raw_fd_ostream os(problem, failed);
      os << sum.linearProgram(scale);
    }
    auto cbc = llvm::sys::findProgramByName("cbc");
    EXPECT_TRUE(bool(cbc)) << "there is no cbc, Debian's package coinor-cbc, which .ci/setup installs";
    double optimum = -1;
    if (cbc) {
      std::optional<StringRef> quiet[] = {StringRef(""), StringRef(""), StringRef("")};
      int code = llvm::sys::ExecuteAndWait(*cbc, {*cbc, problem, "ratioGap", "0", "allowableGap", "0", "solve", "solution", solution},
                                           std::nullopt, quiet, 300);
      EXPECT_EQ(code, 0);
      auto text = llvm::MemoryBuffer::getFile(solution);
      EXPECT_TRUE(bool(text));
      if (text) {
        auto [first, rest] = (*text)->getBuffer().split('\n');
        EXPECT_TRUE(first.starts_with("Optimal")) << first.str();
        EXPECT_FALSE(first.rsplit(' ').second.getAsDouble(optimum)) << first.str();
      }
    }
    llvm::sys::fs::remove(problem);
    llvm::sys::fs::remove(solution);
    return optimum;
  }

  void compare(const TableSum &sum, size_t entries) {
    TableSum::Minimum found = sum.minimize(entries);
    ASSERT_LT(found.cost, TableSum::never);
    EXPECT_DOUBLE_EQ(found.cost, sum.costOf(found.values));
    double scale = found.cost > 0 ? 1000 / found.cost : 1, optimum = judge(sum, scale);
    if (found.isProved)
      EXPECT_NEAR(found.cost * scale, optimum, 1e-3);
    // A bound is one, whatever the tables' size, and a choice costs no less than the best.
    EXPECT_LE(found.bound * scale, optimum + 1e-3);
    EXPECT_GE(found.cost * scale, optimum - 1e-3);
    proved += found.isProved;
    ++compared;
  }

  LogicalResult run(ModuleOp module, const CompileOptions &options, StringRef first, StringRef last) {
    PassManager manager(&context);
    llvm::cantFail(buildPipeline(manager, options, first, last));
    return manager.run(module);
  }

  /// A training step as train passes make it.
  OwningOpRef<ModuleOp> trainingStep(uint64_t seed, unsigned steps) {
    interp::RandomGraphOptions options;
    options.steps = steps;
    options.granularity = 4;
    options.microbatches = 1 + seed % 2;
    OwningOpRef<ModuleOp> module = interp::randomModel(&context, seed, options);
    if (failed(run(*module, {}, "train-mixed-precision", "train-build-optimizer")))
      return {};
    for (auto function : llvm::make_early_inc_range(module->getOps<func::FuncOp>()))
      if (function.getSymName() == "loss")
        function.setPrivate();
    return module;
  }

  /// Allows what the types of a propagated program say alone; returns how many values it has that are no
  /// choice of the search.
  unsigned fixTo(TensorSearch &search, ModuleOp module, ModuleOp propagated, const Mesh &mesh) {
    llvm::DenseMap<int64_t, Operation *> byNumber;
    propagated.walk([&](Operation *op) {
      if (auto number = op->getAttrOfType<IntegerAttr>("number"))
        byNumber.try_emplace(number.getInt(), op);
    });
    unsigned others = 0;
    std::set<int> fixed;
    auto sharding = [&](Value value) { return dist::shardingOf(value.getType()).on(mesh); };
    auto fix = [&](int variable, ArrayRef<Sharding> wants, ArrayRef<Sharding> makes) {
      if (variable < 0 || !fixed.insert(variable).second)
        return;
      if (int value = search.valueWith(variable, wants, makes); value >= 0)
        search.sum().fix(variable, value);
      else
        ++others;
    };
    for (auto function : module.getOps<func::FuncOp>()) {
      auto twin = propagated.lookupSymbol<func::FuncOp>(function.getSymName());
      if (!twin)
        continue;
      for (auto [mine, its] : llvm::zip(function.getArguments(), twin.getArguments()))
        fix(search.variableOf(mine), {}, sharding(its));
      function.walk([&](Operation *op) {
        if (op == function)
          return;
        auto found = byNumber.find(op->getAttrOfType<IntegerAttr>("number").getInt());
        if (found == byNumber.end() || op->getNumResults() == 0 || op->getNumOperands() == 0)
          return;
        Operation *other = found->second;
        auto wants = llvm::map_to_vector(other->getOperands(), sharding);
        auto makes = llvm::map_to_vector(other->getResults(), sharding);
        if (isa<train::ShardingRuleOpInterface>(op))
          return fix(search.variableOf(op->getResult(0)), wants, makes);
        for (auto [mine, its] : llvm::zip(op->getResults(), makes))
          fix(search.variableOf(mine), {}, its);
      });
    }
    for (auto variable : module.getOps<train::VariableOp>()) {
      auto twin = propagated.lookupSymbol<train::VariableOp>(variable.getSymName());
      fix(search.variableOf(variable), {}, dist::shardingOf(twin.getType()).on(mesh));
    }
    return others;
  }

  std::mt19937_64 random{7};
  MLIRContext context;
  unsigned proved = 0, compared = 0;
};
} // namespace

TEST_F(TensorSearchTest, DrawnTables) {
  for (unsigned i = 0; i < programs(12); ++i) {
    TableSum sum;
    unsigned count = 3 + random() % 10;
    for (unsigned v = 0; v < count; ++v)
      sum.addVariable(1 + random() % 4);
    for (unsigned t = 0; t < 2 * count; ++t) {
      std::set<unsigned> scope;
      for (unsigned k = 1 + random() % 3; k-- > 0;)
        scope.insert(random() % count);
      std::vector<unsigned> variables(scope.begin(), scope.end());
      size_t entries = 1;
      for (unsigned v : variables)
        entries *= sum.valuesOf(v);
      std::vector<double> costs(entries);
      for (double &cost : costs) // Some combinations must not be; that of all first values may.
        cost = &cost != costs.data() && random() % 8 == 0 ? TableSum::never : double(random() % 50) - 10;
      sum.addTable(variables, std::move(costs));
    }
    TableSum::Minimum exact = sum.minimize(1 << 20);
    EXPECT_TRUE(exact.isProved);
    // With too little room the result says that it is not proved, or is the optimum all the same.
    TableSum::Minimum few = sum.minimize(8);
    EXPECT_LE(few.bound, exact.cost + 1e-9);
    EXPECT_GE(few.cost, exact.cost - 1e-9);
    if (few.isProved)
      EXPECT_NEAR(few.cost, exact.cost, 1e-6);
    // Nor where there is no time.
    TableSum::Minimum late = sum.minimize(1 << 20, TableSum::Time::min());
    EXPECT_TRUE(late.isOutOfTime);
    EXPECT_LE(late.cost, sum.costOf(std::vector<unsigned>(count, 0)));
    EXPECT_LE(late.bound, exact.cost + 1e-9);
    EXPECT_GE(late.cost, exact.cost - 1e-9);
    double optimum = judge(sum, 1);
    EXPECT_NEAR(exact.cost, optimum, 1e-6) << "tables " << i;
  }
}

TEST_F(TensorSearchTest, ReachedBoundIsProof) {
  // The tables of each variable are too large together, but all of them are least at once.
  TableSum sum;
  unsigned a = sum.addVariable(4), b = sum.addVariable(4), c = sum.addVariable(4);
  for (auto [one, other] : {std::pair(a, b), {b, c}, {a, c}}) {
    std::vector<double> costs(16, 2);
    for (unsigned same = 0; same < 4; ++same)
      costs[5 * same] = 1;
    sum.addTable({one, other}, std::move(costs));
  }
  TableSum::Minimum few = sum.minimize(16);
  EXPECT_EQ(few.cost, 3);
  EXPECT_EQ(few.bound, 3);
  EXPECT_TRUE(few.isProved);
  // Where one pair costs more when alike, it is not reached.
  sum.addTable({b, c}, {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2});
  TableSum::Minimum above = sum.minimize(16);
  EXPECT_EQ(above.cost, 5);
  EXPECT_LT(above.bound, 5);
  EXPECT_FALSE(above.isProved);
}

TEST_F(TensorSearchTest, ManyNeighbours) {
  // A hub is not gone through for each of its leaves: 3 x 10^4 of them, some in pairs, would take minutes.
  TableSum sum;
  unsigned hub = sum.addVariable(3), before = 0;
  constexpr unsigned leaves = 30000;
  for (unsigned i = 0; i < leaves; ++i) {
    unsigned leaf = sum.addVariable(2 + i % 2);
    std::vector<double> costs(3 * sum.valuesOf(leaf));
    for (double &cost : costs)
      cost = double(random() % 50);
    sum.addTable({hub, leaf}, std::move(costs));
    if (i % 3 == 2)
      sum.addTable({before, leaf}, std::vector<double>(sum.valuesOf(before) * sum.valuesOf(leaf), 1));
    before = leaf;
  }
  TableSum::Minimum found =
      sum.minimize(1 << 20, std::chrono::steady_clock::now() + std::chrono::seconds(60));
  EXPECT_FALSE(found.isOutOfTime);
  EXPECT_TRUE(found.isProved);
  EXPECT_NEAR(found.cost, sum.costOf(found.values), 1e-6);
  EXPECT_LE(found.entries, 9u);
}

TEST_F(TensorSearchTest, NothingIsAllowed) {
  TableSum sum;
  unsigned a = sum.addVariable(2), b = sum.addVariable(2);
  sum.addTable({a, b}, {0, TableSum::never, TableSum::never, 1});
  sum.fix(a, 0);
  sum.fix(b, 1);
  EXPECT_EQ(sum.minimize(1 << 10).cost, TableSum::never);
}

TEST_F(TensorSearchTest, DrawnGraphs) {
  for (unsigned i = 0; i < programs(6); ++i) {
    interp::RandomGraphOptions options;
    options.steps = 3;
    options.granularity = 4;
    OwningOpRef<ModuleOp> module = interp::randomGraph(&context, i, options);
    Mesh mesh = drawnMesh();
    cost::Cluster machine = drawnCluster();
    TensorSearch search(mesh, all(mesh), machine);
    ASSERT_TRUE(succeeded(search.read(*module)));
    SCOPED_TRACE("graph " + std::to_string(i) + ", " + std::to_string(search.ops()) + " ops");
    compare(search.sum(), size_t(1) << 20);
  }
  std::cout << proved << " of " << compared << " proved\n";
  EXPECT_GE(proved * 2, compared);
}

TEST_F(TensorSearchTest, DrawnSteps) {
  for (unsigned i = 0; i < std::min(programs(2), 8u); ++i) {
    OwningOpRef<ModuleOp> module = trainingStep(i, 1);
    ASSERT_TRUE(module);
    Mesh mesh;
    mesh.axes.push_back({"tensor", i % 2 ? 2 : 4});
    cost::Cluster machine = drawnCluster();
    TensorSearch search(mesh, all(mesh), machine);
    ASSERT_TRUE(succeeded(search.read(*module)));
    SCOPED_TRACE("step " + std::to_string(i) + ", " + std::to_string(search.ops()) + " ops");
    compare(search.sum(), size_t(1) << 20);
  }
  std::cout << proved << " of " << compared << " proved\n";
  EXPECT_GE(proved * 2, compared);
}

TEST_F(TensorSearchTest, PresetsAreNoBetter) {
  unsigned better = 0;
  for (unsigned i = 0; i < programs(6); ++i) {
    OwningOpRef<ModuleOp> module = trainingStep(i, 6);
    ASSERT_TRUE(module);
    CompileOptions how;
    how.mesh.axes.push_back({"tensor", i % 2 ? 2 : 4});
    how.sequenceParallel = i % 3 == 0;
    cost::Cluster machine = drawnCluster();
    TensorSearch search(how.mesh, all(how.mesh), machine);
    ASSERT_TRUE(succeeded(search.read(*module)));
    int64_t number = 0;
    for (auto function : module->getOps<func::FuncOp>())
      function.walk([&](Operation *op) {
        if (op != function)
          op->setAttr("number", Builder(&context).getI64IntegerAttr(number++));
      });
    OwningOpRef<ModuleOp> preset(module->clone());
    ASSERT_TRUE(succeeded(run(*preset, how, "dist-apply-strategy", "dist-apply-strategy")));
    ASSERT_TRUE(succeeded(run(*preset, how, "dist-propagate", "dist-propagate")));
    TableSum::Minimum best = search.sum().minimize(size_t(1) << 22);
    SymbolTable symbols(*module);
    for (auto state : module->getOps<train::VariableOp>())
      if (state.isOptimizerState() && search.variableOf(state) >= 0) {
        auto parameter = symbols.lookup<train::VariableOp>(*state.getOf());
        EXPECT_EQ(search.shardingOf(state, best.values).str(how.mesh), search.shardingOf(parameter, best.values).str(how.mesh))
            << "step " << i << ": " << state.getSymName().str();
      }
    // All that propagation does is a choice.
    EXPECT_EQ(fixTo(search, *module, *preset, how.mesh), 0u) << "step " << i;
    TableSum::Minimum fixed = search.sum().minimize(size_t(1) << 22);
    EXPECT_LT(fixed.cost, TableSum::never) << "step " << i;
    EXPECT_LE(best.cost, fixed.cost * (1 + 1e-9)) << "step " << i;
    better += best.cost < fixed.cost * (1 - 1e-3);
  }
  std::cout << better << " of " << programs(6) << " presets cost more\n";
  EXPECT_GT(better, 0u);
}
