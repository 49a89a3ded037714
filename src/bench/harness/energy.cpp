#include "harness/energy.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "harness/document.hpp"
#include "harness/sampling.hpp"
#include "harness/statistics.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

constexpr std::size_t kLeastSegments = 7;  // fewer values have no interval of their median
constexpr std::size_t kMostSegments = 21;
constexpr std::size_t kStepsOfSegment = 10;
constexpr std::size_t kLeastIdleSteps = 5;
constexpr double kLongestLoad = 60;  // seconds; a counter that needs more gives no watts
constexpr double kSeenInIdle = 0.5;  // load below this part of the idle power shows no delay
constexpr auto kPollEvery = std::chrono::milliseconds(2);

/// The changes from one time to another; empty if `from` is not before `to`.
std::vector<EnergyTick> between(const std::vector<EnergyTick>& ticks, double from, double to) {
  std::vector<EnergyTick> some;
  for (const auto& tick : ticks) {
    if (tick.at >= from && tick.at <= to) {
      some.push_back(tick);
    }
  }
  return some;
}

double slope(const EnergyTick& first, const EnergyTick& last) {
  return (last.joules - first.joules) / (last.at - first.at);
}

std::optional<double> watts_of(const std::vector<EnergyTick>& ticks) {
  if (ticks.size() <= kLeastIdleSteps) {
    return std::nullopt;
  }
  return slope(ticks.front(), ticks.back());
}

/// The middle of changes, through which their line goes.
EnergyTick middle(const std::vector<EnergyTick>& ticks) {
  EnergyTick sum;
  for (const auto& tick : ticks) {
    sum.at += tick.at / static_cast<double>(ticks.size());
    sum.joules += (tick.joules - ticks.front().joules) / static_cast<double>(ticks.size());
  }
  sum.joules += ticks.front().joules;
  return sum;
}

/// How long after `load` the line through the loaded changes meets that through the idle ones.
std::optional<double> delay_of(const std::vector<EnergyTick>& idle,
                               const std::vector<EnergyTick>& loaded, double load) {
  const auto before = watts_of(idle);
  const auto during = watts_of(loaded);
  if (!before || !during || *during - *before < kSeenInIdle * *before) {
    return std::nullopt;
  }
  const auto low = middle(idle);
  const auto high = middle(loaded);
  const double meet =
      (high.joules - *during * high.at - low.joules + *before * low.at) / (*before - *during);
  return meet - load;
}

std::vector<double> segments_of(const std::vector<EnergyTick>& ticks) {
  const std::size_t steps = ticks.empty() ? 0 : ticks.size() - 1;
  const std::size_t count = std::min(kMostSegments, steps / kStepsOfSegment);
  std::vector<double> watts;
  for (std::size_t i = 0; count >= kLeastSegments && i < count; ++i) {
    watts.push_back(slope(ticks[i * steps / count], ticks[(i + 1) * steps / count]));
  }
  return watts;
}

std::optional<double> step_of(const std::vector<EnergyTick>& ticks) {
  std::vector<double> intervals;
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    intervals.push_back(ticks[i].at - ticks[i - 1].at);
  }
  return intervals.empty() ? std::nullopt : std::optional(median(std::move(intervals)));
}

/// Reads all counters every few milliseconds, by a thread of its own, and keeps their changes.
class Polling {
 public:
  Polling(const std::vector<EnergyCounter>& counters, const EnergyMeter::Clocks& clocks)
      : counters_(counters),
        clocks_(clocks),
        last_(counters.size()),
        blocked_(counters.size()),
        ticks_(counters.size()),
        thread_([this] { work(); }) {}
  Polling(const Polling&) = delete;
  Polling& operator=(const Polling&) = delete;
  ~Polling() { stop(); }

