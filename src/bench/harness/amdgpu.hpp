// What AMD's driver amdgpu tells of a device, by the files of /sys. AMD's library (libamd_smi) adds
// nothing to them that is asked for here, reads the same files, and takes structures whose sizes
// change from version to version; it is not used.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "harness/device_reading.hpp"

namespace fabricheck {

/// Reads the state of the device at a PCI address under `sys` (/sys). Of the driver's files those
/// are left alone that reading resets (xgmi_error), or that count for a second and disturb others
/// that count (pcie_bw).
void read_amdgpu(const std::string& sys, const std::string& pci_address, DeviceReading& reading);

/// The highest frequency in MHz of pp_dpm_sclk or pp_dpm_mclk, which lists the levels that are
/// allowed now: "1: 1700Mhz *". Nothing when there is none.
std::optional<double> highest_clock_mhz(const std::string& levels);

/// Watts of the text of hwmon's power1_cap, which is in microwatts. Nothing when it is no positive
/// number: the second die of a package has no cap and no power of its own.
std::optional<double> watts_of(const std::string& microwatts);

/// The processes that have the compute driver (KFD) open, by the numbers that the host gives them.
std::set<int> kfd_processes(const std::string& sys);

}  // namespace fabricheck
