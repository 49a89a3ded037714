#include "harness/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace fabricheck {

double median(std::vector<double> values) {
  if (values.empty()) {
    throw std::invalid_argument("the median of no values");
  }
  std::sort(values.begin(), values.end());
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

std::optional<std::size_t> interval_rank(std::size_t n) {
  // Binomial probabilities by logarithms, so that n of some thousands does not underflow.
  const auto count = static_cast<double>(n);
  double cumulative = 0;
  std::size_t rank = 0;
  for (std::size_t k = 0; 2 * k < n; ++k) {
    const auto successes = static_cast<double>(k);
    cumulative += std::exp(std::lgamma(count + 1) - std::lgamma(successes + 1) -
                           std::lgamma(count - successes + 1) - count * std::log(2.0));
    if (cumulative > 0.025) {
      break;
    }
    rank = k + 1;
  }
  return rank == 0 ? std::nullopt : std::optional<std::size_t>(rank);
}

std::optional<double> Summary::relative_half_width() const {
  if (!interval || median == 0) {
    return std::nullopt;
  }
  return std::abs(0.5 * (interval->second - interval->first) / median);
}

Summary summarise(const std::vector<double>& samples) {
  Summary summary;
  summary.median = median(samples);
  std::vector<double> deviations;
  deviations.reserve(samples.size());
  for (const auto sample : samples) {
    deviations.push_back(std::abs(sample - summary.median));
  }
  summary.mad = median(deviations);
  if (const auto rank = interval_rank(samples.size())) {
    auto sorted = samples;
    std::sort(sorted.begin(), sorted.end());
    summary.interval = {sorted[*rank - 1], sorted[sorted.size() - *rank]};
  }
  return summary;
}

double percentile(std::vector<double> values, int percent) {
  const auto number = (values.size() * static_cast<std::size_t>(percent) + 99) / 100;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(number) - 1;
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace fabricheck
