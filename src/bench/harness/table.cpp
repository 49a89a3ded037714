#include "harness/table.hpp"

#include <algorithm>
#include <array>

#include "harness/sizes.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

std::string place_text(const json& place) {
  const auto memory = place["memory"].get<std::string>();
  if (place["device"].is_number()) {
    return memory + " " + place["device"].dump();
  }
  const auto& domain = place["numa_domain"];
  return domain.is_number() ? memory + " NUMA " + domain.dump() : memory;
}

std::string listed(const json& numbers) {
  std::string list;
  for (const auto& number : numbers) {
    list += (list.empty() ? "" : ",") + number.dump();
  }
  return list;
}

/// The ranks that worked, else the devices; of a device's share also those beside it.
std::string set_text(const json& series) {
  const auto devices = listed(series["device_set"]);
  const bool of_ranks = series.contains("ranks");
  const auto set = of_ranks ? "rank " + listed(series["ranks"]) : devices;
  if (series["role"] == role::share) {
    return of_ranks ? "share of " + set : series["device"].dump() + " of " + devices;
  }
  return series["role"] == role::sum ? "sum of " + set : set;
}

/// Whether the data of a series is right: "verified", or the number of wrong words.
std::string data_of(const json& series) {
  const auto errors = series["verification"]["errors"].get<std::uint64_t>();
  return errors == 0 ? "verified" : std::to_string(errors) + " WRONG";
}

}  // namespace

void print_table(const Table& table, std::FILE* out) {
  std::vector<std::string> lines(1 + table.rows.size());
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::vector<std::string> texts{table.columns[i].title};
    std::size_t width = texts.front().size();
    for (const auto& row : table.rows) {
      texts.push_back(row[i]);
      width = std::max(width, row[i].size());
    }
    for (std::size_t line = 0; line < lines.size(); ++line) {
      const std::string space(width - texts[line].size(), ' ');
      lines[line] += i > 0 ? " " : "";
      lines[line] += table.columns[i].right ? space + texts[line] : texts[line] + space;
    }
  }
  for (const auto& line : lines) {
    std::fprintf(out, "%s\n", line.substr(0, line.find_last_not_of(' ') + 1).c_str());
  }
}

std::string formatted(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string number_or_dash(const json& value) { return value.is_number() ? value.dump() : "-"; }

std::string variant_of(const json& series) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (series["elements"].is_number() && series["elements"] > 1) {
    add(series["elements"].dump() + " elements a thread");
  }
  if (series["loads"] == loads::streaming) {
    add("streaming loads");
  }
  if (series["grid"].is_number()) {
    add(series["grid"].dump() + (series["grid"] == 1 ? " block" : " blocks"));
  }
  return text;
}

std::string spans_of(const json& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() &&
           numbers[last + 1].get<int>() == numbers[last].get<int>() + 1) {
      ++last;
    }
    text += (text.empty() ? "" : ",") + numbers[i].dump();
    text += last > i ? "-" + numbers[last].dump() : "";
    i = last + 1;
  }
  return text.empty() ? "none" : text;
}

void print_series(const json& document, std::FILE* out) {
  if (document["series"].empty()) {
    return;
  }
  std::fprintf(out, "%s, runtime %s, %s\n", document["program"]["name"].get<std::string>().c_str(),
               document["program"]["runtime"].get<std::string>().c_str(),
               document["clock"].get<std::string>().c_str());
  Table table{{left("exp"), left("what"), left("who"), left("source -> destination"),
               right("bytes"), right("block"), right("median"), left(""), right("95 % interval"),
               right("n"), left("counted"), left("data"), left("kernel")}};
  for (const auto& series : document["series"]) {
    std::string interval = "-";
    if (const auto& ends = series["ci95"]; ends.is_array()) {
      interval = formatted("%.4g to ", ends[0]) + formatted("%.4g", ends[1]) +
                 (series["noisy"].get<bool>() ? " noisy" : "");
    }
    table.rows.push_back({series["experiment"], series["operation"], set_text(series),
                          place_text(series["source"]) + " -> " + place_text(series["destination"]),
                          format_size(series["bytes"]), number_or_dash(series["block_size"]),
                          formatted("%.5g", series["median"]), series["unit"], interval,
                          std::to_string(series["samples"].size()), series["bytes_counted"],
                          data_of(series), variant_of(series)});
  }
  if (std::all_of(table.rows.begin(), table.rows.end(),
                  [](const auto& row) { return row.back().empty(); })) {
    table.columns.pop_back();
  }
  print_table(table, out);
}

}  // namespace fabricheck
