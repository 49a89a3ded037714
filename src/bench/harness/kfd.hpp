// The links between devices, and their caches, as AMD's kernel driver (KFD) reports them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "harness/copy_rules.hpp"

namespace fabricheck {

constexpr const char* kKfdTopology = "/sys/class/kfd/kfd/topology";

/// A link from a node of the tree to another, or a path that is none: of type PCIe, or of more than
/// one hop.
struct KfdLink {
  std::uint64_t type = 0;
  std::uint64_t weight = 0;
  std::uint64_t min_mb_per_s = 0;  ///< of one link; 0: not known
  std::uint64_t max_mb_per_s = 0;  ///< of all parallel links; 0: not known, or not direct

  [[nodiscard]] bool xgmi() const { return type == 11; }
  /// Within a package, between partitions of one device or cores and device of an APU.
  [[nodiscard]] bool in_package() const { return xgmi() && weight == 13; }
  [[nodiscard]] bool direct() const { return weight == 15; }
  /// Parallel links; empty where the kernel does not tell it.
  [[nodiscard]] std::optional<int> links() const;
};

/// A node of the tree: cores of a NUMA domain, a device, or a part of one that is in partitions; of
/// an older APU cores and device.
struct KfdNode {
  std::uint64_t cores = 0;
  bool device = false;
  std::uint64_t domain = 0;      ///< of PCI
  std::uint64_t vendor_id = 0;   ///< by PCI; 0: not told
  std::uint64_t device_id = 0;   ///< the vendor's number of the kind of device; 0: not told
  std::uint64_t gfx = 0;         ///< gfx_target_version, such as 90010; 0: not told
  std::uint64_t location = 0;    ///< bus, device and function, and the number of a partition
  std::map<int, KfdLink> links;  ///< by the node that they lead to

  [[nodiscard]] std::uint64_t bus() const { return location >> 8 & 0xff; }
  [[nodiscard]] std::uint64_t slot() const { return location >> 3 & 0x1f; }
  /// Of older kernels the number of a partition.
  [[nodiscard]] std::uint64_t function() const { return location & 7; }
  /// As the runtime names it: gfx90a; gfx where it is not told.
  [[nodiscard]] std::string architecture() const;
};

/// All nodes of the tree at `topology`, by number; none if it cannot be read.
std::map<int, KfdNode> kfd_nodes(const std::string& topology);

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

}  // namespace fabricheck
