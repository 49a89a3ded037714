// What moves the bytes of a copy on AMD's ROCm, by version, size, link and environment: the one
// table. It is read from the sources of ROCm (docs/result-document.md), not measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/vocabulary.hpp"

namespace fabricheck {

/// Whether an architecture is one of AMD's: of these alone the rules tell.
inline bool is_amd(const std::string& arch) { return arch.rfind("gfx", 0) == 0; }

/// What moves the bytes of a copy, in the words of the result document.
struct Mover {
  std::string engine = engine::copy_engine;  ///< or kernel: one of the runtime
  std::optional<int> engines;  ///< copy engines that share one copy; empty: none, or not known
};

/// The way from a device to another one, as the kernel driver tells it.
struct PeerWay {
  bool xgmi = true;    ///< over Infinity Fabric, not PCIe
  bool direct = true;  ///< without a device between them
  int links = 1;       ///< parallel links of a direct way
  int engines = 3;     ///< engines of the source's device for such ways; gfx90a has three
};

/// Copies of pageable memory of at most so many bytes go through a staging buffer, which the
/// processor fills or empties; the pages of larger ones are pinned, in parts.
constexpr std::uint64_t kStagedBytes = 1 << 20;

struct RocmBehaviour;  // a row of the table

/// The rules of one version of ROCm, in the environment of this process.
class CopyRules {
 public:
  /// `version` begins with major and minor number, as 6.3.42133. One that is not known counts as
  /// the newest known one, and an older one than any as the oldest; notes() say so.
  explicit CopyRules(const std::string& version);

  /// Of a copy between host memory and a device.
  [[nodiscard]] Mover host(std::uint64_t bytes) const;
  /// Of a copy between devices; without a way it is not known.
  [[nodiscard]] Mover peer(std::uint64_t bytes, const std::optional<PeerWay>& way) const;
  /// Whether the width of links decides how many engines share a copy between devices.
  [[nodiscard]] bool gangs() const;

  /// What a reader of copies should know of version and environment, a sentence each.
  [[nodiscard]] std::vector<std::string> notes(bool between_peers) const;

 private:
  [[nodiscard]] std::optional<int> ganged(std::uint64_t bytes,
                                          const std::optional<PeerWay>& way) const;
  [[nodiscard]] bool forced_to_kernel(std::uint64_t bytes) const;

  std::string version_;
  const RocmBehaviour* row_;
};

}  // namespace fabricheck
