//===- PhaseTexts.h - the IR of phases that a compile comes by ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_PHASETEXTS_H
#define MESHWRIGHT_LIB_PIPELINE_PHASETEXTS_H

#include "meshwright/EmbeddedIr.h"
#include "meshwright/Pipeline.h"

namespace meshwright {

/// What an executable says of its compile.
struct Record {
  /// IR of the phases that readers ask for: the training graph and its shardings, whose size does
  /// not depend on depth or ranks.
  PhaseTexts texts;
  std::string certificate; ///< with --certify
};

/// As compileTo; `record` gets what an executable carries, if it is not null.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
compileRecording(Phase to, const CompileOptions &options, mlir::MLIRContext &context,
                 llvm::raw_ostream &log, Record *record);

} // namespace meshwright

#endif // MESHWRIGHT_LIB_PIPELINE_PHASETEXTS_H
