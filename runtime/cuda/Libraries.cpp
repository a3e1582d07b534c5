//===- Libraries.cpp - NVIDIA's libraries, loaded when the run starts -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Libraries.h"

#include "common/monitor/Error.h"

#include <cstdlib>
#include <dlfcn.h>
#include <vector>

namespace meshwright::cuda {

namespace {
/// What is known of a library before it is loaded.
struct Wanted {
  const char *what;    ///< "NCCL 2"
  const char *file;    ///< "libnccl.so.2"
  const char *package; ///< how one gets it
  bool withToolkit;    ///< also looked for where the CUDA toolkit is installed
};
} // namespace

static void *open(const Wanted &wanted) {
  std::vector<std::string> folders = {""};
  if (wanted.withToolkit) {
    if (const char *home = getenv("CUDA_HOME"))
      folders.push_back(std::string(home) + "/lib64/");
    folders.push_back("/usr/local/cuda/lib64/");
  }
  std::string reasons;
  for (const std::string &folder : folders) {
    if (void *library = dlopen((folder + wanted.file).c_str(), RTLD_NOW | RTLD_LOCAL))
      return library;
    reasons += text("\n    ", dlerror());
  }
  const char *path = getenv("LD_LIBRARY_PATH");
  fail("this executable needs ", wanted.what, ", but ", wanted.file,
       " cannot be loaded. Looked in LD_LIBRARY_PATH (", path ? path : "not set",
       "), the system's library directories",
       wanted.withToolkit ? ", CUDA_HOME/lib64 and /usr/local/cuda/lib64" : "", ":", reasons,
       "\n  ", wanted.package);
}

static void *symbol(void *library, const Wanted &wanted, const char *name) {
  if (void *found = dlsym(library, name))
    return found;
  fail(wanted.file, " has no ", name, ": it is not ", wanted.what, "; ", wanted.package);
}

// cuda.h names versions of functions by macros, which must be expanded first.
#define MW_TEXT(name) #name
#define MW_LOAD(name)                                                                              \
  result.name = reinterpret_cast<decltype(result.name)>(symbol(library, wanted, MW_TEXT(name)));

const Driver &Driver::load() {
  static const Driver symbols = [] {
    Wanted wanted{"NVIDIA's driver", "libcuda.so.1",
                  "install the driver (nvidia-smi shows whether it works), or compile with "
                  "--target cpu",
                  false};
    // Streams that share one of a GPU's queues wait for each other, and messages must not: a rank
    // may send to one that sends to it. By default there are 8, at most 32. The driver reads it
    // once.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
    void *library = open(wanted);
    Driver result;
    // First: an older one lacks some of the functions.
    MW_LOAD(cuDriverGetVersion)
    int version = 0;
    if (result.cuDriverGetVersion(&version) != CUDA_SUCCESS || version < 13000)
      fail("the driver supports CUDA ", version / 1000, ".", version % 1000 / 10,
           ", this executable needs 13.0: install a newer driver (branch 580 or later)");
    MW_DRIVER_FUNCTIONS(MW_LOAD)
    return result;
  }();
  return symbols;
}

const Blas &Blas::load() {
  static const Blas symbols = [] {
    Wanted wanted{"cuBLASLt 13", "libcublasLt.so.13", "install the CUDA 13 toolkit", true};
    void *library = open(wanted);
    Blas result;
    MW_BLAS_FUNCTIONS(MW_LOAD)
    return result;
  }();
  return symbols;
}

const Nccl &Nccl::load() {
  static const Nccl symbols = [] {
    Wanted wanted{"NCCL 2.18 or a later 2", "libnccl.so.2", "install NCCL (package libnccl2)",
                  true};
    void *library = open(wanted);
    Nccl result;
    MW_NCCL_FUNCTIONS(MW_LOAD)
#define MW_LOAD_NEWER(name)                                                                        \
  result.name = reinterpret_cast<decltype(result.name)>(dlsym(library, #name));
    MW_NCCL_NEWER_FUNCTIONS(MW_LOAD_NEWER)
#undef MW_LOAD_NEWER
    return result;
  }();
  return symbols;
}

void *openCudnn() {
  return open({"cuDNN 9", "libcudnn.so.9",
               "install cuDNN 9 (package libcudnn9-cuda-13), or compile with --attention generated",
               true});
}

int attributeOf(CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  MW_CUDA(cuDeviceGetAttribute, &value, attribute, device);
  return value;
}

void check(CUresult result, const char *call) {
  if (result == CUDA_SUCCESS)
    return;
  const char *name = "?", *words = "unknown error";
  Driver::load().cuGetErrorName(result, &name);
  Driver::load().cuGetErrorString(result, &words);
  fail(call, ": ", name, ", ", words);
}

void check(cublasStatus_t status, const char *call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    fail(call, ": ", Blas::load().cublasLtGetStatusString(status));
}

void check(ncclResult_t result, const char *call) {
  if (result != ncclSuccess)
    fail(call, ": ", Nccl::load().ncclGetErrorString(result), ", ",
         Nccl::load().ncclGetLastError(nullptr));
}

} // namespace meshwright::cuda
