// The state of a device by AMD's driver amdgpu, read from the files of /sys. AMD's library
// (libamd_smi) is not used: it reads the same files, adds nothing needed here, and takes structures
// whose sizes change from version to version.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "harness/device_reading.hpp"

namespace fabricheck {

/// Reads the state of the device at a PCI address under `sys` (/sys). Files are skipped that
/// reading resets (xgmi_error), or that count for a second and disturb other readers (pcie_bw).
void read_amdgpu(const std::string& sys, const std::string& pci_address, DeviceReading& reading);

/// Reads the modes in which the driver divides the device and its memory.
void read_amdgpu_modes(const std::string& sys, const std::string& pci_address, Reading& reading);

/// Reads the present link of the package to the host (pcie), over that of the device in /sys.
void read_amdgpu_host_link(const std::string& sys, const std::string& pci_address,
                           Reading& reading);

/// The highest frequency in MHz of pp_dpm_sclk or pp_dpm_mclk, which lists the levels that are
/// allowed now: "1: 1700Mhz *". Empty when there is none.
std::optional<double> highest_clock_mhz(const std::string& levels);

/// Watts from the text of hwmon's power1_cap, which is in microwatts. Empty when it is not a
/// positive number: the second die of a package has no cap and no power of its own.
std::optional<double> watts_of(const std::string& microwatts);

/// Joules that the device has taken since some time; empty, with the reason in `why`, if the driver
/// does not count them: that of the first die of a package counts both.
std::optional<double> amdgpu_energy_j(const std::string& sys, const std::string& pci_address,
                                      std::string& why);

/// The processes that have the compute driver (KFD) open, by the host's process numbers.
std::set<int> kfd_processes(const std::string& sys);

}  // namespace fabricheck
