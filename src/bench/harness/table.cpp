#include "harness/table.hpp"

#include <array>

#include "harness/sizes.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

std::string place_text(const json& place) {
  const auto memory = place["memory"].get<std::string>();
  if (place["device"].is_number()) {
    return memory + " " + std::to_string(place["device"].get<int>());
  }
  if (place["numa_domain"].is_number()) {
    return memory + " NUMA " + std::to_string(place["numa_domain"].get<int>());
  }
  return memory;
}

std::string set_text(const json& series) {
  std::string set;
  for (const auto& device : series["device_set"]) {
    set += (set.empty() ? "" : ",") + std::to_string(device.get<int>());
  }
  const auto role = series["role"].get<std::string>();
  if (role == role::share) {
    return std::to_string(series["device"].get<int>()) + " of " + set;
  }
  return role == role::sum ? "sum of " + set : set;
}

void print_head(const json& document, const char* end, std::FILE* out) {
  std::fprintf(out, "%s, runtime %s, %s%s\n",
               document["program"]["name"].get<std::string>().c_str(),
               document["program"]["runtime"].get<std::string>().c_str(),
               document["clock"].get<std::string>().c_str(), end);
}

void print_matrix(const Matrix& matrix, std::FILE* out) {
  std::fprintf(out, "\n%s\n%6s", matrix.title.c_str(), "");
  for (const int column : matrix.columns) {
    std::fprintf(out, " %9d", column);
  }
  for (const int row : matrix.rows) {
    std::fprintf(out, "\n%6d", row);
    for (const int column : matrix.columns) {
      const auto cell = matrix.cells.find({row, column});
      std::fprintf(out, " %9s", cell == matrix.cells.end() ? "-" : cell->second.c_str());
    }
  }
  std::fprintf(out, "\n");
}

}  // namespace

std::string cell_of(const json& series) {
  std::array<char, 32> text{};
  const bool wrong = series["verification"]["errors"].get<std::uint64_t>() > 0;
  std::snprintf(text.data(), text.size(), "%.4g%s%s", series["median"].get<double>(),
                series["noisy"].get<bool>() ? "~" : "", wrong ? "!" : "");
  return text.data();
}

Matrix& matrix_of(std::vector<Matrix>& matrices, const std::string& title) {
  for (auto& matrix : matrices) {
    if (matrix.title == title) {
      return matrix;
    }
  }
  return matrices.emplace_back(Matrix{title, {}, {}, {}});
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

void print_matrices(const json& document, const std::vector<Matrix>& matrices, std::FILE* out) {
  if (matrices.empty()) {
    return;
  }
  print_head(document, "; ~ noisy, ! wrong data", out);
  for (const auto& matrix : matrices) {
    print_matrix(matrix, out);
  }
}

void print_table(const json& document, std::FILE* out) {
  if (document["series"].empty()) {
    return;
  }
  print_head(document, "", out);
  std::fprintf(out, "%-3s %-12s %-12s %-36s %9s %5s %10s %23s %4s %-10s %s\n", "exp", "what",
               "device", "source -> destination", "bytes", "block", "median", "95 % interval", "n",
               "counted", "data");
  for (const auto& series : document["series"]) {
    const auto unit = series["unit"].get<std::string>();
    std::string interval = "-";
    if (series["ci95"].is_array()) {
      char text[64];
      std::snprintf(text, sizeof text, "%.4g to %.4g%s", series["ci95"][0].get<double>(),
                    series["ci95"][1].get<double>(), series["noisy"].get<bool>() ? " noisy" : "");
      interval = text;
    }
    const auto block = series["block_size"].is_number()
                           ? std::to_string(series["block_size"].get<int>())
                           : std::string("-");
    const auto errors = series["verification"]["errors"].get<std::uint64_t>();
    std::fprintf(
        out, "%-3s %-12s %-12s %-36s %9s %5s %5.5g %-4s %23s %4zu %-10s %s\n",
        series["experiment"].get<std::string>().c_str(),
        series["operation"].get<std::string>().c_str(), set_text(series).c_str(),
        (place_text(series["source"]) + " -> " + place_text(series["destination"])).c_str(),
        format_size(series["bytes"].get<std::uint64_t>()).c_str(), block.c_str(),
        series["median"].get<double>(), unit.c_str(), interval.c_str(), series["samples"].size(),
        series["bytes_counted"].get<std::string>().c_str(),
        errors == 0 ? "verified" : (std::to_string(errors) + " WRONG").c_str());
  }
}

}  // namespace fabricheck
