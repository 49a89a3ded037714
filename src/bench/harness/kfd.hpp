// The links between devices, their caches, and the version of ROCm, as AMD's kernel driver (KFD)
// reports them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/copy_rules.hpp"

namespace fabricheck {

constexpr const char* kKfdTopology = "/sys/class/kfd/kfd/topology";

/// The path between the devices at two PCI addresses (0000:c1:00.0), from the tree at `topology`;
/// empty if the tree does not have it, as in a container without /sys.
std::optional<PeerWay> kfd_way(const std::string& topology, const std::string& from,
                               const std::string& to);

/// The bytes of the largest level of caches of the device at a PCI address: all of that level
/// together, also those behind L2, which the runtime does not tell (MI300X has 256 MiB). 0 if the
/// tree does not have them.
std::uint64_t kfd_cache(const std::string& topology, const std::string& address);

/// The same of a device, by the runtime's number.
std::uint64_t driver_cache(int device);

/// The path between two devices, by the runtime's numbers.
std::optional<PeerWay> peer_way(int from, int to);

/// The version of ROCm whose rules apply to copies; of another runtime its own version.
std::string rocm_version();

}  // namespace fabricheck
