#include "pingpong/report.hpp"

#include <utility>

namespace fabricheck::pingpong {
namespace {

using nlohmann::json;

json place_json(const Place& place) {
  return {{"memory", place.memory},
          {"device", place.device},
          {"numa_domain", place.numa_domain},
          {"huge", place.huge_page_bytes ? json(*place.huge_page_bytes) : json(nullptr)}};
}

Place place_of(const json& content) {
  Place place{content["memory"], content["device"], content["numa_domain"]};
  if (!content["huge"].is_null()) {
    place.huge_page_bytes = content["huge"].get<std::uint64_t>();
  }
  return place;
}

}  // namespace

json to_json(const RankPart& part) {
  const auto& check = part.verification;
  json mismatch = nullptr;
  if (check.first_mismatch) {
    mismatch = {check.first_mismatch->device, check.first_mismatch->offset_bytes,
                check.first_mismatch->expected, check.first_mismatch->found};
  }
  return {{"source", place_json(part.source)},
          {"destination", place_json(part.destination)},
          {"in_memory", part.in_memory},
          {"seconds", part.seconds},
          {"checked", check.bytes_checked},
          {"errors", check.errors},
          {"mismatch", mismatch}};
}

RankPart rank_part(const json& content) {
  RankPart part{place_of(content["source"]),
                place_of(content["destination"]),
                content["in_memory"],
                content["seconds"],
                {}};
  part.verification.bytes_checked = content["checked"];
  part.verification.errors = content["errors"];
  if (const auto& mismatch = content["mismatch"]; !mismatch.is_null()) {
    part.verification.first_mismatch = {mismatch[0], mismatch[1], mismatch[2], mismatch[3]};
  }
  return part;
}

Series exchange_series(const ExchangeJob& job, RankPart part, int device,
                       const std::vector<int>& device_set, bool alone) {
  Series series;
  series.experiment = experiment::E6;
  series.operation = exchange_name(job.exchange);
  series.role = alone ? role::single : role::share;
  series.device = device;
  series.device_set = device_set;
  series.source = std::move(part.source);
  series.destination = std::move(part.destination);
  for (auto* place : {&series.source, &series.destination}) {
    place->device = place->device < 0 ? -1 : device;
  }
  series.direction =
      job.exchange == Exchange::there_and_back ? direction::both_ways : direction::one_way;
  series.bytes = job.bytes;
  series.bytes_moved = job.bytes_moved();
  series.read_and_write = false;
  series.in_memory = part.in_memory;
  series.seconds = std::move(part.seconds);
  series.verification = part.verification;
  if (auto& mismatch = series.verification.first_mismatch; mismatch && mismatch->device >= 0) {
    mismatch->device = device;
  }
  return series;
}

}  // namespace fabricheck::pingpong
