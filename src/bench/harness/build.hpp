// What this build is: that its programs state in their documents.
#pragma once

#include <string>

namespace fabricheck {

/// fabricheck's version, and the commit that it was built from.
std::string build_version();
std::string build_commit();
/// Who answers the HIP calls: rocm, cuda, host or sim.
std::string build_runtime();
std::string build_compiler();
/// The architectures that its kernels are compiled for, as "gfx90a, gfx942"; empty on CPUs.
std::string kernels_for();

}  // namespace fabricheck
