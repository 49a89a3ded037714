#include "node.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace fabricheck_sim {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "fabricheck-platform-5";
constexpr const char* kCommand = "fabricheck topology export NODE > FILE";

double positive(const json& value, const std::string& what) {
  const auto number = value.get<double>();
  if (!(number > 0) || !std::isfinite(number)) {
    throw std::runtime_error(what + " is not positive");
  }
  return number;
}

LinkFault fault_of(const json& entry) {
  LinkFault fault;
  if (entry.contains("bytes")) {
    fault.least = entry["bytes"].at(0);
    fault.most = entry["bytes"].at(1);
  }
  if (entry.contains("bandwidth_factor")) {
    fault.part = positive(entry["bandwidth_factor"], "bandwidth_factor");
  }
  if (entry.contains("delay_us")) {
    fault.delay = 1e-6 * positive(entry["delay_us"], "delay_us");
  }
  fault.times = entry.value("first", fault.times);
  fault.hangs = entry.value("hangs", false);
  return fault;
}

/// Adds a link for each fault that takes bandwidth from some sizes only, which these transfers
/// share beside the link itself, and gives a route over it others for these sizes.
class SlowSizes {
 public:
  explicit SlowSizes(NodeDescription& node) : node_(node) {
    for (std::size_t link = 0, count = node.links.size(); link < count; ++link) {
      const auto description = node.links[link];
      for (const auto& fault : description.faults) {
        if (fault.part != 1) {
          const auto name = description.name + " from " + std::to_string(fault.least) + " to " +
                            std::to_string(fault.most) + " bytes";
          slow_.push_back({link, node.links.size(), fault});
          node.links.push_back({name, fault.part * description.bytes_per_second, description.each});
        }
      }
    }
  }

  void add_to(Route& route) const {
    const auto& links = route.links;
    std::map<std::uint64_t, Route> by_size;
    for (const auto& [link, narrow, fault] : slow_) {
      if (std::find(links.begin(), links.end(), link) != links.end()) {
        by_size[fault.least] = by_size[fault.most + 1] = {links, route.start};
      }
    }
    for (auto& [least, sized] : by_size) {
      for (const auto& [link, narrow, fault] : slow_) {
        if (fault.hits(least)) {
          sized.links.insert(sized.links.end(),
                             static_cast<std::size_t>(std::count(links.begin(), links.end(), link)),
                             narrow);
        }
      }
    }
    route.by_size = std::move(by_size);
  }

 private:
  struct Slow {
    std::size_t link;    ///< that has the fault
    std::size_t narrow;  ///< that transfers of its sizes share
    LinkFault fault;
  };

  NodeDescription& node_;
  std::vector<Slow> slow_;
};

void add_slow_sizes(NodeDescription& node) {
  const SlowSizes slow(node);
  for (auto& [key, route] : node.kernel) {
    slow.add_to(route);
  }
  for (auto* routes : {&node.copy, &node.pageable, &node.migration}) {
    for (auto& [ends, route] : *routes) {
      slow.add_to(route);
    }
  }
  for (auto& [ends, routes] : node.messages) {
    slow.add_to(routes.by_engine);
    slow.add_to(routes.by_kernel);
  }
}

/// Pages that migrate between host and device take the way of a copy, and share what the device's
/// page faults are served at.
void add_migration(NodeDescription& node, const std::map<std::string, std::size_t>& numbers) {
  for (std::size_t i = 0; i < node.devices.size(); ++i) {
    const Place device = "device" + std::to_string(i);
    const auto faults = numbers.find("page migration of " + device);
    if (faults == numbers.end()) {
      throw std::runtime_error("there is no link 'page migration of " + device + "'");
    }
    for (const auto& domain : node.domains) {
      const Place host = "domain" + std::to_string(domain.index);
      for (const auto& ends : {std::pair(host, device), std::pair(device, host)}) {
        const auto copy = node.copy.find(ends);
        if (copy != node.copy.end()) {
          auto links = copy->second.links;
          links.push_back(faults->second);
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
    for (const auto& fault : entry.value("faults", json::array())) {
      node.links.back().faults.push_back(fault_of(fault));
    }
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
  add_migration(node, numbers);
  add_slow_sizes(node);
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
