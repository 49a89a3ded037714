// Where the counters of energy are.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "harness/amdgpu.hpp"
#include "harness/energy.hpp"
#include "harness/pci.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck {
namespace {

namespace fs = std::filesystem;

/// Of Cray's files, such as "1234567 J 1700000000123456 us".
std::optional<double> cray_joules(const std::string& path) {
  double joules = 0;
  char unit = 0;
  const auto text = file_text(path);
  return text && std::sscanf(text->c_str(), "%lf %c", &joules, &unit) == 2 && unit == 'J'
             ? std::optional(joules)
             : std::nullopt;
}

/// The devices of a run by address: those of one address are partitions of it.
using ByAddress = std::map<std::string, std::vector<int>>;

class Finder {
 public:
  Finder(const StateRoots& roots, const StateScope& scope) : roots_(roots) {
    for (const auto& device : scope.devices) {
      const auto vendor =
          file_text(device_folder(roots.sys, device.pci_address) + "/vendor").value_or(kNvidia);
      auto& devices = vendor == kAmd ? amd_ : vendor == kNvidia ? nvidia_ : others_;
      devices[device.pci_address].push_back(device.index);
    }
  }

  EnergyCounters find() {
    find_nvidia();
    find_amd();
    for (const auto& [address, devices] : others_) {
      found_.problems.push_back("no counter of energy is known of a device of its vendor: " +
                                address);
    }
    find_cray();
    return std::move(found_);
  }

 private:
  void find_nvidia() {
    if (nvidia_.empty()) {
      return;
    }
    const auto library = std::make_shared<Nvml>(roots_.nvml);
    if (!library->problem().empty()) {
      found_.problems.push_back(library->problem());
      return;
    }
    for (const auto& [address, devices] : nvidia_) {
      std::string why;
      if (!library->energy_j(address, why)) {
        found_.problems.push_back(why);
        continue;
      }
      found_.counters.push_back(
          {energy_counter::device, address, devices, "NVML field 83", [library, address = address] {
             std::string none;
             return library->energy_j(address, none);
           }});
    }
  }

  void find_amd() {
    std::map<std::string, std::string> without;
    for (const auto& [address, devices] : amd_) {
      std::string why;
      if (!amdgpu_energy_j(roots_.sys, address, why)) {
        without[address] = why;
      }
    }
    const auto pairs = without.empty() ? Pairs{} : packages();
    if (pairs.empty()) {
      for (const auto& [address, why] : without) {
        found_.problems.push_back(why);
      }
    }
    for (const auto& [address, devices] : amd_) {
      if (without.count(address) > 0) {
        continue;
      }
      auto covered = devices;
      const auto other = pairs.find(address);
      if (other != pairs.end()) {
        const auto& more = amd_[other->second];
        covered.insert(covered.end(), more.begin(), more.end());
      }
      found_.counters.push_back(
          {other == pairs.end() ? energy_counter::device : energy_counter::package, address,
           covered, "gpu_metrics energy_accumulator", [sys = roots_.sys, address = address] {
             std::string none;
             return amdgpu_energy_j(sys, address, none);
           }});
    }
  }

  /// By the die that counts the other die of its package. In the order of their addresses two and
  /// two are a package, of which one counts; if that does not fit, none is known.
  using Pairs = std::map<std::string, std::string>;
  [[nodiscard]] Pairs packages() const {
    Pairs pairs;
    for (auto entry = amd_.begin(); entry != amd_.end(); ++entry) {
      const auto& first = entry->first;
      if (++entry == amd_.end()) {
        return {};
      }
      const auto& second = entry->first;
      std::string why;
      const bool first_counts = amdgpu_energy_j(roots_.sys, first, why).has_value();
      const bool second_counts = amdgpu_energy_j(roots_.sys, second, why).has_value();
      if (first_counts == second_counts) {
        return {};
      }
      pairs[first_counts ? first : second] = first_counts ? second : first;
    }
    return pairs;
  }

  /// HPE Cray EX: which of the run's devices an accelerator is, its files do not tell.
  void find_cray() {
    const auto folder = fs::path(roots_.sys) / "cray/pm_counters";
    std::error_code none;
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
      names.insert(entry.path().filename().string());
    }
    const std::string opening = "accel";
    const std::string ending = "_energy";
    for (const auto& name : names) {
      const auto path = (folder / name).string();
      const bool of_node = name == "energy";
      const bool of_accelerator =
          name.rfind(opening, 0) == 0 && name.size() > ending.size() &&
          name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
      if ((!of_node && !of_accelerator) || !cray_joules(path)) {
        continue;
      }
      found_.counters.push_back({of_node ? energy_counter::node : energy_counter::accelerator,
                                 of_node ? "node" : name.substr(0, name.size() - ending.size()),
                                 {},
                                 path,
                                 [path] { return cray_joules(path); }});
    }
  }

  const StateRoots& roots_;
  ByAddress amd_, nvidia_, others_;
  EnergyCounters found_;
};

}  // namespace

EnergyCounters energy_counters(const StateRoots& roots, const StateScope& scope) {
  return Finder(roots, scope).find();
}

}  // namespace fabricheck
