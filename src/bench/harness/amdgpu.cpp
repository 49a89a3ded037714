#include "harness/amdgpu.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace fabricheck {
namespace {

namespace fs = std::filesystem;

/// The names in a folder, in order; none where it cannot be read.
std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

}  // namespace

std::optional<double> current_clock_mhz(const std::string& levels) {
  std::istringstream text(levels);
  for (std::string line; std::getline(text, line);) {
    double mhz = 0;
    char mark = 0;
    if (std::sscanf(line.c_str(), "%*d: %lf%*[Mm]%*[Hh]%*[Zz] %c", &mhz, &mark) == 2 &&
        mark == '*' && mhz > 0) {
      return mhz;
    }
  }
  return std::nullopt;
}

std::optional<double> watts_of(const std::string& microwatts) {
  double value = 0;
  if (std::sscanf(microwatts.c_str(), "%lf", &value) != 1 || !(value > 0)) {
    return std::nullopt;
  }
  return 1e-6 * value;
}

void read_amdgpu(const std::string& sys, const std::string& pci_address, DeviceReading& reading) {
  auto name = pci_address;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  const auto folder = fs::path(sys) / "bus/pci/devices" / name;
  if (const auto mhz = current_clock_mhz(file_text(folder / "pp_dpm_sclk").value_or(""))) {
    reading.set("clock_mhz", *mhz, "pp_dpm_sclk");
  }
  if (const auto mhz = current_clock_mhz(file_text(folder / "pp_dpm_mclk").value_or(""))) {
    reading.set("memory_clock_mhz", *mhz, "pp_dpm_mclk");
  }
  for (const auto& monitor : names_in(folder / "hwmon")) {
    if (const auto cap =
            watts_of(file_text(folder / "hwmon" / monitor / "power1_cap").value_or(""))) {
      reading.set("power_cap_w", *cap, "power1_cap");
    }
  }
  reading.explain_rest("no file of the driver amdgpu that is read tells it");
}

std::set<int> kfd_processes(const std::string& sys) {
  std::set<int> pids;
  for (const auto& name : names_in(fs::path(sys) / "class/kfd/kfd/proc")) {
    if (const int pid = std::atoi(name.c_str()); pid > 0) {
      pids.insert(pid);
    }
  }
  return pids;
}

}  // namespace fabricheck
