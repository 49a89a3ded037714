#include "node.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <utility>

#include "harness/vocabulary.hpp"

namespace fabricheck_sim {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "fabricheck-platform-6";
constexpr const char* kSystemFormat = "fabricheck-system-1";
constexpr const char* kCommand = "fabricheck node platform NODE > FILE";

/// The links of a platform by name.
class LinkNumbers {
 public:
  /// Of the links of a node of a system the names are as on a single node.
  explicit LinkNumbers(const std::string& node = {}) : suffix_(node.empty() ? "" : " of " + node) {}

  void add(const std::string& name, std::size_t number) { numbers_[name] = number; }

  [[nodiscard]] std::optional<std::size_t> find(const std::string& name) const {
    for (const auto& full : {name + suffix_, name}) {
      if (const auto entry = numbers_.find(full); entry != numbers_.end()) {
        return entry->second;
      }
    }
    return std::nullopt;
  }

  /// Those of a route.
  [[nodiscard]] std::vector<std::size_t> of(const json& names) const {
    std::vector<std::size_t> links;
    for (const auto& name : names) {
      const auto number = find(name.get<std::string>());
      if (!number) {
        throw std::runtime_error("a route has the unknown link '" + name.get<std::string>() + "'");
      }
      links.push_back(*number);
    }
    if (links.empty()) {
      throw std::runtime_error("a route has no link");
    }
    return links;
  }

