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

/// What ptxas says of a function it assembled.
struct Assembled {
  std::string function;
  unsigned arch; ///< 90 of sm_90
  int64_t registers, spilledBytes; ///< of a thread; stored and loaded again
};

/// The images of `converted` (see Lowering.h) for `archs`, e.g. sm_90 and sm_80: code of each,
/// assembled by ptxas, and PTX of the oldest, which newer GPUs run too. Without ptxas, PTX
/// of each, and a note in `log`. What ptxas says is added to `assembled`.
mlir::FailureOr<std::vector<Image>> makeImages(mlir::ModuleOp converted,
                                               llvm::ArrayRef<std::string> archs,
                                               llvm::raw_ostream &log,
                                               std::vector<Assembled> &assembled);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_IMAGES_H
