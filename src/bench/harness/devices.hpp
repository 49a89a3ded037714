// The devices of the runtime: their description, and sets of them as named by options.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fabricheck {

/// Number of devices. Throws Failure(unsupported) when there is no device or no driver,
/// Failure(setting) when a setting hides the devices (settings.hpp).
int device_count();

/// The member `devices` of the result document.
nlohmann::json describe_devices();

/// The member `versions` of the result document.
nlohmann::json describe_versions();

/// The runtime's properties of a device and memory that it shares with the host.
struct ManagedMemory {
  bool managed = false;            ///< hipMallocManaged works
  bool concurrent_access = false;  ///< host and kernels may use such memory at the same time
  bool pageable_access = false;    ///< kernels reach ordinary host memory
  std::optional<bool> xnack;       ///< AMD: kernels wait for pages; empty: the device does not say
};
ManagedMemory managed_memory(int device);

/// The device's architecture as the runtime writes it, modes included: gfx90a:sramecc+:xnack-.
std::string device_arch(int device);

/// Whether an architecture of AMD has xnack on; empty if the architecture does not state it.
std::optional<bool> xnack_of(const std::string& arch);

/// Compute units (multiprocessors) of a device.
int compute_units(int device);

/// Size of a device's largest cache, in bytes: what the runtime tells of L2, or AMD's driver of
/// all levels.
std::uint64_t device_last_level_cache(int device);

/// The largest of the devices' last-level caches, in bytes.
std::uint64_t largest_device_cache(int count);

/// Bytes of arrays together that are past any caches: the largest of two processors of 2026 are
/// 2.25 GiB. Four times as much would take minutes on a few cores.
constexpr std::uint64_t kPastAnyCache = 4ULL << 30;

/// Whether arrays of `bytes` together count as memory for caches of `cache_bytes`: they are at
/// least four times as large, or kPastAnyCache. This is the regime of the result document.
bool past_caches(std::uint64_t bytes, std::uint64_t cache_bytes);

/// The sizes of arrays that an option lists (sizes.hpp), multiples of 16 bytes. For an empty text,
/// one size of 64 MiB or more that exceeds caches of `cache_bytes`. Throws Failure(usage).
std::vector<std::uint64_t> array_sizes(const std::string& text, std::uint64_t cache_bytes);

/// Whether a device is a virtual one of the host runtime.
bool device_is_cpu(int device);

/// The PCI address of a device as Linux writes it, 0000:c1:00.0; a virtual device has none.
std::optional<std::string> device_pci_address(int device);

/// The NUMA domain a device is attached to; -1 when unknown.
int device_numa_domain(int device);

/// Sets of devices that work at the same time. "each" means every device alone, in turn; "all"
/// means all at once; "0,2" means those at once. Throws Failure(usage) for any other text,
/// Failure(unsupported) for a device that does not exist, Failure(setting) if one may be hidden.
std::vector<std::vector<int>> parse_device_sets(const std::vector<std::string>& texts, int count);

}  // namespace fabricheck
