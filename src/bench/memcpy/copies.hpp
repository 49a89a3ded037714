// Arrays of host memory and of a device, and the copies between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/fault.hpp"
#include "harness/gate.hpp"
#include "harness/hip.hpp"
#include "harness/movers.hpp"
#include "harness/numa.hpp"
#include "harness/sampling.hpp"
#include "harness/series.hpp"
#include "memcpy/plan.hpp"

namespace fabricheck::copies {

/// The arrays that the operations need, and their size.
struct CopyArrays {
  std::uint64_t bytes = 0;
  bool to_device = false;
  bool to_host = false;
};

/// Host memory of one kind on one NUMA domain: the source of copies to devices, and the destination
/// of copies back. During its lifetime, the calling thread is bound to the domain, because it
/// copies or pins pageable memory.
class HostSide {
 public:
  /// Throws as Buffer::on_host does.
  HostSide(int domain, HostMemory memory, const CopyArrays& arrays, std::optional<int> pages_on);

  [[nodiscard]] HostMemory memory() const { return memory_; }
  [[nodiscard]] const Buffer& source() const { return source_; }
  [[nodiscard]] const Buffer& destination() const { return destination_; }
  [[nodiscard]] Place source_place() const { return place_of(source_, source_huge_); }
  [[nodiscard]] Place destination_place() const {
    return place_of(destination_, destination_huge_);
  }
  /// Locates the pages again. Throws Failure(software) when they have moved.
  void prove_pages();

 private:
  [[nodiscard]] Place place_of(const Buffer& buffer, std::optional<std::uint64_t> huge) const;

  CoreBinding binding_;
  HostMemory memory_;
  Buffer source_, destination_;
  std::optional<std::uint64_t> source_huge_, destination_huge_;
};

/// A device with its arrays and one stream for each direction. The host side must live as long.
class Copies {
 public:
  /// Allocates and fills. Throws Failure(unsupported) when memory is missing.
  Copies(int device, const HostSide& host, const CopyArrays& arrays);

  /// Measures one job of this device and host memory: a single, or two shares and their sum.
  /// `warm_up` is the time in seconds for which the device copies before the first sample.
  std::vector<Series> measure(const CopyJob& job, const std::string& experiment,
                              const SamplingRules& rules, double warm_up,
                              const std::vector<Fault>& faults);

 private:
  /// One direction: its arrays, and how its destination is poisoned and compared in place.
  struct Way {
    bool to_device;
    const TimedStream& stream;
    const Buffer& source;
    const Buffer& destination;
    std::uint32_t seed;
    bool by_cpu;  ///< the processor poisons and compares it: no device reaches
                  ///< the destination, or one may have another copy in its caches
  };

  [[nodiscard]] Way way(bool to_device) const;
  void poison_destination(const Way& way, std::uint64_t words) const;
  [[nodiscard]] Verification check_destination(const Way& way, std::uint64_t words,
                                               const std::vector<Fault>& faults) const;
  [[nodiscard]] Series describe(const Way& way, const CopyJob& job) const;

  const HostSide& host_;
  Movers movers_;
  TimedStream inward_, outward_;
  Buffer source_, destination_;
  StartGate gate_;
  std::uint64_t cache_bytes_ = 0;
};

}  // namespace fabricheck::copies
