//===- EmbeddedIr.h - the IR that executables carry --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_EMBEDDEDIR_H
#define MESHWRIGHT_EMBEDDEDIR_H

#include "meshwright/Phase.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <map>
#include <string>

namespace meshwright {

/// IR as text, by the phase that it has reached.
using PhaseTexts = std::map<Phase, std::string>;

/// Adds `texts` to a lowered module, compressed, in a section of their own.
void embedIr(mlir::ModuleOp lowered, const PhaseTexts &texts);

/// The texts of an executable; none if it carries none.
llvm::Expected<PhaseTexts> readEmbeddedIr(llvm::StringRef file);

/// Adds the certificate of a compile with --certify to a lowered module; nothing if it is empty.
void embedCertificate(mlir::ModuleOp lowered, llvm::StringRef certificate);

/// The certificate of an executable; empty if it carries none.
llvm::Expected<std::string> readCertificate(llvm::StringRef file);

} // namespace meshwright

#endif // MESHWRIGHT_EMBEDDEDIR_H
