#include "harness/copy_rules.hpp"
#include "harness/devices.hpp"
#include "harness/kfd.hpp"
#include "inventory/document.hpp"

namespace fabricheck {

using nlohmann::json;

json driver_devices(const StateRoots&) { return describe_devices(); }

json describe_machine(const RuntimeFacts& facts, const StateRoots&) {
  const std::string source = "node model";
  std::vector<Reading> readings;
  for (const auto& device : facts.devices) {
    auto reading = new_device();
    read_runtime(device, source, reading);
    if (!device["numa_domain"].is_null()) {
      reading.set("numa_domain", device["numa_domain"], source);
      reading.set("cores", cores_of_domain(facts.host, device["numa_domain"]), source);
    }
    reading.explain_rest("the description of a simulated node does not have it");
    readings.push_back(std::move(reading));
  }
  const auto link = [&](int from, int to) {
    auto reading = new_link();
    const auto& arch = facts.devices[static_cast<std::size_t>(from)]["arch"];
    const auto way = peer_way(from, to);
    const bool access = facts.peer_access(from, to);
    const bool joined = access || way->direct;
    reading.set("kind", !joined ? "none" : is_amd(arch) ? "xgmi" : "nvlink", source);
    reading.set("links", way->direct ? way->links : 0, source);
    reading.set("peer_access", access, source);
    if (way->direct) {
      reading.set("hops", 1, source);
    }
    reading.explain_rest("the description of a simulated node does not have it");
    return reading;
  };
  return describe(facts, readings, link, nullptr, "the node is simulated");
}

}  // namespace fabricheck
