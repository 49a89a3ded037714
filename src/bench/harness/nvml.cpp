#include "harness/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/pci.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

// Of nvml.h, which is not needed to build: its numbers and layouts stay as they are by its own
// promise, and a new one gets a new name (nvmlDeviceGetComputeRunningProcesses_v3).
constexpr int kSuccess = 0;
constexpr int kTooSmall = 7;
constexpr int kClockOfMultiprocessors = 1;
constexpr int kClockOfMemory = 2;
constexpr int kSensorOfGpu = 0;
constexpr int kCorrected = 0;
constexpr int kUncorrected = 1;
constexpr int kSinceDriverLoaded = 0;
constexpr unsigned kMostLinks = 36;
constexpr int kEndIsDevice = 0;
constexpr int kEndIsSwitch = 2;
constexpr int kReads = 0;  ///< of what nvmlDeviceGetP2PStatus tells
constexpr unsigned kNearNode = 0;
constexpr std::size_t kSetWords = 16;  ///< of a set of cores or NUMA domains
constexpr unsigned long long kNoMemoryTold = ~0ULL;

struct Utilization {
  unsigned gpu;
  unsigned memory;
};

/// Of nvml.h, as version 3 and NvLinkRemotePciInfo_v2 have it.
struct PciInfo {
  char legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_id;
  unsigned subsystem_id;
  char address[32];
};
static_assert(sizeof(PciInfo) == 68, "as in nvml.h");

struct ProcessInfo {
  unsigned pid;
  unsigned long long memory_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24, "as in nvml.h");

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  int type;
  int status;
  union {
    double real;
    int signed_number;
    unsigned number;
    unsigned long long large_number;
    long long large_signed_number;
    unsigned short small_number;
  } value;
};
static_assert(sizeof(FieldValue) == 40, "as in nvml.h");

constexpr unsigned kThrottledByPower = 74;
constexpr unsigned kThrottledByHeat = 75;  // before 269 and 270 came
constexpr unsigned kMemoryTemperature = 82;
constexpr unsigned kEnergy = 83;
constexpr double kJoulesOfEnergyUnit = 1e-3;
constexpr unsigned kLinkSpeed = 90;
constexpr unsigned kSpeedOfOneLink = 164;  // H100 tells it by link only
constexpr unsigned kThrottledByHeatSoftware = 269;
constexpr unsigned kThrottledByHeatHardware = 270;
constexpr unsigned kThrottledByPowerBrake = 271;
constexpr const char* kFields = "nvmlDeviceGetFieldValues";

/// What NVML counts of one link: the word of the vocabulary, and NVML's number of the counter.
struct LinkCounter {
  const char* kind;
  unsigned number;
};

/// Of nvmlDeviceGetNvLinkErrorCounter, which NVLink has up to its fourth generation (Hopper).
constexpr std::array<LinkCounter, 3> kLinkCounters{{{link_error::nvlink_replay, 0},
                                                    {link_error::nvlink_recovery, 1},
                                                    {link_error::nvlink_crc, 2}}};

/// Fields of the fifth generation (Blackwell), by link.
constexpr std::array<LinkCounter, 11> kLinkFields{{{link_error::nvlink_malformed, 206},
                                                   {link_error::nvlink_overrun, 207},
                                                   {link_error::nvlink_received, 208},
                                                   {link_error::nvlink_remote, 209},
                                                   {link_error::nvlink_general, 210},
                                                   {link_error::nvlink_integrity, 211},
                                                   {link_error::nvlink_discard, 212},
                                                   {link_error::nvlink_recovered, 213},
                                                   {link_error::nvlink_recovery_failed, 214},
                                                   {link_error::nvlink_effective, 219},
                                                   {link_error::nvlink_symbol, 221}}};

/// The members of a set of bits.
std::vector<int> members_of(const std::array<unsigned long, kSetWords>& set) {
  constexpr std::size_t bits = 8 * sizeof(unsigned long);
  std::vector<int> members;
  for (std::size_t i = 0; i < bits * set.size(); ++i) {
    if ((set.at(i / bits) >> i % bits & 1) != 0) {
      members.push_back(static_cast<int>(i));
    }
  }
  return members;
}

