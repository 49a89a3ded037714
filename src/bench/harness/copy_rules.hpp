// What moves the bytes of a copy on AMD's ROCm, by version of HIP, size, link and environment: the
// only table of these rules. HIP's version was that of ROCm up to 7.2 (rocm.hpp). It follows the
// sources of ROCm (docs/reference/result-document.md) and is not measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/vocabulary.hpp"

namespace fabricheck {

/// Whether an architecture is one of AMD's; the rules apply to these only.
inline bool is_amd(const std::string& arch) { return arch.rfind("gfx", 0) == 0; }

/// What moves the bytes of a copy, in the terms of the result document.
struct Mover {
  std::string engine = engine::copy_engine;  ///< or kernel: one of the runtime
  std::optional<int> engines;  ///< copy engines that share one copy; empty: none, or not known
};

/// The path from one device to another, as the kernel driver reports it.
struct PeerWay {
  bool xgmi = true;    ///< over Infinity Fabric, not PCIe
  bool direct = true;  ///< without a device between them
  int links = 1;       ///< parallel links of a direct way
  int engines = 3;     ///< engines of the source's device for such ways; gfx90a has three
};

/// The largest copy of pageable memory, in bytes, that goes through a staging buffer, which the
/// processor fills or empties. The pages of larger copies are pinned, in parts.
constexpr std::uint64_t kStagedBytes = 1 << 20;

struct HipBehaviour;  // a row of the table

/// The rules of one version of HIP, in the environment of this process.
class CopyRules {
 public:
  /// `version` begins with major and minor number, as 6.3.42133. An unknown version counts as the
  /// newest known one, and a version older than all as the oldest; notes() state this.
  explicit CopyRules(const std::string& version);

  /// For a copy between host memory and a device.
  [[nodiscard]] Mover host(std::uint64_t bytes) const;
  /// For a copy between devices; without a path the result is unknown.
  [[nodiscard]] Mover peer(std::uint64_t bytes, const std::optional<PeerWay>& way) const;
  /// Whether the width of links decides how many engines share a copy between devices.
  [[nodiscard]] bool gangs() const;

  /// Notes on version and environment for readers of copies, one sentence each.
  [[nodiscard]] std::vector<std::string> notes(bool between_peers) const;

 private:
  [[nodiscard]] std::optional<int> ganged(std::uint64_t bytes,
                                          const std::optional<PeerWay>& way) const;
  [[nodiscard]] bool forced_to_kernel(std::uint64_t bytes) const;

  std::string version_;
  const HipBehaviour* row_;
};

}  // namespace fabricheck
