// Where the pages of managed memory lie.
#pragma once

#include <cstdint>
#include <map>

#include "node.hpp"

namespace fabricheck_sim {

/// The pages of one managed allocation.
class Pages {
 public:
  /// All pages on one place; an empty one: nobody has touched them yet.
  explicit Pages(const Place& place) : runs_{{0, place}} {}

  [[nodiscard]] const Place& at(std::uint64_t offset) const;
  /// Bytes of [first, last) on each place.
  [[nodiscard]] std::map<Place, std::uint64_t> bytes(std::uint64_t first, std::uint64_t last) const;
  /// Moves the pages that hold any of [first, last).
  void move(std::uint64_t first, std::uint64_t last, const Place& place);

 private:
  std::map<std::uint64_t, Place> runs_;  // from this offset on, up to the next one
};

}  // namespace fabricheck_sim
