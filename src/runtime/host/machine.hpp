// The machine behind the virtual devices: their cores, memory domains and streams.
#pragma once

#include <hip/hip_runtime.h>
#include <hwloc.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

namespace fabricheck_host {

struct Device {
  int numa_domain = 0;
  std::vector<int> cores;  ///< by operating system index; at least one
};

struct Machine {
  hwloc_topology_t topology = nullptr;
  std::vector<Device> devices;
  std::uint64_t cache_bytes = 0;  ///< all caches of the last level
  /// Entries of a stream that wait, at most: adding to a full one blocks. FABRICHECK_HOST_QUEUE
  /// makes it short, as a queue of ROCm is.
  std::size_t queue_length = std::numeric_limits<std::size_t>::max();
  bool launches_block = false;  ///< HIP_LAUNCH_BLOCKING: a launch returns when the kernel has ended
  std::mutex mutex;             ///< of the members below
  std::map<void*, std::size_t> allocations;
  std::vector<hipStream_t> streams;  ///< all that exist
  std::map<int, hipStream_t> default_streams;
};

/// The machine, found at the first call and never destroyed: stream threads may outlive main().
Machine& machine();

/// Adds work to a stream; a null one is the default stream.
void add(hipStream_t stream, std::function<void(int cores)> work);

/// Adds a launch or a copy, unless an injected fault drops it. Returns whether one delays it.
bool add_operation(hipStream_t stream, std::function<void(int cores)> work);

bool exists(int device);
const Device& device_at(int device);

/// The device that the calling thread has set.
int current_device();

/// Remembers an error for hipGetLastError and hands it on.
hipError_t result(hipError_t error);

}  // namespace fabricheck_host
