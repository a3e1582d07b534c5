//===- FakeNvml.cpp - an NVML that reports what it is told ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// FAKE_NVML_XID is a critical error that it has to tell, once, FAKE_NVML_ECC a number of errors
// of memory. It knows GPUs by the names that FakeGpu.cpp gives them; with FAKE_NVML_MIG parts of a
// GPU, which tell no events. Near it are the cores of FAKE_NVML_CORES, a number of bits.
//
//===----------------------------------------------------------------------===//
#include <cstdlib>
#include <cstring>

extern "C" {
struct EventData {
  void *device;
  unsigned long long eventType, eventData;
  unsigned int gpuInstanceId, computeInstanceId;
};
constexpr int success = 0, invalid = 2, notSupported = 3, notFound = 6, timedOut = 10;
static int device, whole, eventSet;
static bool told;

int nvmlInit_v2() { return success; }
int nvmlShutdown() { return success; }
int nvmlDeviceGetHandleByUUID(const char *name, void **made) {
  const char *prefix = getenv("FAKE_NVML_MIG") ? "MIG-" : "GPU-";
  bool known = strncmp(name, prefix, 4) == 0 && strlen(name) == strlen("GPU-") + 36 &&
               strcmp(name + 6, "000000-0000-0000-0000-000000000000") == 0;
  *made = &device;
  return known ? success : notFound;
}
int nvmlDeviceGetTotalEccErrors(void *of, int kind, int counter, unsigned long long *count) {
  const char *text = getenv("FAKE_NVML_ECC");
  if (of != &device || kind != 1 || counter != 0)
    return invalid;
  *count = text ? strtoull(text, nullptr, 10) : 0;
  return success;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *of, void **made) {
  if (!getenv("FAKE_NVML_MIG"))
    return invalid;
  return *made = &whole, of == &device ? success : invalid;
}
int nvmlDeviceGetCpuAffinity(void *of, unsigned int words, unsigned long *set) {
  const char *text = getenv("FAKE_NVML_CORES");
  if (!text || of != (getenv("FAKE_NVML_MIG") ? &whole : &device))
    return notSupported;
  memset(set, 0, words * sizeof(*set));
  *set = strtoul(text, nullptr, 10);
  return success;
}
int nvmlEventSetCreate(void **made) { return *made = &eventSet, success; }
int nvmlEventSetFree(void *) { return success; }
int nvmlDeviceRegisterEvents(void *of, unsigned long long types, void *set) {
  if (of != &device || set != &eventSet || types != 8)
    return invalid;
  return getenv("FAKE_NVML_MIG") ? notSupported : success;
}
int nvmlEventSetWait_v2(void *set, EventData *data, unsigned int) {
  const char *text = getenv("FAKE_NVML_XID");
  if (set != &eventSet)
    return invalid;
  if (!text || told)
    return timedOut;
  told = true;
  *data = {&device, 8, strtoull(text, nullptr, 10), ~0u, ~0u};
  return success;
}
}
