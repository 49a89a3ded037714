#include "harness/huge_pages.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace fabricheck {
namespace {

/// One mapping of smaps, in bytes.
struct Mapping {
  std::uint64_t first = 0, last = 0;
  std::uint64_t counted = 0;  ///< in pages of any size
  std::uint64_t huge = 0;

  void add(const std::string& line) {
    char name[64] = "";
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "%63[^:]: %llu kB", name, &kib) != 2) {
      return;
    }
    const std::string key = name;
    const bool reserved = key == "Private_Hugetlb" || key == "Shared_Hugetlb";  // not in Rss
    if (reserved || key == "Rss") {
      counted += 1024 * kib;
    }
    if (reserved || key == "AnonHugePages" || key == "ShmemPmdMapped" || key == "FilePmdMapped") {
      huge += 1024 * kib;
    }
  }
};

}  // namespace

std::optional<std::uint64_t> huge_bytes_in(const std::string& smaps, std::uint64_t first,
                                           std::uint64_t last) {
  std::uint64_t covered = 0;
  std::uint64_t huge = 0;
  bool known = true;
  const auto take = [&](const Mapping& mapping) {
    const auto from = std::max(first, mapping.first);
    const auto to = std::min(last, mapping.last);
    if (from >= to) {
      return;
    }
    const auto size = mapping.last - mapping.first;
    const bool whole = to - from == size;
    const bool uniform = mapping.huge == 0 || mapping.huge == size;
    known = known && mapping.counted == size && (whole || uniform);
    covered += to - from;
    huge += mapping.huge == size ? to - from : mapping.huge;
  };
  Mapping mapping;
  std::istringstream text(smaps);
  for (std::string line; std::getline(text, line);) {
    unsigned long long from = 0;
    unsigned long long to = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &from, &to) == 2) {
      take(mapping);
      mapping = {from, to, 0, 0};
    } else {
      mapping.add(line);
    }
  }
  take(mapping);
  return known && covered == last - first ? std::optional(huge) : std::nullopt;
}

std::optional<std::uint64_t> huge_page_bytes(const void* data, std::size_t bytes) {
  std::ifstream file("/proc/self/smaps");
  std::ostringstream text;
  text << file.rdbuf();
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  // Mappings end with a page, arrays anywhere in it.
  constexpr std::uint64_t page = 4096;
  const auto last = (first + bytes + page - 1) / page * page;
  const auto huge = huge_bytes_in(text.str(), first, last);
  return huge ? std::optional(std::min<std::uint64_t>(*huge, bytes)) : std::nullopt;
}

}  // namespace fabricheck
