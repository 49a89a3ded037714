// A kernel that computes in registers and keeps every compute unit of a device busy.
#pragma once

#include <cstdint>

#include "harness/fault.hpp"
#include "harness/hip.hpp"
#include "harness/series.hpp"

namespace fabricheck::overlap {

/// Multiply-adds of 64 bits on four values a thread, by as many threads as all compute units hold
/// at once: 2048 each, or fewer. Memory is read before the first and written after the last of
/// them.
class Compute {
 public:
  /// Allocates and fills on the stream's device. `threads` are those of a compute unit. Throws
  /// Failure(unsupported) without the memory.
  explicit Compute(const TimedStream& stream, unsigned threads = kThreadsOfUnit);

  /// The number of multiply-adds on each value by one launch; at most kMost, up to which all
  /// results are exact.
  void set_iterations(int iterations) { iterations_ = iterations; }
  static constexpr int kMost = 1 << 26;

  void queue(const TimedStream& stream, int launches) const;
  /// Poisons the result, and waits until that is done.
  void poison_result(const TimedStream& stream) const;
  /// Compares the result: each value must have all of its multiply-adds.
  [[nodiscard]] Verification check(const TimedStream& stream,
                                   const std::vector<Fault>& faults) const;

  /// Of the result.
  [[nodiscard]] std::uint64_t bytes() const { return words_ * sizeof(double); }
  /// Floating-point operations of one launch, two in a multiply-add.
  [[nodiscard]] double operations() const {
    return 2.0 * static_cast<double>(words_) * iterations_;
  }
  static constexpr int kBlock = 256;
  static constexpr unsigned kThreadsOfUnit = 2048;

 private:
  unsigned blocks_;
  std::uint64_t words_;
  Buffer start_, step_, result_;
  int iterations_ = 1;
};

}  // namespace fabricheck::overlap
