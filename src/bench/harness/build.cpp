#include "harness/build.hpp"

namespace fabricheck {

std::string build_version() { return FABRICHECK_VERSION; }
std::string build_commit() { return FABRICHECK_COMMIT; }
std::string build_runtime() { return FABRICHECK_RUNTIME; }
std::string build_compiler() { return FABRICHECK_COMPILER; }
std::string kernels_for() { return FABRICHECK_KERNELS_FOR; }

}  // namespace fabricheck
