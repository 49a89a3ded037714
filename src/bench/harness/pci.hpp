// Accelerators as the PCI bus shows them, whether or not a driver or a runtime lists them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/device_reading.hpp"

namespace fabricheck {

class Nvml;

constexpr const char* kNvidia = "0x10de";
constexpr const char* kAmd = "0x1002";

/// AMD's and NVIDIA's display controllers and processing accelerators by their folders under `sys`
/// (/sys): address, vendor, device, driver, mode (such as CPX, or by `nvml` MIG) and whether it is
/// accessible, in the order of addresses.
/// Those that do not answer any more and virtual functions of others are left out. Null if there is
/// no list of PCI devices.
nlohmann::json pci_functions(const std::string& sys, const Nvml* nvml = nullptr);

/// A vendor's number and its number of a device or board, as lspci -n writes them: 1002:74a1.
std::string pci_number(unsigned vendor, unsigned device);

/// The width and speed of the link to the host as members of `pcie`, which all vendors' devices
/// have in their folder.
void read_host_link(const std::string& folder, Reading& reading);

/// The errors of the link to the host that the device itself reports (AER).
void read_host_link_errors(const std::string& folder, DeviceReading& reading);

}  // namespace fabricheck
