//===- Libraries.h - NVIDIA's libraries, loaded when the run starts -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Executables start on machines without a driver far enough to say so, so nothing of
// NVIDIA's is linked. The headers serve for types; everything used is named once in
// the tables below.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_LIBRARIES_H
#define MESHWRIGHT_RUNTIME_CUDA_LIBRARIES_H

#include <cublasLt.h>
#include <cuda.h>
#include <nccl.h>

#define MW_DRIVER_FUNCTIONS(X)                                                                     \
  X(cuInit)                                                                                        \
  X(cuGetErrorName)                                                                                \
  X(cuGetErrorString)                                                                              \
  X(cuDriverGetVersion)                                                                            \
  X(cuDeviceGetCount)                                                                              \
  X(cuDeviceGet)                                                                                   \
  X(cuDeviceGetName)                                                                               \
  X(cuDeviceGetUuid)                                                                               \
  X(cuDeviceGetAttribute)                                                                          \
  X(cuDevicePrimaryCtxRetain)                                                                      \
  X(cuDevicePrimaryCtxRelease)                                                                     \
  X(cuCtxSetCurrent)                                                                               \
  X(cuCtxGetCurrent)                                                                               \
  X(cuMemGetInfo)                                                                                  \
  X(cuMemAlloc)                                                                                    \
  X(cuMemFree)                                                                                     \
  X(cuMemGetAllocationGranularity)                                                                 \
  X(cuMemCreate)                                                                                   \
  X(cuMemRelease)                                                                                  \
  X(cuMemAddressReserve)                                                                           \
  X(cuMemAddressFree)                                                                              \
  X(cuMemMap)                                                                                      \
  X(cuMemUnmap)                                                                                    \
  X(cuMemSetAccess)                                                                                \
  X(cuMemcpyHtoDAsync)                                                                             \
  X(cuMemcpyDtoHAsync)                                                                             \
  X(cuMemcpyDtoDAsync)                                                                             \
  X(cuMemsetD8Async)                                                                               \
  X(cuMemsetD32Async)                                                                              \
  X(cuStreamCreate)                                                                                \
  X(cuStreamCreateWithPriority)                                                                    \
  X(cuCtxGetStreamPriorityRange)                                                                   \
  X(cuStreamDestroy)                                                                               \
  X(cuStreamQuery)                                                                                 \
  X(cuStreamWaitEvent)                                                                             \
  X(cuStreamWriteValue64)                                                                          \
  X(cuEventCreate)                                                                                 \
  X(cuEventRecord)                                                                                 \
  X(cuEventElapsedTime)                                                                            \
  X(cuEventSynchronize)                                                                            \
  X(cuEventQuery)                                                                                  \
  X(cuEventDestroy)                                                                                \
  X(cuMemHostAlloc)                                                                                \
  X(cuMemFreeHost)                                                                                 \
  X(cuMemHostGetDevicePointer)                                                                     \
  X(cuStreamSynchronize)                                                                           \
  X(cuStreamBeginCapture)                                                                          \
  X(cuStreamEndCapture)                                                                            \
  X(cuGraphGetNodes)                                                                               \
  X(cuGraphInstantiate)                                                                            \
  X(cuGraphUpload)                                                                                 \
  X(cuGraphLaunch)                                                                                 \
  X(cuGraphDestroy)                                                                                \
  X(cuGraphExecDestroy)                                                                            \
  X(cuModuleLoadData)                                                                              \
  X(cuModuleUnload)                                                                                \
  X(cuModuleGetFunction)                                                                           \
  X(cuFuncSetAttribute)                                                                            \
  X(cuFuncLoad)                                                                                    \
  X(cuLaunchKernel)

#define MW_BLAS_FUNCTIONS(X)                                                                       \
  X(cublasLtGetVersion)                                                                            \
  X(cublasLtCreate)                                                                                \
  X(cublasLtDestroy)                                                                               \
  X(cublasLtGetStatusString)                                                                       \
  X(cublasLtMatmulDescCreate)                                                                      \
  X(cublasLtMatmulDescDestroy)                                                                     \
  X(cublasLtMatmulDescSetAttribute)                                                                \
  X(cublasLtMatrixLayoutCreate)                                                                    \
  X(cublasLtMatrixLayoutDestroy)                                                                   \
  X(cublasLtMatrixLayoutSetAttribute)                                                              \
  X(cublasLtMatmulPreferenceCreate)                                                                \
  X(cublasLtMatmulPreferenceDestroy)                                                               \
  X(cublasLtMatmulPreferenceSetAttribute)                                                          \
  X(cublasLtMatmulAlgoCheck)                                                                       \
  X(cublasLtMatmulAlgoGetHeuristic)                                                                \
  X(cublasLtMatmul)

#define MW_NCCL_FUNCTIONS(X)                                                                       \
  X(ncclGetVersion)                                                                                \
  X(ncclGetErrorString)                                                                            \
  X(ncclGetLastError)                                                                              \
  X(ncclGetUniqueId)                                                                               \
  X(ncclCommInitRank)                                                                              \
  X(ncclCommSplit)                                                                                 \
  X(ncclCommGetAsyncError)                                                                         \
  X(ncclCommAbort)                                                                                 \
  X(ncclCommDestroy)                                                                               \
  X(ncclGroupStart)                                                                                \
  X(ncclGroupEnd)                                                                                  \
  X(ncclAllReduce)                                                                                 \
  X(ncclAllGather)                                                                                 \
  X(ncclReduceScatter)                                                                             \
  X(ncclBroadcast)                                                                                 \
  X(ncclReduce)                                                                                    \
  X(ncclSend)                                                                                      \
  X(ncclRecv)

/// What only newer ones have; null in others. Whoever calls one asks for the version first.
#define MW_NCCL_NEWER_FUNCTIONS(X)                                                                 \
  X(ncclCommRegister)                                                                              \
  X(ncclCommDeregister)                                                                            \
  X(ncclCommWindowRegister)                                                                        \
  X(ncclCommWindowDeregister)

namespace meshwright::cuda {

/// A library's functions under their own names. `load` is called once a process; its
/// Error says which library and version was wanted and where it was looked for.
#define MW_DECLARE(name) decltype(&::name) name = nullptr;
struct Driver {
  MW_DRIVER_FUNCTIONS(MW_DECLARE)
  static const Driver &load();
};
struct Blas {
  MW_BLAS_FUNCTIONS(MW_DECLARE)
  static const Blas &load();
};
struct Nccl {
  MW_NCCL_FUNCTIONS(MW_DECLARE)
  MW_NCCL_NEWER_FUNCTIONS(MW_DECLARE)
  static const Nccl &load();
};
#undef MW_DECLARE

/// cuDNN 9, whose functions its frontend looks up itself.
void *openCudnn();

/// An Error with the library's words for what is wrong with `call`, if anything is.
void check(CUresult result, const char *call);
void check(cublasStatus_t status, const char *call);
void check(ncclResult_t result, const char *call);

#define MW_CUDA(function, ...)                                                                     \
  ::meshwright::cuda::check(::meshwright::cuda::Driver::load().function(__VA_ARGS__), #function)
#define MW_BLAS(function, ...)                                                                     \
  ::meshwright::cuda::check(::meshwright::cuda::Blas::load().function(__VA_ARGS__), #function)
#define MW_NCCL(function, ...)                                                                     \
  ::meshwright::cuda::check(::meshwright::cuda::Nccl::load().function(__VA_ARGS__), #function)

int attributeOf(CUdevice device, CUdevice_attribute attribute);

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_LIBRARIES_H
