#include <array>
#include <cstdlib>
#include <string>

#include "harness/host.hpp"

extern char** environ;

namespace fabricheck {

using nlohmann::json;

json describe_environment() {
  // Nothing that could hold a secret: prefixes of the runtimes and schedulers only, and of those of
  // this suite not where results are sent, and with what key.
  constexpr std::array<const char*, 16> allowed{
      "HSA_",        "HIP_",         "ROCR_",          "GPU_",     "AMD_",      "CUDA_",
      "NCCL_",       "RCCL_",        "MPICH_",         "UCX_",     "OMPI_MCA_", "OMP_",
      "FABRICHECK_", "SLURM_JOB_ID", "SLURM_CPU_BIND", "SLURM_GPU"};
  constexpr const char* refused = "FABRICHECK_HTTPJSON_";
  json result = json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const auto equals = text.find('=');
    for (const auto* prefix : allowed) {
      if (text.rfind(prefix, 0) == 0 && text.rfind(refused, 0) != 0 &&
          equals != std::string::npos) {
        result[text.substr(0, equals)] = text.substr(equals + 1);
      }
    }
  }
  return result;
}

json scheduler_node() {
  const char* name = std::getenv("SLURMD_NODENAME");
  return name == nullptr || *name == '\0' ? json(nullptr) : json(name);
}

}  // namespace fabricheck
