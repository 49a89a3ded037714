// How much of an array lies in huge pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace fabricheck {

/// Bytes of [data, data + bytes) in huge pages, as /proc/self/smaps counts them; nothing when the
/// system does not say. Pages must have been touched.
std::optional<std::uint64_t> huge_page_bytes(const void* data, std::size_t bytes);

/// The same from the text of smaps, of addresses. Nothing when a part of the range is missing, has
/// pages that the system does not count (as of a device's driver), or is a part of a mapping of
/// which only some pages are huge.
std::optional<std::uint64_t> huge_bytes_in(const std::string& smaps, std::uint64_t first,
                                           std::uint64_t last);

}  // namespace fabricheck
