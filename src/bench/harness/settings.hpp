// Settings of the node or the job that change or prevent a measurement, by name.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/status.hpp"

namespace fabricheck {

/// A variable, or another setting, with a value that matters.
struct Setting {
  std::string name;
  std::string value;
  /// What it changes: "launches", which then wait for the device as copies do; "engines", which do
  /// not copy; "peer-engines", which do not copy between devices; "devices", of which the process
  /// sees fewer.
  std::string concerns;

  /// "HIP_LAUNCH_BLOCKING is 1"
  [[nodiscard]] std::string text() const { return name + " is " + value; }
};

/// Variables of this runtime that make launches or copies wait for the device, or switch copy
/// engines off.
std::vector<Setting> runtime_settings();

/// The first variable that makes launches or copies wait, so that a closed gate never opens.
std::optional<Setting> blocking_setting();

/// Throws Failure(setting) naming that variable. For work that must start together.
void require_free_launches();

/// The setting that may hide devices of the node from this process, which sees `visible` devices: a
/// variable that names no more than those, Slurm, if it granted just as many, or a control group
/// that refuses access to other devices.
std::vector<Setting> hiding_settings(int visible);

/// The failure of a run that needs more than the `visible` devices: setting, if one may hide
/// devices, else unsupported.
Failure lacks_devices(const std::string& sentence, int visible);
/// The same for a device by its number, "device 5 of the pair 0-5"; `seen`: the seen devices by
/// rank.
Failure no_such_device(const std::string& device, int visible,
                       const std::string& seen = "the runtime has");

/// The member `settings` of the result document.
nlohmann::json describe_settings(int visible);

}  // namespace fabricheck
