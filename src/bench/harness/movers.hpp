// What moves the bytes of copies here: the rules of ROCm applied to the devices of this runtime.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/copy_rules.hpp"
#include "harness/series.hpp"

namespace fabricheck {

/// For devices that are not AMD's nothing is known: a copy is by copy engine, of unknown number.
class Movers {
 public:
  /// For the devices and the version of the runtime in use.
  Movers();
  /// `arch` as in devices.hpp, `version` as the document's versions.runtime.
  Movers(std::string arch, const std::string& version);

  /// Writes into a series what moves a copy of `bytes` between host memory and a device.
  void of_host(Series& series, std::uint64_t bytes) const;
  /// The same between two devices; within one of AMD a kernel of the runtime copies.
  void of_peers(Series& series, int from, int to, std::uint64_t bytes) const;

  /// Notes for readers of copies, one sentence each.
  [[nodiscard]] std::vector<std::string> notes(bool between_peers) const;
  /// Whether this many simultaneous copies from a device share its engines; empty if not.
  [[nodiscard]] std::string sharing_note(int copies) const;
  /// How copies of pageable memory are done; empty if unknown.
  [[nodiscard]] std::string pageable_note() const;

 private:
  [[nodiscard]] std::optional<PeerWay> way(int from, int to) const;

  std::string arch_;
  bool amd_;
  CopyRules rules_;
  mutable std::map<std::pair<int, int>, std::optional<PeerWay>> ways_;
};

}  // namespace fabricheck
