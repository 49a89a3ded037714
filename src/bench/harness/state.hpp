// The state of the node and its devices before and after the body of a program, which can explain
// its numbers. The member `state` of the result document; docs/reference/result-document.md
// describes it.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "harness/device_reading.hpp"
#include "harness/host_load.hpp"
#include "harness/nvml.hpp"

namespace fabricheck {

/// The roots of the system's files.
struct StateRoots {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string nvml = kNvml;
};

/// The part of this machine that a run uses.
struct StateScope {
  struct Device {
    int index = 0;  ///< as the document numbers it
    std::string pci_address;
  };
  std::vector<Device> devices;
  std::vector<int> elsewhere;  ///< devices of other machines, by their numbers
  std::vector<int> cores;      ///< that the run may use
  std::vector<int> pids;       ///< of its processes; their children belong to it, too
  bool alone = true;           ///< one process, which did nothing with a device yet
};

/// The scope of a run by its document: the devices and cores of the machine that this process runs
/// on; if the document has ranks, those of rank 0's machine.
StateScope state_scope(const nlohmann::json& document, const std::vector<int>& pids);

/// The process numbers by which a run recognizes its own processes.
struct ProcessNumbers {
  std::set<int> ours;
  std::set<int> certain;   ///< of other runs, whatever they number
  bool comparable = true;  ///< the driver numbers processes as this one sees them
};

/// The listed processes that do not belong to this run, each once; `unclear` is the number of
/// others for which that is unknown.
std::vector<DriverProcess> foreign_processes(const std::vector<DriverProcess>& listed,
                                             const ProcessNumbers& numbers, std::size_t& unclear);

/// What counters counted between two readings, by their words; null for one that is unknown or that
/// began again, and where there are none.
nlohmann::json seconds_between(const nlohmann::json& first, const nlohmann::json& last);

/// Takes the snapshots of a run.
class NodeState {
 public:
  /// Create this before a program first calls its runtime: processes that use a device then do not
  /// belong to this run, if the run is one process.
  explicit NodeState(StateRoots roots = {});

  /// Sets the scope and opens NVIDIA's library if a device is NVIDIA's, without a snapshot.
  void open(StateScope scope);
  /// What changes while devices work: clock, temperatures, power and throttling of each.
  [[nodiscard]] nlohmann::json under_load() const;
  /// Begins to count the seconds for which each device is throttled.
  void begin_throttling();
  /// The seconds since then, by kind; null where the driver of a device does not count them.
  [[nodiscard]] nlohmann::json throttled() const;

  /// Takes the first snapshot, before anything is created on a device; opens NVIDIA's library if a
  /// device is NVIDIA's.
  nlohmann::json before(StateScope scope);
  /// Takes the snapshot after the body; other values are counted since before().
  nlohmann::json after();
  /// Takes the snapshot after a run of another process, which has ended: what only two snapshots of
  /// one process tell is unknown.
  nlohmann::json afterwards(StateScope scope);

 private:
  /// Opens NVIDIA's library if a device is NVIDIA's; returns how long that took, or null.
  nlohmann::json open_library();
  nlohmann::json snapshot(bool first);
  nlohmann::json host_state(const std::optional<OtherLoad>& load, nlohmann::json& absent,
                            nlohmann::json& sources) const;
  std::vector<DeviceReading> read_devices() const;
  nlohmann::json devices_state(std::vector<DeviceReading> readings, bool first,
                               nlohmann::json& absent, nlohmann::json& sources);

  StateRoots roots_;
  StateScope scope_;
  std::set<int> certain_;  ///< pids that use a device and are of other runs for sure
  std::unique_ptr<Nvml> nvml_;
  std::vector<std::optional<Residency>> residencies_;  ///< of before(), by device
  std::vector<DeviceReading> throttling_;              ///< of begin_throttling(), by device
  HostTimes reference_;                                ///< of the last snapshot
};

/// The member `state` of the document from its snapshots; `after` may be null. Unknown items, and
/// the sources of the others, are stored once for both; of host and devices `after` keeps the
/// changes.
nlohmann::json both_states(nlohmann::json before, nlohmann::json after);

}  // namespace fabricheck
