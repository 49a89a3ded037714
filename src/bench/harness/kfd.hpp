// The links between devices, and the version of ROCm, as AMD's kernel driver (KFD) reports them.
#pragma once

#include <optional>
#include <string>

#include "harness/copy_rules.hpp"

namespace fabricheck {

constexpr const char* kKfdTopology = "/sys/class/kfd/kfd/topology";

/// The path between the devices at two PCI addresses (0000:c1:00.0), from the tree at `topology`;
/// empty if the tree does not have it, as in a container without /sys.
std::optional<PeerWay> kfd_way(const std::string& topology, const std::string& from,
                               const std::string& to);

/// The path between two devices, by the runtime's numbers.
std::optional<PeerWay> peer_way(int from, int to);

/// The version of ROCm whose rules apply to copies; of another runtime its own version.
std::string rocm_version();

}  // namespace fabricheck