double number_of(const FieldValue& field) {
  switch (field.type) {
    case 0:
      return field.value.real;
    case 1:
      return field.value.number;
    case 4:
      return static_cast<double>(field.value.large_signed_number);
    case 5:
      return field.value.signed_number;
    case 6:
      return field.value.small_number;
    default:
      return static_cast<double>(field.value.large_number);
  }
}

}  // namespace

Nvml::Nvml(const std::string& library) : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) {
    const char* reason = dlerror();
    problem_ = "cannot open " + library + ": " + (reason == nullptr ? "no reason given" : reason);
  } else if (const auto wrong = call("nvmlInit_v2")) {
    problem_ = *wrong;
  } else {
    ready_ = true;
  }
}

Nvml::~Nvml() {
  if (ready_) {
    (void)call("nvmlShutdown");
  }
  if (library_ != nullptr) {
    (void)dlclose(library_);
  }
}

template <typename... Arguments>
std::optional<std::string> Nvml::call(const char* name, Arguments... arguments) const {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
  if (function == nullptr) {
    return "this version of NVML has no " + std::string(name);
  }
  const int code = function(arguments...);
  if (code == kSuccess) {
    return std::nullopt;
  }
  const auto text = reinterpret_cast<const char* (*)(int)>(dlsym(library_, "nvmlErrorString"));
  return std::string(name) + ": " +
         (text == nullptr ? "error " + std::to_string(code) : std::string(text(code)));
}

void Nvml::read_power(void* device, DeviceReading& reading, const char* item,
                      const char* function) const {
  unsigned value = 0;
  if (const auto wrong = call(function, device, &value)) {
    reading.lack(item, *wrong);
  } else if (value == 0) {
    reading.lack(item, std::string(function) + " says 0");
  } else {
    reading.set(item, 1e-3 * value, function);  // it is in mW
  }
}

void Nvml::read_clocks(void* device, DeviceReading& reading) const {
  const auto read_clock = [&](const char* item, const char* function, int clock) {
    unsigned mhz = 0;
    if (const auto wrong = call(function, device, clock, &mhz)) {
      reading.lack(item, *wrong);
    } else {
      reading.set(item, mhz, function);
    }
  };
  read_clock("clock_mhz", "nvmlDeviceGetClockInfo", kClockOfMultiprocessors);
  read_clock("memory_clock_mhz", "nvmlDeviceGetClockInfo", kClockOfMemory);
  read_clock("clock_max_mhz", "nvmlDeviceGetMaxClockInfo", kClockOfMultiprocessors);
  read_clock("memory_clock_max_mhz", "nvmlDeviceGetMaxClockInfo", kClockOfMemory);
  read_clock("temperature_c", "nvmlDeviceGetTemperature", kSensorOfGpu);
}

void Nvml::read_throttle(void* device, DeviceReading& reading) const {
  // The second is the name that the first had before.
  std::optional<std::string> wrong;
  for (const auto* function :
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}) {
    unsigned long long reasons = 0;
    wrong = call(function, device, &reasons);
    if (!wrong) {
      reading.set("throttle", throttle_words(reasons), function);
      return;
    }
  }
  reading.lack("throttle", *wrong);
}

void Nvml::read_fields(void* device, DeviceReading& reading) const {
  std::vector<FieldValue> fields;
  for (const unsigned field :
       {kThrottledByPower, kThrottledByHeat, kMemoryTemperature, kEnergy, kThrottledByHeatSoftware,
        kThrottledByHeatHardware, kThrottledByPowerBrake}) {
    FieldValue value{};
    value.field = field;
    fields.push_back(value);
  }
  const auto wrong = call(kFields, device, static_cast<int>(fields.size()), fields.data());
  if (wrong) {
    for (const auto* item : {"throttled_s.power", "throttled_s.thermal", "throttled_s.hardware",
                             "memory_temperature_c", "energy_j"}) {
      reading.lack(item, *wrong);
    }
    return;
  }
  const auto value_of = [&fields](unsigned which) -> std::optional<double> {
    for (const auto& field : fields) {
      if (field.field == which && field.status == kSuccess) {
        return number_of(field);
      }
    }
    return std::nullopt;
  };
  const auto set = [&](const char* item, std::optional<double> value, double factor,
                       unsigned field) {
    if (value) {
      reading.set(item, factor * *value, kFields);
    } else {
      reading.lack(item, std::string(kFields) + " does not tell field " + std::to_string(field));
    }
  };
  auto heat = value_of(kThrottledByHeat);
  const auto software = value_of(kThrottledByHeatSoftware);
  const auto hardware = value_of(kThrottledByHeatHardware);
  if (software || hardware) {
    heat = software.value_or(0) + hardware.value_or(0);
  }
  set("throttled_s.power", value_of(kThrottledByPower), 1e-9, kThrottledByPower);
  set("throttled_s.thermal", heat, 1e-9, kThrottledByHeat);
  set("throttled_s.hardware", value_of(kThrottledByPowerBrake), 1e-9, kThrottledByPowerBrake);
  set("memory_temperature_c", value_of(kMemoryTemperature), 1, kMemoryTemperature);
  set("energy_j", value_of(kEnergy), kJoulesOfEnergyUnit, kEnergy);
}

