// Devices with the arrays that they send to each other, and what is measured between them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/document.hpp"
#include "harness/fault.hpp"
#include "harness/gate.hpp"
#include "harness/hip.hpp"
#include "harness/sampling.hpp"
#include "p2p/chase.hpp"
#include "p2p/plan.hpp"
#include "stream/kernels.hpp"

namespace fabricheck {

/// Which devices reach whose memory from their kernels.
class PeerAccess {
 public:
  /// Asks the runtime for every two of the devices, and enables what is possible.
  explicit PeerAccess(const std::set<int>& devices);

  /// Why `device` does not reach the memory of `owner`, as a sentence; nothing when it does.
  [[nodiscard]] std::optional<std::string> obstacle(int device, int owner) const;

 private:
  std::map<std::pair<int, int>, std::string> obstacles_;
};

/// Bytes of the copies whose latency is measured.
constexpr std::uint64_t kLatencyBytes = 16;

/// Devices, each with one stream, one source and one destination array, and an array to chase
/// pointers in; all pairs use the same ones.
class Peers {
 public:
  struct Sizes {
    std::uint64_t array = 0;  ///< the largest that is copied
    std::uint64_t chase = 0;  ///< 0: no array
    int block = 256;          ///< threads per block of the kernels
  };

  /// Allocates and fills. Throws Failure(unsupported) when memory is missing.
  Peers(const std::set<int>& devices, const Sizes& sizes);

  /// Measures one job: a series per pair, and their sum if there are several. A device's first
  /// measurement is preceded by the warm-up that the rules ask for.
  std::vector<Series> measure(const Job& job, const SamplingRules& rules,
                              const std::vector<Fault>& faults);

 private:
  struct Member {
    TimedStream stream;
    Buffer source, destination;
    std::optional<ChaseArray> chase;
  };

  /// Queues one operation for the pair.
  void queue(const Measurement& what, const Pair& pair, std::uint64_t bytes) const;
  [[nodiscard]] const Buffer& source_of(const Measurement& what, const Pair& pair) const;
  [[nodiscard]] Stores stores_for(std::uint64_t bytes) const;
  [[nodiscard]] double warm_up_for(const Job& job, const SamplingRules& rules);
  Series measure_chase(const Pair& pair, const Measurement& what, const SamplingRules& rules,
                       double warm_up, const std::vector<Fault>& faults);

  Sizes sizes_;
  std::map<int, Member> members_;
  std::set<int> warmed_;
  StartGate gate_;
  bool cpu_ = false;
  std::uint64_t cache_bytes_ = 0;
};

}  // namespace fabricheck
