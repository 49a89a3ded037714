#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "harness/amdgpu.hpp"
#include "harness/copy_rules.hpp"
#include "harness/identity.hpp"
#include "harness/kfd.hpp"
#include "harness/nvml.hpp"
#include "harness/pci.hpp"
#include "harness/status.hpp"
#include "inventory/document.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

/// A PCI address in numbers: AMD's runtime writes the number of a partition as the function.
struct PciPlace {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  unsigned function = 0;

  [[nodiscard]] bool same_card(const PciPlace& other) const {
    return domain == other.domain && bus == other.bus && slot == other.slot;
  }
};

std::optional<PciPlace> place_at(const json& address) {
  PciPlace place;
  return address.is_string() &&
                 std::sscanf(address.get<std::string>().c_str(), "%x:%x:%x.%x", &place.domain,
                             &place.bus, &place.slot, &place.function) == 4
             ? std::optional(place)
             : std::nullopt;
}

bool is_at(const KfdNode& node, const PciPlace& place) {
  return node.device && node.domain == place.domain && node.bus() == place.bus &&
         node.slot() == place.slot;
}

/// What a device of the runtime is to the drivers.
struct Device {
  std::string arch;
  std::optional<PciPlace> place;
  std::string address;      ///< of the PCI function that its folder in /sys is named after
  std::optional<int> node;  ///< of KFD
  bool partition = false;   ///< one of several nodes at its address
  std::string why_no_node;
  NvLinkEnds ends;

  [[nodiscard]] bool amd() const { return is_amd(arch); }
  [[nodiscard]] bool is_virtual() const { return arch == "host"; }
};

class Machine {
 public:
  Machine(const RuntimeFacts& facts, const StateRoots& roots)
      : facts_(facts),
        sys_(roots.sys),
        library_(roots.nvml),
        kfd_(kfd_nodes(roots.sys + "/class/kfd/kfd/topology")) {
    for (const auto& device : facts.devices) {
      devices_.push_back({device["arch"], place_at(device["pci_address"]), "", {}, false, "", {}});
    }
    const auto functions = pci_functions(sys_);
    const bool nvidia = std::any_of(functions.begin(), functions.end(), [](const json& function) {
      return function["vendor"] == kNvidia;
    });
    if (nvidia || std::any_of(devices_.begin(), devices_.end(), [](const Device& device) {
          return !device.amd() && !device.is_virtual();
        })) {
      nvml_ = std::make_unique<Nvml>(roots.nvml);
    }
    for (auto& device : devices_) {
      find(device);
    }
  }

