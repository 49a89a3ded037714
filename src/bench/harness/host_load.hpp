// The use of the host's cores, and the processes that used them, from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fabricheck {

/// Time of all cores together since the system started, in ticks of the system's clock.
struct CoreTimes {
  std::uint64_t busy = 0;    ///< in user, nice, system, irq and softirq
  std::uint64_t stolen = 0;  ///< that a hypervisor gave to others
};

/// From the text of /proc/stat; nothing without its first line.
std::optional<CoreTimes> core_times(const std::string& stat);

/// A process with all its threads.
struct ProcessTime {
  int pid = 0;
  int parent = 0;
  std::string command;            ///< at most 15 characters of it, as the system keeps them
  std::uint64_t ticks = 0;        ///< its time
  std::uint64_t ended_ticks = 0;  ///< that of its children that ended, and theirs
  std::uint64_t started = 0;      ///< ticks after the system's start: a number may come again
};

/// Parses the text of /proc/PID/stat; empty if it has another form.
std::optional<ProcessTime> process_time(const std::string& stat);

/// The host's times at one moment.
struct HostTimes {
  double at = 0;  ///< seconds, by the clock of wall_seconds()
  std::optional<CoreTimes> cores;
  std::map<int, ProcessTime> processes;
};

/// Reads the times of the host and of all its processes under `proc` (/proc), in some 10 us each.
HostTimes host_times(const std::string& proc);

/// Reads the times of the host and of the processes `pids` only.
HostTimes host_times(const std::string& proc, const std::set<int>& pids);

/// Returns the existing processes of `pids`, and all their descendants.
std::set<int> with_children(const std::map<int, ProcessTime>& processes,
                            const std::vector<int>& pids);

/// The fewest cores that a process must use to count as busy.
constexpr double kLeastCores = 0.2;

/// A process other than those of the run that was busy.
struct BusyProcess {
  int pid = 0;
  std::string command;
  double cores = 0;
};

/// The use of the host between two moments, without the processes `pids` and their children.
struct OtherLoad {
  double seconds = 0;
  double busy_cores = 0;
  double stolen_cores = 0;
  std::vector<BusyProcess> processes;  ///< at most five, the busiest first
};

/// Empty if /proc/stat could not be read. `ticks_per_second`: of the system's clock.
std::optional<OtherLoad> other_load(const HostTimes& before, const HostTimes& after,
                                    const std::vector<int>& pids, double ticks_per_second);

/// The name of the user of a process, else his number as text; empty if `proc` does not show the
/// process.
std::optional<std::string> user_of_process(const std::string& proc, int pid);

/// The command of a process as in ProcessTime; empty if `proc` does not show the process.
std::optional<std::string> command_of_process(const std::string& proc, int pid);

}  // namespace fabricheck
