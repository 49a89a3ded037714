// What a device is, by the numbers that PCI has for it. The name that a runtime gives a device is a
// label: in containers it may be empty, and in virtual machines it is another.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/device_reading.hpp"

namespace fabricheck {

/// Reads `pci_id`, vendor and kind of device (1002:74a1), and `pci_subsystem`, the same of the
/// board (10de:16c1), of the device at a PCI address: from PCI's list in `sys` (/sys), else from
/// AMD's compute driver there, else from the library `nvml`. AMD's compute driver tells no board.
void read_identity(const std::string& sys, const std::string& nvml, const std::string& pci_address,
                   Reading& reading);

/// The same of a device by the runtime's number, as members of a JSON object; null where unknown.
nlohmann::json device_identity(int device);

}  // namespace fabricheck
