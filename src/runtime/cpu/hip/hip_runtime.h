// The HIP calls that fabricheck uses, on a CPU: what the host and the sim runtime have in common.
//
// A kernel is a loop over its blocks, shared among cores by OpenMP; kernels, copies and events are
// queued on streams. What a device and a stream are, and what time it is, each runtime says for
// itself: host (src/runtime/host) has virtual devices, threads and the wall clock, sim
// (src/runtime/sim) the devices of a node model, actors and the simulated clock.
//
// A kernel must cover its range exactly (one element a thread): the loop over a block's threads
// then becomes vector code. Shared memory and barriers are not provided.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>

#define __global__ inline
#define __device__
#define __host__
#define __launch_bounds__(...)
#define HIP_KERNEL_NAME(...) __VA_ARGS__

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3() = default;
  constexpr dim3(unsigned x_, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(16) double2 {
  double x, y;
};

namespace fabricheck_cpu {

/// A built-in index of the running kernel. Its components are variables of their own because a
/// compiler keeps those in registers throughout a loop, which it does not for a structure: with
/// one, every thread's store of its index would compete with the kernel's own.
template <int Name>
struct Index {
  static inline thread_local unsigned x = 0, y = 0, z = 0;
  static void set(dim3 value) {
    x = value.x;
    y = value.y;
    z = value.z;
  }
};

}  // namespace fabricheck_cpu

inline constexpr fabricheck_cpu::Index<0> threadIdx;
inline constexpr fabricheck_cpu::Index<1> blockIdx;
inline constexpr fabricheck_cpu::Index<2> blockDim;
inline constexpr fabricheck_cpu::Index<3> gridDim;

enum hipError_t {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorNoDevice = 100,
  hipErrorInvalidDevice = 101,
  hipErrorECCNotCorrectable = 214,
  hipErrorNotReady = 600,
  hipErrorPeerAccessAlreadyEnabled = 704,
  hipErrorNotSupported = 801,
};

struct hipDeviceProp_t {
  char name[256];
  char gcnArchName[256];
  std::size_t totalGlobalMem;
  int l2CacheSize;  // of the host runtime: the host's largest cache
  int multiProcessorCount;
};
struct hipUUID {
  char bytes[16];
};
using hipDevice_t = int;
using hipStream_t = struct fabricheck_stream_queue*;
using hipEvent_t = struct fabricheck_event*;

enum hipDeviceAttribute_t {
  hipDeviceAttributeConcurrentManagedAccess,
  hipDeviceAttributeManagedMemory,
  hipDeviceAttributePageableMemoryAccess,
};
constexpr int hipCpuDeviceId = -1;
constexpr unsigned hipMemAttachGlobal = 1;
constexpr unsigned hipStreamNonBlocking = 1;
constexpr unsigned hipHostMallocPortable = 1;
constexpr unsigned hipHostMallocMapped = 2;
constexpr unsigned hipHostMallocNumaUser = 0x20000000;
constexpr unsigned hipHostMallocCoherent = 0x40000000;
constexpr unsigned hipHostMallocNonCoherent = 0;  // what the processor sees is always coherent
enum hipMemcpyKind {
  hipMemcpyHostToHost,
  hipMemcpyHostToDevice,
  hipMemcpyDeviceToHost,
  hipMemcpyDeviceToDevice,
  hipMemcpyDefault
};

hipError_t hipGetDeviceCount(int* count);
hipError_t hipSetDevice(int device);
hipError_t hipGetDevice(int* device);
hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device);
hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device);
hipError_t hipDeviceGetPCIBusId(char* address, int length, int device);
hipError_t hipDeviceGetUuid(hipUUID* uuid, hipDevice_t device);
hipError_t hipDriverGetVersion(int* version);
hipError_t hipRuntimeGetVersion(int* version);
hipError_t hipDeviceCanAccessPeer(int* possible, int device, int owner);
hipError_t hipDeviceEnablePeerAccess(int owner, unsigned flags);
hipError_t hipMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes);
hipError_t hipMalloc(void** data, std::size_t bytes);
hipError_t hipFree(void* data);
hipError_t hipHostMalloc(void** data, std::size_t bytes, unsigned flags);
hipError_t hipHostFree(void* data);
hipError_t hipMallocManaged(void** data, std::size_t bytes, unsigned flags = hipMemAttachGlobal);
hipError_t hipMemPrefetchAsync(const void* data, std::size_t bytes, int device,
                               hipStream_t stream = nullptr);
hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind);
hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                          hipStream_t stream);
hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                              std::size_t bytes, hipStream_t stream);
hipError_t hipMemset(void* data, int value, std::size_t bytes);
hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipDeviceSynchronize();
hipError_t hipEventCreate(hipEvent_t* event);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop);
hipError_t hipGetLastError();
const char* hipGetErrorString(hipError_t error);
const char* hipGetErrorName(hipError_t error);

template <typename T>
hipError_t hipMalloc(T** data, std::size_t bytes) {
  return hipMalloc(reinterpret_cast<void**>(data), bytes);
}
template <typename T>
hipError_t hipHostMalloc(T** data, std::size_t bytes, unsigned flags = 0) {
  return hipHostMalloc(reinterpret_cast<void**>(data), bytes, flags);
}

/// Nanoseconds of the runtime's clock, where a device counts cycles.
long long clock64();

inline unsigned long long atomicAdd(unsigned long long* where, unsigned long long value) {
  return __atomic_fetch_add(where, value, __ATOMIC_RELAXED);
}
inline unsigned long long atomicMin(unsigned long long* where, unsigned long long value) {
  auto seen = __atomic_load_n(where, __ATOMIC_RELAXED);
  while (value < seen && !__atomic_compare_exchange_n(where, &seen, value, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
  }
  return seen;
}

namespace fabricheck_cpu {

/// Whether ROCm refuses a copy because of its kind: the kind names memory of a device where there
/// is pageable memory of the host. (clr in rocm-systems does so since 2026, before it went by the
/// pointers alone; CUDA calls every kind that contradicts them undefined.)
constexpr bool contradicts(hipMemcpyKind kind, bool pageable_to, bool pageable_from) {
  return (kind == hipMemcpyHostToDevice && pageable_to) ||
         (kind == hipMemcpyDeviceToHost && pageable_from) ||
         (kind == hipMemcpyDeviceToDevice && pageable_to && pageable_from);
}

/// Adds a kernel to a stream; `work` gets the number of cores it may use.
void enqueue(hipStream_t stream, std::function<void(int cores)> work);

template <typename Kernel, typename... Args>
void run_grid(int cores, dim3 grid, dim3 block, const Kernel& kernel, const Args&... args) {
  const auto blocks = static_cast<long long>(grid.x) * grid.y * grid.z;
  const int threads = static_cast<int>(blocks < cores ? blocks : cores);
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    // Copies of this thread's own: the compiler may then keep them in registers, which it may not
    // where a store of the kernel could change them.
    const std::tuple<Args...> own(args...);
    gridDim.set(grid);
    blockDim.set(block);
#pragma omp for schedule(static)
    for (long long b = 0; b < blocks; ++b) {
      blockIdx.x = static_cast<unsigned>(b % grid.x);
      blockIdx.y = static_cast<unsigned>(b / grid.x % grid.y);
      blockIdx.z = static_cast<unsigned>(b / grid.x / grid.y);
      for (unsigned z = 0; z < block.z; ++z) {
        threadIdx.z = z;
        for (unsigned y = 0; y < block.y; ++y) {
          threadIdx.y = y;
          for (unsigned x = 0; x < block.x; ++x) {
            threadIdx.x = x;
            std::apply(kernel, own);
          }
        }
      }
    }
  }
}

template <typename Kernel, typename... Args>
void launch(dim3 grid, dim3 block, hipStream_t stream, Kernel kernel, Args... args) {
  enqueue(stream, [=](int cores) { run_grid(cores, grid, block, kernel, args...); });
}

}  // namespace fabricheck_cpu

#define hipLaunchKernelGGL(kernel, grid, block, shared_bytes, stream, ...) \
  ::fabricheck_cpu::launch((grid), (block), (stream),                      \
                           [](auto... arguments) { kernel(arguments...); }, __VA_ARGS__)
