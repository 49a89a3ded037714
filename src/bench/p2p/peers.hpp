// Devices with the arrays that they send to each other, and what is measured between them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/fault.hpp"
#include "harness/gate.hpp"
#include "harness/hip.hpp"
#include "harness/movers.hpp"
#include "harness/sampling.hpp"
#include "harness/series.hpp"
#include "p2p/chase.hpp"
#include "p2p/plan.hpp"
#include "stream/kernels.hpp"

namespace fabricheck::p2p {

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

/// The number of streams and of destination arrays that each device needs for these jobs.
std::map<int, Lane> lanes_needed(const std::vector<Job>& jobs);

/// Devices, each with streams, one source and some destination arrays, and an array to chase
/// pointers in; all pairs use the same ones, but for pairs of one set that share a device.
class Peers {
 public:
  struct Sizes {
    std::uint64_t array = 0;      ///< the largest that is copied
    std::uint64_t chase = 0;      ///< 0: no array
    int block = 256;              ///< threads per block of the kernels
    std::map<int, Lane> lanes{};  ///< streams and destination arrays of devices; else one each
  };

  /// Allocates and fills. Throws Failure(unsupported) when memory is missing.
  Peers(const std::set<int>& devices, const Sizes& sizes);

  /// Measures one job: a series per pair, and their sum if there are several. A device's first
  /// measurement is preceded by the warm-up that the rules ask for.
  std::vector<Series> measure(const Job& job, const SamplingRules& rules,
                              const std::vector<Fault>& faults);

 private:
  struct Member {
    Buffer source;
    std::vector<TimedStream> streams;
    std::vector<Buffer> destinations;
    std::optional<ChaseArray> chase;

    /// The one that prepares and compares what the device holds.
    [[nodiscard]] const TimedStream& stream() const { return streams.front(); }
  };

  /// Queues operations for the pair.
  void queue(const Job& job, const Pair& pair, const Lane& lane, std::uint64_t bytes,
             int operations) const;
  /// The variant of a job, with the stores for its size.
  [[nodiscard]] stream::Variant variant_of(const Job& job, std::uint64_t bytes) const;
  /// How many operations of a batch one launch of a kernel makes.
  [[nodiscard]] int passes_of(const Job& job, std::uint64_t bytes, int batch) const;
  [[nodiscard]] const Buffer& source_of(const Measurement& what, const Pair& pair) const;
  [[nodiscard]] double warm_up_for(const Job& job, const SamplingRules& rules);
  Series measure_chase(const Pair& pair, const Measurement& what, const SamplingRules& rules,
                       double warm_up, const std::vector<Fault>& faults);

  Sizes sizes_;
  Movers movers_;
  std::map<int, Member> members_;
  std::set<int> warmed_;
  StartGate gate_;
  bool cpu_ = false;
  std::uint64_t cache_bytes_ = 0;
};

}  // namespace fabricheck::p2p
