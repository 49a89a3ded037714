// Devices, memory and copies of the simulated node; see hip/hip_runtime.h.
#include <hip/hip_runtime.h>
#include <smpi/smpi.h>
#include <sys/mman.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "machine.hpp"

namespace {

using namespace fabricheck_sim;

const Device& device_at(int device) {
  return machine().node.devices[static_cast<std::size_t>(physical(device))];
}

/// Reserves addresses only: what is not touched takes no memory, so that a node may be larger than
/// the machine that simulates it. Messages between ranks copy what they carry, so beyond the slice
/// memory of ranks is such as SMPI knows not to hold data.
void* reserve(std::size_t bytes) {
  const std::size_t slice = moved_bytes(bytes);
  if (is_rank() && slice < bytes) {
    return smpi_shared_malloc_partial(bytes, std::array{slice, bytes}.data(), 1);
  }
  void* fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return fresh == MAP_FAILED ? nullptr : fresh;
}

void give_back(void* data, std::size_t bytes) {
  if (is_rank() && moved_bytes(bytes) < bytes) {
    smpi_shared_free(data);
  } else {
    (void)munmap(data, bytes);
  }
}

hipError_t allocate(void** data, std::size_t bytes, const Place& place, bool pageable = false) {
  if (data == nullptr || bytes == 0) {
    return hipErrorInvalidValue;
  }
  void* fresh = bytes > free_memory_of(place) ? nullptr : reserve(bytes);
  if (fresh == nullptr) {
    return hipErrorOutOfMemory;
  }
  auto& all = machine();
  all.allocations[reinterpret_cast<std::uintptr_t>(fresh)] = {place, bytes, pageable};
  all.allocated[place] += bytes;
  *data = fresh;
  return hipSuccess;
}

hipError_t release(void* data) {
  if (data == nullptr) {
    return hipSuccess;
  }
  auto& all = machine();
  const auto allocation = all.allocations.find(reinterpret_cast<std::uintptr_t>(data));
  if (allocation == all.allocations.end()) {
    return hipErrorInvalidValue;
  }
  finish_all_streams();
  give_back(data, allocation->second.bytes);
  all.allocated[allocation->second.place] -= allocation->second.bytes;
  all.managed.erase(allocation->first);
  all.allocations.erase(allocation);
  return hipSuccess;
}

hipError_t copy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                hipStream_t stream) {
  if (fabricheck_cpu::contradicts(kind, is_pageable(to), is_pageable(from))) {
    return result(hipErrorInvalidValue);
  }
  try {
    fabricheck_sim::enqueue(stream, copy_cost(device_of(stream), to, from, bytes),
                            [=] { std::memcpy(to, from, moved_bytes(bytes)); });
  } catch (const std::runtime_error&) {
    return result(hipErrorInvalidDevice);
  }
  // As HIP: the caller may touch pageable memory again when the call returns.
  return is_pageable(from) || is_pageable(to) ? hipStreamSynchronize(stream) : hipSuccess;
}

/// The version of ROCm that an overlay states, as hipRuntimeGetVersion tells it.
std::optional<int> stated_rocm() {
  const auto& node = machine().node;
  int major = 0;
  int minor = 0;
  if (!node.identity.is_object() || !node.identity.value("overlay", nlohmann::json()).is_object() ||
      !node.identity["overlay"]["content"].contains("rocm") ||
      std::sscanf(node.rocm.c_str(), "%d.%d", &major, &minor) != 2) {
    return std::nullopt;
  }
  return major * 10000000 + minor * 100000;
}

bool reaches(int device, int owner) {
  return machine().node.kernel.count({physical(device), place_of_device(owner), false}) > 0;
}

}  // namespace

void* fabricheck_sim::allocate_pageable(std::size_t bytes) {
  void* data = nullptr;
  const bool done =
      problem().empty() && allocate(&data, bytes, user_host_place(), true) == hipSuccess;
  return done ? data : nullptr;
}

void fabricheck_sim::release_pageable(void* data) { (void)release(data); }

hipError_t hipGetDeviceCount(int* count) {
  *count = static_cast<int>(machine().visible.size());
  return *count > 0 ? hipSuccess : result(hipErrorNoDevice);
}

