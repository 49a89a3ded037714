// The repetition of an operation: the length of a batch, and the number of samples.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace fabricheck {

/// How much longer noise may make a run: by as much again as its series have taken without, all
/// noisy ones together.
class NoiseAllowance {
 public:
  /// Whether a noisy series may go on, that took so many seconds without the `more` for its noise.
  [[nodiscard]] bool allows(double seconds, double more) const {
    return more_ + more < seconds_ + seconds;
  }
  /// Counts a series that has ended.
  void count(double seconds, double more) {
    seconds_ += seconds;
    more_ += more;
  }

 private:
  double seconds_ = 0;
  double more_ = 0;
};

class EnergyMeter;
struct EnergyHold;

/// The rules of sampling; defaults are those of docs/evidence/method.md.
struct SamplingRules {
  int min_samples = 7;
  int max_samples = 51;
  double precision = 0.01;       ///< stop when the interval's relative half width is at most this
  double noise_limit = 0.10;     ///< above this a series is noisy
  double batch_seconds = 0.01;   ///< a sample lasts at least this long, if max_batch allows
  int max_batch = 4096;          ///< operations per sample
  double warm_up_seconds = 0.2;  ///< of the first series of a device set: clocks ramp up meanwhile
  double series_seconds = 5;     ///< no new sample after this, once min_samples are there
  double energy_seconds = 0;     ///< how long a series is held for its energy, at least; 0: not
  /// Of the run, where it has counters of energy: what copies the rules shares it.
  std::shared_ptr<EnergyMeter> meter{};
  /// Of the run: what copies the rules shares it.
  std::shared_ptr<NoiseAllowance> noise = std::make_shared<NoiseAllowance>();
};

/// Times of one batch run by one or several devices at once, in seconds.
struct BatchTimes {
  std::vector<double> device;  ///< per device, between its events
  double host = 0;             ///< of all together, by the host's clock
  /// The set's time: that of its last device, if the host's clock agrees within 2 %. Otherwise the
  /// devices did not all work at once, and the time is the host's, from the common start to the
  /// last end.
  [[nodiscard]] double together() const;
};

/// Runs `batch` operations on every device of the set and returns their times.
using RunBatch = std::function<BatchTimes(int batch)>;
/// Seconds since some point, by the host's clock; a parameter so that tests can replace it.
using Clock = std::function<double()>;

/// Seconds of the clock that programs measure by: the host's or, on a simulated node, the simulated
/// one.
double host_seconds();
/// Seconds of the monotonic clock of this machine, for time limits and progress.
inline double wall_seconds() {
  const auto now = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(now.time_since_epoch()).count();
}

/// The number of operations that make a batch last rules.batch_seconds. `at_least` is the minimum
/// time of operations in seconds (warm-up). Throws Failure(software) when a time is not
/// positive.
int calibrate(const RunBatch& run, const SamplingRules& rules, double at_least,
              const Clock& clock = host_seconds);

/// When a series has its samples; one for each series, whose time it counts at its end.
class SeriesEnd {
 public:
  explicit SeriesEnd(const SamplingRules& rules) : rules_(rules) {}
  SeriesEnd(const SeriesEnd&) = delete;
  SeriesEnd& operator=(const SeriesEnd&) = delete;
  ~SeriesEnd() { rules_.noise->count(own_, seconds_ - own_); }

  /// Whether there are enough samples: at least min_samples, then until the interval of the rates
  /// is as narrow as `precision`, or max_samples or series_seconds are reached. A burst of other
  /// work on the host must not end as "too noisy to judge": a series that is noisy then goes on for
  /// as long as the run's allowance has time. `seconds` is that of the series.
  bool has_enough(const std::vector<double>& rates, double seconds);

 private:
  const SamplingRules& rules_;
  double own_ = 0;
  double seconds_ = 0;
};

/// Samples of `batch` operations, until the rates of the set's time are enough.
std::vector<BatchTimes> take_samples(const RunBatch& run, int batch, const SamplingRules& rules,
                                     const Clock& clock = host_seconds);

/// Repeats the operation of a series that has its samples, in batches of up to a second, and
/// measures the energy; null where the rules ask for none, or there is no counter.
std::shared_ptr<const EnergyHold> hold(const RunBatch& run, const std::vector<BatchTimes>& samples,
                                       int batch, const SamplingRules& rules);

}  // namespace fabricheck
