#include "harness/host.hpp"

#include <hwloc.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

#include "harness/status.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

/// The machine as this process may use it, loaded once.
hwloc_topology_t topology() {
  static const hwloc_topology_t loaded = [] {
    hwloc_topology_t fresh = nullptr;
    if (hwloc_topology_init(&fresh) != 0 || hwloc_topology_load(fresh) != 0) {
      throw Failure(Status::runtime_error, "hwloc cannot read the topology of this host");
    }
    return fresh;
  }();
  return loaded;
}

std::vector<int> indices(hwloc_const_bitmap_t set) {
  std::vector<int> result;
  for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) {
    result.push_back(i);
  }
  return result;
}

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) {
    return std::nullopt;
  }
  return line;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

json numa_balancing() {
  const auto line = first_line("/proc/sys/kernel/numa_balancing");
  return line ? json(std::atoi(line->c_str())) : json(nullptr);
}

json transparent_hugepage() {
  const auto line = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  if (line) {
    const auto open = line->find('[');
    const auto close = line->find(']');
    if (open != std::string::npos && close != std::string::npos) {
      return line->substr(open + 1, close - open - 1);
    }
  }
  return nullptr;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  const auto line = first_line(path);
  if (!line || line->empty() || std::isdigit(static_cast<unsigned char>(line->front())) == 0) {
    return std::nullopt;  // cgroup v2 writes "max" for no limit
  }
  return std::strtoull(line->c_str(), nullptr, 10);
}

/// The path of this process's control group (version 2), "/" when there is none.
std::string control_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::/", 0) == 0) {
      return line.substr(3);
    }
  }
  return "/";
}

}  // namespace

std::uint64_t host_memory_available() {
  auto available = std::numeric_limits<std::uint64_t>::max();
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("MemAvailable:", 0) == 0) {
      available = 1024 * std::strtoull(line.c_str() + 13, nullptr, 10);
    }
  }
  // A job may be limited by its own control group or by any above it.
  for (std::filesystem::path group = control_group();; group = group.parent_path()) {
    const auto folder = "/sys/fs/cgroup" / group.relative_path();
    const auto limit = number_in(folder / "memory.max");
    const auto used = number_in(folder / "memory.current");
    if (limit && used) {
      available = std::min(available, *limit - std::min(*limit, *used));
    }
    if (!group.has_relative_path()) {
      return available;
    }
  }
}

std::uint64_t host_last_level_cache() {
  for (const auto type :
       {HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L1CACHE}) {
    std::uint64_t bytes = 0;
    for (const hwloc_obj* cache = hwloc_get_obj_by_type(topology(), type, 0); cache != nullptr;
         cache = cache->next_cousin) {
      bytes += cache->attr->cache.size;
    }
    if (bytes > 0) {
      return bytes;
    }
  }
  return 0;
}

json describe_host() {
  utsname system{};
  (void)uname(&system);
  json domains = json::array();
  const int count = hwloc_get_nbobjs_by_type(topology(), HWLOC_OBJ_NUMANODE);
  for (int i = 0; i < count; ++i) {
    const auto* domain =
        hwloc_get_obj_by_type(topology(), HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i));
    domains.push_back({{"index", domain->os_index},
                       {"cores", indices(domain->cpuset)},
                       {"memory_bytes", domain->attr->numanode.local_memory}});
  }
  auto* cores = hwloc_bitmap_alloc();
  if (hwloc_get_cpubind(topology(), cores, HWLOC_CPUBIND_PROCESS) != 0) {
    hwloc_bitmap_copy(cores, hwloc_topology_get_allowed_cpuset(topology()));
  }
  const auto allowed = indices(cores);
  hwloc_bitmap_free(cores);
  return {{"hostname", system.nodename},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"cpu_model", cpu_model()},
          {"cores_allowed", allowed},
          {"numa_domains", domains},
          {"last_level_cache_bytes", host_last_level_cache()},
          {"page_size_bytes", sysconf(_SC_PAGESIZE)},
          {"numa_balancing", numa_balancing()},
          {"transparent_hugepage", transparent_hugepage()}};
}

void* map_pages(std::size_t bytes) {
  // A page without access at each end keeps the system from merging the mapping with others, whose
  // pages would then be counted with these (huge_pages.hpp).
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto whole = (bytes + page - 1) / page * page;
  void* outer = mmap(nullptr, whole + 2 * page, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (outer == MAP_FAILED) {
    return nullptr;
  }
  void* data = static_cast<char*>(outer) + page;
  if (mprotect(data, whole, PROT_READ | PROT_WRITE) != 0) {
    (void)munmap(outer, whole + 2 * page);
    return nullptr;
  }
  return data;
}

void unmap_pages(void* data, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto whole = (bytes + page - 1) / page * page;
  (void)munmap(static_cast<char*>(data) - page, whole + 2 * page);
}

void touch_pages(void* data, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* first = static_cast<volatile char*>(data);
  for (std::size_t offset = 0; offset < bytes; offset += page) {
    first[offset] = 0;
  }
}

std::vector<int> numa_domains_of(const void* data, std::size_t bytes) {
  auto* nodes = hwloc_bitmap_alloc();
  std::vector<int> domains;
  // An infinite set is that of a topology which is not this machine's.
  if (hwloc_get_area_memlocation(topology(), data, bytes, nodes, HWLOC_MEMBIND_BYNODESET) == 0 &&
      hwloc_bitmap_weight(nodes) > 0) {
    domains = indices(nodes);
  }
  hwloc_bitmap_free(nodes);
  return domains;
}

int numa_domain_of(const void* data, std::size_t bytes) {
  const auto domains = numa_domains_of(data, bytes);
  return domains.size() == 1 ? domains.front() : -1;
}

int numa_domain_of_pci(const std::string& address) {
  auto path = address;
  std::transform(path.begin(), path.end(), path.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  const auto line = first_line("/sys/bus/pci/devices/" + path + "/numa_node");
  return line ? std::atoi(line->c_str()) : -1;
}

HostBinding::HostBinding(int numa_domain) {
  if (numa_domain < 0) {
    return;
  }
  // What numactl or a launcher has set is put back afterwards.
  before_ = hwloc_bitmap_alloc();
  if (hwloc_get_membind(topology(), before_, &before_policy_,
                        HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_THREAD) != 0) {
    hwloc_bitmap_copy(before_, hwloc_topology_get_topology_nodeset(topology()));
    before_policy_ = HWLOC_MEMBIND_DEFAULT;
  }
  auto* nodes = hwloc_bitmap_alloc();
  hwloc_bitmap_only(nodes, static_cast<unsigned>(numa_domain));
  const bool exists =
      hwloc_bitmap_isincluded(nodes, hwloc_topology_get_allowed_nodeset(topology())) != 0;
  const int bound = exists ? hwloc_set_membind(topology(), nodes, HWLOC_MEMBIND_BIND,
                                               HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_THREAD)
                           : 0;
  hwloc_bitmap_free(nodes);
  if (!exists) {
    hwloc_bitmap_free(before_);
    throw Failure(Status::unsupported,
                  "NUMA domain " + std::to_string(numa_domain) + " is not open to this process");
  }
  // Where the system forbids binding, the pages still tell where they are.
  bound_ = bound == 0;
}

HostBinding::~HostBinding() {
  if (bound_) {
    (void)hwloc_set_membind(topology(), before_, before_policy_,
                            HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_THREAD);
  }
  hwloc_bitmap_free(before_);
}

}  // namespace fabricheck
