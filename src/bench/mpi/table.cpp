#include "mpi/table.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/sizes.hpp"
#include "harness/table.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck::mpi {
namespace {

using nlohmann::json;

std::string what_of(const json& series) {
  return series["operation"].get<std::string>() + ", " +
         format_size(series["bytes"].get<std::uint64_t>()) + " of " +
         series["datatype"].get<std::string>() + ", " + series["unit"].get<std::string>();
}

/// The matrices of pairs, in the order of the document.
std::vector<Matrix> matrices_of(const json& document) {
  std::vector<Matrix> matrices;
  for (const auto& series : document["series"]) {
    if (series["experiment"] != experiment::E9 || series["role"] == role::sum) {
      continue;
    }
    const auto ranks = series["ranks"].get<std::vector<int>>();
    const bool both = series["operation"] == operation::bandwidth_both;
    const auto title = what_of(series) + (both ? ", both directions together" : "") +
                       (series["role"] == role::share ? ", disjoint pairs at once" : "") +
                       " (row: source, column: destination)";
    auto& matrix = matrix_of(matrices, title);
    matrix.rows.insert(ranks.begin(), ranks.end());
    matrix.columns = matrix.rows;
    matrix.cells.try_emplace({ranks.front(), ranks.back()}, cell_of(series));
    if (both) {
      matrix.cells.try_emplace({ranks.back(), ranks.front()}, cell_of(series));
    }
  }
  return matrices;
}

void print_sums(const json& document, std::FILE* out) {
  std::map<std::pair<std::string, std::size_t>, std::pair<double, double>> range;
  for (const auto& series : document["series"]) {
    if (series["experiment"] == experiment::E9 && series["role"] == role::sum) {
      const auto median = series["median"].get<double>();
      const auto key = std::pair(what_of(series), series["ranks"].size());
      auto& [low, high] = range.try_emplace(key, median, median).first->second;
      low = std::min(low, median);
      high = std::max(high, median);
    }
  }
  for (const auto& [key, values] : range) {
    std::fprintf(out, "\n%s, sum of %zu ranks at once: %.4g to %.4g\n", key.first.c_str(),
                 key.second, values.first, values.second);
  }
}

void print_collectives(const json& document, std::FILE* out) {
  struct Rows {
    std::vector<std::string> names;
    std::map<std::pair<std::string, std::size_t>, std::string> cells;
    std::vector<std::size_t> columns;
  };
  std::vector<std::pair<std::string, Rows>> tables;  // in the order of the document
  for (const auto& series : document["series"]) {
    if (series["experiment"] != experiment::E10) {
      continue;
    }
    const auto title = format_size(series["bytes"].get<std::uint64_t>()) + " of " +
                       series["datatype"].get<std::string>();
    auto known = std::find_if(tables.begin(), tables.end(),
                              [&title](const auto& one) { return one.first == title; });
    if (known == tables.end()) {
      known = tables.insert(tables.end(), {title, {}});
    }
    auto& table = known->second;
    const auto name = series["operation"].get<std::string>();
    const auto ranks = series["ranks"].size();
    if (std::find(table.names.begin(), table.names.end(), name) == table.names.end()) {
      table.names.push_back(name);
    }
    if (std::find(table.columns.begin(), table.columns.end(), ranks) == table.columns.end()) {
      table.columns.push_back(ranks);
    }
    table.cells[{name, ranks}] = cell_of(series);
  }
  for (auto& [title, table] : tables) {
    std::sort(table.columns.begin(), table.columns.end());
    std::fprintf(out, "\ncollectives, %s, us (column: ranks)\n%14s", title.c_str(), "");
    for (const auto column : table.columns) {
      std::fprintf(out, " %9zu", column);
    }
    for (const auto& name : table.names) {
      std::fprintf(out, "\n%14s", name.c_str());
      for (const auto column : table.columns) {
        const auto cell = table.cells.find({name, column});
        std::fprintf(out, " %9s", cell == table.cells.end() ? "-" : cell->second.c_str());
      }
    }
    std::fprintf(out, "\n");
  }
}

void print_verified(const json& document, std::FILE* out) {
  std::vector<std::string> names;
  std::size_t number = 0;
  std::uint64_t bytes = 0;
  std::uint64_t wrong = 0;
  for (const auto& series : document["series"]) {
    if (series["experiment"] != experiment::E12) {
      continue;
    }
    const auto name = series["operation"].get<std::string>();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
    ++number;
    bytes += series["verification"]["bytes_checked"].get<std::uint64_t>();
    wrong += series["verification"]["errors"].get<std::uint64_t>();
  }
  if (number == 0) {
    return;
  }
  std::string list;
  for (const auto& name : names) {
    list += (list.empty() ? "" : ", ") + name;
  }
  const auto result = wrong == 0 ? std::string("all right") : std::to_string(wrong) + " WRONG";
  std::fprintf(out, "\ntypes and counts of %s: %zu cases, %s compared, %s\n", list.c_str(), number,
               format_size(bytes).c_str(), result.c_str());
}

}  // namespace

void print_ranks(const json& document, std::FILE* out) {
  const auto matrices = matrices_of(document);
  print_matrices(document, matrices, out);
  print_sums(document, out);
  print_collectives(document, out);
  print_verified(document, out);
}

}  // namespace fabricheck::mpi
