// A pointer chase: one thread, loads that each depend on the one before.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/fault.hpp"
#include "harness/hip.hpp"
#include "harness/sampling.hpp"
#include "harness/series.hpp"

namespace fabricheck::p2p {

/// An array in which every cache line names the next one of a cycle through all lines, in an order
/// no prefetcher follows.
class ChaseArray {
 public:
  /// `bytes` is a power of two, at least 256. Throws Failure(unsupported) without the memory.
  ChaseArray(const TimedStream& owner, std::uint64_t bytes);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// In device memory; the first word of each line of 128 B holds the address of the next.
  [[nodiscard]] std::uint64_t* words() const { return array_.as<std::uint64_t>(); }

  /// Measures on the stream's device, which must reach the array, and completes `series` with
  /// samples and verification; its batch is the number of loads. Every sample goes on where the
  /// last one stopped, so that caches hold nothing of what it visits, and must arrive where the
  /// cycle leads: one wrong load on the way ends elsewhere. Several compute units take turns at
  /// the loads of a sample, for some are farther from memory and links than others.
  Series measure(Series series, const TimedStream& stream, const SamplingRules& rules,
                 double warm_up, const std::vector<Fault>& faults);

 private:
  /// Where `step` steps lead from the start of the cycle.
  [[nodiscard]] std::uint64_t address_at(std::uint64_t step) const;

  std::uint64_t bytes_;
  int bits_ = 0;  // the array has 2^bits_ lines
  Buffer array_;
  std::uint64_t step_ = 0;  // along the cycle
  unsigned turn_ = 0;       // compute units used
};

/// The compute unit, of `units`, that makes the loads of a turn: any few in a row are spread
/// evenly.
unsigned chase_unit(unsigned turn, unsigned units);

/// The line that step `step` of a cycle through 2^bits lines visits.
std::uint64_t chase_line(std::uint64_t step, int bits);

}  // namespace fabricheck::p2p
