#include "p2p/matrix.hpp"

#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/sizes.hpp"
#include "harness/table.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

struct Matrix {
  std::string title;
  std::map<std::pair<int, int>, std::string> cells;  // by source and destination
  std::set<int> devices;
};

/// What rows and columns are, where it is not plainly source and destination.
std::string title_of(const json& series) {
  const auto operation = series["operation"].get<std::string>();
  auto title = operation + ", " + format_size(series["bytes"].get<std::uint64_t>()) + ", " +
               series["unit"].get<std::string>();
  if (series["unit"] == "GB/s") {
    title += ", bytes counted " + series["bytes_counted"].get<std::string>();
  }
  if (operation == "copy") {
    return title + " (row: device that executes, column: device of both arrays)";
  }
  if (series["role"] == "sum") {
    return title + " (sum of both directions)";
  }
  return title + " (row: source, column: destination)";
}

std::string cell_of(const json& series) {
  std::array<char, 32> text{};
  const bool wrong = series["verification"]["errors"].get<std::uint64_t>() > 0;
  std::snprintf(text.data(), text.size(), "%.4g%s%s", series["median"].get<double>(),
                series["noisy"].get<bool>() ? "~" : "", wrong ? "!" : "");
  return text.data();
}

void print(const Matrix& matrix, std::FILE* out) {
  std::fprintf(out, "\n%s\n%6s", matrix.title.c_str(), "");
  for (const int to : matrix.devices) {
    std::fprintf(out, " %9d", to);
  }
  for (const int from : matrix.devices) {
    std::fprintf(out, "\n%6d", from);
    for (const int to : matrix.devices) {
      const auto cell = matrix.cells.find({from, to});
      std::fprintf(out, " %9s", cell == matrix.cells.end() ? "-" : cell->second.c_str());
    }
  }
  std::fprintf(out, "\n");
}

}  // namespace

void print_matrices(const json& document, std::FILE* out) {
  std::vector<Matrix> matrices;
  auto rest = document;
  rest["series"] = json::array();
  for (const auto& series : document["series"]) {
    const auto devices = series["device_set"].get<std::vector<int>>();
    const bool sum = series["role"] == "sum";
    if (devices.size() > 2) {
      rest["series"].push_back(series);
      continue;
    }
    if (series["role"] == "share") {
      continue;  // of a pair: its sum is in the matrix, both shares in the document
    }
    const auto title = title_of(series);
    if (matrices.empty() || matrices.back().title != title) {
      matrices.push_back({title, {}, {}});
    }
    auto& matrix = matrices.back();
    matrix.devices.insert(devices.begin(), devices.end());
    const auto cell = cell_of(series);
    matrix.cells[{devices.front(), devices.back()}] = cell;
    if (sum) {
      matrix.cells[{devices.back(), devices.front()}] = cell;
    }
  }
  if (!matrices.empty()) {
    std::fprintf(out, "%s, runtime %s, %s; ~ noisy, ! wrong data\n",
                 document["program"]["name"].get<std::string>().c_str(),
                 document["program"]["runtime"].get<std::string>().c_str(),
                 document["clock"].get<std::string>().c_str());
  }
  for (const auto& matrix : matrices) {
    print(matrix, out);
  }
  print_table(rest, out);
}

}  // namespace fabricheck
