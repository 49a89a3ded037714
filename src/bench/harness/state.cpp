#include "harness/state.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>
#include <thread>
#include <utility>

#include "harness/amdgpu.hpp"
#include "harness/concurrent.hpp"
#include "harness/document.hpp"
#include "harness/host.hpp"
#include "harness/pci.hpp"
#include "harness/sampling.hpp"
#include "harness/sizes.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

constexpr double kLeastInterval = 0.04;  ///< seconds: four ticks of the system's clock
/// What Linux calls the namespace of all processes; those of containers have other numbers.
constexpr const char* kFirstNamespace = "pid:[4026531836]";

/// Whether this process sees all processes of the host, by the host's numbers.
bool sees_host(const std::string& proc) {
  std::error_code unknown;
  return std::filesystem::read_symlink(proc + "/self/ns/pid", unknown) == kFirstNamespace;
}

/// Adds the seconds of throttling between two readings of the driver's cycles.
void add_throttled_seconds(const std::optional<Residency>& former, DeviceReading& reading) {
  const auto& now = reading.residency;
  if (!now) {
    return;
  }
  if (!former) {
    for (const auto& [word, counts] : now->counts) {
      reading.set("throttled_s." + word, 0.0, now->source + ", from the snapshot before on");
    }
    return;
  }
  if (now->cycles <= former->cycles || now->counts.size() != former->counts.size()) {
    reading.lack("throttled_s", now->source + " did not go on counting");
    return;
  }
  const auto all = static_cast<double>(now->cycles - former->cycles);
  for (const auto& [word, counts] : now->counts) {
    double share = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      // They have 32 bits, and begin again.
      const auto cycles = static_cast<std::uint32_t>(counts[i] - former->counts.at(word).at(i));
      share = std::max(share, std::min(1.0, cycles / all));
    }
    reading.set("throttled_s." + word, share * (now->at - former->at),
                now->source + ", from the snapshot before on");
  }
}

/// A number of /proc/meminfo; empty if it has none of that name.
std::optional<std::uint64_t> meminfo(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name + ":", 0) == 0) {
      return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10);
    }
  }
  return std::nullopt;
}

/// The frequency governors of cores, each once, with commas; empty where there is none.
std::string governors(const std::string& sys, const std::vector<int>& cores) {
  std::set<std::string> governors;
  for (const int core : cores) {
    const auto text = file_text(sys + "/devices/system/cpu/cpu" + std::to_string(core) +
                                "/cpufreq/scaling_governor");
    if (text && !text->empty()) {
      governors.insert(*text);
    }
  }
  std::string text;
  for (const auto& governor : governors) {
    text += (text.empty() ? "" : ",") + governor;
  }
  return text;
}

/// The errors that each memory controller counts (EDAC), those of devices joined to the CPU among
/// them; null where the kernel counts none.
json controller_errors(const std::string& sys) {
  std::map<std::string, json> controllers;
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator(sys + "/devices/system/edac/mc", none)) {
    const auto number = entry.path().filename().string();
    const auto folder = entry.path().string();
    const auto corrected = file_text(folder + "/ce_count");
    const auto uncorrected = file_text(folder + "/ue_count");
    unsigned long long few = 0;
    unsigned long long bad = 0;
    if (!corrected || !uncorrected || std::sscanf(corrected->c_str(), "%llu", &few) != 1 ||
        std::sscanf(uncorrected->c_str(), "%llu", &bad) != 1) {
      continue;
    }
    const auto name = file_text(folder + "/mc_name").value_or("");
    controllers[number] = {{"controller", name.empty() ? number : number + " (" + name + ")"},
                           {"corrected", few},
                           {"uncorrected", bad}};
  }
  json errors;
  for (const auto& [number, error] : controllers) {
    errors.push_back(error);
  }
  return errors;
}

json or_null(const std::optional<std::string>& text) { return text ? json(*text) : json(nullptr); }

/// Keeps those members of host or device that changed, and the index of a device.
void keep_changes(const json& before, json& after) {
  for (const auto& [name, value] : before.items()) {
    if (name != "index" && after.contains(name) && after[name] == value) {
      after.erase(name);
    }
  }
}

}  // namespace

