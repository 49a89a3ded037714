// Two versions of AMD's software: that of HIP, which its runtime tells, and that of the ROCm that
// it was installed with. Both were one number up to ROCm 7.2; users report HIP 7.15 in ROCm 10.0.
#pragma once

#include <optional>
#include <string>

namespace fabricheck {

/// The version of HIP, whose rules apply to copies (copy_rules.hpp); of another runtime its own.
std::string hip_version();

/// The version of the ROCm that the loaded HIP is a part of; empty where its installation does not
/// tell it, and of another runtime.
std::optional<std::string> rocm_version();

/// The version in the file .info/version of the installation that a library is a part of.
std::optional<std::string> rocm_version_of(const std::string& library);

}  // namespace fabricheck
