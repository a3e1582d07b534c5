//===- Health.cpp - what a GPU itself says is wrong with it ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Health.h"

#include "common/monitor/Error.h"
#include "cuda/Nvml.h"

namespace meshwright::cuda {

static constexpr unsigned long long nvmlEventTypeXidCriticalError = 8;
static constexpr int nvmlMemoryErrorTypeUncorrected = 1, nvmlVolatileEcc = 0;

struct Health::Watch {
  const Nvml &nvml;
  nvmlDevice_t device = nullptr;
  nvmlEventSet_t events = nullptr; ///< null where the GPU tells no events, as parts of one (MIG)
};

Health::Health(const CUuuid &name) {
  const Nvml *nvml = Nvml::load();
  if (!nvml || nvml->init() != 0)
    return;
  auto made = std::make_unique<Watch>(Watch{*nvml, nvml->find(name)});
  if (!made->device) {
    nvml->shutdown();
    return;
  }
  if (nvml->eventSetCreate(&made->events) == 0 &&
      nvml->registerEvents(made->device, nvmlEventTypeXidCriticalError, made->events) != 0) {
    nvml->eventSetFree(made->events);
    made->events = nullptr;
  }
  watch = std::move(made);
}

Health::~Health() {
  if (!watch)
    return;
  if (watch->events)
    watch->nvml.eventSetFree(watch->events);
  watch->nvml.shutdown();
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
                  watch->nvml.eventSetWait(watch->events, &event, i ? 0 : milliseconds) == 0;
       ++i)
    result += text("\n  NVML: Xid ", event.eventData, ", ", adviceFor(event.eventData));
  unsigned long long uncorrected = 0;
  if (watch->nvml.totalEccErrors(watch->device, nvmlMemoryErrorTypeUncorrected, nvmlVolatileEcc,
                            &uncorrected) == 0 &&
      uncorrected)
    result += text("\n  NVML: ", uncorrected,
                   " errors of memory that ECC could not correct since the driver was loaded");
  return result;
}

} // namespace meshwright::cuda
