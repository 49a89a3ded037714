// What AMD's kernel driver (KFD) tells of the links between devices.
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

}  // namespace fabricheck