 private:
  std::string suffix_;
  std::map<std::string, std::size_t> numbers_;
};

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

/// Points of an overlay that changes with time. Throws std::runtime_error unless they are in order.
OverTime points_of(const json& entry) {
  OverTime points;
  for (const auto& point : entry) {
    points.push_back({point.at(0), point.at(1)});
    if (points.size() > 1 && points.back().first < points[points.size() - 2].first) {
      throw std::runtime_error("points of time are not in order");
    }
  }
  if (points.empty()) {
    throw std::runtime_error("what changes with time has no point");
  }
  return points;
}

/// What changes with time of the devices.
void add_over_time(NodeDescription& node, const json& entries) {
  for (const auto& entry : entries) {
    const int device = entry.at("device");
    if (device < 0 || static_cast<std::size_t>(device) >= node.devices.size()) {
      throw std::runtime_error("there is no device " + std::to_string(device));
    }
    if (entry.contains("flip")) {
      const auto& flip = entry["flip"];
      node.flips.push_back({device, flip.at(0), flip.at(1), flip.at(2)});
    } else {
      node.counters.push_back({device, entry.at("counter"), points_of(entry.at("points"))});
    }
  }
}

/// Adds a link for each fault that takes bandwidth from some sizes only, which these transfers
/// share beside the link itself.
void add_narrow_links(NodeDescription& node) {
  for (std::size_t link = 0, count = node.links.size(); link < count; ++link) {
    const auto description = node.links[link];
    for (const auto& fault : description.faults) {
      if (fault.part != 1) {
        const auto name = description.name + " from " + std::to_string(fault.least) + " to " +
                          std::to_string(fault.most) + " bytes";
        node.slow.push_back({link, node.links.size(), fault});
        node.links.push_back({name, fault.part * description.bytes_per_second, description.each});
      }
    }
  }
}

void add_slow_sizes(NodeDescription& node) {
  add_narrow_links(node);
  for (auto& [key, route] : node.kernel) {
    split_by_size(node, route);
  }
  for (auto* routes : {&node.copy, &node.pageable, &node.migration}) {
    for (auto& [ends, route] : *routes) {
      split_by_size(node, route);
    }
  }
  for (auto& [ends, routes] : node.messages) {
    split_by_size(node, routes.by_engine);
    split_by_size(node, routes.by_kernel);
  }
}

/// Pages that migrate between host and device take the way of a copy, and share what the device's
/// page faults are served at.
void add_migration(NodeDescription& node, const LinkNumbers& numbers) {
  for (std::size_t i = 0; i < node.devices.size(); ++i) {
    const Place device = "device" + std::to_string(i);
    const auto faults = numbers.find("page migration of " + device);
    if (!faults) {
      throw std::runtime_error("there is no link 'page migration of " + device + "'");
    }
    for (const auto& domain : node.domains) {
      const Place host = "domain" + std::to_string(domain.index);
      for (const auto& ends : {std::pair(host, device), std::pair(device, host)}) {
        const auto copy = node.copy.find(ends);
        if (copy != node.copy.end()) {
          auto links = copy->second.links;
          links.push_back(*faults);
          node.migration[ends].links = links;
        }
      }
    }
  }
}

void add_network(NodeDescription& node, const json& entry, const LinkNumbers& numbers) {
  node.provider = entry.at("provider");
  for (const auto& nic : entry.at("nics")) {
    node.nics.push_back({nic.at("name"), nic.at("interface"), nic.at("address"), nic.at("group"),
                         nic.at("switch")});
  }
  for (const auto& [place, end] : entry.at("places").items()) {
    const auto nic = std::find_if(
        node.nics.begin(), node.nics.end(),
        [&name = end.at("nic")](const NicDescription& one) { return name == one.name; });
    if (nic == node.nics.end()) {
      throw std::runtime_error(node.name + " has no NIC for messages of " + place);
    }
    node.ends[place] = {static_cast<std::size_t>(nic - node.nics.begin()),
                        1e-6 * end.at("us").get<double>(), numbers.of(end.at("out")),
                        numbers.of(end.at("in"))};
  }
}

/// Parses a node; `entry` is what a system says of it, null for the only node.
NodeDescription parse(const json& content, const json& entry) {
  NodeDescription node;
  node.name = entry.is_null() ? "" : entry.at("name").get<std::string>();
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
  LinkNumbers numbers(node.name);
  for (const auto& entry : content.at("links")) {
    const auto name = entry.at("name").get<std::string>();
    numbers.add(name, node.links.size());
    node.links.push_back({name, 1e9 * positive(entry.at("gbs"), "the bandwidth of '" + name + "'"),
                          entry.at("each").get<bool>()});
    if (entry.contains("over_time")) {
      node.links.back().over_time = points_of(entry["over_time"]);
    }
    for (const auto& fault : entry.value("faults", json::array())) {
      node.links.back().faults.push_back(fault_of(fault));
    }
  }
  for (const auto& entry : content.at("kernel")) {
    const int device = entry.at("device");
    const Place memory = entry.at("memory");
    node.kernel[{device, memory, false}] = {numbers.of(entry.at("read"))};
    node.kernel[{device, memory, true}] = {numbers.of(entry.at("write"))};
  }
  for (const auto& entry : content.at("copy")) {
    const std::pair<Place, Place> ends{entry.at("source"), entry.at("destination")};
    const double start = 1e-6 * positive(entry.at("start_us"), "start_us");
    node.copy[ends] = {numbers.of(entry.at("links")), start};
    if (entry.contains("parallel")) {
      node.parallel[ends] = entry.at("parallel");
    }
    if (entry.contains("pageable")) {
      node.pageable[ends] = {numbers.of(entry.at("pageable")), start};
    }
  }
  for (const auto& entry : content.at("messages")) {
    MessageRoutes routes{{numbers.of(entry.at("by_engine"))}, {numbers.of(entry.at("by_kernel"))}};
    if (entry.contains("queue")) {
      routes.queue = numbers.of(json::array({entry.at("queue")})).front();
    }
    node.messages[{entry.at("source"), entry.at("destination")}] = routes;
  }
  const auto& cost = content.at("message_cost");
  node.message_cost = 1e-6 * positive(cost.at("us"), "us of message_cost");
  node.small_message_cost = 1e-6 * positive(cost.at("small_us"), "small_us of message_cost");
  node.small_message_bytes = cost.at("small_bytes");
  if (!entry.is_null()) {
    add_network(node, entry, numbers);
  }
  add_over_time(node, content.value("over_time", json::array()));
  add_migration(node, numbers);
  add_slow_sizes(node);
  return node;
}

/// The nodes of a platform: of one that is no system a single null.
json nodes_of(const json& content) {
  return content.contains("system") ? content["system"].at("nodes") : json::array({nullptr});
}

SystemDescription parse_all(const json& content) {
  SystemDescription all;
  for (const auto& entry : nodes_of(content)) {
    all.nodes.push_back(parse(content, entry));
  }
  if (all.nodes.empty()) {
    throw std::runtime_error("it has no node");
  }
  if (content.contains("system")) {
    const auto& system = content["system"];
    const auto& latency = system.at("latency_us");
    const auto seconds = [&latency](const char* distance) {
      return 1e-6 * positive(latency.at(distance), distance);
    };
    all.network.same_switch = seconds(fabricheck::distance::same_switch);
    all.network.same_group = seconds(fabricheck::distance::same_group);
    all.network.other_group = seconds(fabricheck::distance::other_group);
    LinkNumbers numbers;
    for (std::size_t i = 0; i < content.at("links").size(); ++i) {
      numbers.add(content["links"][i].at("name"), i);
    }
    for (const auto& entry : system.at("groups")) {
      const std::pair<int, int> ends{entry.at("from"), entry.at("to")};
      all.network.groups[ends] = numbers.of(entry.at("links"));
    }
  }
  return all;
}

/// Reads a file and parses it. Throws std::runtime_error with one sentence that names the file.
template <typename Parse>
auto read(const std::string& path, const Parse& parse_content) {
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error("FABRICHECK_SIMULATED_NODE names '" + path +
                             "', which cannot be read; write it by: " + kCommand);
  }
  try {
    const auto content = json::parse(file, nullptr, false);
    if (content.is_discarded()) {
      throw std::runtime_error("it is no JSON");
    }
    const auto* format = content.contains("system") ? kSystemFormat : kFormat;
    if (content.value("format", "") != format) {
      throw std::runtime_error(std::string("its format is not ") + format);
    }
    return parse_content(content);
  } catch (const std::exception& error) {
    throw std::runtime_error("'" + path + "' does not describe a node to simulate (" +
                             error.what() + "); write it by: " + kCommand);
  }
}

}  // namespace

