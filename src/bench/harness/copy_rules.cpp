#include "harness/copy_rules.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace fabricheck {
namespace {

constexpr std::uint64_t kKib = 1024;
/// Smaller copies, in bytes, use one engine.
constexpr std::uint64_t kLeastGanged = 4096;
/// Before 6.3, GPU_FORCE_BLIT_COPY_SIZE makes kernel copies only from this size in bytes on.
constexpr std::uint64_t kLeastForced = 1 << 20;

/// The value in effect; where a variable is set twice, the first one.
std::string value_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_off(const char* name) { return value_of(name) == "0"; }

/// Bytes of a variable in KiB, read as ROCm reads it: leading digits; else `standard_kib`.
std::uint64_t bytes_of(const char* name, std::uint64_t standard_kib) {
  const auto text = value_of(name);
  const auto kib = text.empty() ? static_cast<long>(standard_kib) : std::atol(text.c_str());
  return kib < 0 ? UINT64_MAX : static_cast<std::uint64_t>(kib) * kKib;
}

/// A sentence for a switch that is neither 0 nor 1, or for a size that is not a number.
std::optional<std::string> misunderstood(const char* name, bool is_switch) {
  const auto text = value_of(name);
  const auto start = std::string(name) + " is '" + text + "', ";
  if (text.empty() || (is_switch && (text == "0" || text == "1"))) {
    return std::nullopt;
  }
  if (is_switch) {
    return start + "neither 0 nor 1: ROCm does what it does without it";
  }
  if (text.find_first_not_of("0123456789") == std::string::npos && text.size() < 10) {
    return std::nullopt;
  }
  return start + "no number of KiB: ROCm reads it as " + std::to_string(std::atol(text.c_str()));
}

/// Major times 100 plus minor number; 0 where the text does not begin with both.
int number_of(const std::string& version) {
  char* end = nullptr;
  const long major = std::strtol(version.c_str(), &end, 10);
  if (end == version.c_str() || *end != '.' || major < 0 || major > 99) {
    return 0;
  }
  const char* start = end + 1;
  const long minor = std::strtol(start, &end, 10);
  return end == start || minor < 0 || minor > 99 ? 0 : static_cast<int>(major * 100 + minor);
}

}  // namespace

enum class Ganging {
  none,
  free_engines,  ///< as many as the link has, of those that are free just then
  by_width,      ///< as many as the link has
};

/// The rules from a version on, until the next row.
struct HipBehaviour {
  int from;                    ///< major times 100 plus minor number
  bool peer_switch;            ///< HSA_ENABLE_PEER_SDMA exists
  Ganging ganging;             ///< of copies between devices
  bool small_peers_by_kernel;  ///< to ROC_P2P_SDMA_SIZE, 1024 KiB when unset
  bool forced_by_kernel;       ///< GPU_FORCE_BLIT_COPY_SIZE means kernels at any size
  std::uint64_t forced_kib;    ///< that variable when unset
};

namespace {

constexpr std::array<HipBehaviour, 7> kTable{{
    {502, false, Ganging::none, false, false, 0},
    {507, true, Ganging::none, false, false, 0},
    {600, true, Ganging::free_engines, false, false, 0},
    {601, true, Ganging::by_width, false, false, 0},
    {602, true, Ganging::by_width, true, false, 0},
    {603, true, Ganging::by_width, true, true, 0},
    {700, true, Ganging::by_width, true, true, 16},
}};
constexpr int kNewestMajor = 7;

const HipBehaviour* row_of(int number) {
  if (number == 0) {
    return &kTable.back();
  }
  const auto* after = std::find_if(kTable.begin(), kTable.end(),
                                   [number](const HipBehaviour& row) { return row.from > number; });
  return after == kTable.begin() ? after : after - 1;
}

}  // namespace

CopyRules::CopyRules(const std::string& version)
    : version_(version), row_(row_of(number_of(version))) {}

bool CopyRules::gangs() const {
  return row_->ganging != Ganging::none && !is_off(env::engines) && !is_off(env::gang);
}

bool CopyRules::forced_to_kernel(std::uint64_t bytes) const {
  return bytes <= bytes_of(env::blit_size, row_->forced_kib) &&
         (row_->forced_by_kernel || bytes >= kLeastForced);
}

Mover CopyRules::host(std::uint64_t bytes) const {
  if (is_off(env::engines) || forced_to_kernel(bytes)) {
    return {engine::kernel, std::nullopt};
  }
  return {engine::copy_engine, 1};
}

std::optional<int> CopyRules::ganged(std::uint64_t bytes, const std::optional<PeerWay>& way) const {
  if (!gangs() || bytes < kLeastGanged) {
    return 1;
  }
  if (!way) {
    return std::nullopt;
  }
  if (!way->xgmi) {
    return 1;
  }
  if (row_->ganging == Ganging::free_engines) {
    // An indirect path counts as two links there.
    return (way->direct ? way->links : 2) > 1 ? std::nullopt : std::optional<int>(1);
  }
  if (!way->direct || way->links <= 1) {
    return 1;
  }
  return way->engines > 0 ? std::optional<int>(std::min(way->links, way->engines)) : std::nullopt;
}

Mover CopyRules::peer(std::uint64_t bytes, const std::optional<PeerWay>& way) const {
  const Mover kernel{engine::kernel, std::nullopt};
  if (is_off(env::engines) || forced_to_kernel(bytes) ||
      (row_->small_peers_by_kernel && bytes <= bytes_of(env::peer_size, 1024))) {
    return kernel;
  }
  const auto engines = ganged(bytes, way);
  // From 6.1 on, a copy by several engines ignores this variable.
  const bool asks = row_->ganging != Ganging::by_width || engines == 1;
  if (row_->peer_switch && is_off(env::peer_engines) && asks) {
    return kernel;
  }
  return {engine::copy_engine, engines};
}

std::vector<std::string> CopyRules::notes(bool between_peers) const {
  std::vector<std::string> notes;
  const auto number = number_of(version_);
  const bool old = number != 0 && number < kTable.front().from;
  if (number == 0 || old || number / 100 > kNewestMajor) {
    const int as = old ? row_->from : kNewestMajor * 100;
    notes.push_back("HIP '" + version_ + "' is not known: what moves copies is told as of " +
                    std::to_string(as / 100) + (old ? "." + std::to_string(as % 100) : "") +
                    ", the " + (old ? "oldest" : "newest") + " known one");
  }
  const auto add = [&notes](const std::optional<std::string>& sentence) {
    if (sentence) {
      notes.push_back(*sentence);
    }
  };
  add(misunderstood(env::engines, true));
  add(misunderstood(env::blit_size, false));
  if (is_off(env::engines)) {
    notes.push_back(std::string(env::engines) + " is 0: kernels of ROCm copy, not engines");
  }
  if (!between_peers) {
    return notes;
  }
  add(misunderstood(env::peer_engines, true));
  add(misunderstood(env::gang, true));
  add(misunderstood(env::peer_size, false));
  if (is_off(env::peer_engines) && !is_off(env::engines)) {
    const auto start = std::string(env::peer_engines) + " is 0: ";
    notes.push_back(start + (!row_->peer_switch ? "this ROCm does not know it, engines copy"
                             : row_->ganging == Ganging::by_width && gangs()
                                 ? "kernels of ROCm copy between devices only where one engine "
                                   "would; several together still do"
                                 : "kernels of ROCm copy between devices, not engines"));
  }
  return notes;
}

}  // namespace fabricheck
