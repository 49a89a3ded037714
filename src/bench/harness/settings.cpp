#include "harness/settings.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "harness/build.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// A variable that matters, and the runtimes that obey it; the host runtime does so for the tests.
struct Known {
  const char* name;
  const char* concerns;
  const char* runtimes;

  [[nodiscard]] bool obeyed() const {
    const auto wanted = " " + build_runtime() + " ";
    return (" " + std::string(runtimes) + " ").find(wanted) != std::string::npos;
  }
};

// AMD's are read in clr: rocclr/utils/flags.hpp, platform/command.cpp, device/rocm/rocsettings.cpp
// and rocdevice.cpp; those of engines in ROCR's core/util/flag.h.
constexpr std::array<Known, 7> kKnown{{
    {"CUDA_LAUNCH_BLOCKING", concern::launches, "cuda"},
    {"HIP_LAUNCH_BLOCKING", concern::launches, "rocm sim host"},
    {"AMD_SERIALIZE_KERNEL", concern::launches, "rocm sim"},
    {"AMD_SERIALIZE_COPY", concern::launches, "rocm sim"},
    {"ROC_CPU_WAIT_FOR_SIGNAL", concern::launches, "rocm sim"},
    {env::engines, concern::engines, "rocm sim host"},
    {env::peer_engines, concern::peer_engines, "rocm sim host"},
}};
constexpr std::array<Known, 3> kVisible{{
    {"ROCR_VISIBLE_DEVICES", concern::devices, "rocm sim"},
    {"HIP_VISIBLE_DEVICES", concern::devices, "rocm sim"},
    {"CUDA_VISIBLE_DEVICES", concern::devices, "rocm cuda"},
}};

/// The number of devices that a list such as "0,2" or "GPU-5ca1ab1e" names: those before the first
/// invalid item ("-1", "NoDevFiles").
int devices_named(const std::string& list) {
  int count = 0;
  std::size_t first = 0;
  while (first < list.size()) {
    const auto letter = static_cast<unsigned char>(list[first]);
    if (std::isdigit(letter) == 0 && letter != 'G' && letter != 'M') {
      break;
    }
    ++count;
    const auto comma = list.find(',', first);
    first = comma == std::string::npos ? list.size() : comma + 1;
  }
  return count;
}

/// Files of AMD's devices that the process may not open because its control group forbids it, which
/// the system answers with EPERM; without the right of the file itself it is EACCES. (To open those
/// of NVIDIA's can start a device up; Slurm sets a variable wherever it hides one.)
std::vector<std::string> refused_device_files() {
  std::vector<std::string> refused;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/dri", error)) {
    if (entry.path().filename().string().rfind("renderD", 0) != 0) {
      continue;
    }
    const int opened = open(entry.path().c_str(), O_RDWR | O_CLOEXEC);
    if (opened >= 0) {
      (void)close(opened);
    } else if (errno == EPERM) {
      refused.push_back(entry.path());
    }
  }
  std::sort(refused.begin(), refused.end());
  return refused;
}

}  // namespace

std::vector<Setting> runtime_settings() {
  std::vector<Setting> settings;
  for (const auto& known : kKnown) {
    const auto value = variable(known.name);
    if (!value || value->empty() || !known.obeyed()) {
      continue;
    }
    // What blocks is switched on, an engine is switched off.
    if ((*value == "0") != (std::string(known.concerns) == concern::launches)) {
      settings.push_back({known.name, *value, known.concerns});
    }
  }
  return settings;
}

std::optional<Setting> blocking_setting() {
  for (const auto& setting : runtime_settings()) {
    if (setting.concerns == concern::launches) {
      return setting;
    }
  }
  return std::nullopt;
}

void require_free_launches() {
  if (const auto blocking = blocking_setting()) {
    throw Failure(Status::setting,
                  blocking->text() +
                      ": launches or copies wait for the device then, and what has to start "
                      "together cannot be queued before it starts; unset it");
  }
}

std::vector<Setting> hiding_settings(int visible) {
  std::vector<Setting> settings;
  for (const auto& known : kVisible) {
    const auto value = variable(known.name);
    // An empty list hides every device from CUDA, and has no effect on ROCm.
    const bool given = value && (!value->empty() || build_runtime() == runtime::cuda);
    if (given && known.obeyed() && devices_named(*value) <= visible) {
      settings.push_back({known.name, value->empty() ? "empty" : *value, known.concerns});
    }
  }
  const auto built_for = build_runtime();
  if (built_for != runtime::rocm && built_for != runtime::cuda) {
    return settings;
  }
  const auto granted = variable("SLURM_GPUS_ON_NODE");
  if (granted && std::atoi(granted->c_str()) == visible) {
    settings.push_back({"SLURM_GPUS_ON_NODE", *granted, concern::devices});
  }
  const auto refused =
      built_for == runtime::rocm ? refused_device_files() : std::vector<std::string>{};
  if (!refused.empty()) {
    settings.push_back(
        {"the control group",
         "closed to " + std::to_string(refused.size()) + " device(s), the first " + refused.front(),
         concern::devices});
  }
  return settings;
}

Failure no_such_device(const std::string& device, int visible, const std::string& seen) {
  return lacks_devices(device + " does not exist: " + seen + " " + std::to_string(visible) +
                           ", 0 to " + std::to_string(visible - 1),
                       visible);
}

Failure lacks_devices(const std::string& sentence, int visible) {
  const auto hiding = hiding_settings(visible);
  return hiding.empty() ? Failure(Status::unsupported, sentence)
                        : Failure(Status::setting, sentence + "; " + hiding.front().text());
}

json describe_settings(int visible) {
  json described = json::array();
  auto settings = runtime_settings();
  for (auto& setting : hiding_settings(visible)) {
    settings.push_back(std::move(setting));
  }
  for (const auto& setting : settings) {
    described.push_back(
        {{"name", setting.name}, {"value", setting.value}, {"concerns", setting.concerns}});
  }
  return described;
}

}  // namespace fabricheck
