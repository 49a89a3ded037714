// Energy of devices and of the node while an operation repeats, by counters of their drivers.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/state.hpp"

namespace fabricheck {

/// A counter of energy.
struct EnergyCounter {
  std::string kind;          ///< a word of the vocabulary (energy_counter)
  std::string name;          ///< among those of its kind: an address, accel0, node
  std::vector<int> devices;  ///< whose energy it counts; empty where the system does not tell it
  std::string source;
  /// Joules since some time; empty if it cannot be read. One thread at a time.
  std::function<std::optional<double>()> joules;
};

/// The counters of this machine for the devices of a run.
struct EnergyCounters {
  std::vector<EnergyCounter> counters;
  std::vector<std::string> problems;  ///< why devices have none, as sentences without full stop
};
EnergyCounters energy_counters(const StateRoots& roots, const StateScope& scope);

/// A change of a counter: when it was seen, by wall_seconds(), and the value since.
struct EnergyTick {
  double at = 0;
  double joules = 0;
};

/// The times of a hold, by wall_seconds(): it is quiet, loaded, and quiet again.
struct HoldTimes {
  double begin = 0;
  double load = 0;
  double unload = 0;
  double end = 0;
};

/// How long after a change of load no power is taken.
constexpr double kSettleSeconds = 0.5;

/// What one counter counted in a hold.
struct CountedEnergy {
  std::vector<double> watts;  ///< loaded, of consecutive segments from change to change
  std::optional<double> idle_before_w{};
  std::optional<double> idle_after_w{};
  std::optional<double> step_s{};  ///< median time between two changes, as polling sees them
  /// How much later than the load the counter follows it; empty where the load is not seen in it.
  std::optional<double> delay_s{};
  std::string why{};  ///< why there are no watts
};
CountedEnergy counted_energy(const std::vector<EnergyTick>& ticks, const HoldTimes& times);

/// How long a load must be for enough segments of a counter with this step.
double least_load_seconds(double step_s);

/// What was measured while an operation repeated; one for each series that is held.
struct EnergyHold {
  std::string started;    ///< when the load began, as timestamp() has it
  double seconds = 0;     ///< of the load
  double operations = 0;  ///< in these seconds
  double busy = 0;        ///< part of the seconds in which the operations ran
  struct Counter {
    EnergyCounter counter;
    CountedEnergy counted;
  };
  std::vector<Counter> counters;
  nlohmann::json idle;    ///< clocks and temperatures of the devices, as of NodeState::under_load()
  nlohmann::json loaded;  ///< the same in the middle of the load
  nlohmann::json after;   ///< the same in the quiet time after it
};

/// Measures the energy of holds; one for a run.
class EnergyMeter {
 public:
  /// Clocks and temperatures of the devices.
  using Clocks = std::function<nlohmann::json()>;

  EnergyMeter(std::vector<EnergyCounter> counters, Clocks clocks, double quiet_seconds = 1.5)
      : counters_(std::move(counters)), clocks_(std::move(clocks)), quiet_seconds_(quiet_seconds) {}

  /// Repeats an operation for at least `seconds`, and as long as the counters' steps need. `repeat`
  /// runs a batch of it and returns the number of operations and the seconds that they took.
  struct Repeated {
    int operations = 0;
    double seconds = 0;
  };
  EnergyHold hold(double seconds, const std::function<Repeated()>& repeat);

 private:
  std::vector<EnergyCounter> counters_;
  Clocks clocks_;
  double quiet_seconds_;
};

/// The member `energy` of a series whose operation moves so many bytes and uses these devices.
nlohmann::json energy_json(const EnergyHold& hold, double bytes_of_operation,
                           const std::vector<int>& devices);

}  // namespace fabricheck
