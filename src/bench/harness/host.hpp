// The host, on a simulated node the simulated one: its description in the result document, and
// where its memory is.
#pragma once

#include <hwloc.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
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

/// Size of all last-level caches of the host together, in bytes; 0 when unknown.
std::uint64_t host_last_level_cache();

/// Pageable memory of whole pages, in a mapping of its own; null when the system refuses. Its
/// pages exist once they are touched.
void* map_pages(std::size_t bytes);
/// Gives the memory of map_pages back.
void unmap_pages(void* data, std::size_t bytes);

/// Writes one byte to every page, so that each exists where the present binding puts it.
void touch_pages(void* data, std::size_t bytes);

/// The NUMA domains that hold pages of [data, data + bytes), in order; none when the system does
/// not say. Pages must have been touched.
std::vector<int> numa_domains_of(const void* data, std::size_t bytes);

/// The NUMA domain that holds all pages of [data, data + bytes); -1 when there are several or the
/// system does not say. Pages must have been touched.
int numa_domain_of(const void* data, std::size_t bytes);

/// The NUMA domain a PCI device is attached to, by its address; -1 when the system does not say.
int numa_domain_of_pci(const std::string& address);

/// Binds new memory of this thread to a NUMA domain for its own life time; negative: no binding.
class HostBinding {
 public:
  /// Throws Failure(unsupported) naming the domain when this process may not use it.
  explicit HostBinding(int numa_domain);
  HostBinding(const HostBinding&) = delete;
  HostBinding& operator=(const HostBinding&) = delete;
  ~HostBinding();

 private:
  bool bound_ = false;
  hwloc_bitmap_t before_ = nullptr;
  hwloc_membind_policy_t before_policy_ = HWLOC_MEMBIND_DEFAULT;
};

}  // namespace fabricheck
