//===- Images.h - what a GPU's driver loads ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_IMAGES_H
#define MESHWRIGHT_CODEGEN_CUDA_IMAGES_H

#include "mlir/IR/BuiltinOps.h"

namespace meshwright::codegen::cuda {

struct Image {
  unsigned arch; ///< 90 of sm_90
  bool isPTX;    ///< text for the driver to assemble, else code of this architecture
  std::string bytes;
};

/// The images of `converted` (see Lowering.h) for `archs`, e.g. "sm_90,sm_80": code of each,
/// assembled by ptxas, and PTX of the oldest, which newer GPUs run too. Without ptxas, PTX
/// of each, and a note in `log`.
mlir::FailureOr<std::vector<Image>> makeImages(mlir::ModuleOp converted, llvm::StringRef archs,
                                               llvm::raw_ostream &log);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_IMAGES_H
