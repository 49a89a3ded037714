// The HIP calls that fabricheck uses, by CUDA 11 to 13. HIP's own NVIDIA headers do not compile
// with CUDA 13.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define hipLaunchKernelGGL(kernel, grid, block, shared_bytes, stream, ...) \
  kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)

using hipError_t = cudaError_t;
using hipStream_t = cudaStream_t;
using hipEvent_t = cudaEvent_t;
using hipDevice_t = int;
using hipDeviceAttribute_t = cudaDeviceAttr;
struct hipUUID {
  char bytes[16];
};

/// The members in use, filled from cudaDeviceProp, which has no name for the architecture.
struct hipDeviceProp_t {
  char name[256];
  char gcnArchName[256];
  std::size_t totalGlobalMem;
  int l2CacheSize;
  int multiProcessorCount;
};

#define hipSuccess cudaSuccess
#define hipErrorPeerAccessAlreadyEnabled cudaErrorPeerAccessAlreadyEnabled
#define hipErrorNotSupported cudaErrorNotSupported
#define hipErrorOutOfMemory cudaErrorMemoryAllocation
#define hipErrorECCNotCorrectable cudaErrorECCUncorrectable
#define hipErrorInvalidValue cudaErrorInvalidValue
#define hipStreamNonBlocking cudaStreamNonBlocking
#define hipHostMallocPortable cudaHostAllocPortable
#define hipHostMallocMapped cudaHostAllocMapped
#define hipHostMallocNumaUser 0u     // CUDA follows the caller's memory policy
#define hipHostMallocCoherent 0u     // CUDA's page-locked memory is coherent
#define hipHostMallocNonCoherent 0u  // and it has no other
#define hipMemcpyDefault cudaMemcpyDefault
#define hipMemcpyHostToDevice cudaMemcpyHostToDevice
#define hipMemcpyDeviceToHost cudaMemcpyDeviceToHost

#define hipDeviceAttributeManagedMemory cudaDevAttrManagedMemory
#define hipDeviceAttributeConcurrentManagedAccess cudaDevAttrConcurrentManagedAccess
#define hipDeviceAttributePageableMemoryAccess cudaDevAttrPageableMemoryAccess
#define hipMemAttachGlobal cudaMemAttachGlobal
#define hipCpuDeviceId cudaCpuDeviceId

#define hipGetDeviceCount cudaGetDeviceCount
#define hipSetDevice cudaSetDevice
#define hipGetDevice cudaGetDevice
#define hipDeviceGetPCIBusId cudaDeviceGetPCIBusId
#define hipDeviceGetAttribute cudaDeviceGetAttribute
#define hipDriverGetVersion cudaDriverGetVersion
#define hipRuntimeGetVersion cudaRuntimeGetVersion
#define hipDeviceCanAccessPeer cudaDeviceCanAccessPeer
#define hipDeviceEnablePeerAccess cudaDeviceEnablePeerAccess
#define hipMemGetInfo cudaMemGetInfo
#define hipMalloc cudaMalloc
#define hipFree cudaFree
#define hipHostFree cudaFreeHost
#define hipMemcpy cudaMemcpy
#define hipMemcpyAsync cudaMemcpyAsync
#define hipMemcpyPeerAsync cudaMemcpyPeerAsync
#define hipMemset cudaMemset
#define hipStreamCreateWithFlags cudaStreamCreateWithFlags
#define hipStreamDestroy cudaStreamDestroy
#define hipStreamSynchronize cudaStreamSynchronize
#define hipDeviceSynchronize cudaDeviceSynchronize
#define hipEventCreate cudaEventCreate
#define hipEventDestroy cudaEventDestroy
#define hipEventRecord cudaEventRecord
#define hipEventSynchronize cudaEventSynchronize
#define hipEventElapsedTime cudaEventElapsedTime
#define hipGetLastError cudaGetLastError
#define hipGetErrorString cudaGetErrorString
#define hipGetErrorName cudaGetErrorName

inline hipError_t hipHostMalloc(void** data, std::size_t bytes, unsigned flags) {
  return cudaHostAlloc(data, bytes, flags);
}

inline hipError_t hipMallocManaged(void** data, std::size_t bytes,
                                   unsigned flags = hipMemAttachGlobal) {
  return cudaMallocManaged(data, bytes, flags);
}

/// CUDA 13 names a place where CUDA 11 and 12, as HIP, have a number that may stand for the host.
inline hipError_t hipMemPrefetchAsync(const void* data, std::size_t bytes, int device,
                                      hipStream_t stream = nullptr) {
#if CUDART_VERSION >= 13000
  const bool host = device == hipCpuDeviceId;
  cudaMemLocation place{};
  place.type = host ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  place.id = host ? 0 : device;
  return cudaMemPrefetchAsync(data, bytes, place, 0, stream);
#else
  return cudaMemPrefetchAsync(data, bytes, device, stream);
#endif
}

inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
  cudaDeviceProp from;
  const auto error = cudaGetDeviceProperties(&from, device);
  if (error == cudaSuccess) {
    std::snprintf(properties->name, sizeof properties->name, "%s", from.name);
    std::snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "sm_%d%d", from.major,
                  from.minor);
    properties->totalGlobalMem = from.totalGlobalMem;
    properties->l2CacheSize = from.l2CacheSize;
    properties->multiProcessorCount = from.multiProcessorCount;
  }
  return error;
}

inline hipError_t hipDeviceGetUuid(hipUUID* uuid, hipDevice_t device) {
  cudaDeviceProp from;
  const auto error = cudaGetDeviceProperties(&from, device);
  if (error == cudaSuccess) {
    std::memcpy(uuid->bytes, from.uuid.bytes, sizeof uuid->bytes);
  }
  return error;
}
