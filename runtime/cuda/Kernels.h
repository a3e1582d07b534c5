//===- Kernels.h - the program's own kernels -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_KERNELS_H
#define MESHWRIGHT_RUNTIME_CUDA_KERNELS_H

#include "cuda/Libraries.h"
#include "meshwright/runtime/cuda/ABI.h"

#include <string>
#include <vector>

namespace meshwright::cuda {

/// The kernels that the executable carries, loaded for the GPU that is current.
class Kernels {
public:
  explicit Kernels(CUdevice device);
  ~Kernels();
  Kernels(const Kernels &) = delete;
  Kernels &operator=(const Kernels &) = delete;

  /// The number of a kernel in the table.
  int32_t find(const std::string &name) const;
  /// An operand is an address, or a whole number in the bits of one.
  void launch(int32_t kernel, void *const *operands, CUstream stream) const;

private:
  struct Kernel {
    CUfunction function;
    const char *name;
    MwKernelShape shape;
  };
  CUmodule module = nullptr;
  std::vector<Kernel> kernels;
};

/// The image of `images` for a GPU of architecture `arch` (90 is sm_90): code for it, else
/// the newest PTX it runs; -1 if there is none.
int chooseImage(const MwImage *images, int64_t count, int64_t arch);

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_KERNELS_H
