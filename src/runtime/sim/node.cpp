#include "node.hpp"

#include <cmath>
#include <fstream>
#include <stdexcept>

namespace fabricheck_sim {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "fabricheck-platform-4";
constexpr const char* kCommand = "fabricheck topology export NODE > FILE";

double positive(const json& value, const std::string& what) {
  const auto number = value.get<double>();
  if (!(number > 0) || !std::isfinite(number)) {
    throw std::runtime_error(what + " is not positive");
  }
  return number;
}

/// Pages that migrate between host and device take the way of a copy, and share what the device's
/// page faults are served at.
void add_migration(NodeDescription& node, double bytes_per_second) {
  for (std::size_t i = 0; i < node.devices.size(); ++i) {
    const Place device = "device" + std::to_string(i);
    node.links.push_back({"page migration of " + device, bytes_per_second, false});
    for (const auto& domain : node.domains) {
      const Place host = "domain" + std::to_string(domain.index);
      for (const auto& ends : {std::pair(host, device), std::pair(device, host)}) {
        const auto copy = node.copy.find(ends);
        if (copy != node.copy.end()) {
          auto links = copy->second.links;
          links.push_back(node.links.size() - 1);
          node.migration[ends].links = links;
        }
      }
    }
  }
}

NodeDescription parse(const json& content) {
  NodeDescription node;
  node.identity = content.at("node");
  node.rocm = content.at("rocm");
  for (const auto& entry : content.at("devices")) {
    Device device;
    device.model = entry.at("model");
    device.architecture = entry.at("architecture");
    device.memory_bytes = entry.at("memory_bytes");
    device.compute_units = entry.at("compute_units");
    device.cache_bytes = entry.at("cache_bytes");
    device.domain = entry.at("domain");
    if (!entry.at("pci_address").is_null()) {
      device.pci_address = entry.at("pci_address").get<std::string>();
    }
    node.devices.push_back(device);
  }
  for (const auto& entry : content.at("domains")) {
    node.domains.push_back(
        {entry.at("index"), entry.at("cores").get<std::vector<int>>(), entry.at("memory_bytes")});
  }
  if (node.devices.empty() || node.domains.empty()) {
    throw std::runtime_error("it has no device or no NUMA domain");
  }
  node.launch = 1e-6 * positive(content.at("launch_us"), "launch_us");
  const auto& pageable = content.at("pageable");
  node.pin = 1e-6 * positive(pageable.at("pin_us"), "pin_us");
  node.staged_bytes = pageable.at("staged_bytes");
  std::map<std::string, std::size_t> numbers;
  for (const auto& entry : content.at("links")) {
    const auto name = entry.at("name").get<std::string>();
    numbers[name] = node.links.size();
    node.links.push_back({name, 1e9 * positive(entry.at("gbs"), "the bandwidth of '" + name + "'"),
                          entry.at("each").get<bool>()});
  }
  const auto links_of = [&numbers](const json& names) {
    std::vector<std::size_t> links;
    for (const auto& name : names) {
      const auto found = numbers.find(name.get<std::string>());
      if (found == numbers.end()) {
        throw std::runtime_error("a route has the unknown link '" + name.get<std::string>() + "'");
      }
      links.push_back(found->second);
    }
    if (links.empty()) {
      throw std::runtime_error("a route has no link");
    }
    return links;
  };
  for (const auto& entry : content.at("kernel")) {
    const int device = entry.at("device");
    const Place memory = entry.at("memory");
    node.kernel[{device, memory, false}] = {links_of(entry.at("read"))};
    node.kernel[{device, memory, true}] = {links_of(entry.at("write"))};
  }
  for (const auto& entry : content.at("copy")) {
    const std::pair<Place, Place> ends{entry.at("source"), entry.at("destination")};
    const double start = 1e-6 * positive(entry.at("start_us"), "start_us");
    node.copy[ends] = {links_of(entry.at("links")), start};
    if (entry.contains("parallel")) {
      node.parallel[ends] = entry.at("parallel");
    }
    if (entry.contains("pageable")) {
      node.pageable[ends] = {links_of(entry.at("pageable")), start};
    }
  }
  for (const auto& entry : content.at("messages")) {
    MessageRoutes routes{{links_of(entry.at("by_engine"))}, {links_of(entry.at("by_kernel"))}};
    if (entry.contains("queue")) {
      routes.queue = links_of(json::array({entry.at("queue")})).front();
    }
    node.messages[{entry.at("source"), entry.at("destination")}] = routes;
  }
  const auto& cost = content.at("message_cost");
  node.message_cost = 1e-6 * positive(cost.at("us"), "us of message_cost");
  node.small_message_cost = 1e-6 * positive(cost.at("small_us"), "small_us of message_cost");
  node.small_message_bytes = cost.at("small_bytes");
  add_migration(node, 1e9 * positive(content.at("migration_gbs"), "migration_gbs"));
  return node;
}

}  // namespace

NodeDescription read_node(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error("FABRICHECK_NODE names '" + path +
                             "', which cannot be read; write it by: " + kCommand);
  }
  try {
    const auto content = json::parse(file, nullptr, false);
    if (content.is_discarded()) {
      throw std::runtime_error("it is no JSON");
    }
    if (content.value("format", "") != kFormat) {
      throw std::runtime_error(std::string("its format is not ") + kFormat);
    }
    return parse(content);
  } catch (const std::exception& error) {
    throw std::runtime_error("'" + path + "' does not describe a node to simulate (" +
                             error.what() + "); write it by: " + kCommand);
  }
}

}  // namespace fabricheck_sim
