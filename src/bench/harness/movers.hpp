// What moves the bytes of copies here: the rules of ROCm asked for the devices of this runtime.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/copy_rules.hpp"
#include "harness/document.hpp"

namespace fabricheck {

/// Of devices that are not AMD's nothing is known: a copy is by copy engine, of unknown number.
class Movers {
 public:
  /// Of the devices and the version of the runtime in use.
  Movers();
  /// `arch` as devices.hpp tells it, `version` as the document's versions.runtime.
  Movers(std::string arch, const std::string& version);

  /// Writes into a series what moves a copy of `bytes` between host memory and a device.
  void of_host(Series& series, std::uint64_t bytes) const;
  /// The same between two devices; within one of AMD a kernel of the runtime copies.
  void of_peers(Series& series, int from, int to, std::uint64_t bytes) const;

  /// What a reader of copies should know, a sentence each.
  [[nodiscard]] std::vector<std::string> notes(bool between_peers) const;
  /// Whether so many copies that leave a device at once share its engines; empty where not.
  [[nodiscard]] std::string sharing_note(int copies) const;
  /// How copies of pageable memory go; empty where that is not known.
  [[nodiscard]] std::string pageable_note() const;

 private:
  [[nodiscard]] std::optional<PeerWay> way(int from, int to) const;

  std::string arch_;
  bool amd_;
  CopyRules rules_;
  mutable std::map<std::pair<int, int>, std::optional<PeerWay>> ways_;
};

}  // namespace fabricheck
