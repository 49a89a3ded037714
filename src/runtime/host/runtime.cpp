// Devices, memory, copies and errors of the host runtime; see hip/hip_runtime.h.
#include <hip/hip_runtime.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "machine.hpp"

namespace fabricheck_host {
namespace {

thread_local int present_device = 0;
thread_local hipError_t last_error = hipSuccess;

}  // namespace

int current_device() { return present_device; }

hipError_t result(hipError_t error) {
  if (error != hipSuccess) {
    last_error = error;
  }
  return error;
}

}  // namespace fabricheck_host

namespace {

using namespace fabricheck_host;

/// Bytes that programs can have; without page cache where a container hides /proc/meminfo.
std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("MemAvailable:", 0) == 0) {
      return 1024 * std::strtoull(line.c_str() + 13, nullptr, 10);
    }
  }
  struct sysinfo memory{};
  if (sysinfo(&memory) != 0) {
    return 0;
  }
  return std::uint64_t(memory.freeram + memory.bufferram) * memory.mem_unit;
}

hipError_t allocate(void** data, std::size_t bytes, int numa_domain) {
  if (data == nullptr || bytes == 0) {
    return result(hipErrorInvalidValue);
  }
  if (bytes > available_memory()) {  // the kernel would overcommit and kill us later
    return result(hipErrorOutOfMemory);
  }
  void* fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) {
    return result(hipErrorOutOfMemory);
  }
  (void)madvise(fresh, bytes, MADV_HUGEPAGE);  // fewer TLB misses, as on a device
  auto& all = machine();
  if (numa_domain >= 0 && hwloc_get_nbobjs_by_type(all.topology, HWLOC_OBJ_NUMANODE) > 1) {
    auto* nodes = hwloc_bitmap_alloc();
    hwloc_bitmap_only(nodes, static_cast<unsigned>(numa_domain));
    (void)hwloc_set_area_membind(all.topology, fresh, bytes, nodes, HWLOC_MEMBIND_BIND,
                                 HWLOC_MEMBIND_BYNODESET);
    hwloc_bitmap_free(nodes);
  }
  const std::lock_guard lock(all.mutex);
  all.allocations[fresh] = bytes;
  *data = fresh;
  return hipSuccess;
}

/// Whether FABRICHECK_HOST_NO_PEER_ACCESS lists the pair.
bool denied(int device, int owner) {
  const char* list = std::getenv("FABRICHECK_HOST_NO_PEER_ACCESS");
  const auto pair = "," + std::to_string(device) + "-" + std::to_string(owner) + ",";
  return list != nullptr && ("," + std::string(list) + ",").find(pair) != std::string::npos;
}

/// Whether the runtime has not allocated what lies there.
bool is_pageable(const void* data) {
  auto& all = machine();
  const std::lock_guard lock(all.mutex);
  auto next = all.allocations.upper_bound(const_cast<void*>(data));
  if (next == all.allocations.begin()) {
    return true;
  }
  const auto& [first, bytes] = *--next;
  return static_cast<const char*>(data) >= static_cast<const char*>(first) + bytes;
}

hipError_t release(void* data) {
  if (data == nullptr) {
    return hipSuccess;
  }
  auto& all = machine();
  const std::lock_guard lock(all.mutex);
  const auto allocation = all.allocations.find(data);
  if (allocation == all.allocations.end()) {
    return result(hipErrorInvalidValue);
  }
  (void)munmap(data, allocation->second);
  all.allocations.erase(allocation);
  return hipSuccess;
}

/// Queues a copy; `waits` until it is done, unless an injected fault delays it.
hipError_t copy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                hipStream_t stream, bool waits) {
  if (fabricheck_cpu::contradicts(kind, is_pageable(to), is_pageable(from))) {
    return result(hipErrorInvalidValue);
  }
  const bool delayed = add_operation(stream, [=](int cores) {
    const auto part = (bytes / static_cast<std::size_t>(cores) + 4095) / 4096 * 4096;
#pragma omp parallel for schedule(static) num_threads(cores) if (cores > 1)
    for (int i = 0; i < cores; ++i) {
      const auto first = std::min(bytes, static_cast<std::size_t>(i) * part);
      const auto last = i + 1 == cores ? bytes : std::min(bytes, first + part);
      std::memcpy(static_cast<char*>(to) + first, static_cast<const char*>(from) + first,
                  last - first);
    }
  });
  return waits && !delayed ? hipStreamSynchronize(stream) : hipSuccess;
}

}  // namespace