  [[nodiscard]] json description() const {
    std::vector<Reading> readings;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      readings.push_back(read_device(devices_[i], facts_.devices[i]));
    }
    return describe(
        facts_, readings, [this](int from, int to) { return read_link(from, to); }, functions(),
        sys_ + "/bus/pci/devices cannot be read");
  }

 private:
  /// Finds a device in the drivers.
  void find(Device& device) {
    if (!device.place) {
      return;
    }
    std::array<char, 64> address{};
    const auto& place = *device.place;
    std::snprintf(address.data(), address.size(), "%04x:%02x:%02x.", place.domain, place.bus,
                  place.slot);
    device.address = address.data() + std::to_string(place.function);
    if (!std::filesystem::exists(device_folder(sys_, device.address))) {
      device.address = std::string(address.data()) + "0";
    }
    if (device.amd()) {
      find_node(device);
    } else if (nvml_ != nullptr) {
      device.ends = nvml_->link_ends(device.address);
    }
  }

  /// Partitions of one card are nodes with one address, or with its functions: the runtime has them
  /// in the order of KFD.
  void find_node(Device& device) {
    std::vector<int> nodes;
    for (const auto& [number, node] : kfd_) {
      if (is_at(node, *device.place)) {
        nodes.push_back(number);
      }
    }
    std::vector<const Device*> same;
    for (const auto& other : devices_) {
      if (other.place && other.place->same_card(*device.place)) {
        same.push_back(&other);
      }
    }
    device.partition = nodes.size() > 1;
    if (nodes.size() == same.size()) {
      const auto rank = std::find(same.begin(), same.end(), &device) - same.begin();
      device.node = nodes[static_cast<std::size_t>(rank)];
      return;
    }
    for (const int number : nodes) {
      if (device.place->function > 0 && kfd_.at(number).function() == device.place->function) {
        device.node = number;
        return;
      }
    }
    device.why_no_node = kfd_.empty()    ? "no " + sys_ + "/class/kfd/kfd/topology/nodes"
                         : nodes.empty() ? "KFD has no node with its PCI address"
                                         : "the runtime shows " + std::to_string(same.size()) +
                                               " of " + std::to_string(nodes.size()) +
                                               " partitions of its card: which, is "
                                               "not known";
  }

  [[nodiscard]] Reading read_device(const Device& device, const json& of_runtime) const {
    auto reading = new_device();
    if (device.is_virtual()) {
      const std::string source = "runtime host";
      read_runtime(of_runtime, source, reading);
      if (!of_runtime["numa_domain"].is_null()) {
        reading.set("numa_domain", of_runtime["numa_domain"], source);
        reading.set("cores", cores_of_domain(facts_.host, of_runtime["numa_domain"]), "hwloc");
      }
      reading.explain_rest("the device is virtual");
      return reading;
    }
    read_runtime(of_runtime, device.amd() ? "hipGetDeviceProperties" : "cudaGetDeviceProperties",
                 reading);
    const auto folder = device_folder(sys_, device.address);
    read_identity(sys_, library_, device.address, reading);
    read_near(folder, reading);
    if (device.amd()) {
      read_amd(device, folder, reading);
    } else if (nvml_ != nullptr) {
      read_host_link(folder, reading);
      nvml_->read_form(device.address, reading);
      if (!reading.has("host_link.kind")) {
        reading.set("host_link.kind", "pcie", "/sys/bus/pci/devices");
      }
      reading.lack("memory_partition", "NVIDIA's devices have no such mode");
    }
    read_only_domain(reading);
    if (reading.has("host_link.kind") && !reading.has("host_link.gb_per_s")) {
      reading.lack("host_link.gb_per_s", reading.values()["host_link"]["kind"] == "pcie"
                                             ? "members of pcie tell it"
                                             : "the driver does not tell it");
    }
    reading.explain_rest("the driver does not tell it");
    return reading;
  }

  /// Cores and domain as the system has them of any PCI device.
  static void read_near(const std::string& folder, Reading& reading) {
    const auto domain = file_text(folder + "/numa_node");
    const auto cores = file_text(folder + "/local_cpulist");
    // Without a domain, all cores are local ones.
    if (domain && std::atoi(domain->c_str()) >= 0 && !domain->empty()) {
      reading.set("numa_domain", std::atoi(domain->c_str()), "numa_node");
      if (cores && !cores->empty()) {
        reading.set("cores", cores_in(*cores), "local_cpulist");
      }
    }
  }

  /// Where the firmware tells no domain of a device, and there is one only.
  void read_only_domain(Reading& reading) const {
    const auto& domains = facts_.host["numa_domains"];
    if (!reading.has("numa_domain") && domains.size() == 1) {
      reading.set("numa_domain", domains[0]["index"], "hwloc: there is one only");
    }
    if (reading.has("numa_domain") && !reading.has("cores")) {
      reading.set("cores", cores_of_domain(facts_.host, reading.values()["numa_domain"]), "hwloc");
    }
    for (const auto* item : {"numa_domain", "cores"}) {
      if (!reading.has(item)) {
        reading.lack(item, "numa_node is missing or -1: the firmware does not tell it");
      }
    }
  }

  void read_amd(const Device& device, const std::string& folder, Reading& reading) const {
    if (const auto name = file_text(folder + "/product_name");
        !reading.has("name") && name && !name->empty()) {
      reading.set("name", *name, "product_name");
    }
    if (!device.node) {
      for (const auto* item : {"host_link.kind", "host_link.gb_per_s"}) {
        reading.lack(item, device.why_no_node);
      }
    } else if (const auto [cpu, link] = host_link(kfd_.at(*device.node)); cpu >= 0) {
      read_kfd_host_link(cpu, link, reading);
    }
    read_amdgpu_modes(sys_, device.address, reading);
    if (reading.has("host_link.kind") && reading.values()["host_link"]["kind"] != "pcie") {
      reading.lack("pcie", "its link to the host is no PCIe: /sys shows one of the package");
    } else {
      read_host_link(folder, reading);
      read_amdgpu_host_link(sys_, device.address, reading);
    }
  }

  /// The nearest node of cores, and the link to it; -1 without one.
  [[nodiscard]] std::pair<int, KfdLink> host_link(const KfdNode& node) const {
    std::pair<int, KfdLink> nearest{-1, {}};
    for (const auto& [number, link] : node.links) {
      const auto other = kfd_.find(number);
      if (other != kfd_.end() && other->second.cores > 0 &&
          (nearest.first < 0 || link.weight < nearest.second.weight)) {
        nearest = {number, link};
      }
    }
    return nearest;
  }

  void read_kfd_host_link(int cpu, const KfdLink& link, Reading& reading) const {
    const std::string source = "KFD io_links";
    reading.set("host_link.kind",
                link.in_package() ? "package"
                : link.xgmi()     ? "xgmi"
                                  : "pcie",
                source);
    if (link.in_package()) {
      reading.lack("host_link.gb_per_s", "KFD states the same value within all packages");
    } else if (link.xgmi() && link.max_mb_per_s > 0) {
      reading.set("host_link.gb_per_s", 1e-3 * static_cast<double>(link.max_mb_per_s), source);
    }
    // Its nodes of cores are the NUMA domains, in their order.
    std::vector<int> nodes;
    for (const auto& [number, node] : kfd_) {
      if (node.cores > 0) {
        nodes.push_back(number);
      }
    }
    const auto& domains = facts_.host["numa_domains"];
    if (!reading.has("numa_domain") && nodes.size() == domains.size()) {
      const auto rank = std::find(nodes.begin(), nodes.end(), cpu) - nodes.begin();
      reading.set("numa_domain", domains[static_cast<std::size_t>(rank)]["index"], source);
    }
  }

  [[nodiscard]] Reading read_link(int from, int to) const {
    auto reading = new_link();
    const auto& source = devices_[static_cast<std::size_t>(from)];
    const auto& destination = devices_[static_cast<std::size_t>(to)];
    if (source.is_virtual()) {
      reading.set("kind", "none", "runtime host");
      reading.set("links", 0, "runtime host");
      read_access(from, to, reading);
      reading.explain_rest("devices are virtual and share the memory of the machine");
    } else if (source.amd()) {
      read_access(from, to, reading);
      read_amd_link(source, destination, reading);
    } else {
      read_nvidia_link(source, destination, reading);
    }
    reading.explain_rest("the driver does not tell it");
    return reading;
  }

  void read_access(int from, int to, Reading& reading) const {
    try {
      reading.set("peer_access", facts_.peer_access(from, to), "hipDeviceCanAccessPeer");
    } catch (const Failure& failure) {
      reading.lack("peer_access", failure.what());
    }
  }

  void read_amd_link(const Device& from, const Device& to, Reading& reading) const {
    const std::string source = "KFD io_links, p2p_links";
    if (!from.node || !to.node) {
      for (const auto* item : {"kind", "links", "gb_per_s", "weight", "hops"}) {
        reading.lack(item, from.node ? to.why_no_node : from.why_no_node);
      }
      return;
    }
    const auto& links = kfd_.at(*from.node).links;
    const auto entry = links.find(*to.node);
    if (entry == links.end()) {
      reading.set("kind", "none", source);
      reading.set("links", 0, source);
      reading.explain_rest("KFD has no link and no path between them");
      return;
    }
    const auto& link = entry->second;
    reading.set("weight", link.weight, source);
    reading.set("kind", link.in_package() ? "package" : link.xgmi() ? "xgmi" : "pcie", source);
    if (!link.xgmi() || link.in_package()) {
      reading.set("links", 0, source);
      reading.explain_rest(link.xgmi() ? "the two are parts of one card"
                                       : "the path is over PCIe, and no link of its own");
    } else if (from.partition || to.partition) {
      reading.explain_rest("KFD does not tell it between partitions of two cards");
    } else if (link.direct()) {
      reading.set("hops", 1, source);
      if (const auto number = link.links()) {
        reading.set("links", *number, source);
        reading.set("gb_per_s", 1e-3 * static_cast<double>(link.min_mb_per_s), source);
      }
      reading.explain_rest("KFD of this kernel tells no bandwidth of the link");
    } else {
      reading.set("links", 0, source);
      reading.set("hops", link.weight / 15, source);
      reading.explain_rest("other devices are between them: KFD does not tell which");
    }
  }

  void read_nvidia_link(const Device& from, const Device& to, Reading& reading) const {
    if (nvml_ == nullptr || !from.place || !to.place) {
      reading.explain_rest("a device has no PCI address");
      return;
    }
    std::string why;
    if (const auto access = nvml_->peer_access(from.address, to.address, why)) {
      reading.set("peer_access", *access, "nvmlDeviceGetP2PStatus");
    } else {
      reading.lack("peer_access", why);
    }
    for (const auto* item : {"weight", "hops"}) {
      reading.lack(item, "NVML does not tell it");
    }
    const auto& problem = from.ends.problem.empty() ? to.ends.problem : from.ends.problem;
    if (!problem.empty()) {
      for (const auto* item : {"kind", "links", "gb_per_s"}) {
        reading.lack(item, problem);
      }
      return;
    }
    const std::string source = "nvmlDeviceGetNvLinkRemoteDeviceType";
    const auto direct = from.ends.devices.find(to.address);
    const bool joined = direct != from.ends.devices.end();
    const bool by_switch = !joined && from.ends.switches > 0 && to.ends.switches > 0;
    reading.set("kind", joined ? "nvlink" : by_switch ? "nvswitch" : "pcie", source);
    reading.set("links",
                joined      ? direct->second
                : by_switch ? from.ends.switches
                            : 0,
                joined ? "nvmlDeviceGetNvLinkRemotePciInfo_v2" : source);
    if (!joined && !by_switch) {
      reading.lack("gb_per_s", "the path is over PCIe, and no link of its own");
    } else if (from.ends.gb_per_s) {
      reading.set("gb_per_s", *from.ends.gb_per_s, "nvmlDeviceGetFieldValues");
    } else {
      reading.lack("gb_per_s", from.ends.speed_problem);
    }
  }

  /// PCI's functions, with the devices of the runtime that each is, and whether its driver has it.
  [[nodiscard]] json functions() const {
    auto functions = pci_functions(sys_, nvml_.get());
    for (auto& function : functions) {
      const auto place = place_at(function["address"]);
      function["indices"] = json::array();
      function["in_driver"] = nullptr;
      for (std::size_t i = 0; place && i < devices_.size(); ++i) {
        if (devices_[i].place && devices_[i].place->same_card(*place)) {
          function["indices"].push_back(i);
        }
      }
      if (place && function["vendor"] == kAmd && !kfd_.empty()) {
        function["in_driver"] = std::any_of(kfd_.begin(), kfd_.end(), [&place](const auto& entry) {
          return is_at(entry.second, *place);
        });
      } else if (function["vendor"] == kNvidia && nvml_ != nullptr && nvml_->problem().empty()) {
        function["in_driver"] = nvml_->lists(function["address"]);
      }
    }
    return functions;
  }

  const RuntimeFacts& facts_;
  std::string sys_;
  std::string library_;  ///< NVML
  std::map<int, KfdNode> kfd_;
  std::vector<Device> devices_;
  std::unique_ptr<Nvml> nvml_;
};

