#include "machine.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace fabricheck_host {
namespace {

std::vector<int> cores_of(hwloc_const_bitmap_t set, const std::vector<int>& allowed) {
  std::vector<int> cores;
  for (const int core : allowed) {
    if (hwloc_bitmap_isset(set, static_cast<unsigned>(core)) != 0) {
      cores.push_back(core);
    }
  }
  return cores;
}

/// Item `part` of `cores` cut into `parts` runs; parts beyond the cores share them in turn.
std::vector<int> share(const std::vector<int>& cores, std::size_t part, std::size_t parts) {
  if (parts >= cores.size()) {
    return {cores[part % cores.size()]};
  }
  const auto first = cores.begin() + static_cast<long>(part * cores.size() / parts);
  const auto last = cores.begin() + static_cast<long>((part + 1) * cores.size() / parts);
  return {first, last};
}

constexpr std::size_t kMostDevices = 1024;

/// A whole number of 1 to `most` in a variable, or the standard where it is not set. Throws
/// std::invalid_argument naming the variable.
std::size_t number(const char* name, std::size_t standard, std::size_t most) {
  const char* wanted = std::getenv(name);
  if (wanted == nullptr) {
    return standard;
  }
  const std::string text(wanted);
  std::size_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || rest != text.data() + text.size() || value < 1 || value > most) {
    throw std::invalid_argument(std::string(name) + "=" + text + " is not a whole number of 1 to " +
                                std::to_string(most));
  }
  return value;
}

Machine* make_machine() {
  // Never destroyed: stream threads may outlive main().
  auto* machine = new Machine;
  (void)hwloc_topology_init(&machine->topology);
  (void)hwloc_topology_load(machine->topology);

  auto* mask = hwloc_bitmap_alloc();
  if (hwloc_get_cpubind(machine->topology, mask, HWLOC_CPUBIND_PROCESS) != 0) {
    hwloc_bitmap_copy(mask, hwloc_topology_get_allowed_cpuset(machine->topology));
  }
  std::vector<int> allowed;
  for (int core = hwloc_bitmap_first(mask); core >= 0; core = hwloc_bitmap_next(mask, core)) {
    allowed.push_back(core);
  }
  hwloc_bitmap_free(mask);

  struct Domain {
    int index;
    std::vector<int> cores;
  };
  std::vector<Domain> domains;
  const int nodes = hwloc_get_nbobjs_by_type(machine->topology, HWLOC_OBJ_NUMANODE);
  for (int i = 0; i < nodes; ++i) {
    const auto* node =
        hwloc_get_obj_by_type(machine->topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i));
    auto cores = cores_of(node->cpuset, allowed);
    if (!cores.empty()) {  // a domain without cores of ours has no virtual device
      domains.push_back({static_cast<int>(node->os_index), std::move(cores)});
    }
  }
  if (domains.empty()) {
    domains.push_back({0, allowed});
  }

  const auto count =
      number("FABRICHECK_HOST_DEVICES", std::max<std::size_t>(2, domains.size()), kMostDevices);
  machine->queue_length = number("FABRICHECK_HOST_QUEUE", machine->queue_length, 1 << 20);
  const char* blocking = std::getenv("HIP_LAUNCH_BLOCKING");
  machine->launches_block = blocking != nullptr && std::string(blocking) != "0";
  for (std::size_t i = 0; i < count; ++i) {
    // Devices go to the domains in blocks, as GPUs do: 0 and 1 on the first of two, 2 and 3 next.
    const auto domain = i * domains.size() / count;
    const auto first = (domain * count + domains.size() - 1) / domains.size();
    const auto next = ((domain + 1) * count + domains.size() - 1) / domains.size();
    machine->devices.push_back(
        {domains[domain].index, share(domains[domain].cores, i - first, next - first)});
  }
  // All caches of the last level together: arrays of any device may lie in any of them.
  for (const auto type : {HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L1CACHE}) {
    for (const hwloc_obj* cache = hwloc_get_obj_by_type(machine->topology, type, 0);
         cache != nullptr; cache = cache->next_cousin) {
      machine->cache_bytes += cache->attr->cache.size;
    }
    if (machine->cache_bytes > 0) {
      break;
    }
  }
  return machine;
}

}  // namespace

Machine& machine() {
  static Machine* made = make_machine();
  return *made;
}

bool exists(int device) {
  return device >= 0 && static_cast<std::size_t>(device) < machine().devices.size();
}

const Device& device_at(int device) { return machine().devices[static_cast<std::size_t>(device)]; }

}  // namespace fabricheck_host
