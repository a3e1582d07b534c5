//===- Health.cpp - what a GPU itself says is wrong with it ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Health.h"

#include "common/monitor/Error.h"

#include <cstdio>
#include <dlfcn.h>

namespace meshwright::cuda {

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
static constexpr unsigned long long nvmlEventTypeXidCriticalError = 8;
static constexpr int nvmlMemoryErrorTypeUncorrected = 1, nvmlVolatileEcc = 0;

struct Health::Watch {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*handleByUUID)(const char *, nvmlDevice_t *) = nullptr;
  int (*totalEccErrors)(nvmlDevice_t, int, int, unsigned long long *) = nullptr;
  int (*eventSetCreate)(nvmlEventSet_t *) = nullptr;
  int (*eventSetFree)(nvmlEventSet_t) = nullptr;
  int (*registerEvents)(nvmlDevice_t, unsigned long long, nvmlEventSet_t) = nullptr;
  int (*eventSetWait)(nvmlEventSet_t, nvmlEventData_t *, unsigned int) = nullptr;

  nvmlDevice_t device = nullptr;
  nvmlEventSet_t events = nullptr; ///< null where the GPU tells no events, as parts of one (MIG)

  bool load() {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return false;
    auto find = [&](auto &function, const char *name) {
      void *found = dlsym(library, name);
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
      return found != nullptr;
    };
    return find(init, "nvmlInit_v2") && find(shutdown, "nvmlShutdown") &&
           find(handleByUUID, "nvmlDeviceGetHandleByUUID") &&
           find(totalEccErrors, "nvmlDeviceGetTotalEccErrors") &&
           find(eventSetCreate, "nvmlEventSetCreate") && find(eventSetFree, "nvmlEventSetFree") &&
           find(registerEvents, "nvmlDeviceRegisterEvents") &&
           find(eventSetWait, "nvmlEventSetWait_v2");
  }
};

/// As NVML writes it: PREFIX-00112233-4455-6677-8899-aabbccddeeff.
static std::string textOf(const CUuuid &name, const char *prefix) {
  std::string result = prefix;
  for (size_t i = 0; i < sizeof(name.bytes); ++i) {
    char digits[4];
    snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(name.bytes[i]));
    result += (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) ? "-" : "";
    result += digits;
  }
  return result;
}

Health::Health(const CUuuid &name) {
  auto made = std::make_unique<Watch>();
  if (!made->load() || made->init() != 0)
    return;
  if (made->handleByUUID(textOf(name, "GPU").c_str(), &made->device) != 0 &&
      made->handleByUUID(textOf(name, "MIG").c_str(), &made->device) != 0) {
    made->shutdown();
    return;
  }
  if (made->eventSetCreate(&made->events) == 0 &&
      made->registerEvents(made->device, nvmlEventTypeXidCriticalError, made->events) != 0) {
    made->eventSetFree(made->events);
    made->events = nullptr;
  }
  watch = std::move(made);
}

Health::~Health() {
  if (!watch)
    return;
  if (watch->events)
    watch->eventSetFree(watch->events);
  watch->shutdown();
}

/// Of those that are the machine's fault, what to do.
static const char *adviceFor(unsigned long long xid) {
  switch (xid) {
  case 48:
  case 94:
  case 95:
    return "an error of memory that ECC cannot correct: reset the GPU";
  case 74:
    return "an error of NVLink: have the machine looked at";
  case 79:
    return "the GPU has fallen off the bus: restart the machine, and have it looked at";
  case 119:
  case 120:
    return "the GPU's system processor does not answer: reset the GPU";
  }
  return "NVIDIA's list of Xid errors says what it is";
}

std::string Health::trouble() const {
  std::string result;
  if (!watch)
    return result;
  // The driver may need a moment to tell, and there may be several.
  constexpr unsigned milliseconds = 200;
  constexpr int most = 8;
  nvmlEventData_t event = {};
  for (int i = 0; i < most && watch->events &&
                  watch->eventSetWait(watch->events, &event, i ? 0 : milliseconds) == 0;
       ++i)
    result += text("\n  NVML: Xid ", event.eventData, ", ", adviceFor(event.eventData));
  unsigned long long uncorrected = 0;
  if (watch->totalEccErrors(watch->device, nvmlMemoryErrorTypeUncorrected, nvmlVolatileEcc,
                            &uncorrected) == 0 &&
      uncorrected)
    result += text("\n  NVML: ", uncorrected,
                   " errors of memory that ECC could not correct since the driver was loaded");
  return result;
}

} // namespace meshwright::cuda
