// Injected faults, which test that the programs detect them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/hip.hpp"

namespace fabricheck {

struct Fault {
  enum class Kind {
    flip_bit,      ///< one bit of the destination's word with byte `offset_bytes`
    unwritten,     ///< the destination looks as if never written
    pages_on,      ///< host memory lies on another NUMA domain than asked
    device_error,  ///< a call returns an error that names hardware
    refused,       ///< a call returns another error
    abort,         ///< the process aborts, as a runtime may do at an error of a device
    drop,          ///< one launch or copy is never made
    delay,         ///< one launch or copy is late, and its call returns before it is done
  } kind = Kind::flip_bit;
  std::uint64_t offset_bytes = 0;
  int bit = 0;
  int domain = 0;
  std::uint64_t operation = 0;  ///< of the process's launches and copies, from 0
};

/// "flip-bit:OFFSET:BIT", "unwritten", "device-error", "refused" or "abort", "pages-on:DOMAIN" of a
/// program with host memory, and of the host runtime "drop:N" and "delay:N". Throws
/// Failure(usage).
std::vector<Fault> parse_faults(const std::vector<std::string>& texts, bool host_memory = false);

/// Has the host runtime drop and delay what some of the faults name, and returns the others.
std::vector<Fault> arm(const std::vector<Fault>& faults);
/// Throws Failure(usage) if the process ends before one of these.
void require_made();

/// The domain for host memory that replaces the requested one, if any.
std::optional<int> pages_on(const std::vector<Fault>& faults);

/// Applies the faults to a destination of `words` words, after the last sample and before the
/// comparison. Throws Failure(usage) when an offset lies outside, and what an injected error
/// throws.
void inject(const std::vector<Fault>& faults, const TimedStream& stream, double* data,
            std::uint64_t words);
/// The same, by the calling thread, for memory that no device reaches.
void inject(const std::vector<Fault>& faults, double* data, std::uint64_t words);

}  // namespace fabricheck
