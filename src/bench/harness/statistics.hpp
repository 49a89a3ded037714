// Statistics of a series of samples that assume no distribution.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace fabricheck {

/// Median, spread and interval of a series, in the unit of its samples.
struct Summary {
  double median = 0;
  double mad = 0;  ///< median absolute deviation from the median, not scaled
  std::optional<std::pair<double, double>> interval;  ///< of the median, at least 95 %
  /// Half the interval's width over the median; absent without an interval.
  [[nodiscard]] std::optional<double> relative_half_width() const;
};

/// The median; the mean of the two middle values of an even number. Needs at least one value.
double median(std::vector<double> values);

/// Rank k (from 1) such that [x(k), x(n+1-k)] covers the median with at least 95 %: the largest
/// k with P(Binomial(n, 1/2) < k) <= 2.5 %. Absent below six samples, where none exists.
std::optional<std::size_t> interval_rank(std::size_t n);

/// Summary of at least one sample.
Summary summarise(const std::vector<double>& samples);

/// The least of the values that `percent` of them do not exceed. Needs at least one.
double percentile(std::vector<double> values, int percent);

}  // namespace fabricheck
