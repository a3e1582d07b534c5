//===- Codegen.h - from exec programs to executables ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_H
#define MESHWRIGHT_CODEGEN_H

#include "Exec/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
class raw_ostream;
} // namespace llvm

namespace meshwright {

/// The machine to generate code for.
struct CodegenOptions {
  /// An LLVM processor name (`znver4`, `x86-64-v3`), or empty for this machine
  /// with all of its features.
  std::string cpu;
  /// The plan the object carries; built by lib/Report. Empty: no plan.
  std::string plan;
  /// The program in the tensor form, which executables that dump steps carry; or empty.
  std::string program;
  /// Why the executable has no decoder; or empty.
  std::string noDecoder;
  /// Whether the object is that of a decoder, which exports `meshwright_decoder_X` for each
  /// `meshwright_X`.
  bool isDecoder = false;
};

/// Makes the targets of this build known (Exec/Target.h). May be called again.
void registerTargets();

/// Adds to `registry` what code generation for the host needs to run on a module parsed with it.
void registerCodegen(mlir::DialectRegistry &registry);

/// The machine that `options.cpu` names; null, and why in `error`, if there is none.
std::unique_ptr<llvm::TargetMachine> createTargetMachine(const CodegenOptions &options,
                                                         std::string &error);

/// Optimised LLVM IR for `machine` of a module of the LLVM dialect.
mlir::FailureOr<std::unique_ptr<llvm::Module>> translateToLLVM(mlir::ModuleOp lowered,
                                                               llvm::LLVMContext &context,
                                                               llvm::TargetMachine &machine,
                                                               bool isDecoder = false);

/// The same IR as text. Errors go to the module's location.
mlir::FailureOr<std::string> emitLLVM(mlir::ModuleOp lowered, const CodegenOptions &options = {});

/// The same code as a relocatable object, in bytes.
mlir::FailureOr<std::string> emitObject(mlir::ModuleOp lowered,
                                        const CodegenOptions &options = {});

/// The linker's inputs beside the object.
struct LinkOptions {
  /// The compiler driver, found when Meshwright was configured if empty.
  std::string driver;
  exec::RuntimeFiles files; ///< of the runtime that the object needs
  /// The folder with the runtime; if empty, it is found from the path
  /// of the running tool.
  std::string runtime;
};

/// Links `objects` (bytes) with the runtime into the executable `output`, which
/// appears complete or not at all. The error names the file and quotes the linker.
llvm::Error linkExecutable(llvm::ArrayRef<std::string> objects, llvm::StringRef output,
                           const LinkOptions &options);

/// The plan an executable or object carries.
llvm::Expected<std::string> readPlan(llvm::StringRef file);

/// The code that an assembler made of its kernels (plan::AssembledKernels); empty without one.
llvm::Expected<std::string> readAssembled(llvm::StringRef file);

} // namespace meshwright

#endif // MESHWRIGHT_CODEGEN_H
