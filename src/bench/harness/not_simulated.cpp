// What is measured is this machine: simulation.hpp without a simulated node.
#include <nlohmann/json.hpp>

#include "harness/simulation.hpp"

namespace fabricheck {

const bool kSimulated = false;

void declare_traffic(hipStream_t, std::initializer_list<Traffic>) {}
void declare_loads(hipStream_t, const void*, std::uint64_t) {}
void declare_host_access(const void*, std::uint64_t) {}
std::uint64_t moved_bytes(std::uint64_t bytes) { return bytes; }

void run_simulated(const std::function<void()>& body) { body(); }
void require_node() {}
SamplingRules simulated_rules(SamplingRules rules) { return rules; }
nlohmann::json describe_node() { return nullptr; }
SimulatedPlace simulated_place() { return {}; }
std::string simulated_node() { return {}; }
std::vector<SimulatedNic> simulated_nics() { return {}; }
std::string simulated_provider() { return {}; }
nlohmann::json simulated_state() { return nullptr; }
std::vector<SimulatedFlip> simulated_flips() { return {}; }
std::function<void()> on_simulated_halt(const std::function<void()>&) {
  return [] {};
}

}  // namespace fabricheck