/// An address as sysfs writes it.
std::string address_of(const KfdNode& node) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%04llx:%02llx:%02llx.%llx",
                static_cast<unsigned long long>(node.domain),
                static_cast<unsigned long long>(node.bus()),
                static_cast<unsigned long long>(node.slot()),
                static_cast<unsigned long long>(node.function()));
  return text.data();
}

json listed_device(std::size_t index, const std::string& arch, const std::string& address) {
  return {{"index", index},        {"name", nullptr},         {"arch", arch},
          {"unique_id", nullptr},  {"memory_bytes", nullptr}, {"pci_address", address},
          {"numa_domain", nullptr}};
}

}  // namespace

json driver_devices(const StateRoots& roots) {
  json devices = json::array();
  for (const auto& [number, node] : kfd_nodes(roots.sys + "/class/kfd/kfd/topology")) {
    if (node.device) {
      devices.push_back(listed_device(devices.size(), node.architecture(), address_of(node)));
    }
  }
  const auto functions = pci_functions(roots.sys);
  const bool nvidia = std::any_of(functions.begin(), functions.end(), [](const json& function) {
    return function["vendor"] == kNvidia;
  });
  if (!nvidia) {
    return devices;
  }
  const Nvml nvml(roots.nvml);
  for (const auto& function : functions) {
    const auto arch = nvml.architecture(function["address"]);
    if (function["vendor"] == kNvidia && arch) {
      devices.push_back(listed_device(devices.size(), *arch, function["address"]));
    }
  }
  return devices;
}

json describe_machine(const RuntimeFacts& facts, const StateRoots& roots) {
  return Machine(facts, roots).description();
}

}  // namespace fabricheck