double value_at(const OverTime& points, double seconds) {
  // Of two points at the same time the later one is there from then on.
  const auto after =
      std::upper_bound(points.begin(), points.end(), seconds,
                       [](double value, const auto& point) { return value < point.first; });
  if (after == points.begin()) {
    return points.front().second;
  }
  const auto& before = *std::prev(after);
  if (after == points.end()) {
    return before.second;
  }
  const double part = (seconds - before.first) / (after->first - before.first);
  return before.second + part * (after->second - before.second);
}

double next_change(const OverTime& points, double seconds, double step) {
  const auto after =
      std::upper_bound(points.begin(), points.end(), seconds,
                       [](double value, const auto& point) { return value < point.first; });
  if (after == points.end()) {
    return std::numeric_limits<double>::infinity();
  }
  const bool level = after != points.begin() && std::prev(after)->second == after->second;
  return level ? after->first : std::min(after->first, seconds + step);
}

void split_by_size(const NodeDescription& node, Route& route) {
  const auto& links = route.links;
  std::map<std::uint64_t, Route> by_size;
  for (const auto& [link, narrow, fault] : node.slow) {
    if (std::find(links.begin(), links.end(), link) != links.end()) {
      by_size[fault.least] = by_size[fault.most + 1] = {links, route.start};
    }
  }
  for (auto& [least, sized] : by_size) {
    for (const auto& [link, narrow, fault] : node.slow) {
      if (fault.hits(least)) {
        sized.links.insert(sized.links.end(),
                           static_cast<std::size_t>(std::count(links.begin(), links.end(), link)),
                           narrow);
      }
    }
  }
  route.by_size = std::move(by_size);
}

NodeDescription read_node(const std::string& path) {
  return read(path, [](const json& content) { return parse(content, nodes_of(content).at(0)); });
}

SystemDescription read_system(const std::string& path) { return read(path, parse_all); }

}  // namespace fabricheck_sim
