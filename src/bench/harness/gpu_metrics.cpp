#include "harness/gpu_metrics.hpp"

#include <array>

#include "harness/vocabulary.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

/// A member of gpu_metrics: its offset in versions 1.3 to 1.8 (-1: missing), and its number in the
/// records of 1.9.
struct Member {
  const char* name;
  std::size_t bytes;
  std::size_t count;
  std::array<int, 6> offsets;
  unsigned id;
};
constexpr unsigned kNoId = ~0U;
constexpr std::array<Member, 13> kMembers{{
    {"energy_accumulator", 8, 1, {24, 24, 88, 16, 24, 24}, 7},
    {"indep_throttle_status", 8, 1, {112, -1, -1, -1, -1, -1}, kNoId},
    {"accumulation_counter", 4, 1, {-1, -1, -1, 32, 40, 40}, 9},
    {"prochot_residency_acc", 4, 1, {-1, -1, -1, 36, 44, 44}, 10},
    {"ppt_residency_acc", 4, 1, {-1, -1, -1, 40, 48, 48}, 11},
    {"socket_thm_residency_acc", 4, 1, {-1, -1, -1, 44, 52, 52}, 12},
    {"vr_thm_residency_acc", 4, 1, {-1, -1, -1, 48, 56, 56}, 13},
    {"hbm_thm_residency_acc", 4, 1, {-1, -1, -1, 52, 60, 60}, 14},
    {"pcie_link_width", 2, 1, {74, 48, 112, 60, 68, 68}, 16},
    {"pcie_link_speed", 2, 1, {76, 50, 114, 62, 70, 70}, 17},
    {"xgmi_link_width", 2, 1, {-1, 52, 116, 64, 72, 72}, 18},
    {"xgmi_link_speed", 2, 1, {-1, 54, 118, 66, 74, 74}, 19},
    {"xgmi_link_status", 2, 8, {-1, -1, -1, -1, 264, 264}, 31},
}};

/// The number in so many bytes, the lowest first; empty for all ones, which the driver writes for a
/// missing value.
std::optional<std::uint64_t> number_at(const std::string& bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  const std::uint64_t none = size == 8 ? ~0ULL : (1ULL << (8 * size)) - 1;
  return value == none ? std::nullopt : std::optional(value);
}

/// Consecutive values; missing ones are left out, except for links, whose index is their number:
/// there they stay all ones.
void put(GpuMetrics& metrics, const Member& member, const std::string& bytes, std::size_t at,
         std::size_t size, std::size_t count) {
  std::vector<std::uint64_t> values;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = number_at(bytes, at + i * size, size);
    if (value || count > 1) {
      values.push_back(value.value_or(~0ULL));
    }
  }
  if (!values.empty()) {
    metrics.values[member.name] = values;
  }
}

/// Version 1.9: records, each of a word that says what follows, and its values.
bool read_records(GpuMetrics& metrics, const std::string& bytes, std::size_t size) {
  const auto count = number_at(bytes, 4, 4).value_or(0);
  std::size_t at = 8;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (at + 8 > size) {
      return false;
    }
    const auto word = number_at(bytes, at, 8).value_or(0);
    const auto id = static_cast<unsigned>(word >> 10 & 0x3ff);
    const auto values = static_cast<std::size_t>(word & 0x3ff);
    const std::size_t width = std::size_t{1} << ((word >> 20 & 0xf) / 2);
    at += 8;
    if (width > 8 || at + values * width > size) {
      return false;
    }
    for (const auto& member : kMembers) {
      if (member.id == id) {
        put(metrics, member, bytes, at, width, values);
      }
    }
    at += values * width;
  }
  return true;
}

}  // namespace

std::optional<std::uint64_t> GpuMetrics::value(const std::string& name) const {
  const auto entry = values.find(name);
  return entry == values.end() ? std::nullopt : std::optional(entry->second.front());
}

std::optional<GpuMetrics> gpu_metrics(const std::string& bytes) {
  if (bytes.size() < 8) {
    return std::nullopt;
  }
  const auto size = static_cast<std::size_t>(number_at(bytes, 0, 2).value_or(0));
  const auto format = number_at(bytes, 2, 1).value_or(0);
  const auto content = number_at(bytes, 3, 1).value_or(0);
  if (size < 8 || size > bytes.size() || format != 1 || content < 3 || content > 9) {
    return std::nullopt;
  }
  GpuMetrics metrics;
  metrics.version = "1." + std::to_string(content);
  if (content == 9) {
    return read_records(metrics, bytes, size) ? std::optional(metrics) : std::nullopt;
  }
  for (const auto& member : kMembers) {
    const int offset = member.offsets.at(content - 3);
    if (offset < 0) {
      continue;
    }
    const auto at = static_cast<std::size_t>(offset);
    if (at + member.bytes * member.count > size) {
      return std::nullopt;
    }
    put(metrics, member, bytes, at, member.bytes, member.count);
  }
  return metrics;
}

json amd_throttle_words(std::uint64_t status) {
  const auto bits = [](unsigned first, unsigned last) {
    return (last == 63 ? ~0ULL : (1ULL << (last + 1)) - 1) & ~((1ULL << first) - 1);
  };
  const auto power = bits(0, 15);  // limits of the package
  // Regulators and what the board asserts; from 16 on it is currents.
  const auto hardware = bits(16, 31) | bits(38, 41) | bits(44, 47);
  const auto thermal = bits(32, 47) & ~hardware;
  json words = json::array();
  for (const auto& [word, mask] :
       {std::pair(throttle::power, power), std::pair(throttle::thermal, thermal),
        std::pair(throttle::hardware, hardware), std::pair(throttle::other, bits(48, 63))}) {
    if ((status & mask) != 0) {
      words.push_back(word);
    }
  }
  return words;
}

}  // namespace fabricheck
