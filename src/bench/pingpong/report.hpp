// The measured values of each rank, as ranks exchange them, and the series of a rank.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "harness/series.hpp"
#include "pingpong/plan.hpp"

namespace fabricheck::pingpong {

/// One rank's part of a job.
struct RankPart {
  Place source, destination;    ///< the device as the rank's process numbers it
  bool in_memory = true;        ///< its arrays are past the caches that it has for itself
  std::vector<double> seconds;  ///< of each sample
  Verification verification;
};
nlohmann::json to_json(const RankPart& part);
RankPart rank_part(const nlohmann::json& content);

/// A rank's series. `device` is the rank's, `device_set` that of all ranks that work at the same
/// time, both as the document numbers them; `alone`: there is no other rank.
Series exchange_series(const ExchangeJob& job, RankPart part, int device,
                       const std::vector<int>& device_set, bool alone);

}  // namespace fabricheck::pingpong
