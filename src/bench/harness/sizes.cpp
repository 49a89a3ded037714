#include "harness/sizes.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>
#include <utility>

#include "harness/status.hpp"

namespace fabricheck {
namespace {

constexpr std::array<std::pair<const char*, std::uint64_t>, 10> kUnits{{
    {"", 1},
    {"B", 1},
    {"KiB", 1ULL << 10},
    {"MiB", 1ULL << 20},
    {"GiB", 1ULL << 30},
    {"TiB", 1ULL << 40},
    {"kB", 1000ULL},
    {"KB", 1000ULL},
    {"MB", 1000000ULL},
    {"GB", 1000000000ULL},
}};

[[noreturn]] void bad_size(const std::string& text) {
  throw Failure(Status::usage,
                "'" + text + "' is not a size: write a whole number with B, KiB, MiB or GiB");
}

}  // namespace

std::uint64_t parse_size(const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || number == 0) {
    bad_size(text);
  }
  const std::string unit(rest, end);
  for (const auto& [name, factor] : kUnits) {
    if (unit == name) {
      if (number > std::numeric_limits<std::uint64_t>::max() / factor) {
        bad_size(text);
      }
      return number * factor;
    }
  }
  bad_size(text);
}

std::vector<std::string> split_list(const std::string& text, const std::string& what) {
  std::vector<std::string> items;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    items.push_back(item);
  }
  if (items.empty() || text.back() == ',') {
    items.emplace_back();
  }
  for (const auto& item : items) {
    if (item.empty()) {
      throw Failure(Status::usage, what + " '" + text + "' has an empty item");
    }
  }
  return items;
}

std::vector<std::uint64_t> parse_size_list(const std::string& text) {
  std::vector<std::uint64_t> sizes;
  for (const auto& item : split_list(text, "the list of sizes")) {
    const auto colon = item.find(':');
    if (colon == std::string::npos) {
      sizes.push_back(parse_size(item));
      continue;
    }
    const auto first = parse_size(item.substr(0, colon));
    const auto last = parse_size(item.substr(colon + 1));
    if (last < first) {
      throw Failure(Status::usage, "the range '" + item + "' ends below its start");
    }
    for (auto size = first; size <= last; size *= 2) {
      sizes.push_back(size);
      if (size > last / 2) {
        break;
      }
    }
  }
  return sizes;
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> names{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < names.size()) {
    value /= 1024.0;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g %s", value, names[unit]);
  return text.data();
}

std::uint64_t parse_whole(const std::string& text, const std::string& what) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) {
    throw Failure(Status::usage, what + " '" + text + "' is not a whole number of 0 or more");
  }
  return value;
}

int parse_index(const std::string& text, const std::string& what) {
  const auto value = parse_whole(text, what);
  if (value > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
    throw Failure(Status::usage, what + " '" + text + "' is too large");
  }
  return static_cast<int>(value);
}

}  // namespace fabricheck