std::optional<double> Nvml::energy_j(const std::string& pci_address, std::string& why) const {
  void* device = nullptr;
  FieldValue energy{};
  energy.field = kEnergy;
  auto wrong = find(pci_address, device);
  if (!wrong) {
    wrong = call(kFields, device, 1, &energy);
  }
  if (!wrong && energy.status != kSuccess) {
    wrong = std::string(kFields) + " does not tell field " + std::to_string(kEnergy);
  }
  if (wrong) {
    why = pci_address + ": " + *wrong;
    return std::nullopt;
  }
  return kJoulesOfEnergyUnit * number_of(energy);
}

void Nvml::read_memory_errors(void* device, DeviceReading& reading) const {
  const auto* function = "nvmlDeviceGetTotalEccErrors";
  for (const auto& [item, kind] : {std::pair("memory_errors.corrected", kCorrected),
                                   std::pair("memory_errors.uncorrected", kUncorrected)}) {
    unsigned long long count = 0;
    if (const auto wrong = call(function, device, kind, kSinceDriverLoaded, &count)) {
      reading.lack(item, *wrong);
    } else {
      reading.set(item, count, function);
    }
  }
}

void Nvml::read_modes(void* device, DeviceReading& reading) const {
  int current = 0;
  int pending = 0;
  if (const auto wrong = call("nvmlDeviceGetEccMode", device, &current, &pending)) {
    reading.lack("ecc", *wrong);
  } else {
    reading.set("ecc", current != 0, "nvmlDeviceGetEccMode");
  }
  unsigned split = 0;
  unsigned later = 0;
  if (const auto wrong = call("nvmlDeviceGetMigMode", device, &split, &later)) {
    reading.lack("compute_partition", *wrong);
  } else {
    reading.set("compute_partition", split != 0 ? "MIG" : "none", "nvmlDeviceGetMigMode");
  }
  Utilization busy{};
  if (const auto wrong = call("nvmlDeviceGetUtilizationRates", device, &busy)) {
    reading.lack("busy_percent", *wrong);
  } else {
    reading.set("busy_percent", busy.gpu, "nvmlDeviceGetUtilizationRates");
  }
}

void Nvml::read_versions(void* device, DeviceReading& reading) const {
  const auto text_of = [&](const char* item, const char* function) -> std::optional<std::string> {
    std::array<char, 96> text{};
    if (const auto wrong =
            call(function, device, text.data(), static_cast<unsigned>(text.size()))) {
      reading.lack(item, *wrong);
      return std::nullopt;
    }
    return std::string(text.data());
  };
  if (const auto vbios = text_of("vbios", "nvmlDeviceGetVbiosVersion"); vbios && !vbios->empty()) {
    reading.set("vbios", *vbios, "nvmlDeviceGetVbiosVersion");
  }
  if (const auto inforom = text_of("firmware", "nvmlDeviceGetInforomImageVersion")) {
    reading.set("firmware", json{{"inforom", *inforom}}, "nvmlDeviceGetInforomImageVersion");
  }
}

void Nvml::read_links(void* device, DeviceReading& reading) const {
  LinkReading links;
  std::optional<std::string> wrong;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    int up = 0;
    wrong = call("nvmlDeviceGetNvLinkState", device, link, &up);
    if (wrong) {
      break;  // past the last one, too
    }
    if (up == 0) {
      links.down(link);
    } else {
      links.up();
    }
  }
  if (links.empty()) {
    reading.lack("links", wrong.value_or("NVML tells of no link"));
    return;
  }
  FieldValue speed{};
  speed.field = kLinkSpeed;
  if (const auto none = call(kFields, device, 1, &speed)) {
    reading.lack("links.gb_per_s", *none);
  } else if (speed.status != kSuccess || !(number_of(speed) > 0)) {
    reading.lack("links.gb_per_s",
                 std::string(kFields) + " does not tell field " + std::to_string(kLinkSpeed));
  } else {
    links.set_speed(std::nullopt, 1e-3 * number_of(speed));  // it is in MB/s
  }
  reading.lack("links.width", "NVML does not tell it");
  reading.set("links", links.json(), "nvmlDeviceGetNvLinkState");
  read_link_errors(device, links, reading);
}

