// The file gpu_metrics of AMD's driver amdgpu: one table of numbers, in a layout for each version.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fabricheck {

/// The contents of the file gpu_metrics.
struct GpuMetrics {
  std::string version;  ///< "1.3"
  /// The values in use, by the driver's names, as far as the version has them.
  std::map<std::string, std::vector<std::uint64_t>> values;

  [[nodiscard]] std::optional<std::uint64_t> value(const std::string& name) const;
};

/// Parses the contents, of versions 1.3 to 1.9. Empty for another version, whose layout is unknown,
/// and for a file that was cut off.
std::optional<GpuMetrics> gpu_metrics(const std::string& bytes);

/// Words of the vocabulary (throttle) for the bits of indep_throttle_status, which are the same for
/// all devices.
nlohmann::json amd_throttle_words(std::uint64_t status);

}  // namespace fabricheck
