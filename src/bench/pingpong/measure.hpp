// The measurement of pingpong, on every rank.
#pragma once

#include <string>

#include "harness/run.hpp"
#include "ranks/rank_group.hpp"

namespace fabricheck::pingpong {

struct PingpongOptions {
  std::string memory = "pageable,pinned";
  std::string operations = "h2d,d2h,there-and-back";
  std::string sizes;
  std::string placement = "given";
};

/// Collective.
void measure_ranks(const PingpongOptions& options, RankGroup& group, Run& run);

}  // namespace fabricheck::pingpong
