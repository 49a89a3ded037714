#include "p2p/matrix.hpp"

#include <string>
#include <vector>

#include "harness/sizes.hpp"
#include "harness/table.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck::p2p {
namespace {

using nlohmann::json;

/// What rows and columns are, where it is not plainly source and destination.
std::string title_of(const json& series) {
  const auto operation = series["operation"].get<std::string>();
  auto title = operation + ", " + format_size(series["bytes"].get<std::uint64_t>()) + ", " +
               series["unit"].get<std::string>();
  if (series["unit"] == unit::gb_per_s) {
    title += ", bytes counted " + series["bytes_counted"].get<std::string>();
  }
  if (const auto variant = variant_of(series); !variant.empty()) {
    title += ", " + variant;
  }
  if (operation == operation::copy) {
    return title + " (row: device that executes, column: device of both arrays)";
  }
  if (series["role"] == role::sum) {
    return title + " (sum of both directions)";
  }
  return title + " (row: source, column: destination)";
}

}  // namespace

void print_pairs(const json& document, std::FILE* out) {
  std::vector<Matrix> matrices;
  auto rest = document;
  rest["series"] = json::array();
  for (const auto& series : document["series"]) {
    const auto devices = series["device_set"].get<std::vector<int>>();
    if (devices.size() > 2) {
      rest["series"].push_back(series);
      continue;
    }
    if (series["role"] == role::share) {
      continue;  // of a pair: its sum is in the matrix, both shares in the document
    }
    auto& rows = matrix_of(matrices, title_of(series)).rows;
    for (const int device : devices) {
      rows[device].try_emplace(device);
    }
    rows[devices.front()][devices.back()] = cell_of(series);
    if (series["role"] == role::sum) {
      rows[devices.back()][devices.front()] = cell_of(series);
    }
  }
  print_matrices(document, matrices, out);
  print_series(rest, out);
}

}  // namespace fabricheck::p2p
