//===- MemorySpacesTest.cpp - each row of MemorySpaces.def --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A program with memory in an offload space gets offsets, is verified, states its bytes in the plan and
// in reports, and is generated code, whichever space it is.
//
//===----------------------------------------------------------------------===//
#include "Exec/Exec.h"
#include "meshwright/PlanJson.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Register.h"
#include "meshwright/Report.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

#include <set>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

static testing::AssertionResult contains(StringRef text, const Twine &part) {
  return text.contains(part.str()) ? testing::AssertionSuccess()
                                   : testing::AssertionFailure() << text.str() << "\nhas no\n" << part.str();
}

/// Copies a variable from the space, keeps it there again as an activation, and copies it back.
static std::string programIn(MemorySpace space) {
  return llvm::formatv(R"(
module attributes {{train.batch = 1 : i64, train.sequence = 4 : i64, train.microbatches = 1 : i64,
    train.vocabulary = 8 : i64, train.max_positions = 4 : i64, train.optimizer = "sgd"} {{
  train.variable @w : tensor<16xf32> init <"constant", 1.0>
  exec.program @step {{
    %w = exec.buffer "w" parameter variable @w : memref<16xf32, "{0}">
    %kept = exec.buffer "kept" activation : memref<16xf32, "{0}">
    %a = exec.buffer "a" activation : memref<16xf32>
    %y = exec.buffer "y" output output "y" : memref<16xf32>
    exec.copy %w to %a {{exec.async_token = 0 : i64} : memref<16xf32, "{0}"> to memref<16xf32>
    exec.wait 0
    exec.copy %a to %kept {{exec.async_token = 1 : i64} : memref<16xf32> to memref<16xf32, "{0}">
    exec.wait 1
    exec.copy %kept to %y {{exec.async_token = 2 : i64} : memref<16xf32, "{0}"> to memref<16xf32>
    exec.wait 2
    exec.copy %y to %w {{exec.async_token = 3 : i64} : memref<16xf32> to memref<16xf32, "{0}">
    exec.wait 3
  }
})",
                       spaceRow(space).name);
}

namespace {
class MemorySpaces : public testing::TestWithParam<MemorySpace> {
protected:
  MemorySpaces() : context(registry()) {}
  static const DialectRegistry &registry() {
    static DialectRegistry registry = [] {
      DialectRegistry all;
      registerDialects(all);
      registerPasses();
      return all;
    }();
    return registry;
  }

  /// Runs passes; the text of errors.
  std::string run(ModuleOp module, StringRef passes) {
    std::string errors;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      errors += diagnostic.str() + "\n";
      return success();
    });
    PassManager manager(&context);
    EXPECT_TRUE(succeeded(parsePassPipeline(passes, manager)));
    bool fine = succeeded(manager.run(module));
    EXPECT_EQ(fine, errors.empty());
    return errors;
  }
  OwningOpRef<ModuleOp> planned() {
    auto module = parseSourceString<ModuleOp>(programIn(GetParam()), &context);
    EXPECT_TRUE(module);
    EXPECT_EQ(run(*module, "exec-assign-offsets,exec-verify"), "");
    return module;
  }

  /// What the program has there: two buffers of 64 bytes, each with what nothing else uses behind it.
  int64_t bytesThere() const { return 2 * row.alignment; }
  /// The bytes of the arena of `space`.
  int64_t bytesIn(MemorySpace space) const {
    return space == GetParam() ? bytesThere() : space == MemorySpace::Host ? row.staging : 0;
  }

  const MemorySpaceRow &row = spaceRow(GetParam());
  MLIRContext context;
};
} // namespace

TEST_P(MemorySpaces, PassesAndVerifierKnowIt) {
  OwningOpRef<ModuleOp> module = planned();
  std::set<int64_t> offsets;
  module->walk([&](BufferOp buffer) {
    if (spaceOf(buffer.getType()) == GetParam())
      offsets.insert(int64_t(*buffer.getOffset()));
  });
  EXPECT_EQ(offsets, (std::set<int64_t>{0, row.alignment}));
  // What one attribute says has to be so.
  StringRef bytes = memoryAttributes[GetParam()].bytes;
  EXPECT_EQ((*module)->getAttrOfType<IntegerAttr>(bytes).getInt(), bytesThere());
  (*module)->setAttr(bytes, Builder(&context).getI64IntegerAttr(row.alignment));
  (*module)->removeAttr(memoryAttributes[GetParam()].memory);
  EXPECT_TRUE(contains(run(*module, "exec-verify"), "outside " + arenaText(GetParam()) + " of " +
                                                        Twine(row.alignment) + " bytes"));
  // Only copies access it, in a direction each.
  unsigned fetches = 0, stores = 0;
  module->walk([&](CopyOp copy) {
    std::optional<CopyEngine> engine = copyEngineOf(copy);
    ASSERT_TRUE(engine && engine->space == GetParam());
    ++(engine->stores ? stores : fetches);
  });
  EXPECT_EQ(fetches, 2u);
  EXPECT_EQ(stores, 2u);
}

TEST_P(MemorySpaces, PlanAndReportsStateIt) {
  llvm::Expected<CompiledPlan> plan = buildPlan(*planned());
  ASSERT_TRUE(bool(plan)) << toString(plan.takeError());
  for (StringRef key : {row.bytes, row.memory, row.variable, row.fetched, row.stored})
    EXPECT_TRUE(contains(planText(*plan), "\"" + key + "\":"));
  llvm::Expected<plan::Plan> read = plan::parse<plan::Plan>(planText(*plan));
  ASSERT_TRUE(bool(read)) << toString(read.takeError());
  EXPECT_EQ(planText(*read), planText(*plan));
  for (MemorySpace space : offloadSpaces) {
    bool isHere = space == GetParam();
    EXPECT_EQ(read->offloaded[space].bytes.value_or(0), bytesIn(space));
    EXPECT_EQ(neededBytes(*read)[space], bytesIn(space));
    for (bool stores : {false, true})
      EXPECT_EQ(read->programs[0].copiedBytes->at("step").in(space, stores), isHere ? 128 : 0);
  }
  ASSERT_EQ(read->variables.size(), 1u);
  EXPECT_EQ(read->variables[0].space, GetParam());

  std::string printed, onSpace = std::string("on ") + row.text;
  llvm::raw_string_ostream os(printed);
  printPlan(*read, os);
  EXPECT_TRUE(contains(printed, llvm::formatv("on {0,-8}  {1:N0}", row.text, bytesThere()).str()));
  EXPECT_TRUE(contains(printed, "memory " + onSpace));
  EXPECT_TRUE(contains(offloadedText(neededBytes(*read)), llvm::formatv(" and {0:N0} {1}", bytesThere(), onSpace).str()));
  std::string bytes = std::to_string(bytesThere());
  EXPECT_FALSE(bool(checkAssertion(*read, std::string(row.name) + "<=" + bytes)));
  EXPECT_TRUE(contains(toString(checkAssertion(*read, std::string(row.name) + "<" + bytes)),
                       llvm::formatv("is {0:N0}", bytesThere()).str()));
}

TEST_P(MemorySpaces, GeneratedCodeAsksForItsAddress) {
  OwningOpRef<ModuleOp> module = planned();
  (*module)->setAttr("meshwright.phase", StringAttr::get(&context, "exec"));
  llvm::SmallString<128> from, to;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("space", "mlir", from));
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("space", "ll", to));
  {
    std::error_code error;
    llvm::raw_fd_ostream(from, error) << *module;
  }
  CompileOptions options;
  options.model = from.str().str();
  options.output = to.str().str();
  options.emit = "llvm";
  llvm::Error error = compile(options, context, llvm::nulls());
  ASSERT_FALSE(bool(error)) << toString(std::move(error));
  std::string text = (*llvm::MemoryBuffer::getFile(to))->getBuffer().str();
  EXPECT_TRUE(contains(text, "@mw_" + Twine(row.name) + "_arena("));
  for (bool stores : {false, true})
    EXPECT_TRUE(contains(text, llvm::formatv("i64 64, i32 {0}, i32 {1})",
                                             CopyEngine{GetParam(), stores}.number(), stores ? 1 : 0)
                                   .str()));
  llvm::sys::fs::remove(from);
  llvm::sys::fs::remove(to);
}

INSTANTIATE_TEST_SUITE_P(Rows, MemorySpaces, testing::ValuesIn(offloadSpaces),
                         [](const auto &info) { return std::string(spaceRow(info.param).name); });

/// No two rows share a name or a key.
TEST(MemorySpaceTable, NamesAndKeysDiffer) {
  std::set<std::string> names, keys;
  size_t count = 0;
  for (MemorySpace space : memorySpaces) {
    const MemorySpaceRow &row = spaceRow(space);
    EXPECT_TRUE(names.insert(row.name).second && names.insert(row.text).second) << row.name;
    for (StringRef key : {row.bytes, row.live, row.memory, row.variable, row.stored})
      if (!key.empty()) {
        keys.insert(key.str());
        ++count;
      }
  }
  EXPECT_EQ(keys.size(), count);
  for (int32_t number = 0; number < copyEngines; ++number)
    EXPECT_EQ(CopyEngine::numbered(number).number(), number);
}
