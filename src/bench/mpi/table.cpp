#include "mpi/table.hpp"

#include <algorithm>
#include <map>
#include <set>
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
  return series["operation"].get<std::string>() + ", " + format_size(series["bytes"]) + " of " +
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
    auto& rows = matrix_of(matrices, title).rows;
    for (const int rank : ranks) {
      rows[rank].try_emplace(rank);
    }
    rows[ranks.front()].try_emplace(ranks.back(), cell_of(series));
    if (both) {
      rows[ranks.back()].try_emplace(ranks.front(), cell_of(series));
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
  std::vector<Matrix> matrices;
  std::map<std::string, int> order;  // of the operations in the document
  for (const auto& series : document["series"]) {
    if (series["experiment"] != experiment::E10) {
      continue;
    }
    auto& matrix =
        matrix_of(matrices, "collectives, " + format_size(series["bytes"]) + " of " +
                                series["datatype"].get<std::string>() + ", us (column: ranks)");
    const auto name = series["operation"].get<std::string>();
    const int row = order.try_emplace(name, order.size()).first->second;
    matrix.names[row] = name;
    matrix.rows[row][static_cast<int>(series["ranks"].size())] = cell_of(series);
  }
  for (const auto& matrix : matrices) {
    print_matrix(matrix, out);
  }
}

void print_verified(const json& document, std::FILE* out) {
  std::string names;
  std::set<std::string> named;
  std::size_t number = 0;
  std::uint64_t bytes = 0;
  std::uint64_t wrong = 0;
  for (const auto& series : document["series"]) {
    if (series["experiment"] != experiment::E12) {
      continue;
    }
    const auto name = series["operation"].get<std::string>();
    if (named.insert(name).second) {
      names += (names.empty() ? "" : ", ") + name;
    }
    ++number;
    bytes += series["verification"]["bytes_checked"].get<std::uint64_t>();
    wrong += series["verification"]["errors"].get<std::uint64_t>();
  }
  if (number == 0) {
    return;
  }
  const auto result = wrong == 0 ? std::string("all right") : std::to_string(wrong) + " WRONG";
  std::fprintf(out, "\ntypes and counts of %s: %zu cases, %s compared, %s\n", names.c_str(), number,
               format_size(bytes).c_str(), result.c_str());
}

}  // namespace

void print_ranks(const json& document, std::FILE* out) {
  print_matrices(document, matrices_of(document), out);
  print_sums(document, out);
  print_collectives(document, out);
  print_verified(document, out);
}

}  // namespace fabricheck::mpi
