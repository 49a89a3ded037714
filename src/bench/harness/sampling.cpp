#include "harness/sampling.hpp"

#include <algorithm>
#include <cmath>

#include "harness/statistics.hpp"
#include "harness/status.hpp"

namespace fabricheck {
namespace {

BatchTimes checked(const RunBatch& run, int batch) {
  auto times = run(batch);
  for (std::size_t i = 0; i < times.device.size(); ++i) {
    // Event times of tiny kernels can be zero or negative on some drivers: no rate follows.
    if (!(times.device[i] > 0) || !std::isfinite(times.device[i])) {
      throw Failure(Status::software, "device events of member " + std::to_string(i) +
                                          " of the set gave a time that is not positive");
    }
  }
  return times;
}

}  // namespace

double BatchTimes::together() const {
  const double slowest = *std::max_element(device.begin(), device.end());
  return device.size() > 1 && host > 1.02 * slowest ? host : slowest;
}

int calibrate(const RunBatch& run, const SamplingRules& rules, double at_least,
              const Clock& clock) {
  const double start = clock();
  int batch = 1;
  for (;;) {
    const double time = checked(run, batch).together();
    const bool long_enough = time >= rules.batch_seconds || batch >= rules.max_batch;
    if (long_enough && clock() - start >= at_least) {
      return batch;
    }
    if (!long_enough) {
      // Aim a tenth above, so that a faster next batch does not fall short again.
      const double wanted = 1.1 * batch * rules.batch_seconds / time;
      const double bounded = std::clamp(wanted, batch + 1.0, 16.0 * batch);
      batch = static_cast<int>(std::min(std::ceil(bounded), double(rules.max_batch)));
    }
  }
}

bool has_enough(const std::vector<double>& rates, double seconds, const SamplingRules& rules) {
  const auto taken = static_cast<int>(rates.size());
  if (taken < rules.min_samples) {
    return false;
  }
  const auto width = summarise(rates).relative_half_width();
  // A burst of other work on the host must not end as "too noisy to judge".
  const bool noisy = width && *width > rules.noise_limit;
  return (width && *width <= rules.precision) || taken >= rules.max_samples ||
         seconds >= rules.series_seconds * (noisy ? rules.noisy_times : 1);
}

std::vector<BatchTimes> take_samples(const RunBatch& run, int batch, const SamplingRules& rules,
                                     const Clock& clock) {
  const double start = clock();
  std::vector<BatchTimes> samples;
  std::vector<double> rates;
  do {
    samples.push_back(checked(run, batch));
    rates.push_back(1 / samples.back().together());
  } while (!has_enough(rates, clock() - start, rules));
  return samples;
}

}  // namespace fabricheck
