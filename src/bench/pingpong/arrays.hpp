// One rank's arrays of host memory and of its device, and the copies between them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/fault.hpp"
#include "harness/hip.hpp"
#include "harness/series.hpp"
#include "pingpong/plan.hpp"

namespace fabricheck::pingpong {

/// The purpose of the arrays: copies of up to `bytes` each.
struct ExchangeNeeds {
  HostMemory memory = HostMemory::pageable;
  std::uint64_t bytes = 0;
  bool to_device = false;
  bool to_host = false;
};

class ExchangeArrays {
 public:
  /// The objects that a rank works with.
  struct Owner {
    int rank = 0;
    int device = 0;        ///< as this process numbers it
    int numa_domain = -1;  ///< of its host memory; -1: wherever the system puts it
  };

  /// Allocates and fills. Throws as Buffer does. `pages_on` is an injected fault.
  ExchangeArrays(const Owner& owner, const ExchangeNeeds& needs, std::optional<int> pages_on);

  /// Poisons the destinations of the job's copies, and fills their sources.
  void prepare(const ExchangeJob& job) const;
  /// Makes the job's copies, one after the other, and waits for them. Returns the seconds from the
  /// first call to the end of the device's work.
  [[nodiscard]] double run(const ExchangeJob& job) const;
  /// Compares the destinations, after faults were injected into the last of them.
  [[nodiscard]] Verification check(const ExchangeJob& job, const std::vector<Fault>& faults) const;
  /// Locates the pages again. Throws Failure(software) when they have moved.
  void prove_pages();

  /// The sources of the job's copies, and their destinations.
  [[nodiscard]] Place source_place(const ExchangeJob& job) const;
  [[nodiscard]] Place destination_place(const ExchangeJob& job) const;

 private:
  [[nodiscard]] bool by_cpu() const { return memory_ == HostMemory::pageable; }
  [[nodiscard]] std::uint32_t seed_of(Exchange exchange) const;
  [[nodiscard]] Place place_of(const Buffer& buffer, std::optional<std::uint64_t> huge) const;

  Owner owner_;
  HostMemory memory_;
  TimedStream stream_;
  Buffer source_, destination_;  // of the host
  std::optional<std::uint64_t> source_huge_, destination_huge_;
  Buffer on_device_;
};

}  // namespace fabricheck::pingpong
