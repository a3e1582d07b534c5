//===- meshwright-opt.cpp - runs passes over IR -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Annotations.h"
#include "meshwright/InputFile.h"
#include "meshwright/IrText.h"
#include "meshwright/LoadPlugin.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Register.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"

/// Errors say where and what; the op that they are about, which may be the whole module,
/// is printed only where --mlir-print-op-on-diagnostic asks for it.
static void printNoOpsWithErrors() {
  mlir::registerMLIRContextCLOptions();
  llvm::cl::Option *option = llvm::cl::getRegisteredOptions().lookup("mlir-print-op-on-diagnostic");
  static_cast<llvm::cl::opt<bool> *>(option)->setInitialValue(false);
}

/// MLIR's driver opens the file itself, waits for a pipe, and reads a device until memory ends.
static llvm::Error checkFile(llvm::StringRef path) {
  if (path == "-") // The standard input.
    return llvm::Error::success();
  auto file = meshwright::readInput(path, meshwright::irInput);
  if (!file)
    return llvm::createStringError("cannot read '" + path +
                                   "': " + llvm::toString(file.takeError()));
  return meshwright::checkIrText(path, (*file)->getBuffer());
}

/// MLIR's driver loads what --load-pass-plugin names while it reads its flags.
static llvm::Error checkPlugins(llvm::ArrayRef<char *> args) {
  for (size_t i = 1; i < args.size(); ++i) {
    llvm::StringRef flag = llvm::StringRef(args[i]).ltrim('-');
    if (flag == args[i] || !flag.consume_front("load-pass-plugin"))
      continue;
    if (!flag.consume_front("=")) {
      if (!flag.empty() || i + 1 == args.size())
        continue;
      flag = args[++i];
    }
    if (llvm::Error error = meshwright::checkPlugin(flag))
      return error;
  }
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  printNoOpsWithErrors();
  mlir::DialectRegistry registry;
  meshwright::registerDialects(registry);
  meshwright::registerPasses();
  meshwright::registerDistAnnotations();
  meshwright::registerExecAnnotations();
  if (argc == 2 && llvm::StringRef(argv[1]) == "--meshwright-pass-order") {
    meshwright::printPassOrder(llvm::outs());
    return 0;
  }
  if (argc == 2 && llvm::StringRef(argv[1]) == "--meshwright-attributes") {
    meshwright::printAttributes(llvm::outs());
    return 0;
  }
  if (llvm::Error error = checkPlugins({argv, size_t(argc)})) {
    llvm::errs() << "error: " << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  auto [input, output] =
      mlir::registerAndParseCLIOptions(argc, argv, "Meshwright's pass driver\n", registry);
  if (llvm::Error error = checkFile(input)) {
    llvm::errs() << "error: " << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
}
