#include "harness/rocm.hpp"

#include <dlfcn.h>

#include <filesystem>

#include "harness/device_reading.hpp"
#include "harness/devices.hpp"

namespace fabricheck {
namespace fs = std::filesystem;

std::string hip_version() { return describe_versions()["runtime"]; }

std::optional<std::string> rocm_version() {
  void* function = dlsym(RTLD_DEFAULT, "hipRuntimeGetVersion");
  Dl_info place{};
  if (function == nullptr || dladdr(function, &place) == 0 || place.dli_fname == nullptr) {
    return std::nullopt;
  }
  return rocm_version_of(place.dli_fname);
}

std::optional<std::string> rocm_version_of(const std::string& library) {
  std::error_code none;
  // Another installation, such as /opt/rocm, says nothing of a library that is not in it.
  const auto file = fs::canonical(library, none);
  if (file.filename().string().rfind("libamdhip64.so", 0) != 0) {
    return std::nullopt;
  }
  // The library is in lib of its installation, or in a folder of that.
  const auto lib = file.parent_path();
  for (const auto& root : {lib.parent_path(), lib.parent_path().parent_path()}) {
    const auto text = file_text((root / ".info" / "version").string()).value_or("");
    const auto version = text.substr(0, text.find_first_of(" \n"));
    if (!version.empty()) {
      return version;
    }
  }
  return std::nullopt;
}

}  // namespace fabricheck
