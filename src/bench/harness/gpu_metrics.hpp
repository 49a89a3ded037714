// The file gpu_metrics of AMD's driver amdgpu: one table of numbers, in a layout for each version.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fabricheck {

/// The file gpu_metrics.
struct GpuMetrics {
  std::string version;  ///< "1.3"
  /// By the driver's names, those that are used and given.
  std::map<std::string, std::vector<std::uint64_t>> values;

  [[nodiscard]] std::optional<std::uint64_t> value(const std::string& name) const;
};

/// Its contents, of versions 1.3 to 1.9. Nothing of another one, whose layout is not known, nor of
/// a file that was cut.
std::optional<GpuMetrics> gpu_metrics(const std::string& bytes);

/// Words of the vocabulary (throttle) for the bits of indep_throttle_status, which are the same for
/// all devices.
nlohmann::json amd_throttle_words(std::uint64_t status);

}  // namespace fabricheck
