#include "inventory/document.hpp"

#include <string>
#include <utility>

#include "harness/simulation.hpp"

namespace fabricheck {

using nlohmann::json;

Reading new_device() {
  static const Reading::Members members{{"name", nullptr},
                                        {"architecture", nullptr},
                                        {"memory_bytes", nullptr},
                                        {"pci_address", nullptr},
                                        {"pci_id", nullptr},
                                        {"pci_subsystem", nullptr},
                                        {"unique_id", nullptr},
                                        {"numa_domain", nullptr},
                                        {"cores", nullptr},
                                        {"host_link", {{"kind", nullptr}, {"gb_per_s", nullptr}}},
                                        {"pcie",
                                         {{"width", nullptr},
                                          {"width_max", nullptr},
                                          {"width_max_port", nullptr},
                                          {"gt_per_s", nullptr},
                                          {"gt_per_s_max", nullptr}}},
                                        {"compute_partition", nullptr},
                                        {"memory_partition", nullptr}};
  return Reading(members);
}

Reading new_link() {
  static const Reading::Members members{{"kind", nullptr},     {"links", nullptr},
                                        {"gb_per_s", nullptr}, {"weight", nullptr},
                                        {"hops", nullptr},     {"peer_access", nullptr}};
  return Reading(members);
}

void read_runtime(const json& device, const std::string& source, Reading& reading) {
  for (const auto& [item, name] :
       {std::pair("name", "name"), std::pair("architecture", "arch"),
        std::pair("memory_bytes", "memory_bytes"), std::pair("pci_address", "pci_address"),
        std::pair("unique_id", "unique_id")}) {
    const auto value = device.value(name, json());
    if (!value.is_null() && value != "") {
      reading.set(item, value, source);
    }
  }
  if (device.value("unique_id", json()).is_null()) {
    reading.lack("unique_id", "the runtime does not tell it");
  }
}

json cores_of_domain(const json& host, int domain) {
  for (const auto& known : host["numa_domains"]) {
    if (known["index"] == domain) {
      return known["cores"];
    }
  }
  return nullptr;
}

json describe(const RuntimeFacts& facts, const std::vector<Reading>& readings,
              const std::function<Reading(int from, int to)>& link, const json& pci_functions,
              const std::string& no_functions) {
  json absent = json::array();
  json sources = json::object();
  json devices = json::array();
  Provenance of_devices("devices", "device");
  const int count = static_cast<int>(readings.size());
  for (int i = 0; i < count; ++i) {
    const auto& reading = readings[static_cast<std::size_t>(i)];
    devices.push_back(reading.values());
    devices.back()["index"] = i;
    of_devices.add(reading, std::to_string(i));
  }
  of_devices.write(readings.size(), absent, sources);
  json links = json::array();
  Provenance of_links("links", "pair");
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from != to) {
        const auto reading = link(from, to);
        links.push_back(reading.values());
        links.back()["from"] = from;
        links.back()["to"] = to;
        of_links.add(reading, std::to_string(from) + "-" + std::to_string(to));
      }
    }
  }
  of_links.write(links.size(), absent, sources);
  json result{{"devices", devices},
              {"links", links},
              {"domains", facts.host["numa_domains"]},
              {"numa_balancing", facts.host["numa_balancing"]},
              {"pci_functions", pci_functions}};
  sources["domains"] = kSimulated ? "node model" : "hwloc";
  if (readings.empty()) {
    absent.push_back({{"item", "devices"}, {"why", facts.problem}});
  }
  if (facts.host["numa_balancing"].is_null()) {
    absent.push_back({{"item", "numa_balancing"},
                      {"why", kSimulated ? "the node is simulated"
                                         : "/proc/sys/kernel/numa_balancing cannot be read"}});
  } else {
    sources["numa_balancing"] = "/proc/sys/kernel/numa_balancing";
  }
  if (pci_functions.is_null()) {
    absent.push_back({{"item", "pci_functions"}, {"why", no_functions}});
  } else {
    sources["pci_functions"] = "/sys/bus/pci/devices";
  }
  result["absent"] = absent;
  result["sources"] = sources;
  return result;
}

}  // namespace fabricheck