void Nvml::read_link_errors(void* device, const LinkReading& links, DeviceReading& reading) const {
  const auto* function = "nvmlDeviceGetNvLinkErrorCounter";
  LinkErrors errors;
  std::map<const char*, std::string> reasons;
  for (unsigned link = 0; link < links.number(); ++link) {
    if (links.is_down(link)) {
      continue;  // what it counts are the values of another time
    }
    for (const auto& counter : kLinkCounters) {
      unsigned long long count = 0;
      const auto wrong = call(function, device, link, static_cast<int>(counter.number), &count);
      if (wrong) {
        reasons.emplace(counter.kind, *wrong);
      } else {
        errors.add(counter.kind, std::to_string(link), count);
      }
    }
  }
  reading.set_link_errors(errors, function);
  if (errors.empty()) {
    read_link_error_fields(device, links, reading);
    return;
  }
  for (const auto& [kind, why] : reasons) {
    reading.lack(std::string("link_errors.") + kind, why);
  }
}

void Nvml::read_link_error_fields(void* device, const LinkReading& links,
                                  DeviceReading& reading) const {
  std::vector<FieldValue> fields;
  for (unsigned link = 0; link < links.number(); ++link) {
    // Also of one that is down: it counts by what it went down.
    for (const auto& counter : kLinkFields) {
      FieldValue field{};
      field.field = counter.number;
      field.scope = link;
      fields.push_back(field);
    }
  }
  if (const auto wrong = call(kFields, device, static_cast<int>(fields.size()), fields.data())) {
    reading.lack("link_errors", *wrong);
    return;
  }
  LinkErrors errors;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto& counter = kLinkFields.at(i % kLinkFields.size());
    const auto& field = fields.at(i);
    if (field.status == kSuccess) {
      errors.add(counter.kind, std::to_string(field.scope),
                 static_cast<std::uint64_t>(number_of(field)));
    } else {
      reading.lack(std::string("link_errors.") + counter.kind,
                   std::string(kFields) + " does not tell field " + std::to_string(field.field));
    }
  }
  reading.set_link_errors(errors, kFields);
}

void Nvml::read_processes(void* device, DeviceReading& reading) const {
  const auto* function = "nvmlDeviceGetComputeRunningProcesses_v3";
  const auto list =
      reinterpret_cast<int (*)(void*, unsigned*, ProcessInfo*)>(dlsym(library_, function));
  if (list == nullptr) {
    reading.lack("processes", "this version of NVML has no " + std::string(function));
    return;
  }
  std::vector<ProcessInfo> infos(64);
  unsigned count = 0;
  int code = kTooSmall;
  for (int attempt = 0; attempt < 3 && code == kTooSmall; ++attempt) {
    infos.resize(infos.size() + 2 * static_cast<std::size_t>(count));
    count = static_cast<unsigned>(infos.size());
    code = list(device, &count, infos.data());
  }
  if (code != kSuccess) {
    reading.lack("processes", std::string(function) + ": error " + std::to_string(code));
    return;
  }
  std::vector<DriverProcess> processes;
  for (unsigned i = 0; i < count; ++i) {
    DriverProcess process{static_cast<int>(infos[i].pid)};
    if (infos[i].memory_bytes != kNoMemoryTold) {
      process.memory_bytes = infos[i].memory_bytes;
    }
    processes.push_back(process);
  }
  reading.list(std::move(processes), function, false);
}

std::optional<std::string> Nvml::find(const std::string& pci_address, void*& device) const {
  return problem_.empty() ? call("nvmlDeviceGetHandleByPciBusId_v2", pci_address.c_str(), &device)
                          : std::optional(problem_);
}

