#include "memcpy/matrix.hpp"

#include <string>
#include <vector>

#include "harness/sizes.hpp"
#include "harness/table.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck::copies {

using nlohmann::json;

void print_domains(const json& document, std::FILE* out) {
  std::vector<Matrix> matrices;
  auto rest = document;
  rest["series"] = json::array();
  for (const auto& series : document["series"]) {
    if (series["experiment"] != experiment::E4) {
      rest["series"].push_back(series);
      continue;
    }
    const bool sum = series["role"] == role::sum;
    if (series["role"] == role::share) {
      continue;  // the sum is in the matrix, both shares in the document
    }
    const auto& host =
        series["source"]["memory"] == memory::device ? series["destination"] : series["source"];
    const auto title =
        series["operation"].get<std::string>() + ", " + host["memory"].get<std::string>() + ", " +
        format_size(series["bytes"].get<std::uint64_t>()) + ", GB/s, bytes counted once" +
        (sum ? ", sum of both directions" : "") + " (row: NUMA domain, column: device)";
    const int domain = host["numa_domain"].get<int>();
    const int device = series["device_set"][0].get<int>();
    matrix_of(matrices, title).rows[domain][device] = cell_of(series);
  }
  print_matrices(document, matrices, out);
  print_series(rest, out);
}

}  // namespace fabricheck::copies
