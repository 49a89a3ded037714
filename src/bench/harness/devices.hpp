// The devices of the runtime: their description, and sets of them as options name them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fabricheck {

/// Number of devices. Throws Failure(unsupported) when there is none or no driver, Failure(setting)
/// where a setting hides them (settings.hpp).
int device_count();

/// The member `devices` of the result document.
nlohmann::json describe_devices();

/// The member `versions` of the result document.
nlohmann::json describe_versions();

/// What the runtime says of a device and memory that it shares with the host.
struct ManagedMemory {
  bool managed = false;            ///< hipMallocManaged works
  bool concurrent_access = false;  ///< host and kernels may use such memory at the same time
  bool pageable_access = false;    ///< kernels reach ordinary host memory
  std::optional<bool> xnack;       ///< AMD: kernels wait for pages; empty: the device does not say
};
ManagedMemory managed_memory(int device);

/// The device's architecture as the runtime writes it, modes included: gfx90a:sramecc+:xnack-.
std::string device_arch(int device);

/// Whether an architecture of AMD has xnack on; nothing when it does not say.
std::optional<bool> xnack_of(const std::string& arch);

/// Compute units (multiprocessors) of a device.
int compute_units(int device);

/// Size of a device's last-level cache, in bytes.
std::uint64_t device_last_level_cache(int device);

/// The largest of the devices' last-level caches, in bytes.
std::uint64_t largest_device_cache(int count);

/// Whether arrays of `bytes` together count as memory beside caches of `cache_bytes`, at least
/// four times as large: the regime of the result document.
bool past_caches(std::uint64_t bytes, std::uint64_t cache_bytes);

/// The sizes of arrays that an option lists (sizes.hpp), multiples of 16 bytes; of an empty text
/// one of 64 MiB or more that is past caches of `cache_bytes`. Throws Failure(usage).
std::vector<std::uint64_t> array_sizes(const std::string& text, std::uint64_t cache_bytes);

/// Whether a device is a virtual one of the host runtime.
bool device_is_cpu(int device);

/// The PCI address of a device as Linux writes it, 0000:c1:00.0; a virtual device has none.
std::optional<std::string> device_pci_address(int device);

/// The NUMA domain a device is attached to; -1 when unknown.
int device_numa_domain(int device);

/// Sets of devices that work at the same time. "each" stands for every device alone, in turn;
/// "all" for all at once; "0,2" for those at once. Throws Failure(usage) for what is neither and
/// Failure(unsupported) for a device that does not exist, Failure(setting) where one may be hidden.
std::vector<std::vector<int>> parse_device_sets(const std::vector<std::string>& texts, int count);

}  // namespace fabricheck