std::optional<std::string> Nvml::architecture(const std::string& pci_address) const {
  void* device = nullptr;
  if (find(pci_address, device)) {
    return std::nullopt;
  }
  int major = 0;
  int minor = 0;
  if (call("nvmlDeviceGetCudaComputeCapability", device, &major, &minor)) {
    return "sm_";
  }
  return "sm_" + std::to_string(major) + std::to_string(minor);
}

bool Nvml::lists(const std::string& pci_address) const {
  void* device = nullptr;
  return !find(pci_address, device);
}

void Nvml::read_near(void* device, Reading& reading) const {
  const auto size = static_cast<unsigned>(kSetWords);
  std::array<unsigned long, kSetWords> set{};
  const auto* memory = "nvmlDeviceGetMemoryAffinity";
  if (const auto wrong = call(memory, device, size, set.data(), kNearNode)) {
    reading.lack("numa_domain", *wrong);
  } else if (const auto domains = members_of(set); domains.size() != 1) {
    reading.lack("numa_domain",
                 std::string(memory) + " names " + std::to_string(domains.size()) + " domains");
  } else {
    reading.set("numa_domain", domains.front(), memory);
  }
  set = {};
  const auto* cores = "nvmlDeviceGetCpuAffinity";
  if (const auto wrong = call(cores, device, size, set.data())) {
    reading.lack("cores", *wrong);
  } else {
    reading.set("cores", members_of(set), cores);
  }
}

void Nvml::read_form(const std::string& pci_address, Reading& reading) const {
  void* device = nullptr;
  if (const auto wrong = find(pci_address, device)) {
    reading.explain_rest(*wrong);
    return;
  }
  if (!reading.has("name")) {
    std::array<char, 96> text{};
    if (!call("nvmlDeviceGetName", device, text.data(), static_cast<unsigned>(text.size()))) {
      reading.set("name", text.data(), "nvmlDeviceGetName");
    }
  }
  if (!reading.has("numa_domain")) {
    read_near(device, reading);
  }
  // By generation from the first on.
  constexpr std::array<double, 6> speeds{2.5, 5, 8, 16, 32, 64};
  for (const auto& [item, function, of_speed] :
       {std::tuple("pcie.width", "nvmlDeviceGetCurrPcieLinkWidth", false),
        std::tuple("pcie.width_max", "nvmlDeviceGetMaxPcieLinkWidth", false),
        std::tuple("pcie.gt_per_s", "nvmlDeviceGetCurrPcieLinkGeneration", true),
        std::tuple("pcie.gt_per_s_max", "nvmlDeviceGetMaxPcieLinkGeneration", true)}) {
    unsigned value = 0;
    if (reading.has(item) || call(function, device, &value) || value == 0) {
      continue;
    }
    if (!of_speed) {
      reading.set(item, value, function);
    } else if (value <= speeds.size()) {
      reading.set(item, speeds.at(value - 1), function);
    }
  }
  unsigned joined = 0;  // a structure of one member
  if (!call("nvmlDeviceGetC2cModeInfoV", device, &joined) && joined != 0) {
    reading.set("host_link.kind", "nvlink-c2c", "nvmlDeviceGetC2cModeInfoV");
  }
  unsigned split = 0;
  unsigned later = 0;
  if (const auto wrong = call("nvmlDeviceGetMigMode", device, &split, &later)) {
    reading.lack("compute_partition", *wrong);
  } else {
    reading.set("compute_partition", split != 0 ? "MIG" : "none", "nvmlDeviceGetMigMode");
  }
}

void Nvml::read_identity(const std::string& pci_address, Reading& reading) const {
  const auto* function = "nvmlDeviceGetPciInfo_v3";
  void* device = nullptr;
  PciInfo info{};
  if (find(pci_address, device) || call(function, device, &info)) {
    return;
  }
  constexpr unsigned half = 16;  // the vendor's number is the lower half
  reading.set("pci_id", pci_number(info.pci_id, info.pci_id >> half), function);
  if (info.subsystem_id != 0) {
    reading.set("pci_subsystem", pci_number(info.subsystem_id, info.subsystem_id >> half),
                function);
  }
}

