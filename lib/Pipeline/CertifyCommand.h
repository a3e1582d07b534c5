//===- CertifyCommand.h - `meshwright certify` and `compile --certify` -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PIPELINE_CERTIFYCOMMAND_H
#define MESHWRIGHT_PIPELINE_CERTIFYCOMMAND_H

#include "meshwright/Phase.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

namespace meshwright {

/// Whether devices run programs that are no stages of a pipeline, for which there is no proof.
bool hasServers(mlir::ModuleOp module);

/// Proves, when the passes that `manager` runs on `module` have made a rank's program, that all
/// ranks compute with it what the module did at phase step: at phase local, and at phase `to`, at most
/// schedule, unless there are servers. The certificate goes to `log` and,
/// without the time that it took, to `kept`, which may be null; without a proof there is an error.
void certifyPhases(mlir::PassManager &manager, mlir::ModuleOp module, Phase to,
                   llvm::raw_ostream &log, std::string *kept);

/// `meshwright certify GLOBAL LOCAL`, or of an executable.
llvm::Error certifyFiles(llvm::ArrayRef<std::string> files, mlir::MLIRContext &context,
                         llvm::raw_ostream &os);

} // namespace meshwright

#endif // MESHWRIGHT_PIPELINE_CERTIFYCOMMAND_H
