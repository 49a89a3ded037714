#include "harness/power.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fabricheck {
namespace {

/// The text of a file; empty when it cannot be read.
std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// By the files of the driver amdgpu.
PowerState by_sysfs(const std::string& pci_address) {
  auto name = pci_address;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  const std::filesystem::path folder = "/sys/bus/pci/devices/" + name;
  PowerState state;
  state.clock_mhz = current_clock_mhz(text_of(folder / "pp_dpm_sclk"));
  state.memory_clock_mhz = current_clock_mhz(text_of(folder / "pp_dpm_mclk"));
  std::error_code none;
  for (const auto& monitor : std::filesystem::directory_iterator(folder / "hwmon", none)) {
    if (!state.power_cap_w) {
      state.power_cap_w = watts_of(text_of(monitor.path() / "power1_cap"));
    }
  }
  return state;
}

/// NVIDIA's management library, as far as it is used; loaded, for a machine may lack it.
class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    const auto init = function<int()>("nvmlInit_v2");
    ready_ = init != nullptr && init() == 0;
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (ready_) {
      (void)function<int()>("nvmlShutdown")();
    }
    if (library_ != nullptr) {
      (void)dlclose(library_);
    }
  }

  [[nodiscard]] PowerState state(const std::string& pci_address) const {
    PowerState result;
    const auto find = function<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
    void* device = nullptr;
    if (!ready_ || find == nullptr || find(pci_address.c_str(), &device) != 0) {
      return result;
    }
    unsigned value = 0;
    const auto limit = function<int(void*, unsigned*)>("nvmlDeviceGetPowerManagementLimit");
    if (limit != nullptr && limit(device, &value) == 0 && value > 0) {
      result.power_cap_w = 1e-3 * value;  // it is in milliwatts
    }
    constexpr int of_multiprocessors = 1;
    constexpr int of_memory = 2;
    const auto clock = function<int(void*, int, unsigned*)>("nvmlDeviceGetClockInfo");
    if (clock != nullptr && clock(device, of_multiprocessors, &value) == 0 && value > 0) {
      result.clock_mhz = value;
    }
    if (clock != nullptr && clock(device, of_memory, &value) == 0 && value > 0) {
      result.memory_clock_mhz = value;
    }
    return result;
  }

 private:
  template <typename Signature>
  [[nodiscard]] Signature* function(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Signature*>(dlsym(library_, name));
  }

  void* library_;
  bool ready_ = false;
};

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

PowerState power_state(const std::string& pci_address) {
  const auto state = by_sysfs(pci_address);
  if (state.power_cap_w || state.clock_mhz || state.memory_clock_mhz) {
    return state;
  }
  static const Nvml nvml;
  return nvml.state(pci_address);
}

}  // namespace fabricheck
