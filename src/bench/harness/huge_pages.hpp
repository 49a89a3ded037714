// The part of an array that lies in huge pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace fabricheck {

/// Bytes of [data, data + bytes) in huge pages, as counted by /proc/self/smaps; empty when the
/// system does not report it. Pages must have been touched.
std::optional<std::uint64_t> huge_page_bytes(const void* data, std::size_t bytes);

/// The same from the text of smaps, by address. Empty when a part of the range is missing, has
/// pages that the system does not count (such as a device driver's), or is a part of a mapping of
/// which only some pages are huge.
std::optional<std::uint64_t> huge_bytes_in(const std::string& smaps, std::uint64_t first,
                                           std::uint64_t last);

}  // namespace fabricheck
