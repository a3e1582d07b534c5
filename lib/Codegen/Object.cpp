//===- Object.cpp - LLVM text, objects and the plan inside them -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/HostCode.h"
#include "Sections.h"
#include "meshwright/Codegen.h"
#include "meshwright/InputFile.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace meshwright;

namespace {
struct Lowered {
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
};
} // namespace

static FailureOr<Lowered> translate(ModuleOp module, const CodegenOptions &options) {
  Lowered result;
  std::string error;
  result.machine = createTargetMachine(options, error);
  if (!result.machine)
    return module.emitError(error);
  if (codegen::isUnoptimized(module))
    result.machine->setOptLevel(llvm::CodeGenOptLevel::None);
  auto translated = translateToLLVM(module, *result.context, *result.machine, options.isDecoder);
  if (failed(translated))
    return failure();
  result.module = std::move(*translated);
  return result;
}

FailureOr<std::string> meshwright::emitLLVM(ModuleOp lowered, const CodegenOptions &options) {
  FailureOr<Lowered> translated = translate(lowered, options);
  if (failed(translated))
    return failure();
  std::string text;
  llvm::raw_string_ostream os(text);
  translated->module->print(os, nullptr);
  return text;
}

FailureOr<std::string> meshwright::emitObject(ModuleOp module, const CodegenOptions &options) {
  FailureOr<Lowered> lowered = translate(module, options);
  if (failed(lowered))
    return failure();
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager passes;
  if (lowered->machine->addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::ObjectFile))
    return module.emitError("LLVM cannot write objects for ")
           << lowered->machine->getTargetTriple().str();
  passes.run(*lowered->module);
  return std::string(bytes.begin(), bytes.end());
}

llvm::Expected<std::string> meshwright::readSection(llvm::StringRef file, llvm::StringRef name) {
  if (llvm::Error error = checkInput(file, planInput))
    return llvm::createStringError("cannot read '" + file +
                                   "': " + llvm::toString(std::move(error)));
  auto binary = llvm::object::ObjectFile::createObjectFile(file);
  if (!binary) {
    llvm::consumeError(binary.takeError());
    return llvm::createStringError("cannot read '" + file + "': it is neither an executable of 'meshwright compile' nor a "
                                   "plan of 'inspect --json' or '--report'");
  }
  for (const llvm::object::SectionRef &section : binary->getBinary()->sections()) {
    llvm::Expected<llvm::StringRef> found = section.getName();
    if (!found)
      return found.takeError();
    if (!found->consume_front(".meshwright.") || *found != name)
      continue;
    llvm::Expected<llvm::StringRef> contents = section.getContents();
    if (!contents)
      return contents.takeError();
    return contents->str();
  }
  return "";
}

llvm::Expected<std::string> meshwright::readPlan(llvm::StringRef file) {
  llvm::Expected<std::string> plan = readSection(file, "plan");
  if (plan && plan->empty())
    return llvm::createStringError("'" + file +
                                   "' carries no plan: it was not made by "
                                   "`meshwright compile`");
  return plan;
}

llvm::Expected<std::string> meshwright::readAssembled(llvm::StringRef file) {
  return readSection(file, "assembled");
}