StateScope state_scope(const json& document, const std::vector<int>& pids) {
  StateScope scope;
  scope.pids = pids;
  std::set<int> here;
  std::set<int> cores;
  const auto ranks = document.find("ranks");
  if (ranks == document.end() || !ranks->is_array()) {
    cores = document["host"]["cores_allowed"].get<std::set<int>>();
  } else {
    scope.alone = false;
    for (const auto& rank : *ranks) {
      if (rank["host"] == ranks->front()["host"]) {
        here.merge(rank["visible_devices"].get<std::set<int>>());
        cores.merge(rank["cores"].get<std::set<int>>());
      }
    }
  }
  scope.cores.assign(cores.begin(), cores.end());
  for (const auto& device : document["devices"]) {
    const int index = device["index"];
    if (!scope.alone && here.count(index) == 0) {
      scope.elsewhere.push_back(index);
    } else if (device["pci_address"].is_string()) {
      scope.devices.push_back({index, device["pci_address"]});
    }
  }
  return scope;
}

std::vector<DriverProcess> foreign_processes(const std::vector<DriverProcess>& listed,
                                             const ProcessNumbers& numbers, std::size_t& unclear) {
  std::vector<DriverProcess> others;
  std::set<int> seen;
  unclear = 0;
  for (const auto& process : listed) {
    if (!seen.insert(process.pid).second || (numbers.ours.count(process.pid) > 0)) {
      continue;
    }
    if (process.pid > 0 && (numbers.comparable || numbers.certain.count(process.pid) > 0)) {
      others.push_back(process);
    } else {
      ++unclear;
    }
  }
  return others;
}

NodeState::NodeState(StateRoots roots)
    : roots_(std::move(roots)), certain_(kfd_processes(roots_.sys)) {}

std::vector<DeviceReading> NodeState::read_devices() const {
  std::vector<DeviceReading> readings(scope_.devices.size());
  std::vector<std::function<void()>> works;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    works.emplace_back([this, &readings, i] {
      const auto& address = scope_.devices[i].pci_address;
      const auto folder = device_folder(roots_.sys, address);
      auto& reading = readings[i];
      const auto vendor = file_text(folder + "/vendor");
      if (vendor == kAmd) {
        read_host_link(folder, reading);
        read_host_link_errors(folder, reading);
        read_amdgpu(roots_.sys, address, reading);
      } else if (nvml_ != nullptr && (vendor == kNvidia || !vendor)) {
        read_host_link(folder, reading);
        read_host_link_errors(folder, reading);
        nvml_->read(address, reading);
      } else {
        reading.lack("", vendor ? "its vendor is " + *vendor : "no file vendor of it in /sys");
      }
    });
  }
  // A driver takes some ten milliseconds for each device: they are read at the same time.
  if (works.size() == 1) {
    works.front()();
  } else {
    (void)run_at_once(works);
  }
  return readings;
}

json NodeState::devices_state(std::vector<DeviceReading> readings, bool first, json& absent,
                              json& sources) {
  const auto ours = with_children(reference_.processes, scope_.pids);
  const bool host_numbers = sees_host(roots_.proc);
  const auto any_own = [&ours](const DeviceReading& reading) {
    const auto& listed = reading.processes();
    return listed && std::any_of(listed->begin(), listed->end(), [&ours](const auto& process) {
             return ours.count(process.pid) > 0;
           });
  };
  const bool own_listed = std::any_of(readings.begin(), readings.end(), any_own);
  json devices = json::array();
  Provenance provenance("devices", "device");
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const auto& reading = readings[i];
    const int index = scope_.devices[i].index;
    json device = reading.values();
    device["index"] = index;
    if (reading.processes()) {
      const bool of_host = reading.processes_of_host();
      if (first && scope_.alone && !of_host) {
        for (const auto& process : *reading.processes()) {
          certain_.insert(process.pid);  // this run has nothing on a device yet
        }
      }
      const ProcessNumbers numbers{ours, certain_, host_numbers || (own_listed && !of_host)};
      std::size_t unclear = 0;
      const auto others = foreign_processes(*reading.processes(), numbers, unclear);
      if (unclear > 0) {
        provenance.lack("processes",
                        std::to_string(unclear) +
                            " process(es) that the driver lists may be this run: "
                            "it numbers them otherwise than the container",
                        std::to_string(index));
      }
      if (unclear == 0 || !others.empty()) {
        device["processes"] = json::array();
      }
      for (const auto& process : others) {
        const bool named = host_numbers || !of_host;
        device["processes"].push_back(
            {{"pid", process.pid},
             {"user", named ? or_null(user_of_process(roots_.proc, process.pid)) : json(nullptr)},
             {"command",
              named ? or_null(command_of_process(roots_.proc, process.pid)) : json(nullptr)},
             {"memory_bytes", process.memory_bytes ? json(*process.memory_bytes) : json(nullptr)}});
      }
    }
    provenance.add(reading, std::to_string(index));
    devices.push_back(device);
  }
  for (const int index : scope_.elsewhere) {
    provenance.lack("", "of another machine than rank 0's", std::to_string(index));
  }
  provenance.write(readings.size() + scope_.elsewhere.size(), absent, sources);
  return devices;
}

