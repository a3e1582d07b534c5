//===- Nvml.cpp - NVIDIA's management library, where it is there -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Nvml.h"

#include <cstdio>
#include <dlfcn.h>
#include <optional>
#include <type_traits>

namespace meshwright::cuda {

const Nvml *Nvml::load() {
  static const std::optional<Nvml> loaded = []() -> std::optional<Nvml> {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return std::nullopt;
    Nvml found;
    auto find = [&](auto &function, const char *name) {
      void *symbol = dlsym(library, name);
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
      return symbol != nullptr;
    };
    find(found.cpuAffinity, "nvmlDeviceGetCpuAffinity");
    find(found.wholeOfPart, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
    if (find(found.init, "nvmlInit_v2") && find(found.shutdown, "nvmlShutdown") &&
        find(found.handleByUUID, "nvmlDeviceGetHandleByUUID") &&
        find(found.totalEccErrors, "nvmlDeviceGetTotalEccErrors") &&
        find(found.eventSetCreate, "nvmlEventSetCreate") &&
        find(found.eventSetFree, "nvmlEventSetFree") &&
        find(found.registerEvents, "nvmlDeviceRegisterEvents") &&
        find(found.eventSetWait, "nvmlEventSetWait_v2"))
      return found;
    return std::nullopt;
  }();
  return loaded ? &*loaded : nullptr;
}

nvmlDevice_t Nvml::find(const CUuuid &name) const {
  nvmlDevice_t device = nullptr;
  for (const char *prefix : {"GPU", "MIG"})
    if (handleByUUID(nvmlName(name, prefix).c_str(), &device) == 0)
      return device;
  return nullptr;
}

std::string nvmlName(const CUuuid &name, const char *prefix) {
  std::string result = prefix;
  for (size_t i = 0; i < sizeof(name.bytes); ++i) {
    char digits[4];
    snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(name.bytes[i]));
    result += (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) ? "-" : "";
    result += digits;
  }
  return result;
}

} // namespace meshwright::cuda
