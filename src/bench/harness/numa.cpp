#include "harness/numa.hpp"

#include <algorithm>
#include <filesystem>

#include "harness/status.hpp"

namespace fabricheck {
namespace {

/// The machine with the objects closed to this process, loaded once.
hwloc_topology_t whole_topology() {
  static const hwloc_topology_t loaded = [] {
    hwloc_topology_t fresh = nullptr;
    if (hwloc_topology_init(&fresh) != 0 ||
        hwloc_topology_set_flags(fresh, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        hwloc_topology_load(fresh) != 0) {
      throw Failure(Status::software, "hwloc cannot read the topology of this host");
    }
    return fresh;
  }();
  return loaded;
}

/// Whether cores belong to the domain itself. For a domain without cores, hwloc returns those of
/// its surroundings, up to the whole machine; but a core belongs to one domain only.
bool has_own_cores(hwloc_topology_t topology, const hwloc_obj* domain) {
  const int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
  for (int i = 0; i < count; ++i) {
    const auto* other =
        hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i));
    const bool within = hwloc_bitmap_iszero(other->cpuset) == 0 &&
                        hwloc_bitmap_isincluded(other->cpuset, domain->cpuset) != 0;
    const bool equal = hwloc_bitmap_isequal(other->cpuset, domain->cpuset) != 0;
    if (within && (!equal || other->os_index < domain->os_index)) {
      return false;
    }
  }
  return hwloc_bitmap_iszero(domain->cpuset) == 0;
}

std::string obstacle_of(hwloc_topology_t topology, const hwloc_obj* domain, HostDomain& known) {
  const auto name = "NUMA domain " + std::to_string(known.index);
  if (known.memory_bytes == 0) {
    return name + " has no memory";
  }
  if (!has_own_cores(topology, domain)) {
    return name + " has no cores";
  }
  if (hwloc_bitmap_isset(hwloc_topology_get_allowed_nodeset(topology), domain->os_index) == 0) {
    known.closed = true;
    return name + " is closed to this process, which may not use its memory";
  }
  if (known.cores.empty()) {
    known.closed = true;
    return name + " is closed to this process, which may use none of its cores";
  }
  return "";
}

}  // namespace

std::vector<HostDomain> domains_of(hwloc_topology_t topology) {
  std::vector<HostDomain> domains;
  const int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
  for (int i = 0; i < count; ++i) {
    const auto* object =
        hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i));
    HostDomain domain;
    domain.index = static_cast<int>(object->os_index);
    domain.memory_bytes = object->attr->numanode.local_memory;
    const auto* allowed = hwloc_topology_get_allowed_cpuset(topology);
    for (int core = hwloc_bitmap_first(object->cpuset); core >= 0;
         core = hwloc_bitmap_next(object->cpuset, core)) {
      if (hwloc_bitmap_isset(allowed, static_cast<unsigned>(core)) != 0) {
        domain.cores.push_back(core);
      }
    }
    domain.obstacle = obstacle_of(topology, object, domain);
    domains.push_back(std::move(domain));
  }
  std::sort(domains.begin(), domains.end(),
            [](const HostDomain& a, const HostDomain& b) { return a.index < b.index; });
  return domains;
}

std::vector<HostDomain> host_domains() {
  auto domains = domains_of(whole_topology());
  for (auto& domain : domains) {
    // hwloc then makes up one that has all cores, and no memory.
    if (domain.memory_bytes == 0 && !std::filesystem::exists("/sys/devices/system/cpu")) {
      domain.closed = true;
      domain.obstacle =
          "/sys is missing, as in some containers: nothing tells the memory of NUMA domain " +
          std::to_string(domain.index);
    }
  }
  return domains;
}

void bind_to_core(int core) {
  auto* wanted = hwloc_bitmap_alloc();
  auto* present = hwloc_bitmap_alloc();
  hwloc_bitmap_only(wanted, static_cast<unsigned>(core));
  (void)hwloc_set_cpubind(whole_topology(), wanted, HWLOC_CPUBIND_PROCESS);
  const bool bound = hwloc_get_cpubind(whole_topology(), present, HWLOC_CPUBIND_PROCESS) == 0 &&
                     hwloc_bitmap_isequal(wanted, present) != 0;
  hwloc_bitmap_free(wanted);
  hwloc_bitmap_free(present);
  if (!bound) {
    throw Failure(Status::setting, "core " + std::to_string(core) + " is not open to this process");
  }
}

CoreBinding::CoreBinding(int numa_domain) {
  if (numa_domain < 0) {
    return;
  }
  auto* cores = hwloc_bitmap_alloc();
  for (const auto& domain : host_domains()) {
    if (domain.index == numa_domain) {
      for (const int core : domain.cores) {
        hwloc_bitmap_set(cores, static_cast<unsigned>(core));
      }
    }
  }
  auto* topology = whole_topology();
  before_ = hwloc_bitmap_alloc();
  auto* present = hwloc_bitmap_alloc();
  // The thread's actual place counts, not the system's answer to the request.
  const bool known = hwloc_get_cpubind(topology, before_, HWLOC_CPUBIND_THREAD) == 0;
  (void)hwloc_set_cpubind(topology, cores, HWLOC_CPUBIND_THREAD);
  const bool bound = hwloc_get_cpubind(topology, present, HWLOC_CPUBIND_THREAD) == 0 &&
                     hwloc_bitmap_iszero(present) == 0 &&
                     hwloc_bitmap_isincluded(present, cores) != 0;
  hwloc_bitmap_free(present);
  hwloc_bitmap_free(cores);
  if (!known || !bound) {
    hwloc_bitmap_free(before_);
    throw Failure(Status::software,
                  "the host's thread cannot be bound to the cores of NUMA "
                  "domain " +
                      std::to_string(numa_domain));
  }
}

CoreBinding::~CoreBinding() {
  if (before_ != nullptr) {
    (void)hwloc_set_cpubind(whole_topology(), before_, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(before_);
  }
}

}  // namespace fabricheck
