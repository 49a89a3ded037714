#include "pingpong/report.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/sizes.hpp"
#include "harness/table.hpp"

namespace fabricheck::pingpong {
namespace {

using nlohmann::json;

json place_json(const Place& place) {
  return {{"memory", place.memory},
          {"device", place.device},
          {"numa_domain", place.numa_domain},
          {"huge", place.huge_page_bytes ? json(*place.huge_page_bytes) : json(nullptr)}};
}

Place place_of(const json& told) {
  Place place{told["memory"], told["device"], told["numa_domain"]};
  if (!told["huge"].is_null()) {
    place.huge_page_bytes = told["huge"].get<std::uint64_t>();
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

RankPart rank_part(const json& told) {
  RankPart part{place_of(told["source"]),
                place_of(told["destination"]),
                told["in_memory"],
                told["seconds"],
                {}};
  part.verification.bytes_checked = told["checked"];
  part.verification.errors = told["errors"];
  if (const auto& mismatch = told["mismatch"]; !mismatch.is_null()) {
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
  series.direction = job.exchange == Exchange::both ? direction::both_ways : direction::one_way;
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

CopyTimes copy_times(const json& series) {
  CopyTimes times;
  const auto bytes = series["bytes_moved"].get<double>() * series["batch"].get<double>();
  std::vector<double> seconds;
  for (const auto& sample : series["samples"]) {
    seconds.push_back(bytes / (sample.get<double>() * 1e9));
    times.mean += seconds.back();
  }
  const auto count = static_cast<double>(seconds.size());
  times.mean /= count;
  for (const double one : seconds) {
    times.deviation += (one - times.mean) * (one - times.mean);
  }
  times.deviation = count > 1 ? std::sqrt(times.deviation / (count - 1)) : 0;
  times.least = *std::min_element(seconds.begin(), seconds.end());
  times.most = *std::max_element(seconds.begin(), seconds.end());
  return times;
}

void print_ranks(const json& document, std::FILE* out) {
  const auto& all = document["series"];
  if (all.empty()) {
    return;
  }
  std::fprintf(out, "pingpong, runtime %s, %s, placement %s; GB/s is bytes over the mean time\n",
               document["program"]["runtime"].get<std::string>().c_str(),
               document["clock"].get<std::string>().c_str(),
               all[0]["placement"].get<std::string>().c_str());
  Table table{{right("rank"), left("cores"), right("NUMA"), right("device"), left("memory"),
               left("what"), right("bytes"), right("mean ms"), right("deviation"), right("min ms"),
               right("max ms"), right("GB/s"), right("n"), left("data")}};
  for (const auto& series : all) {
    const auto& rank = series["ranks"][0];
    const auto& place = document["ranks"][rank.get<std::size_t>()];
    const auto& host = series[series["operation"] == operation::d2h ? "destination" : "source"];
    const auto times = copy_times(series);
    table.rows.push_back({number_or_dash(rank), spans_of(place["cores"]),
                          number_or_dash(host["numa_domain"]), number_or_dash(series["device"]),
                          host["memory"], series["operation"], format_size(series["bytes"]),
                          formatted("%.5f", 1e3 * times.mean),
                          formatted("%.5f", 1e3 * times.deviation),
                          formatted("%.5f", 1e3 * times.least), formatted("%.5f", 1e3 * times.most),
                          formatted("%.5g", series["bytes_moved"].get<double>() / times.mean / 1e9),
                          std::to_string(series["samples"].size()),
                          data_of(series) + (series["noisy"].get<bool>() ? ", noisy" : "")});
  }
  print_table(table, out);
}

}  // namespace fabricheck::pingpong
