#include "harness/kfd.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include "harness/devices.hpp"

namespace fabricheck {
namespace {

using Properties = std::map<std::string, std::uint64_t>;

/// A file of names and numbers, one of each a line; empty where it cannot be read.
Properties read_properties(const std::filesystem::path& path) {
  Properties properties;
  std::ifstream file(path);
  std::string name;
  std::uint64_t value = 0;
  while (file >> name >> value) {
    properties[name] = value;
  }
  return properties;
}

std::uint64_t value_of(const Properties& properties, const std::string& name) {
  const auto property = properties.find(name);
  return property == properties.end() ? 0 : property->second;
}

/// The directories in `path`; none where it cannot be read.
std::vector<std::filesystem::path> directories(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> folders;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(path, unreadable)) {
    folders.push_back(entry.path());
  }
  return folders;
}

/// The node of the tree that has a PCI address.
std::optional<std::filesystem::path> node_at(const std::string& topology,
                                             const std::string& address) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned function = 0;
  if (std::sscanf(address.c_str(), "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4) {
    return std::nullopt;
  }
  for (const auto& node : directories(std::filesystem::path(topology) / "nodes")) {
    const auto properties = read_properties(node / "properties");
    if (value_of(properties, "simd_count") > 0 && value_of(properties, "domain") == domain &&
        value_of(properties, "location_id") == (bus << 8 | device << 3 | function)) {
      return node;
    }
  }
  return std::nullopt;
}

/// The links of a node; a link itself goes before a path over other nodes.
std::map<int, KfdLink> links_of(const std::filesystem::path& node) {
  std::map<int, KfdLink> links;
  for (const auto* kind : {"io_links", "p2p_links"}) {
    for (const auto& link : directories(node / kind)) {
      const auto properties = read_properties(link / "properties");
      if (!properties.empty()) {
        links.emplace(
            static_cast<int>(value_of(properties, "node_to")),
            KfdLink{value_of(properties, "type"), value_of(properties, "weight"),
                    value_of(properties, "min_bandwidth"), value_of(properties, "max_bandwidth")});
      }
    }
  }
  return links;
}

}  // namespace

std::string KfdNode::architecture() const {
  if (gfx == 0) {
    return "gfx";
  }
  // Major version, minor and stepping: two decimal digits each, of which the last are hexadecimal.
  std::array<char, 32> text{};
  std::snprintf(
      text.data(), text.size(), "gfx%llu%llx%llx", static_cast<unsigned long long>(gfx / 10000),
      static_cast<unsigned long long>(gfx / 100 % 100), static_cast<unsigned long long>(gfx % 100));
  return text.data();
}

std::optional<int> KfdLink::links() const {
  return min_mb_per_s > 0 ? std::optional(static_cast<int>(max_mb_per_s / min_mb_per_s))
                          : std::nullopt;
}

std::map<int, KfdNode> kfd_nodes(const std::string& topology) {
  std::map<int, KfdNode> nodes;
  for (const auto& folder : directories(std::filesystem::path(topology) / "nodes")) {
    const auto properties = read_properties(folder / "properties");
    KfdNode node;
    node.cores = value_of(properties, "cpu_cores_count");
    node.device = value_of(properties, "simd_count") > 0;
    node.domain = value_of(properties, "domain");
    node.vendor_id = value_of(properties, "vendor_id");
    node.device_id = value_of(properties, "device_id");
    node.gfx = value_of(properties, "gfx_target_version");
    node.location = value_of(properties, "location_id");
    node.links = links_of(folder);
    nodes.emplace(std::atoi(folder.filename().c_str()), std::move(node));
  }
  return nodes;
}

std::optional<PeerWay> kfd_way(const std::string& topology, const std::string& from,
                               const std::string& to) {
  const auto source = node_at(topology, from);
  const auto destination = node_at(topology, to);
  if (!source || !destination) {
    return std::nullopt;
  }
  const auto links = links_of(*source);
  const auto link = links.find(std::atoi(destination->filename().c_str()));
  if (link == links.end()) {
    return std::nullopt;
  }
  PeerWay way;
  way.xgmi = link->second.xgmi();
  way.direct = link->second.direct();
  way.links = std::max(1, link->second.links().value_or(1));
  way.engines =
      static_cast<int>(value_of(read_properties(*source / "properties"), "num_sdma_xgmi_engines"));
  return way;
}

std::uint64_t kfd_cache(const std::string& topology, const std::string& address) {
  const auto node = node_at(topology, address);
  if (!node) {
    return 0;
  }
  constexpr std::uint64_t unit = 1024;
  std::map<std::uint64_t, std::uint64_t> levels;
  for (const auto& cache : directories(*node / "caches")) {
    const auto properties = read_properties(cache / "properties");
    levels[value_of(properties, "level")] += value_of(properties, "size") * unit;
  }
  std::uint64_t largest = 0;
  for (const auto& [level, bytes] : levels) {
    largest = std::max(largest, bytes);
  }
  return largest;
}

std::uint64_t driver_cache(int device) {
  const auto address = device_pci_address(device);
  return address ? kfd_cache(kKfdTopology, *address) : 0;
}

std::optional<PeerWay> peer_way(int from, int to) {
  const auto source = device_pci_address(from);
  const auto destination = device_pci_address(to);
  return source && destination ? kfd_way(kKfdTopology, *source, *destination) : std::nullopt;
}

}  // namespace fabricheck
