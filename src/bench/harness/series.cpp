#include "harness/series.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "harness/energy.hpp"
#include "harness/simulation.hpp"
#include "harness/statistics.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

json or_null(int value) { return value < 0 ? json(nullptr) : json(value); }

json place_json(const Place& place) {
  json result{{"memory", place.memory},
              {"device", or_null(place.device)},
              {"numa_domain", or_null(place.numa_domain)}};
  if (place.huge_page_bytes) {
    result["huge_page_bytes"] = *place.huge_page_bytes;
  }
  return result;
}

std::string hexadecimal(std::uint64_t word) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%016llx", static_cast<unsigned long long>(word));
  return text.data();
}

json verification_json(const Verification& verification) {
  json mismatch = nullptr;
  if (verification.first_mismatch) {
    const auto& first = *verification.first_mismatch;
    const bool typed = !first.expected_text.empty();
    mismatch = {{"device", or_null(first.device)},
                {"offset_bytes", first.offset_bytes},
                {"expected", typed ? first.expected_text : hexadecimal(first.expected)},
                {"found", typed ? first.found_text : hexadecimal(first.found)}};
    if (first.rank >= 0) {
      mismatch["rank"] = first.rank;
    }
  }
  return {{"bytes_checked", verification.bytes_checked},
          {"errors", verification.errors},
          {"first_mismatch", mismatch}};
}

}  // namespace

bool is_judged(const Series& series) {
  const auto& by_sum = experiment::judged_by_sum;
  const bool part = series.role == role::share &&
                    std::find(by_sum.begin(), by_sum.end(), series.experiment) != by_sum.end();
  return series.in_memory && !part && series.role != role::beside;
}

json series_json(const Series& series, double noise_limit) {
  const auto bytes = static_cast<double>(series.bytes_moved) * series.batch;
  const auto in_unit = [&series, bytes](const std::vector<double>& seconds) {
    std::vector<double> result;
    result.reserve(seconds.size());
    for (const auto time : seconds) {
      result.push_back(series.latency ? time / series.batch * 1e6 : bytes / time / 1e9);
    }
    return result;
  };
  const auto samples = in_unit(series.seconds);
  const auto summary = summarise(samples);
  const auto width = summary.relative_half_width();

  json interval = nullptr;
  if (summary.interval) {
    interval = {summary.interval->first, summary.interval->second};
  }
  json host = nullptr;
  if (!series.host_seconds.empty() && !kSimulated) {  // there, both are the same clock
    const auto by_host = median(in_unit(series.host_seconds));
    const auto ratio = by_host / summary.median;
    host = {{"median", by_host}, {"ratio", ratio}, {"agrees", std::abs(ratio - 1) <= 0.02}};
  }
  json result{{"experiment", series.experiment},
              {"operation", series.operation},
              {"role", series.role},
              {"device", or_null(series.device)},
              {"device_set", series.device_set},
              {"source", place_json(series.source)},
              {"destination", place_json(series.destination)},
              {"engine", series.engine},
              {"engines", series.engines ? json(*series.engines) : json(nullptr)},
              {"stores", series.stores.empty() ? json(nullptr) : json(series.stores)},
              {"loads", series.loads.empty() ? json(nullptr) : json(series.loads)},
              {"movement", series.movement.empty() ? json(nullptr) : json(series.movement)},
              {"direction", series.direction},
              {"bytes", series.bytes},
              {"bytes_moved", series.bytes_moved},
              {"bytes_counted", series.read_and_write ? counted::read_write : counted::once},
              {"regime", series.in_memory ? regime::memory : regime::cache},
              {"block_size", series.block_size > 0 ? json(series.block_size) : json(nullptr)},
              {"elements", series.elements > 0 ? json(series.elements) : json(nullptr)},
              {"grid", series.grid > 0 ? json(series.grid) : json(nullptr)},
              {"passes", series.passes > 0 ? json(series.passes) : json(nullptr)},
              {"batch", series.batch},
              {"unit", series.latency ? unit::us : unit::gb_per_s},
              {"better", series.latency ? better::lower : better::higher},
              {"samples", samples},
              {"median", summary.median},
              {"mad", summary.mad},
              {"ci95", interval},
              {"relative_half_width", width ? json(*width) : json(nullptr)},
              {"host_clock", host},
              {"noisy", width && *width > noise_limit},
              {"verification", verification_json(series.verification)}};
  if (series.energy != nullptr) {
    auto devices = series.device_set;
    devices.insert(devices.end(), {series.source.device, series.destination.device});
    const auto of_operation = static_cast<double>(series.bytes_moved) * series.messages;
    result["energy"] = energy_json(*series.energy, of_operation, devices);
  }
  if (!series.ranks.empty()) {
    result["ranks"] = series.ranks;
    result["datatype"] = series.datatype.empty() ? json(nullptr) : json(series.datatype);
    result["placement"] = series.placement.empty() ? json(nullptr) : json(series.placement);
    if (!series.distance.empty()) {
      result["distance"] = series.distance;
    }
    if (series.p99_seconds) {
      result["p99"] = *series.p99_seconds * 1e6;
    }
  }
  return result;
}

}  // namespace fabricheck