hipError_t hipGetDeviceCount(int* count) {
  *count = static_cast<int>(machine().devices.size());
  return hipSuccess;
}

hipError_t hipSetDevice(int device) {
  if (!exists(device)) {
    return result(hipErrorInvalidDevice);
  }
  present_device = device;
  return hipSuccess;
}

hipError_t hipGetDevice(int* device) {
  *device = current_device();
  return hipSuccess;
}

hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
  if (!exists(device)) {
    return result(hipErrorInvalidDevice);
  }
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name,
                "virtual device of %zu core(s) on NUMA domain %d", device_at(device).cores.size(),
                device_at(device).numa_domain);
  std::snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "host");
  properties->totalGlobalMem = available_memory();
  properties->l2CacheSize = static_cast<int>(machine().cache_bytes);
  properties->multiProcessorCount = static_cast<int>(device_at(device).cores.size());
  return hipSuccess;
}

// Virtual devices have no memory of their own: none of these attributes, and no managed memory.
hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t, int device) {
  *value = 0;
  return exists(device) ? hipSuccess : result(hipErrorInvalidDevice);
}
hipError_t hipMallocManaged(void**, std::size_t, unsigned) { return result(hipErrorNotSupported); }
hipError_t hipMemPrefetchAsync(const void*, std::size_t, int, hipStream_t) {
  return result(hipErrorNotSupported);
}

hipError_t hipDeviceGetPCIBusId(char*, int, int) { return hipErrorNotSupported; }
hipError_t hipDeviceGetUuid(hipUUID*, hipDevice_t) { return hipErrorNotSupported; }

hipError_t hipDriverGetVersion(int* version) {
  *version = 0;
  return hipSuccess;
}

hipError_t hipRuntimeGetVersion(int* version) {
  *version = 1;
  return hipSuccess;
}

hipError_t hipDeviceCanAccessPeer(int* possible, int device, int owner) {
  if (!exists(device) || !exists(owner)) {
    return result(hipErrorInvalidDevice);
  }
  *possible = device == owner || denied(device, owner) ? 0 : 1;
  return hipSuccess;
}

hipError_t hipDeviceEnablePeerAccess(int owner, unsigned) {
  const bool possible = exists(owner) && !denied(current_device(), owner);
  return possible ? hipSuccess : result(hipErrorInvalidDevice);
}

hipError_t hipMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = available_memory();
  *total_bytes = *free_bytes;
  return hipSuccess;
}

hipError_t hipMalloc(void** data, std::size_t bytes) {
  return allocate(data, bytes, device_at(current_device()).numa_domain);
}
hipError_t hipFree(void* data) { return release(data); }
hipError_t hipHostMalloc(void** data, std::size_t bytes, unsigned) {
  return allocate(data, bytes, -1);
}
hipError_t hipHostFree(void* data) { return release(data); }

hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                          hipStream_t stream) {
  return copy(to, from, bytes, kind, stream, false);
}

hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
  return copy(to, from, bytes, kind, nullptr, true);
}

hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                              std::size_t bytes, hipStream_t stream) {
  if (!exists(to_device) || !exists(from_device)) {
    return result(hipErrorInvalidDevice);
  }
  return hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, stream);
}

hipError_t hipMemset(void* data, int value, std::size_t bytes) {
  fabricheck_host::add(nullptr, [=](int) { std::memset(data, value, bytes); });
  return hipStreamSynchronize(nullptr);
}

hipError_t hipGetLastError() { return std::exchange(last_error, hipSuccess); }
