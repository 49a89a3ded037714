#include "harness/host.hpp"

#include <hwloc.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "harness/container.hpp"
#include "harness/sampling.hpp"
#include "harness/status.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

/// The machine as this process may use it, loaded once.
hwloc_topology_t topology() {
  static const hwloc_topology_t loaded = [] {
    hwloc_topology_t fresh = nullptr;
    if (hwloc_topology_init(&fresh) != 0 || hwloc_topology_load(fresh) != 0) {
      throw Failure(Status::software, "hwloc cannot read the topology of this host");
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

/// The folders of `group` under `mount`, and of the groups above it.
std::vector<std::filesystem::path> group_folders(const std::filesystem::path& mount,
                                                 std::filesystem::path group) {
  std::vector<std::filesystem::path> folders;
  for (;; group = group.parent_path()) {
    folders.push_back(mount / group.relative_path());
    if (!group.has_relative_path()) {
      return folders;
    }
  }
}

/// The smallest remainder of a memory limit in `group` under `mount` and in the groups above it.
std::uint64_t left_in(const std::filesystem::path& mount, const std::filesystem::path& group,
                      const char* limit_file, const char* used_file) {
  auto left = std::numeric_limits<std::uint64_t>::max();
  for (const auto& folder : group_folders(mount, group)) {
    const auto limit = number_in(folder / limit_file);
    const auto used = number_in(folder / used_file);
    if (limit && used) {
      left = std::min(left, *limit - std::min(*limit, *used));
    }
  }
  return left;
}

/// The smallest quota of time in `group` under `mount` and in the groups above it, in cores.
/// Version 2 has quota and period in one file, version 1 in two; without a quota it is "max" or -1.
double quota_in(const std::filesystem::path& mount, const std::filesystem::path& group) {
  auto cores = std::numeric_limits<double>::infinity();
  for (const auto& folder : group_folders(mount, group)) {
    const auto text = first_line(folder / "cpu.max")
                          .value_or(first_line(folder / "cpu.cfs_quota_us").value_or("") + " " +
                                    first_line(folder / "cpu.cfs_period_us").value_or(""));
    double quota = 0;
    double period = 0;
    if (std::sscanf(text.c_str(), "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0) {
      cores = std::min(cores, quota / period);
    }
  }
  return cores;
}

/// A line of /proc/self/cgroup, as 0::/job or 4:cpu,cpuacct:/job: the controllers between commas,
/// none for version 2, and the group.
struct Group {
  std::string controllers;
  std::filesystem::path path;

  [[nodiscard]] bool has(const char* controller) const {
    return controllers.find("," + std::string(controller) + ",") != std::string::npos;
  }
  [[nodiscard]] bool unified() const { return controllers == ",,"; }
};

std::vector<Group> groups_in(const std::string& groups) {
  std::vector<Group> listed;
  std::istringstream text(groups);
  for (std::string line; std::getline(text, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second != std::string::npos) {
      listed.push_back(
          {"," + line.substr(first + 1, second - first - 1) + ",", line.substr(second + 1)});
    }
  }
  return listed;
}

std::string own_groups() {
  std::ifstream file("/proc/self/cgroup");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

constexpr const char* kGroups = "/sys/fs/cgroup";

using DomainMask = std::array<unsigned long, 16>;
constexpr std::size_t kBitsOfWord = 8 * sizeof(unsigned long);
constexpr unsigned long kMaskBits = kBitsOfWord * std::tuple_size<DomainMask>() + 1;

DomainMask mask_of(int numa_domain) {
  DomainMask mask{};
  const auto bit = static_cast<std::size_t>(numa_domain);
  mask.at(bit / kBitsOfWord) = 1UL << (bit % kBitsOfWord);
  return mask;
}

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

std::optional<std::uint64_t> group_memory_available(const std::string& groups,
                                                    const std::filesystem::path& root) {
  constexpr auto unlimited = std::numeric_limits<std::uint64_t>::max();
  auto left = left_in(root, "/", "memory.max", "memory.current");
  for (const auto& group : groups_in(groups)) {
    if (group.unified()) {
      left = std::min(left, left_in(root, group.path, "memory.max", "memory.current"));
    } else if (group.has("memory")) {
      left = std::min(left, left_in(root / "memory", group.path, "memory.limit_in_bytes",
                                    "memory.usage_in_bytes"));
    }
  }
  return left == unlimited ? std::nullopt : std::optional(left);
}

std::optional<double> group_cpu_quota(const std::string& groups,
                                      const std::filesystem::path& root) {
  auto cores = quota_in(root, "/");
  for (const auto& group : groups_in(groups)) {
    if (group.unified()) {
      cores = std::min(cores, quota_in(root, group.path));
    } else if (group.has("cpu")) {
      cores = std::min(cores, quota_in(root / "cpu", group.path));
    }
  }
  return std::isinf(cores) ? std::nullopt : std::optional(cores);
}

std::uint64_t host_memory_available() {
  auto available = std::numeric_limits<std::uint64_t>::max();
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("MemAvailable:", 0) == 0) {
      available = 1024 * std::strtoull(line.c_str() + 13, nullptr, 10);
    }
  }
  const auto left = group_memory_available(own_groups(), kGroups);
  return left ? std::min(available, *left) : available;
}

std::map<int, std::uint64_t> free_memory_of_domains(const std::filesystem::path& nodes) {
  std::map<int, std::uint64_t> sizes;
  std::error_code none;
  for (const auto& folder : std::filesystem::directory_iterator(nodes, none)) {
    std::ifstream file(folder.path() / "meminfo");
    for (std::string line; std::getline(file, line);) {
      int domain = 0;
      unsigned long long kib = 0;
      if (std::sscanf(line.c_str(), "Node %d MemFree: %llu kB", &domain, &kib) == 2) {
        sizes[domain] = 1024 * kib;
      }
    }
  }
  return sizes;
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
  const auto quota = group_cpu_quota(own_groups(), kGroups);
  const auto container = container_around(own_groups());
  const auto own_name = has_own_name();
  return {{"hostname", system.nodename},
          {"container", container ? json(*container) : json(nullptr)},
          {"own_name", own_name ? json(*own_name) : json(nullptr)},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"cpu_model", cpu_model()},
          {"cores_allowed", allowed},
          {"cpu_quota", quota ? json(*quota) : json(nullptr)},
          {"numa_domains", domains},
          {"last_level_cache_bytes", host_last_level_cache()},
          {"page_size_bytes", sysconf(_SC_PAGESIZE)},
          {"numa_balancing", numa_balancing()},
          {"transparent_hugepage", transparent_hugepage()}};
}

double host_seconds() { return wall_seconds(); }

void* map_pages(std::size_t bytes) {
  // A page without access at each end keeps the system from merging the mapping with others, whose
  // pages would then be counted with it (huge_pages.hpp).
  const auto page = page_size();
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
  const auto page = page_size();
  const auto whole = (bytes + page - 1) / page * page;
  (void)munmap(static_cast<char*>(data) - page, whole + 2 * page);
}

void touch_pages(void* data, std::size_t bytes) {
  const auto page = page_size();
  auto* first = static_cast<volatile char*>(data);
  for (std::size_t offset = 0; offset < bytes; offset += page) {
    first[offset] = 0;
  }
}

PagePlaces page_places(const void* data, std::size_t bytes) {
  const auto page = page_size();
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const auto first = address / page * page;
  const auto count = bytes == 0 ? 0 : (address + bytes - first + page - 1) / page;
  const auto asked = std::min(count, kPagesAsked);
  std::vector<void*> pages(asked);
  for (std::size_t i = 0; i < asked; ++i) {
    // Index times distance stays below 2^64 for any array.
    const auto index = asked > 1 ? i * (count - 1) / (asked - 1) : 0;
    pages[i] = reinterpret_cast<void*>(first + index * page);
  }
  std::vector<int> status(asked, -EAGAIN);
  PagePlaces places;
  if (syscall(SYS_move_pages, 0, asked, pages.data(), nullptr, status.data(), 0) != 0) {
    places.unknown = asked;
    places.error = errno;
    return places;
  }
  std::set<int> domains;
  for (const int domain : status) {
    if (domain >= 0) {
      domains.insert(domain);
      ++places.on_host;
    } else {
      ++(domain == -ENOENT ? places.off_host : places.unknown);
    }
  }
  places.domains.assign(domains.begin(), domains.end());
  return places;
}

std::string pages_obstacle() {
  const int touched = 0;
  const auto places = page_places(&touched, sizeof touched);
  if (places.on_host > 0) {
    return "";
  }
  return "the system does not say where pages are (move_pages: " +
         std::string(std::strerror(places.error)) +
         "): the NUMA domains of host memory are asked for, and not proved; a container needs a "
         "profile that allows move_pages, get_mempolicy and set_mempolicy";
}

int numa_domain_of(const void* data, std::size_t bytes) {
  const auto places = page_places(data, bytes);
  return places.domains.size() == 1 ? places.domains.front() : -1;
}

void move_pages_to(int numa_domain, void* data, std::size_t bytes) {
  const auto page = page_size();
  std::vector<void*> pages;
  for (std::size_t offset = 0; offset < bytes; offset += page) {
    pages.push_back(static_cast<char*>(data) + offset);
    if (pages.size() == kPagesAsked || offset + page >= bytes) {
      const std::vector<int> targets(pages.size(), numa_domain);
      std::vector<int> status(pages.size());
      (void)syscall(SYS_move_pages, 0, pages.size(), pages.data(), targets.data(), status.data(),
                    MPOL_MF_MOVE);
      pages.clear();
    }
  }
}

void prefer_domain(int numa_domain, void* data, std::size_t bytes) {
  const auto mask = mask_of(numa_domain);
  (void)syscall(SYS_mbind, data, bytes, MPOL_PREFERRED, mask.data(), kMaskBits, 0);
}

std::optional<std::string> numa_balancing_setting(const std::string& path) {
  std::ifstream file(path);
  int value = 0;
  if (!(file >> value) || value == 0) {
    return std::nullopt;
  }
  return "NUMA balancing is on (" + path + " is " + std::to_string(value) +
         ") and moves pages while they are used: switch it off (sysctl kernel.numa_balancing=0)";
}

std::optional<std::string> kernel_module_version() {
  for (const auto* path : {"/sys/module/nvidia/version", "/sys/module/amdgpu/version"}) {
    std::ifstream file(path);
    std::string version;
    if (file >> version) {
      return version;
    }
  }
  return std::nullopt;
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
  auto* nodes = hwloc_bitmap_alloc();
  hwloc_bitmap_only(nodes, static_cast<unsigned>(numa_domain));
  const bool open =
      hwloc_bitmap_isincluded(nodes, hwloc_topology_get_allowed_nodeset(topology())) != 0;
  hwloc_bitmap_free(nodes);
  if (!open) {
    throw Failure(Status::setting,
                  "NUMA domain " + std::to_string(numa_domain) + " is not open to this process");
  }
  // Not by hwloc: what numactl or a launcher has set comes back from it as another policy.
  const auto mask = mask_of(numa_domain);
  // Where the system forbids this, the pages still tell where they are.
  bound_ = syscall(SYS_get_mempolicy, &former_policy_, former_domains_.data(), kMaskBits, nullptr,
                   0) == 0 &&
           syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask.data(), kMaskBits) == 0;
}

HostBinding::~HostBinding() {
  if (bound_) {
    // The policies of no domain want none to be named.
    const bool any = std::any_of(former_domains_.begin(), former_domains_.end(),
                                 [](unsigned long word) { return word != 0; });
    (void)syscall(SYS_set_mempolicy, former_policy_, any ? former_domains_.data() : nullptr,
                  any ? kMaskBits : 0UL);
  }
}

}  // namespace fabricheck