hipError_t hipSetDevice(int device) {
  if (!exists(device)) {
    return result(hipErrorInvalidDevice);
  }
  set_current_device(device);
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
  const auto& described = device_at(device);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "%s (simulated)",
                described.model.c_str());
  // As ROCm does, the modes of a device are part of its architecture.
  const bool amd = fabricheck::is_amd(described.architecture);
  std::snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "%s%s%s",
                described.architecture.c_str(), amd ? ":sramecc+:xnack" : "",
                !amd      ? ""
                : xnack() ? "+"
                          : "-");
  properties->totalGlobalMem = described.memory_bytes;
  properties->l2CacheSize = described.cache_bytes;
  properties->multiProcessorCount = described.compute_units;
  return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
  if (!exists(device)) {
    return result(hipErrorInvalidDevice);
  }
  *value = attribute == hipDeviceAttributeManagedMemory || xnack() ? 1 : 0;
  return hipSuccess;
}

hipError_t hipDeviceGetPCIBusId(char* address, int length, int device) {
  if (!exists(device)) {
    return result(hipErrorInvalidDevice);
  }
  const auto& known = device_at(device).pci_address;
  if (!known) {
    return result(hipErrorNotSupported);
  }
  std::snprintf(address, static_cast<std::size_t>(length), "%s", known->c_str());
  return hipSuccess;
}

hipError_t hipDeviceGetUuid(hipUUID*, hipDevice_t) { return result(hipErrorNotSupported); }

hipError_t hipDriverGetVersion(int* version) {
  *version = 0;
  return hipSuccess;
}

hipError_t hipRuntimeGetVersion(int* version) {
  // As ROCm writes a version where the overlay states one: 60300000 is 6.3; else as CUDA does: 3320
  // is 3.32, SimGrid's.
  *version =
      stated_rocm().value_or(FABRICHECK_SIMGRID_MAJOR * 1000 + FABRICHECK_SIMGRID_MINOR * 10);
  return hipSuccess;
}

hipError_t hipDeviceCanAccessPeer(int* possible, int device, int owner) {
  if (!exists(device) || !exists(owner)) {
    return result(hipErrorInvalidDevice);
  }
  *possible = device != owner && reaches(device, owner) ? 1 : 0;
  return hipSuccess;
}

hipError_t hipDeviceEnablePeerAccess(int owner, unsigned) {
  const bool possible = exists(owner) && reaches(current_device(), owner);
  return possible ? hipSuccess : result(hipErrorInvalidDevice);
}

hipError_t hipMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  const auto place = place_of_device(current_device());
  *free_bytes = free_memory_of(place);
  *total_bytes = memory_of(place);
  return hipSuccess;
}

hipError_t hipMalloc(void** data, std::size_t bytes) {
  if (!exists(current_device())) {
    return result(hipErrorNoDevice);
  }
  return result(allocate(data, bytes, place_of_device(current_device())));
}

hipError_t hipHostMalloc(void** data, std::size_t bytes, unsigned flags) {
  if (!exists(current_device())) {
    return result(hipErrorNoDevice);
  }
  // By default HIP takes the domain nearest to the device that is set.
  const auto nearest = "domain" + std::to_string(device_at(current_device()).domain);
  const bool bound = (flags & hipHostMallocNumaUser) != 0;
  return result(allocate(data, bytes, bound ? user_host_place() : nearest));
}

hipError_t hipFree(void* data) { return result(release(data)); }
hipError_t hipHostFree(void* data) { return result(release(data)); }

hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                          hipStream_t stream) {
  return copy(to, from, bytes, kind, stream);
}

hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                              std::size_t bytes, hipStream_t stream) {
  if (!exists(to_device) || !exists(from_device)) {
    return result(hipErrorInvalidDevice);
  }
  return copy(to, from, bytes, hipMemcpyDefault, stream);
}

hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
  const auto error = copy(to, from, bytes, kind, nullptr);
  return error == hipSuccess ? hipStreamSynchronize(nullptr) : error;
}

hipError_t hipMemset(void* data, int value, std::size_t bytes) {
  fabricheck_sim::enqueue(nullptr, kernel_cost(current_device(), {{data, bytes, true}}),
                          [=] { std::memset(data, value, moved_bytes(bytes)); });
  return hipStreamSynchronize(nullptr);
}

hipError_t hipGetLastError() { return take_error(); }
