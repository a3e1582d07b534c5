//===- Health.h - what a GPU itself says is wrong with it -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_HEALTH_H
#define MESHWRIGHT_RUNTIME_CUDA_HEALTH_H

#include <cuda.h>

#include <memory>
#include <string>

namespace meshwright::cuda {

/// Asks NVML for what an error of the driver's may come from. It only explains: where NVML is
/// missing or may not be asked, nothing is known.
class Health {
public:
  /// Watches the GPU called `name`.
  explicit Health(const CUuuid &name);
  ~Health();

  /// Critical errors (Xid) since the start and errors of memory that ECC could not correct since
  /// the driver was loaded, as the end of a message; empty where there are none.
  std::string trouble() const;

private:
  struct Watch;
  std::unique_ptr<Watch> watch; ///< null where nothing is known
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_HEALTH_H
