#include <unistd.h>  // environ

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "harness/host.hpp"
#include "harness/simulation.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck {

using nlohmann::json;

namespace {

// Nothing that could hold a secret: only prefixes of the runtimes, the schedulers and this suite.
constexpr std::array<const char*, 24> kAllowed{
    "HSA_",        "HIP_",         "ROCR_",          "ROC_",      "GPU_",       "AMD_",
    "DEBUG_CLR_",  "DEBUG_HIP_",   "PAL_",           "CUDA_",     "NCCL_",      "RCCL_",
    "MPICH_",      "FI_",          "UCX_",           "OMPI_MCA_", "MPIR_CVAR_", "OMP_",
    "FABRICHECK_", "SLURM_JOB_ID", "SLURM_CPU_BIND", "SLURM_GPU", "FLUX_URI",   "PBS_JOBID"};

// Open MPI's key of a job, by which its processes recognize each other.
constexpr const char* kSecret = "OMPI_MCA_orte_precondition_transports";

/// The entries of the allow-list, in order; a name may occur twice.
std::vector<std::pair<std::string, std::string>> allowed_entries() {
  std::vector<std::pair<std::string, std::string>> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const auto equals = text.find('=');
    const bool allowed = std::any_of(kAllowed.begin(), kAllowed.end(), [&text](const char* prefix) {
      return text.rfind(prefix, 0) == 0;
    });
    if (allowed && equals != std::string::npos && text.substr(0, equals) != kSecret) {
      entries.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return entries;
}

}  // namespace

json describe_environment() {
  json result = json::object();
  for (const auto& [name, value] : allowed_entries()) {
    if (!result.contains(name)) {
      result[name] = value;
    }
  }
  return result;
}

std::vector<std::string> environment_notes() {
  const auto in_effect = describe_environment();
  std::vector<std::string> notes;
  for (const auto& [name, value] : allowed_entries()) {
    const auto first = in_effect[name].get<std::string>();
    if (value != first) {
      notes.push_back(name + " is set twice, to '" + first + "' and to '" + value +
                      "': the first is in effect");
    }
  }
  return notes;
}

json scheduler_node() {
  if (const auto node = simulated_node(); !node.empty()) {
    return node;
  }
  for (const char* variable : {env::node_name, "SLURMD_NODENAME"}) {
    const char* name = std::getenv(variable);
    if (name != nullptr && *name != '\0') {
      return name;
    }
  }
  return nullptr;
}

}  // namespace fabricheck
