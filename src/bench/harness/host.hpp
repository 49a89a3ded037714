// The host, on a simulated node the simulated one: its description in the result document, and
// where its memory is.
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

/// The variables of the allow-list that are set: those that change what the programs measure.
/// Of one that is set twice it is the first, which getenv finds.
nlohmann::json describe_environment();

/// A sentence for each variable of the allow-list that is set twice, to different values.
std::vector<std::string> environment_notes();

/// The scheduler's name of the node that this process runs on; null where it told none. On machines
/// that play several nodes all have one host name.
nlohmann::json scheduler_node();

/// Bytes that can be allocated now without swapping, the control group's limit included.
std::uint64_t host_memory_available();

/// Bytes that control groups leave a process: the least of its own group's limit and of those above
/// it, in version 1 and 2. `groups` is the text of /proc/self/cgroup, `root` where the groups are
/// mounted. Nothing without a limit.
std::optional<std::uint64_t> group_memory_available(const std::string& groups,
                                                    const std::filesystem::path& root);

/// Bytes of memory that each NUMA domain has free, by its meminfo under `nodes`; page cache counts
/// as used. Empty where the system does not say.
std::map<int, std::uint64_t> free_memory_of_domains(
    const std::filesystem::path& nodes = "/sys/devices/system/node");

/// Size of all last-level caches of the host together, in bytes; 0 when unknown.
std::uint64_t host_last_level_cache();

/// Pageable memory of whole pages, in a mapping of its own; null when the system refuses. Its
/// pages exist once they are touched.
void* map_pages(std::size_t bytes);
/// Gives the memory of map_pages back.
void unmap_pages(void* data, std::size_t bytes);

/// Writes one byte to every page, so that each exists where the present binding puts it.
void touch_pages(void* data, std::size_t bytes);

/// Where the system says that the pages of an array are.
struct PagePlaces {
  std::vector<int> domains;  ///< the NUMA domains that hold any of them, in order
  std::size_t on_host = 0;   ///< pages asked for that are in memory of the host
  std::size_t off_host = 0;  ///< pages that are not: on a device, or never touched
  std::size_t unknown = 0;   ///< pages of which the system does not say it
  int error = 0;             ///< why it says nothing at all, as errno has it
};

/// Pages that are asked for of one array, at most.
constexpr std::size_t kPagesAsked = 16384;

/// Asks where the pages of [data, data + bytes) are: all up to kPagesAsked, else that many at even
/// distances, the first and the last among them. All are unknown where asking is forbidden.
PagePlaces page_places(const void* data, std::size_t bytes);

/// Why the system does not say where pages are, as a sentence; empty where it does.
std::string pages_obstacle();

/// The NUMA domain that holds all pages asked for of [data, data + bytes); -1 when there are
/// several or the system does not say. Pages must have been touched.
int numa_domain_of(const void* data, std::size_t bytes);

/// Asks the system to move the pages of [data, data + bytes) to a NUMA domain. Some may stay where
/// they are: ask page_places afterwards.
void move_pages_to(int numa_domain, void* data, std::size_t bytes);

/// Lets pages that are to come to [data, data + bytes), which starts with a page, prefer a NUMA
/// domain, whichever thread they come for.
void prefer_domain(int numa_domain, void* data, std::size_t bytes);

/// How to switch off NUMA balancing, as a sentence; nothing when it is off, or when the system does
/// not say.
std::optional<std::string> numa_balancing_setting(
    const std::string& path = "/proc/sys/kernel/numa_balancing");

/// The version of the GPU's kernel module: what an administrator updates. Neither vendor's runtime
/// tells it by the calls in use.
std::optional<std::string> kernel_module_version();

/// The NUMA domain a PCI device is attached to, by its address; -1 when the system does not say.
int numa_domain_of_pci(const std::string& address);

/// Lets new memory of this thread prefer a NUMA domain for its own life time; negative: no change.
/// The policy is the kernel's MPOL_PREFERRED, which ROCm follows, as it does MPOL_BIND; others,
/// such as the MPOL_PREFERRED_MANY of hwloc, it ignores. Under MPOL_BIND a full domain would have
/// the kernel end processes. What the thread's policy was before is put back.
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
  int former_policy_ = 0;
  std::array<unsigned long, 16> former_domains_{};  // a bit for each domain
};

}  // namespace fabricheck
