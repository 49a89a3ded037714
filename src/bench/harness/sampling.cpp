#include "harness/sampling.hpp"

#include <algorithm>
#include <cmath>

#include "harness/energy.hpp"
#include "harness/statistics.hpp"
#include "harness/status.hpp"

namespace fabricheck {
namespace {

/// Where a batch may be as long: then little is done between batches, as writing the destination.
constexpr double kHeldBatchSeconds = 1;

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

bool SeriesEnd::has_enough(const std::vector<double>& rates, double seconds) {
  const auto taken = static_cast<int>(rates.size());
  seconds_ = seconds;
  if (taken <= rules_.min_samples || seconds <= rules_.series_seconds) {
    own_ = seconds;
  }
  if (taken < rules_.min_samples) {
    return false;
  }
  const auto width = summarise(rates).relative_half_width();
  if ((width && *width <= rules_.precision) || taken >= rules_.max_samples) {
    return true;
  }
  if (seconds < rules_.series_seconds) {
    return false;
  }
  const bool noisy = width && *width > rules_.noise_limit;
  return !noisy || !rules_.noise->allows(own_, seconds - own_);
}

std::vector<BatchTimes> take_samples(const RunBatch& run, int batch, const SamplingRules& rules,
                                     const Clock& clock) {
  const double start = clock();
  std::vector<BatchTimes> samples;
  std::vector<double> rates;
  SeriesEnd end(rules);
  do {
    samples.push_back(checked(run, batch));
    rates.push_back(1 / samples.back().together());
  } while (!end.has_enough(rates, clock() - start));
  return samples;
}

std::shared_ptr<const EnergyHold> hold(const RunBatch& run, const std::vector<BatchTimes>& samples,
                                       int batch, const SamplingRules& rules) {
  if (rules.meter == nullptr) {
    return nullptr;
  }
  std::vector<double> seconds;
  for (const auto& sample : samples) {
    seconds.push_back(sample.together() / batch);
  }
  const double wanted = std::ceil(kHeldBatchSeconds / median(std::move(seconds)));
  const int held = static_cast<int>(std::clamp(wanted, 1.0, double(rules.max_batch)));
  return std::make_shared<const EnergyHold>(rules.meter->hold(rules.energy_seconds, [&] {
    return EnergyMeter::Repeated{held, checked(run, held).together()};
  }));
}

}  // namespace fabricheck
