//===- meshwright-opt.cpp - runs passes over IR -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Annotations.h"
#include "meshwright/IrText.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Register.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"

/// Errors say where and what; the op that they are about, which may be the whole module,
/// is printed only where --mlir-print-op-on-diagnostic asks for it.
static void printNoOpsWithErrors() {
  mlir::registerMLIRContextCLOptions();
  llvm::cl::Option *option = llvm::cl::getRegisteredOptions().lookup("mlir-print-op-on-diagnostic");
  static_cast<llvm::cl::opt<bool> *>(option)->setInitialValue(false);
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
  auto [input, output] =
      mlir::registerAndParseCLIOptions(argc, argv, "Meshwright's pass driver\n", registry);
  if (auto text = llvm::MemoryBuffer::getFile(input))
    if (llvm::Error error = meshwright::checkIrText(input, (*text)->getBuffer())) {
      llvm::errs() << "error: " << llvm::toString(std::move(error)) << "\n";
      return 1;
    }
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
}
