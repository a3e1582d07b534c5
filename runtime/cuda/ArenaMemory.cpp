//===- ArenaMemory.cpp - memory of a GPU that others may read and write -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/ArenaMemory.h"

#include "common/monitor/Error.h"

#include <exception>

namespace meshwright::cuda {

static bool has(CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  MW_CUDA(cuDeviceGetAttribute, &value, attribute, device);
  return value != 0;
}

/// Whether a driver says by `result` that it has no such memory, rather than too little of it. Of
/// properties that it does not know it says that they are invalid.
static bool isUnsupported(CUresult result) {
  return result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED ||
         result == CUDA_ERROR_INVALID_VALUE;
}

/// What `device` can give, asking for most first.
static CUmemAllocationProp propertiesOf(CUdevice device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  int handles = 0;
  if (has(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
    handles |= CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  // Between machines that share NVLink.
  if (has(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED))
    handles |= CU_MEM_HANDLE_TYPE_FABRIC;
  properties.requestedHandleTypes = CUmemAllocationHandleType(handles);
  properties.allocFlags.gpuDirectRDMACapable =
      has(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
  return properties;
}

bool ArenaMemory::map(CUdevice device, size_t bytes) {
  if (!has(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) {
    refused = "the GPU has no virtual memory management";
    return false;
  }
  CUmemAllocationProp properties = propertiesOf(device);
  CUmemGenericAllocationHandle handle = 0;
  CUresult result;
  for (;;) {
    size_t page = 0;
    result = Driver::load().cuMemGetAllocationGranularity(&page, &properties,
                                                          CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (result == CUDA_SUCCESS) {
      mapped = (bytes + page - 1) / page * page;
      result = Driver::load().cuMemCreate(&handle, mapped, &properties, 0);
    }
    int handles = properties.requestedHandleTypes;
    if (result == CUDA_SUCCESS || !(handles & CU_MEM_HANDLE_TYPE_FABRIC))
      break;
    // The service that shares memory between machines (IMEX) does not run everywhere, and drivers
    // say so by several codes; where memory is short they say it again without it.
    properties.requestedHandleTypes = CUmemAllocationHandleType(handles & ~CU_MEM_HANDLE_TYPE_FABRIC);
  }
  if (isUnsupported(result)) {
    const char *name = "?";
    Driver::load().cuGetErrorName(result, &name);
    refused = text("cuMemCreate: ", name);
    return false;
  }
  check(result, "cuMemCreate");
  MW_CUDA(cuMemAddressReserve, &address, mapped, 0, 0, 0);
  MW_CUDA(cuMemMap, address, mapped, 0, handle, 0);
  // What is mapped keeps it.
  MW_CUDA(cuMemRelease, handle);
  CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  MW_CUDA(cuMemSetAccess, address, mapped, &access, 1);
  return true;
}

ArenaMemory::ArenaMemory(CUdevice device, int64_t bytes) {
  if (map(device, size_t(bytes)))
    return;
  mapped = size_t(bytes);
  MW_CUDA(cuMemAlloc, &address, mapped);
}

// The process ends with the run: nothing here may fail any more.
ArenaMemory::~ArenaMemory() {
  const Driver &driver = Driver::load();
  if (std::uncaught_exceptions())
    return;
  if (!refused.empty()) {
    driver.cuMemFree(address);
    return;
  }
  driver.cuMemUnmap(address, mapped);
  driver.cuMemAddressFree(address, mapped);
}

} // namespace meshwright::cuda
