// Faults made on purpose, to see that they are found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/hip.hpp"

namespace fabricheck {

struct Fault {
  bool unwritten = false;          ///< the destination looks as if never written
  std::uint64_t offset_bytes = 0;  ///< else: the word with this byte has a bit flipped
  int bit = 0;
};

/// "flip-bit:OFFSET:BIT" or "unwritten". Throws Failure(usage).
std::vector<Fault> parse_faults(const std::vector<std::string>& texts);

/// Applies the faults to a destination of `words` words, after the last sample and before the
/// comparison. Throws Failure(usage) when an offset lies outside.
void inject(const std::vector<Fault>& faults, const TimedStream& stream, double* data,
            std::uint64_t words);

}  // namespace fabricheck