json NodeState::host_state(const std::optional<OtherLoad>& load, json& absent,
                           json& sources) const {
  json host{{"load_1min", nullptr},
            {"cores", nullptr},
            {"others", nullptr},
            {"governor", nullptr},
            {"huge_pages_reserved", nullptr},
            {"huge_pages_free", nullptr},
            {"huge_page_bytes", nullptr},
            {"free_bytes", nullptr},
            {"memory_errors", nullptr},
            {"pci_functions", nullptr}};
  const auto set = [&](const std::string& item, json value, const std::string& source,
                       const std::string& why) {
    if (value.is_null()) {
      absent.push_back({{"item", "host." + item}, {"why", why}});
    } else {
      host[item] = std::move(value);
      sources["host." + item] = source;
    }
  };
  const auto cores =
      cores_in(file_text(roots_.sys + "/devices/system/cpu/online").value_or("")).size();
  json others;
  if (load) {
    // In a short time a tick more may have been counted than passed.
    const double busy =
        cores > 0 ? std::min(load->busy_cores, static_cast<double>(cores)) : load->busy_cores;
    others = {{"seconds", load->seconds},
              {"busy_cores", busy},
              {"stolen_cores", load->stolen_cores},
              {"processes", json::array()}};
    for (const auto& process : load->processes) {
      others["processes"].push_back({{"pid", process.pid},
                                     {"user", or_null(user_of_process(roots_.proc, process.pid))},
                                     {"command", process.command},
                                     {"cores", process.cores}});
    }
    if (!sees_host(roots_.proc)) {
      absent.push_back({{"item", "host.others.processes"},
                        {"why", "/proc shows the processes of this container alone"}});
    } else if (reference_.processes.count(1) == 0) {
      absent.push_back({{"item", "host.others.processes"},
                        {"why", "/proc shows the processes of this user alone"}});
    }
  }
  set("others", others, "/proc/stat, /proc/PID/stat", "/proc/stat does not tell it");
  const auto average = file_text(roots_.proc + "/loadavg");
  double runnable = 0;
  const bool known = average && std::sscanf(average->c_str(), "%lf", &runnable) == 1;
  set("load_1min", known ? json(runnable) : json(nullptr), "/proc/loadavg",
      "/proc/loadavg does not tell it");
  set("cores", cores > 0 ? json(cores) : json(nullptr), "/sys/devices/system/cpu/online",
      "/sys/devices/system/cpu/online does not tell it");
  const auto governor = governors(roots_.sys, scope_.cores);
  set("governor", governor.empty() ? json(nullptr) : json(governor), "scaling_governor",
      "the system has no frequency governor for the cores of the run");
  const auto memory = file_text(roots_.proc + "/meminfo").value_or("");
  for (const auto& [item, name, factor] : {std::tuple("huge_pages_reserved", "HugePages_Total", 1),
                                           std::tuple("huge_pages_free", "HugePages_Free", 1),
                                           std::tuple("huge_page_bytes", "Hugepagesize", 1024)}) {
    const auto number = meminfo(memory, name);
    set(item, number ? json(static_cast<std::uint64_t>(factor) * *number) : json(nullptr),
        "/proc/meminfo", "/proc/meminfo has no " + std::string(name));
  }
  json free_bytes;
  for (const auto& [domain, bytes] : free_memory_of_domains(roots_.sys + "/devices/system/node")) {
    free_bytes[std::to_string(domain)] = bytes;
  }
  set("free_bytes", free_bytes, "/sys/devices/system/node",
      "/sys/devices/system/node does not tell it");
  set("memory_errors", controller_errors(roots_.sys), "/sys/devices/system/edac/mc",
      "/sys/devices/system/edac/mc has no memory controller");
  set("pci_functions", pci_functions(roots_.sys, nvml_.get()), "/sys/bus/pci/devices",
      "/sys/bus/pci/devices cannot be read");
  return host;
}

json NodeState::before(StateScope scope) {
  scope_ = std::move(scope);
  if (!scope_.alone) {
    certain_.clear();  // MPI may have opened devices before
  }
  return snapshot(true);
}

json NodeState::after() { return snapshot(false); }

json NodeState::afterwards(StateScope scope) {
  auto result = before(std::move(scope));
  for (std::size_t i = 0; i < residencies_.size(); ++i) {
    if (residencies_[i]) {
      result["devices"][i]["throttled_s"] = nullptr;
    }
  }
  return result;
}

void NodeState::open(StateScope scope) {
  scope_ = std::move(scope);
  (void)open_library();
}

