// An array that host and device share, and the measurements on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/fault.hpp"
#include "harness/hip.hpp"
#include "harness/host.hpp"
#include "harness/numa.hpp"
#include "harness/sampling.hpp"
#include "harness/series.hpp"
#include "managed/plan.hpp"
#include "stream/kernels.hpp"

namespace fabricheck::managed {

/// The measured values, and what the pages showed.
struct SharedResult {
  std::optional<Series> series;  ///< nothing where it does not count
  std::string remark;            ///< why not, or what a reader should know; empty: nothing
};

/// The shared array of one device, an array of the device alone and one of the host alone.
class SharedArray {
 public:
  struct Options {
    SharedMemory memory = SharedMemory::managed;
    Movement movement = Movement::zero_copy;
    std::uint64_t bytes = 0;
    int domain = -1;  ///< NUMA domain of memory and thread of the host; negative: any
    int block = 256;  ///< threads per block of the kernels
  };

  /// Allocates the three arrays. Throws Failure(unsupported) when memory is missing.
  SharedArray(int device, const Options& options);

  /// Why pages cannot be prefetched, in the runtime's words; empty when they can, or stay.
  [[nodiscard]] const std::optional<std::string>& prefetch_refusal() const { return refusal_; }

  /// Measures one operation on the first `bytes` of the arrays. Before each sample, the pages are
  /// put where the operation requires them, and the destination is poisoned. If pages should move,
  /// their location is checked afterwards.
  SharedResult measure(SharedOperation operation, std::uint64_t bytes, const SamplingRules& rules,
                       double warm_up, const std::vector<Fault>& faults);

 private:
  [[nodiscard]] double* shared() const { return shared_.as<double>(); }
  [[nodiscard]] double* host_only() const { return host_only_.as<double>(); }
  [[nodiscard]] hipError_t prefetch(std::uint64_t bytes, int to) const;
  void pages_to_host(std::uint64_t bytes) const;
  void prepare(SharedOperation operation, std::uint64_t bytes);
  BatchTimes run(SharedOperation operation, std::uint64_t bytes);
  Verification verify(SharedOperation operation, std::uint64_t bytes,
                      const std::vector<Fault>& faults);
  [[nodiscard]] Series describe(SharedOperation operation, std::uint64_t bytes, int domain,
                                Movement movement) const;
  [[nodiscard]] stream::Stores stores_for(std::uint64_t bytes) const;

  Options options_;
  CoreBinding core_binding_;    // the host's part is done near the device
  HostBinding memory_binding_;  // new pages of the host lie there
  TimedStream stream_;
  Buffer device_only_;
  Buffer shared_;
  Buffer host_only_;
  std::optional<std::uint64_t> shared_huge_, host_huge_;
  std::uint64_t cache_bytes_;
  std::optional<std::string> refusal_;
};

}  // namespace fabricheck::managed
