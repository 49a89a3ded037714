// The contents of arrays: data that is never constant, the poison of destinations, and the
// comparison.
//
// All values are multiples of 2^-24 in [1, 2), so that a * x + b * y is exact in double for the
// small whole factors in use, fused or not: results are compared bit by bit on every runtime.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>

#include "harness/hip.hpp"
#include "harness/series.hpp"

namespace fabricheck {

/// The value of word `i` under `seed`.
__host__ __device__ inline double pattern_value(std::uint64_t i, std::uint32_t seed) {
  // The integer hash "lowbias32" (C. Wellons, 2018) over the index, high half mixed in.
  auto x =
      static_cast<std::uint32_t>(i) ^ (static_cast<std::uint32_t>(i >> 32) * 0x9e3779b9U) ^ seed;
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return 1.0 + static_cast<double>(x >> 8) * (1.0 / 16777216.0);
}

/// Sums of two scaled values.
struct Expected {
  double first_factor = 1;
  std::uint32_t first_seed = 0;
  double second_factor = 0;
  std::uint32_t second_seed = 0;

  __host__ __device__ double operator()(std::uint64_t i) const {
    return first_factor * pattern_value(i, first_seed) +
           second_factor * pattern_value(i, second_seed);
  }
};

/// Sums of the elements (pairs of doubles) that each thread of a launch read: what the kernel of
/// read-only leaves. Thread `t` of block `b` of `blocks` reads elements t, t + block_size, ... of
/// every chunk of elements_of_thread * block_size from the b-th on, `blocks` chunks apart. All sums
/// are exact in double, since a thread reads fewer than 2^28 elements.
struct ExpectedSums {
  std::uint32_t seed = 0;
  std::uint64_t elements = 0;
  std::uint64_t blocks = 1;
  std::uint64_t block_size = 1;
  std::uint64_t elements_of_thread = 1;

  /// The words that the launch leaves: two a thread, and never more than there are elements.
  [[nodiscard]] std::uint64_t words() const {
    return 2 * (blocks * block_size < elements ? blocks * block_size : elements);
  }

  __host__ __device__ double operator()(std::uint64_t i) const {
    const std::uint64_t thread = i / 2 % block_size;
    const std::uint64_t half = i % 2;
    const std::uint64_t chunk = elements_of_thread * block_size;
    double sum = 0;
    for (auto first = i / 2 / block_size * chunk; first < elements; first += blocks * chunk) {
      for (auto at = first + thread; at < first + chunk && at < elements; at += block_size) {
        sum += pattern_value(2 * at + half, seed);
      }
    }
    return sum;
  }
};

/// Fills `words` doubles with the values of `seed`, by a kernel on the stream's device.
void fill(const TimedStream& stream, double* data, std::uint64_t words, std::uint32_t seed);

/// Fills with a not-a-number that equals no value, so that unwritten words are found.
void poison(const TimedStream& stream, double* data, std::uint64_t words);

/// Compares on the stream's device; keeps the first difference. Waits for the stream.
Verification compare(const TimedStream& stream, const double* data, std::uint64_t words,
                     const Expected& expected);

/// The same of sums; what counts as checked are the bytes that were read, not the sums.
Verification compare(const TimedStream& stream, const double* data, const ExpectedSums& expected);

/// Compares any number of bytes with the values of `seed`. The rest of an incomplete last word must
/// still be poison.
Verification compare_bytes(const TimedStream& stream, const double* data, std::uint64_t bytes,
                           std::uint32_t seed);

/// Flips one bit of word `word`, by a kernel: an injected fault.
void flip_bit(const TimedStream& stream, double* data, std::uint64_t word, int bit);

/// The same five, by the calling thread, for memory that no device reaches.
void fill(double* data, std::uint64_t words, std::uint32_t seed);
void poison(double* data, std::uint64_t words);
Verification compare(const double* data, std::uint64_t words, const Expected& expected);
Verification compare_bytes(const double* data, std::uint64_t bytes, std::uint32_t seed);
void flip_bit(double* data, std::uint64_t word, int bit);

}  // namespace fabricheck
