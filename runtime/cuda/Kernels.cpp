//===- Kernels.cpp - the program's own kernels ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Kernels.h"

#include "cuda/Gpu.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace meshwright::cuda {

int chooseImage(const MwImage *images, int64_t count, int64_t arch) {
  int best = -1;
  for (int64_t i = 0; i < count; ++i) {
    const MwImage &image = images[i];
    // Code runs on later GPUs of its generation, PTX on all later ones.
    if (image.arch > arch || (!image.isPtx && image.arch / 10 != arch / 10))
      continue;
    if (best < 0 || image.isPtx < images[best].isPtx ||
        (image.isPtx == images[best].isPtx && image.arch > images[best].arch))
      best = int(i);
  }
  return best;
}

Kernels::Kernels(CUdevice device) {
  if (meshwright_kernel_count == 0)
    return;
  int64_t arch = attributeOf(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                 attributeOf(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  int chosen = chooseImage(meshwright_images, meshwright_image_count, arch);
  if (chosen < 0) {
    std::set<int64_t> archs;
    for (int64_t i = 0; i < meshwright_image_count; ++i)
      archs.insert(meshwright_images[i].arch);
    std::string names;
    for (int64_t known : archs)
      names += text(names.empty() ? "sm_" : ", sm_", known);
    fail("the GPU is of architecture sm_", arch, ", but this executable was compiled for ", names,
         ": compile it with --gpu-arch sm_", arch);
  }
  MW_CUDA(cuModuleLoadData, &module, meshwright_image_bytes + meshwright_images[chosen].begin);
  const char *name = meshwright_kernel_names;
  for (int64_t i = 0; i < meshwright_kernel_count; ++i, name += std::strlen(name) + 1) {
    Kernel kernel{nullptr, name, meshwright_kernel_shapes[i]};
    MW_CUDA(cuModuleGetFunction, &kernel.function, module, name);
    // More than 48 KiB, with what it declares itself, a kernel has to be allowed.
    if (kernel.shape.sharedBytes)
      MW_CUDA(cuFuncSetAttribute, kernel.function,
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel.shape.sharedBytes);
    // Not with its first launch, which may wait for all that the GPU is doing: sends may be
    // under way then whose receiver waits for this rank.
    MW_CUDA(cuFuncLoad, kernel.function);
    kernels.push_back(kernel);
  }
}

Kernels::~Kernels() {
  if (module)
    Driver::load().cuModuleUnload(module);
}

int32_t Kernels::find(const std::string &name) const {
  auto found = std::find_if(kernels.begin(), kernels.end(),
                            [&](const Kernel &kernel) { return name == kernel.name; });
  if (found == kernels.end())
    fail("the executable has no kernel ", name, ": compile it again");
  return int32_t(found - kernels.begin());
}

void Kernels::launch(int32_t number, void *const *operands, CUstream stream) const {
  const Kernel &kernel = kernels.at(size_t(number));
  // The driver wants the address of each argument.
  constexpr int mostArguments = 1024;
  void *arguments[mostArguments];
  if (kernel.shape.operands > mostArguments)
    fail("kernel ", kernel.name, " takes ", kernel.shape.operands, " addresses, a GPU's kernel at "
         "most ", mostArguments - 1);
  for (int32_t i = 0; i < kernel.shape.operands; ++i)
    arguments[i] = const_cast<void **>(&operands[i]);
  CUresult result = Driver::load().cuLaunchKernel(
      kernel.function, unsigned(kernel.shape.blocks), 1, 1, unsigned(kernel.shape.threads), 1, 1,
      unsigned(kernel.shape.sharedBytes), stream, arguments, nullptr);
  if (result != CUDA_SUCCESS)
    check(result, text("cuLaunchKernel of ", kernel.name).c_str());
}

} // namespace meshwright::cuda

using namespace meshwright;

using cuda::Gpu;

void mw_launch_kernel(MwContext *context, int32_t kernel, void *const *operands) {
  Gpu::enqueue(context, [&](Gpu &gpu) {
    gpu.kernels->launch(kernel, operands, gpu.stream);
  });
}

void mw_copy(MwContext *context, void *to, const void *from, int64_t bytes) {
  Gpu::enqueue(context, [&](Gpu &gpu) {
    MW_CUDA(cuMemcpyDtoDAsync, CUdeviceptr(to), CUdeviceptr(from), size_t(bytes), gpu.stream);
  });
}

void mw_store(MwContext *context, int32_t *to, int32_t value) {
  Gpu::enqueue(context, [&](Gpu &gpu) {
    MW_CUDA(cuMemsetD32Async, CUdeviceptr(to), unsigned(value), 1, gpu.stream);
  });
}

int32_t mw_load(MwContext *context, const int32_t *from) {
  int32_t value = 0;
  Gpu::enqueue(context, [&](Gpu &gpu) { value = gpu.follow(from); });
  return value;
}