  void stop() {
    ended_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  /// Reads the clocks once in so many seconds from now, during whatever goes on then.
  void read_clocks_in(double seconds) { read_at_ = wall_seconds() + seconds; }
  /// What was read last; null if nothing was since the last call.
  json take_clocks() {
    const std::lock_guard lock(mutex_);
    return std::exchange(reading_, nullptr);
  }
  [[nodiscard]] std::vector<EnergyTick> ticks(std::size_t counter) const {
    const std::lock_guard lock(mutex_);
    return ticks_[counter];
  }

 private:
  void work() {
    while (!ended_) {
      for (std::size_t i = 0; i < counters_.size(); ++i) {
        read(i);
      }
      if (const double at = read_at_; at > 0 && wall_seconds() >= at) {
        read_at_ = 0;
        auto reading = clocks_();
        blocked_.assign(counters_.size(), true);
        const std::lock_guard lock(mutex_);
        reading_ = std::move(reading);
      }
      std::this_thread::sleep_for(kPollEvery);
    }
  }

  void read(std::size_t i) {
    const auto joules = counters_[i].joules();
    if (!joules) {
      return;
    }
    // The first value may be of any time; a change was between two readings, of which this is the
    // later one: all are seen late by as much, in the mean.
    // That is not so after the clocks were read, which takes as long as a step.
    if (last_[i] && *last_[i] != *joules && !blocked_[i]) {
      const std::lock_guard lock(mutex_);
      ticks_[i].push_back({wall_seconds(), *joules});
    }
    last_[i] = joules;
    blocked_[i] = false;
  }

  const std::vector<EnergyCounter>& counters_;
  const EnergyMeter::Clocks& clocks_;
  std::vector<std::optional<double>> last_;
  std::vector<bool> blocked_;  ///< by counter, whether it could not be read for some time
  mutable std::mutex mutex_;
  std::vector<std::vector<EnergyTick>> ticks_;
  json reading_;
  std::atomic<double> read_at_{0};
  std::atomic<bool> ended_{false};
  std::thread thread_;  // last: it uses the others
};

void sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

json or_null(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

}  // namespace

double least_load_seconds(double step_s) {
  return kSettleSeconds + 1.1 * static_cast<double>(kLeastSegments * kStepsOfSegment) * step_s;
}

CountedEnergy counted_energy(const std::vector<EnergyTick>& ticks, const HoldTimes& times) {
  CountedEnergy counted;
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    if (ticks[i].joules < ticks[i - 1].joules) {
      counted.why = "the counter went back";
      return counted;
    }
  }
  if (ticks.size() < 2) {
    counted.why = "the counter did not move";
    return counted;
  }
  counted.step_s = step_of(ticks);
  const auto before = between(ticks, times.begin + kSettleSeconds, times.load);
  const auto after = between(ticks, times.unload + kSettleSeconds, times.end);
  auto loaded = between(ticks, times.load + kSettleSeconds, times.unload);
  counted.idle_before_w = watts_of(before);
  counted.idle_after_w = watts_of(after);
  counted.delay_s = delay_of(before, loaded, times.load);
  if (counted.delay_s && 2 * *counted.delay_s > kSettleSeconds) {
    loaded = between(ticks, times.load + 2 * *counted.delay_s, times.unload);
  }
  counted.watts = segments_of(loaded);
  if (counted.watts.empty()) {
    counted.why = "the counter moved " + std::to_string(loaded.size()) +
                  " times during the load, and " +
                  std::to_string(kLeastSegments * kStepsOfSegment + 1) + " are needed";
  }
  return counted;
}

EnergyHold EnergyMeter::hold(double seconds, const std::function<Repeated()>& repeat) {
  EnergyHold result;
  HoldTimes times;
  Polling polling(counters_, clocks_);
  times.begin = wall_seconds();
  polling.read_clocks_in(0.9 * quiet_seconds_);
  sleep(quiet_seconds_);
  result.idle = polling.take_clocks();
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    if (const auto step = step_of(polling.ticks(i))) {
      seconds = std::max(seconds, std::min(least_load_seconds(*step), kLongestLoad));
    }
  }
  polling.read_clocks_in(seconds / 2);
  result.started = timestamp();
  times.load = wall_seconds();
  double busy = 0;
  do {
    const auto repeated = repeat();
    result.operations += repeated.operations;
    busy += repeated.seconds;
    times.unload = wall_seconds();
  } while (times.unload - times.load < seconds);
  result.seconds = times.unload - times.load;
  result.busy = std::min(1.0, busy / result.seconds);
  result.loaded = polling.take_clocks();
  polling.read_clocks_in(0.9 * quiet_seconds_);
  sleep(quiet_seconds_);
  times.end = wall_seconds();
  polling.stop();
  result.after = polling.take_clocks();
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    result.counters.push_back({counters_[i], counted_energy(polling.ticks(i), times)});
  }
  return result;
}

json energy_json(const EnergyHold& hold, double bytes_of_operation,
                 const std::vector<int>& devices) {
  json counters = json::array();
  for (const auto& [counter, counted] : hold.counters) {
    const bool works =
        std::any_of(counter.devices.begin(), counter.devices.end(), [&devices](int device) {
          return std::find(devices.begin(), devices.end(), device) != devices.end();
        });
    counters.push_back({{"kind", counter.kind},
                        {"name", counter.name},
                        {"devices", counter.devices},
                        {"works", counter.devices.empty() ? json(nullptr) : json(works)},
                        {"source", counter.source},
                        {"watts", counted.watts},
                        {"idle_before_w", or_null(counted.idle_before_w)},
                        {"idle_after_w", or_null(counted.idle_after_w)},
                        {"step_s", or_null(counted.step_s)},
                        {"delay_s", or_null(counted.delay_s)},
                        {"why", counted.why.empty() ? json(nullptr) : json(counted.why)}});
  }
  return {{"started", hold.started},
          {"seconds", hold.seconds},
          {"bytes", hold.operations * bytes_of_operation},
          {"busy", hold.busy},
          {"counters", counters},
          {"idle", hold.idle.is_null() ? json::array() : hold.idle},
          {"loaded", hold.loaded.is_null() ? json::array() : hold.loaded},
          {"after", hold.after.is_null() ? json::array() : hold.after}};
}

}  // namespace fabricheck
