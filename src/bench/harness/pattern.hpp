// The contents of arrays: data that is never constant, the poison of destinations, and the
// comparison.
//
// All values are multiples of 2^-24 in [1, 2), so that a * x + b * y is exact in double for the
// small whole factors in use, fused or not: results are compared bit by bit on every runtime.
#pragma once

#include <cstdint>

#include "harness/document.hpp"
#include "harness/hip.hpp"

namespace fabricheck {

/// expected(i) = first_factor * value(i, first_seed) + second_factor * value(i, second_seed)
struct Expected {
  double first_factor = 1;
  std::uint32_t first_seed = 0;
  double second_factor = 0;
  std::uint32_t second_seed = 0;
};

/// Fills `words` doubles with the values of `seed`, by a kernel on the stream's device.
void fill(const TimedStream& stream, double* data, std::uint64_t words, std::uint32_t seed);

/// Fills with a not-a-number that equals no value, so that unwritten words are found.
void poison(const TimedStream& stream, double* data, std::uint64_t words);

/// Compares on the stream's device; keeps the first difference. Waits for the stream.
Verification compare(const TimedStream& stream, const double* data, std::uint64_t words,
                     const Expected& expected);

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

/// The value of element `i` under `seed`, as the kernels compute it.
double pattern_value(std::uint64_t i, std::uint32_t seed);

}  // namespace fabricheck
