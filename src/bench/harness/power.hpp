// The power limit and the clocks of devices, which the runtime does not tell.
#pragma once

#include <optional>
#include <string>

namespace fabricheck {

/// As the system states them when asked; nothing where it does not.
struct PowerState {
  std::optional<double> power_cap_w;
  std::optional<double> clock_mhz;         ///< of the compute units
  std::optional<double> memory_clock_mhz;  ///< of the device memory
};

/// Of the device with this PCI address: by the files of AMD's driver, else by NVIDIA's management
/// library, if it is there.
PowerState power_state(const std::string& pci_address);

/// The frequency in MHz of the current line of pp_dpm_sclk or pp_dpm_mclk, which lists all levels
/// and marks that one: "1: 1700Mhz *". Nothing when no line is marked.
std::optional<double> current_clock_mhz(const std::string& levels);

/// Watts of the text of hwmon's power1_cap, which is in microwatts. Nothing when it is no positive
/// number: the second die of a package has no cap of its own.
std::optional<double> watts_of(const std::string& microwatts);

}  // namespace fabricheck
