// The host, or on a simulated node the simulated host: its description in the result document, and
// the location of its memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fabricheck {

/// The member `host` of the result document.
nlohmann::json describe_host();

/// The variables of the allow-list that are set: those that change measured values. For a variable
/// that is set twice, the first value, which getenv finds.
nlohmann::json describe_environment();

/// A sentence for each variable of the allow-list that is set twice, to different values.
std::vector<std::string> environment_notes();

/// The scheduler's name of the node that this process runs on; null without one. Machines that
/// simulate several nodes have one host name for all.
nlohmann::json scheduler_node();

/// Bytes that can be allocated now without swapping, within the control group's limit.
std::uint64_t host_memory_available();

/// Bytes that control groups leave a process: the smallest limit of its own group and of those
/// above it, in version 1 and 2. `groups` is the text of /proc/self/cgroup, `root` the mount point
/// of the groups. Empty without a limit.
std::optional<std::uint64_t> group_memory_available(const std::string& groups,
                                                    const std::filesystem::path& root);

/// The cores whose time control groups grant a process, by their quotas (as of a container with
/// --cpus, or of Kubernetes' limits); arguments as above. Empty without a quota.
std::optional<double> group_cpu_quota(const std::string& groups, const std::filesystem::path& root);

/// Bytes of free memory of each NUMA domain, by its meminfo under `nodes`; page cache counts as
/// used. Empty if the system does not report it.
std::map<int, std::uint64_t> free_memory_of_domains(
    const std::filesystem::path& nodes = "/sys/devices/system/node");

/// Size of all last-level caches of the host together, in bytes; 0 when unknown.
std::uint64_t host_last_level_cache();

/// Pageable memory of whole pages, in a mapping of its own; null when the system refuses. Its
/// pages exist once they are touched.
void* map_pages(std::size_t bytes);
/// Unmaps the memory of map_pages.
void unmap_pages(void* data, std::size_t bytes);

/// Writes one byte to every page, so that each exists where the present binding places it.
void touch_pages(void* data, std::size_t bytes);

/// The location of the pages of an array, as the system reports it.
struct PagePlaces {
  std::vector<int> domains;  ///< the NUMA domains that hold any of them, in order
  std::size_t on_host = 0;   ///< pages asked for that are in memory of the host
  std::size_t off_host = 0;  ///< pages that are not: on a device, or never touched
  std::size_t unknown = 0;   ///< pages of which the system does not say it
  int error = 0;             ///< why it says nothing at all, as errno has it
};

/// The most pages of one array that are located.
constexpr std::size_t kPagesAsked = 16384;

/// Locates the pages of [data, data + bytes): all up to kPagesAsked, else that many at equal
/// distances, including the first and the last. All are unknown if the system forbids the query.
PagePlaces page_places(const void* data, std::size_t bytes);

/// Why the system does not report the location of pages, as a sentence; empty if it does.
std::string pages_obstacle();

/// The NUMA domain of all located pages of [data, data + bytes); -1 for several domains or an
/// unknown one. Pages must have been touched.
int numa_domain_of(const void* data, std::size_t bytes);

/// Requests the system to move the pages of [data, data + bytes) to a NUMA domain. Some may stay:
/// check page_places afterwards.
void move_pages_to(int numa_domain, void* data, std::size_t bytes);

/// Makes future pages of [data, data + bytes), which starts with a page, prefer a NUMA domain,
/// whichever thread touches them.
void prefer_domain(int numa_domain, void* data, std::size_t bytes);

/// How to switch off NUMA balancing, as a sentence; empty when it is off, or when the system does
/// not report it.
std::optional<std::string> numa_balancing_setting(
    const std::string& path = "/proc/sys/kernel/numa_balancing");

/// The version of the GPU's kernel module, which an administrator updates. The calls in use of both
/// vendors' runtimes do not report it.
std::optional<std::string> kernel_module_version();

/// The NUMA domain of a PCI device, by its address; -1 when the system does not report it.
int numa_domain_of_pci(const std::string& address);

/// Makes new memory of this thread prefer a NUMA domain during the lifetime of this object;
/// negative: no change. The policy is the kernel's MPOL_PREFERRED, which ROCm follows, as it does
/// MPOL_BIND; others, such as the MPOL_PREFERRED_MANY of hwloc, it ignores. Under MPOL_BIND a full
/// domain would make the kernel end processes. The thread's previous policy is restored.
class HostBinding {
 public:
  /// Throws Failure(unsupported) naming the domain when this process may not use it.
  explicit HostBinding(int numa_domain);
  HostBinding(const HostBinding&) = delete;
  HostBinding& operator=(const HostBinding&) = delete;
  ~HostBinding();

  /// Whether the policy is in effect: a system may forbid it.
  [[nodiscard]] bool holds() const { return bound_; }

 private:
  bool bound_ = false;
  // Unused on a simulated node, which sets no policy.
  [[maybe_unused]] int former_policy_ = 0;
  [[maybe_unused]] std::array<unsigned long, 16> former_domains_{};  // a bit for each domain
};

}  // namespace fabricheck
