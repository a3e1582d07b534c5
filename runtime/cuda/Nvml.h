//===- Nvml.h - NVIDIA's management library, where it is there ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_NVML_H
#define MESHWRIGHT_RUNTIME_CUDA_NVML_H

#include <cuda.h>

#include <string>

// What is used of nvml.h, which toolkits may lack. Its functions keep their forms.
extern "C" {
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;
struct nvmlEventData_t {
  nvmlDevice_t device;
  unsigned long long eventType, eventData;
  unsigned int gpuInstanceId, computeInstanceId;
};
}

namespace meshwright::cuda {

/// The library's functions, which return 0 where they succeed; null what it does not have. It
/// only explains and advises: runs do without it.
struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*handleByUUID)(const char *, nvmlDevice_t *) = nullptr;
  int (*totalEccErrors)(nvmlDevice_t, int, int, unsigned long long *) = nullptr;
  int (*eventSetCreate)(nvmlEventSet_t *) = nullptr;
  int (*eventSetFree)(nvmlEventSet_t) = nullptr;
  int (*registerEvents)(nvmlDevice_t, unsigned long long, nvmlEventSet_t) = nullptr;
  int (*eventSetWait)(nvmlEventSet_t, nvmlEventData_t *, unsigned int) = nullptr;
  int (*cpuAffinity)(nvmlDevice_t, unsigned int, unsigned long *) = nullptr;
  int (*wholeOfPart)(nvmlDevice_t, nvmlDevice_t *) = nullptr;

  /// Null where the library or a function of the first eight is missing.
  static const Nvml *load();
  /// The GPU, or the part of one (MIG), that the driver calls `name`; null where it is not known.
  nvmlDevice_t find(const CUuuid &name) const;
};

/// As NVML writes a name: PREFIX-00112233-4455-6677-8899-aabbccddeeff.
std::string nvmlName(const CUuuid &name, const char *prefix);

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_NVML_H
