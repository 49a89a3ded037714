// The NUMA domains of the host, or on a simulated node those of its model: the domains that this
// process may use, and the binding of a thread to one.
#pragma once

#include <hwloc.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fabricheck {

struct HostDomain {
  int index = 0;           ///< as the operating system numbers it
  std::vector<int> cores;  ///< those that this process may use
  std::uint64_t memory_bytes = 0;
  std::string obstacle;  ///< why it cannot be measured, as a sentence; empty: it can
  bool closed = false;   ///< the obstacle is of this process or its container, not of the machine
};

/// All domains of the host, by index, including those without memory, without cores, or closed to
/// this process.
std::vector<HostDomain> host_domains();

/// The same for any topology, which must have been loaded with disallowed objects.
std::vector<HostDomain> domains_of(hwloc_topology_t topology);

/// Binds this process to one core for the rest of its life. Throws Failure(unsupported) naming the
/// core when the system does not permit it.
void bind_to_core(int core);

/// Binds the calling thread, and threads that it creates, to the cores of a NUMA domain during the
/// lifetime of this object; negative: no binding.
class CoreBinding {
 public:
  /// Throws Failure(software) naming the domain when the thread cannot be bound.
  explicit CoreBinding(int numa_domain);
  CoreBinding(const CoreBinding&) = delete;
  CoreBinding& operator=(const CoreBinding&) = delete;
  ~CoreBinding();

 private:
  [[maybe_unused]] hwloc_bitmap_t before_ = nullptr;
};

}  // namespace fabricheck
