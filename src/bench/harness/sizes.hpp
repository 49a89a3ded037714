// Sizes in bytes and lists of numbers, in the form of a command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fabricheck {

/// Bytes of "256", "64KiB", "8GiB", "1GB" (KiB, MiB, GiB are powers of 1024; kB, MB, GB of 1000).
/// Throws Failure(usage) naming the text when it is not a positive whole number of bytes.
std::uint64_t parse_size(const std::string& text);

/// Bytes of a comma-separated list whose items are sizes or "FIRST:LAST" ranges that double. The
/// result is in the order of the list. Throws Failure(usage).
std::vector<std::uint64_t> parse_size_list(const std::string& text);

/// "1 GiB", "1.5 MiB", "100 B": binary prefixes, at most three significant decimals.
std::string format_size(std::uint64_t bytes);

/// The items of "a,b,c". Throws Failure(usage) for an empty item; `what` names the option.
std::vector<std::string> split_list(const std::string& text, const std::string& what);

/// A whole number of 0 or more, of 64 bits. Throws Failure(usage); `what` names the option.
std::uint64_t parse_whole(const std::string& text, const std::string& what);

/// The same, of 31 bits: an index. Throws Failure(usage); `what` names the option.
int parse_index(const std::string& text, const std::string& what);

}  // namespace fabricheck
