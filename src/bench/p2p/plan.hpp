// What p2p measures: pairs of devices, operations between them, and the order of both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stream/kernels.hpp"

namespace fabricheck::p2p {

/// Data goes from the memory of one device to that of another. Equal: local, to compare with.
struct Pair {
  int from = 0;
  int to = 0;
};

inline bool operator==(const Pair& a, const Pair& b) { return a.from == b.from && a.to == b.to; }

/// Ordered pairs of an option: "all", or "0-1,1-0"; where `local` ones may be, "self" for each
/// device with itself, and "0-0" too. Throws Failure(usage) for what is neither or stands twice,
/// and Failure(unsupported) for a device that does not exist, or Failure(setting) (settings.hpp).
std::vector<Pair> parse_pairs(const std::string& text, int count, bool local = false);

enum class PeerOperation {
  engine,        ///< copy engine; the source's device executes
  read,          ///< kernel of the destination's device
  write,         ///< kernel of the source's device
  copy,          ///< kernel of device `from` with both arrays on `to`: reads and writes remotely
  latency,       ///< copy of 16 B by engine, by device events
  latency_host,  ///< the same with a synchronization after each, by the host's clock
  chase,         ///< dependent loads of one thread of `to` through memory of `from`
};

/// An operation as an option names it.
struct Measurement {
  PeerOperation operation = PeerOperation::engine;
  bool both = false;  ///< both directions of each pair at once

  [[nodiscard]] std::string name() const;
  [[nodiscard]] bool by_kernel() const;
  /// Latencies have a size of their own, and are of one pair at a time.
  [[nodiscard]] bool is_latency() const;
  /// The device that executes, and the other one, whose memory it has to reach.
  [[nodiscard]] int executor(const Pair& pair) const;
  [[nodiscard]] int owner(const Pair& pair) const;
};

/// Measurements of a comma-separated list. Throws Failure(usage).
std::vector<Measurement> parse_measurements(const std::string& text);

/// One thing to measure: pairs at the same time.
struct Job {
  Measurement what;
  std::vector<Pair> pairs;
  std::uint64_t bytes = 0;    ///< 0: the operation has a size of its own
  stream::Variant variant{};  ///< of the kernels that copy, but for their stores
  [[nodiscard]] std::string text() const;
  /// Whether it is queued behind a gate (gate.hpp), wherever it is measured.
  [[nodiscard]] bool needs_gate() const {
    return pairs.size() > 1 || what.operation == PeerOperation::latency;
  }
};

/// What a pair uses beside others of its set: the number of its stream among those of the device
/// that executes, and of its destination array among those of the device that holds it.
struct Lane {
  int stream = 0;
  int destination = 0;
};

/// The lanes of a job's pairs, in order: those that share no device have lane 0 each.
std::vector<Lane> lanes_of(const Job& job);

/// Hardware queues that ROCm needs so that no two copies of a set wait for each other: one for each
/// that a device may execute, and two more. Of sets as options write them, before any device is
/// known; of "all" as for sixteen devices.
int queues_needed(const std::vector<std::string>& sets);

/// Each job of kernel copies with every variant; the others once.
std::vector<Job> with_variants(const std::vector<Job>& jobs,
                               const std::vector<stream::Variant>& variants);

/// Every measurement at every size for every pair, then for every set; both directions once for
/// each two devices; chases also on the memory of each device itself. Throws Failure(usage) for
/// what is not by engine, or both ways, of a device and itself.
std::vector<Job> plan_jobs(const std::vector<Measurement>& measurements,
                           const std::vector<Pair>& pairs,
                           const std::vector<std::vector<Pair>>& sets,
                           const std::vector<std::uint64_t>& sizes);

}  // namespace fabricheck::p2p
