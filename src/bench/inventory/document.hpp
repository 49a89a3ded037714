// The description of a node: devices, the links of each pair, NUMA domains, accelerators of PCI.
// docs/reference/result-document.md has its fields.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "harness/device_reading.hpp"
#include "harness/state.hpp"

namespace fabricheck {

/// What the runtime tells of the node.
struct RuntimeFacts {
  nlohmann::json devices = nlohmann::json::array();  ///< as in a result document
  std::string problem;                               ///< why there is no device
  nlohmann::json host;                               ///< as in a result document
  /// Whether kernels on one device may use the memory of another.
  std::function<bool(int from, int to)> peer_access;
};

/// The members of one device except its index.
Reading new_device();

/// The members of the way from one device to another except their indices.
Reading new_link();

/// Sets what the runtime tells of a device, with `source` for all of it.
void read_runtime(const nlohmann::json& device, const std::string& source, Reading& reading);

/// The cores of a NUMA domain of `host`; null if it has no such domain.
nlohmann::json cores_of_domain(const nlohmann::json& host, int domain);

/// The members of the description: `devices` and `links`, `domains` and `numa_balancing` of `host`,
/// `pci_functions`, and `absent` and `sources` of all. `readings` are those of the devices in
/// the runtime's order, `link` reads the way between two of them.
nlohmann::json describe(const RuntimeFacts& facts, const std::vector<Reading>& readings,
                        const std::function<Reading(int from, int to)>& link,
                        const nlohmann::json& pci_functions, const std::string& no_functions);

/// The devices that the drivers list, in the form of a result document, without any runtime: of
/// AMD in KFD's order, of NVIDIA by PCI address. A simulated node has those of its model.
nlohmann::json driver_devices(const StateRoots& roots);

/// The description of this machine by its drivers, or of the simulated node by its model.
nlohmann::json describe_machine(const RuntimeFacts& facts, const StateRoots& roots);

}  // namespace fabricheck
