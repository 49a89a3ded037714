// The measurements of pingpong: kinds of host memory, operations, sizes, and their order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/hip.hpp"

namespace fabricheck::pingpong {

enum class Exchange {
  h2d,             ///< hipMemcpy from the rank's host memory to its device
  d2h,             ///< and back
  there_and_back,  ///< the one, then the other
};

const char* exchange_name(Exchange exchange);

/// Operations of a comma-separated list. Throws Failure(usage) for an unknown or repeated name.
std::vector<Exchange> parse_exchanges(const std::string& text);

/// The sizes that an option lists (sizes.hpp), any whole number of bytes; for an empty text one
/// size for which two arrays together exceed caches of `cache_bytes`, and 256 MiB. Throws
/// Failure(usage).
std::vector<std::uint64_t> exchange_sizes(const std::string& text, std::uint64_t cache_bytes);

/// The names of placements: those of node models, and "given" for any other.
const std::vector<std::string>& placement_names();

/// One measurement of all ranks at the same time.
struct ExchangeJob {
  HostMemory memory = HostMemory::pageable;
  Exchange exchange = Exchange::h2d;
  std::uint64_t bytes = 0;
  [[nodiscard]] bool to_device() const { return exchange != Exchange::d2h; }
  [[nodiscard]] bool to_host() const { return exchange != Exchange::h2d; }
  /// Bytes of all its copies.
  [[nodiscard]] std::uint64_t bytes_moved() const;
  [[nodiscard]] std::string text() const;
};

/// Every operation at every size, for every kind of memory; those of one kind are consecutive.
std::vector<ExchangeJob> plan_exchanges(const std::vector<HostMemory>& memory,
                                        const std::vector<Exchange>& exchanges,
                                        const std::vector<std::uint64_t>& sizes);

}  // namespace fabricheck::pingpong