NvLinkEnds Nvml::link_ends(const std::string& pci_address) const {
  NvLinkEnds ends;
  void* device = nullptr;
  if (const auto wrong = find(pci_address, device)) {
    ends.problem = *wrong;
    return ends;
  }
  std::optional<unsigned> first;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    int up = 0;
    if (const auto wrong = call("nvmlDeviceGetNvLinkState", device, link, &up)) {
      break;  // past the last one, too; a device without links has none
    }
    if (up == 0) {
      continue;
    }
    first = first.value_or(link);
    int kind = 0;
    PciInfo end{};
    auto wrong = call("nvmlDeviceGetNvLinkRemoteDeviceType", device, link, &kind);
    if (!wrong && kind == kEndIsSwitch) {
      ++ends.switches;
    } else if (!wrong && kind == kEndIsDevice) {
      wrong = call("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, &end);
      std::array<char, 64> address{};
      std::snprintf(address.data(), address.size(), "%04x:%02x:%02x.0", end.domain, end.bus,
                    end.device);
      ++ends.devices[address.data()];
    }
    if (wrong) {
      ends.problem = *wrong;
      return ends;
    }
  }
  for (const unsigned field : {kLinkSpeed, kSpeedOfOneLink}) {
    FieldValue speed{};
    speed.field = field;
    speed.scope = first.value_or(0);
    if (const auto wrong = call(kFields, device, 1, &speed)) {
      ends.speed_problem = *wrong;
    } else if (speed.status == kSuccess && number_of(speed) > 0) {
      ends.gb_per_s = 1e-3 * number_of(speed);  // it is in MB/s
      break;
    } else {
      ends.speed_problem = std::string(kFields) + " does not tell field " + std::to_string(field);
    }
  }
  return ends;
}

std::optional<bool> Nvml::peer_access(const std::string& from, const std::string& to,
                                      std::string& why) const {
  void* first = nullptr;
  void* second = nullptr;
  int status = 0;
  auto wrong = find(from, first);
  wrong = wrong ? wrong : find(to, second);
  wrong = wrong ? wrong : call("nvmlDeviceGetP2PStatus", first, second, kReads, &status);
  if (wrong) {
    why = *wrong;
    return std::nullopt;
  }
  return status == 0;
}

std::optional<bool> Nvml::divided(const std::string& pci_address) const {
  void* device = nullptr;
  unsigned split = 0;
  unsigned later = 0;
  if (find(pci_address, device) || call("nvmlDeviceGetMigMode", device, &split, &later)) {
    return std::nullopt;
  }
  return split != 0;
}

void Nvml::read(const std::string& pci_address, DeviceReading& reading) const {
  void* device = nullptr;
  if (const auto wrong = find(pci_address, device)) {
    reading.lack("", *wrong);
    return;
  }
  read_clocks(device, reading);
  read_power(device, reading, "power_w", "nvmlDeviceGetPowerUsage");
  read_power(device, reading, "power_cap_w", "nvmlDeviceGetEnforcedPowerLimit");
  read_power(device, reading, "power_cap_default_w", "nvmlDeviceGetPowerManagementDefaultLimit");
  read_throttle(device, reading);
  read_fields(device, reading);
  read_memory_errors(device, reading);
  read_modes(device, reading);
  read_versions(device, reading);
  read_links(device, reading);
  read_processes(device, reading);
  unsigned replays = 0;
  if (const auto none = call("nvmlDeviceGetPcieReplayCounter", device, &replays)) {
    reading.lack("pcie.replays", *none);
  } else {
    reading.set("pcie.replays", replays, "nvmlDeviceGetPcieReplayCounter");
  }
}

json throttle_words(unsigned long long reasons) {
  constexpr unsigned long long none = 0x1 | 0x2 | 0x10 | 0x100;  // idle, or clocks as set
  constexpr unsigned long long power = 0x4;
  constexpr unsigned long long thermal = 0x20 | 0x40;
  constexpr unsigned long long hot_hardware = 0x40;
  constexpr unsigned long long slowdown = 0x8;  // by the hardware, for whichever reason
  constexpr unsigned long long brake = 0x80;
  json words = json::array();
  if ((reasons & power) != 0) {
    words.push_back(throttle::power);
  }
  if ((reasons & thermal) != 0) {
    words.push_back(throttle::thermal);
  }
  if ((reasons & brake) != 0 || ((reasons & slowdown) != 0 && (reasons & hot_hardware) == 0)) {
    words.push_back(throttle::hardware);
  }
  if ((reasons & ~(none | power | thermal | slowdown | brake)) != 0) {
    words.push_back(throttle::other);
  }
  return words;
}

}  // namespace fabricheck
