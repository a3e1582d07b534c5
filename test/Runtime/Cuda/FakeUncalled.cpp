//===- FakeUncalled.cpp - what must be there, but not be called --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// cuDNN refuses a driver that lacks any of these (CudnnPlanTest). It calls none of them to
// make a plan, and the runtime does not at all. Without cuda.h, where some have other types.
//
//===----------------------------------------------------------------------===//
#include <cstdio>
#include <cstdlib>

#define MW_UNCALLED(name)                                                                          \
  extern "C" int name() {                                                                          \
    fprintf(stderr, "fake GPU: %s is not for calling\n", #name);                                   \
    _Exit(99);                                                                                     \
  }

MW_UNCALLED(cuCtxGetDevice)
MW_UNCALLED(cuCtxGetLimit)
MW_UNCALLED(cuCtxPopCurrent)
MW_UNCALLED(cuCtxPushCurrent)
MW_UNCALLED(cuDevicePrimaryCtxReset)
MW_UNCALLED(cuLaunchCooperativeKernel)
MW_UNCALLED(cuLaunchKernelEx)
MW_UNCALLED(cuLibraryLoadFromFile)
MW_UNCALLED(cuLinkAddData)
MW_UNCALLED(cuLinkAddData_v2)
MW_UNCALLED(cuLinkAddFile_v2)
MW_UNCALLED(cuLinkComplete)
MW_UNCALLED(cuLinkCreate)
MW_UNCALLED(cuLinkCreate_v2)
MW_UNCALLED(cuLinkDestroy)
MW_UNCALLED(cuMemcpyDtoH_v2)
MW_UNCALLED(cuModuleGetGlobal_v2)
MW_UNCALLED(cuModuleLoadDataEx)
MW_UNCALLED(cuModuleLoadFatBinary)
MW_UNCALLED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
MW_UNCALLED(cuOccupancyMaxPotentialClusterSize)
MW_UNCALLED(cuStreamGetCtx)
MW_UNCALLED(cuTensorMapEncodeTiled)