json NodeState::under_load() const {
  json devices = json::array();
  const auto readings = read_devices();
  for (std::size_t i = 0; i < readings.size(); ++i) {
    json device{{"index", scope_.devices[i].index}};
    for (const auto* item :
         {"clock_mhz", "temperature_c", "memory_temperature_c", "power_w", "throttle"}) {
      device[item] = readings[i].values()[item];
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

json seconds_between(const json& first, const json& last) {
  if (!first.is_object() || !last.is_object()) {
    return nullptr;
  }
  json seconds = json::object();
  for (const auto& [word, value] : last.items()) {
    const bool is_known = value.is_number() && first.contains(word) && first[word].is_number();
    if (!is_known || value < first[word]) {
      seconds[word] = nullptr;
    } else {
      seconds[word] = value.get<double>() - first[word].get<double>();
    }
  }
  return seconds;
}

void NodeState::begin_throttling() { throttling_ = read_devices(); }

json NodeState::throttled() const {
  json devices = json::array();
  auto readings = read_devices();
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const auto& former = throttling_[i];
    // Of cycles it becomes the seconds since then; other drivers count in seconds all the time.
    add_throttled_seconds(former.residency, readings[i]);
    const auto& last = readings[i].values()["throttled_s"];
    const auto& first = former.values()["throttled_s"];
    json device{{"index", scope_.devices[i].index}, {"throttled_s", nullptr}};
    if (former.residency && readings[i].residency) {
      device["throttled_s"] = last;
    } else {
      device["throttled_s"] = seconds_between(first, last);
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

json NodeState::open_library() {
  const bool nvidia =
      std::any_of(scope_.devices.begin(), scope_.devices.end(), [this](const auto& device) {
        const auto vendor = file_text(device_folder(roots_.sys, device.pci_address) + "/vendor");
        return !vendor || vendor == kNvidia;
      });
  if (!nvidia) {
    return nullptr;
  }
  const double opened = wall_seconds();
  nvml_ = std::make_unique<Nvml>(roots_.nvml);
  return nvml_->problem().empty() ? json(wall_seconds() - opened) : json(nullptr);
}

json NodeState::snapshot(bool first) {
  json opening = nvml_ != nullptr && nvml_->problem().empty() ? json(0) : json(nullptr);
  if (first) {
    opening = open_library();
  }
  const double started = wall_seconds();
  json result{{"at", timestamp()}, {"opening_seconds", opening}};
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto former = std::exchange(reference_, host_times(roots_.proc));
  auto readings = read_devices();
  residencies_.resize(readings.size());
  for (std::size_t i = 0; i < readings.size(); ++i) {
    add_throttled_seconds(first ? std::nullopt : residencies_[i], readings[i]);
    readings[i].explain_rest("the driver does not tell it");
    residencies_[i] = first ? readings[i].residency : residencies_[i];
  }
  std::optional<OtherLoad> load;
  if (!first) {
    load = other_load(former, reference_, scope_.pids, ticks_per_second);
  } else {
    const double left = kLeastInterval - (wall_seconds() - reference_.at);
    std::this_thread::sleep_for(std::chrono::duration<double>(std::max(0.0, left)));
    const auto ours = with_children(reference_.processes, scope_.pids);
    load = other_load(reference_, host_times(roots_.proc, ours), scope_.pids, ticks_per_second);
    if (load && load->busy_cores >= kLeastCores) {
      // Who it is takes a look at all processes again: milliseconds where there are thousands.
      load = other_load(reference_, host_times(roots_.proc), scope_.pids, ticks_per_second);
    }
  }
  json absent = json::array();
  json sources = json::object();
  result["host"] = host_state(load, absent, sources);
  result["devices"] = devices_state(std::move(readings), first, absent, sources);
  result["absent"] = absent;
  result["sources"] = sources;
  result["seconds"] = wall_seconds() - started;
  return result;
}

json both_states(json before, json after) {
  json absent = json::array();
  json sources = json::object();
  std::set<std::string> named;
  for (auto* snapshot : {&before, &after}) {
    if (snapshot->is_null()) {
      continue;
    }
    for (const auto& entry : (*snapshot)["absent"]) {
      if (named.insert(entry["item"]).second) {
        absent.push_back(entry);
      }
    }
    sources.update((*snapshot)["sources"]);
    snapshot->erase("absent");
    snapshot->erase("sources");
  }
  if (!after.is_null()) {
    keep_changes(before["host"], after["host"]);
    for (auto& device : after["devices"]) {
      for (const auto& same : before["devices"]) {
        if (same["index"] == device["index"]) {
          keep_changes(same, device);
        }
      }
    }
  }
  return {{"before", before}, {"after", after}, {"absent", absent}, {"sources", sources}};
}

}  // namespace fabricheck
