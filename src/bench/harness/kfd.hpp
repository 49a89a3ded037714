// What AMD's kernel driver (KFD) tells of the links between devices, and the version of ROCm.
#pragma once

#include <optional>
#include <string>

#include "harness/copy_rules.hpp"

namespace fabricheck {

constexpr const char* kKfdTopology = "/sys/class/kfd/kfd/topology";

/// The way between the devices at two PCI addresses (0000:c1:00.0), from the tree at `topology`;
/// nothing where it does not tell, as in a container without /sys.
std::optional<PeerWay> kfd_way(const std::string& topology, const std::string& from,
                               const std::string& to);

/// The way between two devices, as the runtime numbers them.
std::optional<PeerWay> peer_way(int from, int to);

/// The version of ROCm whose rules hold for copies; of another runtime its own version.
std::string rocm_version();

}  // namespace fabricheck
