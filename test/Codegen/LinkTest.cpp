//===- LinkTest.cpp - objects, executables and what goes wrong --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CPU/Lowering.h"
#include "meshwright/AtomicFile.h"
#include "meshwright/Codegen.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Target/TargetMachine.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace meshwright;

namespace {
/// A fresh folder, and files in it.
class Link : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("meshwright-link", folder));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string path(StringRef name) {
    llvm::SmallString<128> result(folder);
    llvm::sys::path::append(result, name);
    return result.str().str();
  }
  std::string write(StringRef name, StringRef text) {
    std::string file = path(name);
    llvm::cantFail(writeFileAtomically(text, file));
    return file;
  }
  /// The object of an empty module that carries `kernelLoops`.
  std::string object(StringRef plan) {
    DialectRegistry registry;
    registerCodegen(registry);
    MLIRContext context(registry);
    auto module = parseSourceString<ModuleOp>("module {}", &context);
    CodegenOptions options;
    options.plan = plan.str();
    auto lowered = codegen::cpu::lower(*module, options);
    auto bytes = emitObject(**lowered, options);
    return failed(bytes) ? "" : *bytes;
  }
  /// A runtime whose main does nothing.
  LinkOptions emptyRuntime(StringRef linkLine) {
    write("main.c", "int main(void) { return 0; }\n");
    std::string build = "gcc -c " + path("main.c") + " -o " + path("main.o") + " && ar rcs " +
                        path("libmeshwright_runtime.a") + " " + path("main.o");
    EXPECT_EQ(std::system(build.c_str()), 0);
    write("link.txt", linkLine);
    LinkOptions options;
    options.files = {"libmeshwright_runtime.a", "link.txt", ""};
    options.runtime = folder.str().str();
    return options;
  }
  std::vector<std::string> files() {
    std::vector<std::string> names;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(folder, error), end; it != end && !error;
         it.increment(error))
      names.push_back(llvm::sys::path::filename(it->path()).str());
    return names;
  }
  llvm::SmallString<128> folder;
};
} // namespace

TEST_F(Link, PlanIsReadBack) {
  std::string file = write("step.o", object("{\"version\": 1}\n"));
  EXPECT_EQ(llvm::cantFail(readPlan(file)), "{\"version\": 1}\n");
  std::string executable = path("exe");
  llvm::cantFail(linkExecutable(object("the plan"), executable, emptyRuntime("-lm\n")));
  EXPECT_EQ(llvm::cantFail(readPlan(executable)), "the plan");
  EXPECT_TRUE(llvm::sys::fs::can_execute(executable));
}

TEST_F(Link, FilesWithoutAPlanAreRefused) {
  EXPECT_NE(llvm::toString(readPlan(path("missing")).takeError()).find("missing"),
            std::string::npos);
  EXPECT_NE(llvm::toString(readPlan(write("text", "no object")).takeError()).find("cannot read"),
            std::string::npos);
  EXPECT_NE(
      llvm::toString(readPlan(write("bare.o", object(""))).takeError()).find("carries no plan"),
      std::string::npos);
}

TEST_F(Link, LinkerErrorsAreQuotedAndNothingIsLeft) {
  LinkOptions options = emptyRuntime("-lno_such_library\n");
  auto before = files();
  std::string message = llvm::toString(linkExecutable(object("p"), path("exe"), options));
  EXPECT_NE(message.find("no_such_library"), std::string::npos) << message;
  EXPECT_NE(message.find(path("exe")), std::string::npos) << message;
  EXPECT_EQ(files(), before);
}

TEST_F(Link, MissingPiecesAreNamed) {
  LinkOptions options = emptyRuntime("");
  options.driver = "no-such-compiler";
  EXPECT_NE(llvm::toString(linkExecutable(std::string(), path("exe"), options)).find("no-such-compiler"),
            std::string::npos);
  options = emptyRuntime("");
  options.runtime = path("elsewhere");
  EXPECT_NE(llvm::toString(linkExecutable(std::string(), path("exe"), options))
                .find("elsewhere/libmeshwright_runtime.a"),
            std::string::npos);
}

TEST_F(Link, UnwritableOutputsAreNamed) {
  std::string nowhere = path("no/such/folder/exe");
  LinkOptions options = emptyRuntime("");
  std::string wanted = "cannot write '" + nowhere + "'";
  EXPECT_NE(llvm::toString(linkExecutable(object("p"), nowhere, options)).find(wanted),
            std::string::npos);
  EXPECT_NE(llvm::toString(writeFileAtomically("text", nowhere)).find(wanted), std::string::npos);
}

TEST_F(Link, UnknownProcessorsAreNamed) {
  CodegenOptions options;
  options.cpu = "z80";
  std::string error;
  EXPECT_EQ(createTargetMachine(options, error), nullptr);
  EXPECT_NE(error.find("z80"), std::string::npos);
}
