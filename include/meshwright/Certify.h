//===- Certify.h - proves that a rank's program computes the global graph ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Checks one compile: whether the program of a rank, at phase local or a later one of floor 2,
// computes on all ranks together what the training graph at phase `step` computes. The check
// shares no code with propagation, partitioning or any later pass. docs/certificate.md
// says what it proves, what it assumes, and which ops have rules.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CERTIFY_H
#define MESHWRIGHT_CERTIFY_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"

#include <optional>
#include <set>
#include <string>

namespace meshwright::certify {

/// What was proved, about which texts, and on which assumptions.
struct Certificate {
  uint64_t globalHash = 0, localHash = 0; ///< XXH3 of the modules' text
  std::string mesh, phase; ///< the phase of the program
  unsigned functions = 0, outputs = 0, variables = 0;
  unsigned programs = 1; ///< of a pipeline's stages
  unsigned localOps = 0;
  std::optional<double> seconds;
  std::set<std::string> kernels;  ///< ops whose own definition is assumed on one device
  std::set<std::string> rewrites; ///< the algebra that was used
};

/// Attaches the rules of all ops that have one.
void registerRules(mlir::DialectRegistry &registry);

/// Proves that `local`, a partitioned program, computes what `global`, at phase step, does. Both
/// belong to one context. On failure an error names the op and the reason.
llvm::FailureOr<Certificate> certify(mlir::ModuleOp global, mlir::ModuleOp local);

void print(const Certificate &certificate, llvm::raw_ostream &os);

} // namespace meshwright::certify

#endif // MESHWRIGHT_CERTIFY_H
