#include "harness/amdgpu.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "harness/gpu_metrics.hpp"
#include "harness/sampling.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr double kJoulesOfEnergyStep = 1.0 / 65536;
constexpr std::uint64_t kLinkDown = 0;
constexpr std::uint64_t kLinkUp = 1;

/// The names in a folder, in order; none where it cannot be read.
std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

std::optional<double> number_of(const std::optional<std::string>& text) {
  double value = 0;
  return text && std::sscanf(text->c_str(), "%lf", &value) == 1 ? std::optional(value)
                                                                : std::nullopt;
}

/// Lines of a name and a number, such as "ue: 0" or "location_id 49408".
std::map<std::string, std::uint64_t> numbers_by_name(const std::optional<std::string>& text) {
  std::map<std::string, std::uint64_t> numbers;
  std::istringstream lines(text.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::array<char, 64> name{};
    unsigned long long value = 0;
    if (std::sscanf(line.c_str(), "%63[^: ]%*[: ]%llu", name.data(), &value) == 2) {
      numbers[name.data()] = value;
    }
  }
  return numbers;
}

/// The link of the package: in /sys the device may be behind a switch of its own.
void read_package_link(const GpuMetrics& metrics, Reading& reading) {
  const auto width = metrics.value("pcie_link_width");
  const auto speed = metrics.value("pcie_link_speed");
  if (width && speed && *width > 0 && *speed > 0) {
    const auto source = "gpu_metrics " + metrics.version;
    reading.set("pcie.width", *width, source);
    reading.set("pcie.gt_per_s", 0.1 * static_cast<double>(*speed), source);
  }
}

/// The second die of a package has no counter: there it stays 0.
std::optional<double> joules_of(const GpuMetrics& metrics) {
  const auto steps = metrics.value("energy_accumulator");
  return steps && *steps > 0 ? std::optional(kJoulesOfEnergyStep * static_cast<double>(*steps))
                             : std::nullopt;
}

/// The words for the two counters of a block of links.
struct LinkBlock {
  const char* corrected;
  const char* uncorrected;
};

/// The words for a block; empty for those of memory, caches and engines.
std::optional<LinkBlock> link_block(const std::string& block) {
  if (block == "xgmi_wafl") {
    return LinkBlock{link_error::xgmi_corrected, link_error::xgmi_uncorrected};
  }
  if (block == "pcie_bif") {
    return LinkBlock{link_error::bif_corrected, link_error::bif_uncorrected};
  }
  return std::nullopt;
}

/// Reads the files of one device into a reading.
class Reader {
 public:
  Reader(const std::string& sys, std::string address, DeviceReading& reading)
      : sys_(sys),
        address_(std::move(address)),
        folder_(device_folder(sys, address_)),
        reading_(reading) {}

  void read() {
    read_kfd_nodes();
    read_monitor();
    read_clock_levels();
    read_number("busy_percent", "gpu_busy_percent");
    read_metrics();
    read_ras();
    read_number("pcie.replays", "pcie_replay_count");
    read_versions();
    read_amdgpu_modes(sys_, address_, reading_);
    read_processes();
  }

 private:
  [[nodiscard]] std::optional<std::string> text(const std::string& name) const {
    return file_text(folder_ / name);
  }

  void read_number(const std::string& item, const std::string& name) {
    if (const auto value = number_of(text(name)); value && *value >= 0) {
      reading_.set(item, static_cast<std::uint64_t>(*value), name);
    }
  }

  /// The nodes of the compute driver that the device is: several where it is partitioned.
  void read_kfd_nodes() {
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned device = 0;
    if (std::sscanf(address_.c_str(), "%x:%x:%x", &domain, &bus, &device) != 3) {
      return;
    }
    const auto nodes = sys_ / "class/kfd/kfd/topology/nodes";
    for (const auto& node : names_in(nodes)) {
      auto properties = numbers_by_name(file_text(nodes / node / "properties"));
      // The other bits of location_id number partitions.
      const auto place = properties["location_id"];
      if (properties["simd_count"] == 0 || properties["domain"] != domain ||
          (place >> 8 & 0xff) != bus || (place >> 3 & 0x1f) != device) {
        continue;
      }
      const auto id = number_of(file_text(nodes / node / "gpu_id"));
      if (id && *id > 0) {
        gpu_ids_.push_back(std::to_string(static_cast<std::uint64_t>(*id)));
      }
      highest_clock_ = std::max(highest_clock_, properties["max_engine_clk_fcompute"]);
    }
  }

  void read_monitor() {
    for (const auto& name : names_in(folder_ / "hwmon")) {
      const auto monitor = "hwmon/" + name + "/";
      if (text(monitor + "name") != "amdgpu") {
        continue;
      }
      read_temperatures(monitor);
      for (const auto& [item, file] :
           {std::pair("clock_mhz", "freq1_input"), std::pair("memory_clock_mhz", "freq2_input")}) {
        if (const auto hertz = number_of(text(monitor + file))) {
          reading_.set(item, 1e-6 * *hertz, file);
        }
      }
      for (const auto& [item, file] :
           {std::pair("power_w", "power1_average"), std::pair("power_w", "power1_input"),
            std::pair("power_cap_w", "power1_cap"),
            std::pair("power_cap_default_w", "power1_cap_default")}) {
        const auto microwatts = text(monitor + file);
        if (const auto watts = watts_of(microwatts.value_or(""))) {
          reading_.set(item, *watts, file);
        } else if (microwatts) {
          reading_.lack(item, std::string(file) + " is '" + *microwatts +
                                  "': the second die of a package has none of its own");
        }
      }
    }
  }

  void read_temperatures(const std::string& monitor) {
    for (int i = 1; i <= 3; ++i) {
      const auto file = "temp" + std::to_string(i);
      const auto label = text(monitor + file + "_label");
      const auto millidegrees = number_of(text(monitor + file + "_input"));
      if (!label || !millidegrees) {
        continue;
      }
      // The junction, which comes after the edge, is where the device is hottest.
      const auto* item = *label == "mem" ? "memory_temperature_c" : "temperature_c";
      reading_.set(item, 1e-3 * *millidegrees, file + "_input (" + *label + ")");
    }
  }

  void read_clock_levels() {
    if (highest_clock_ > 0) {
      reading_.set("clock_max_mhz", highest_clock_, "KFD max_engine_clk_fcompute");
    } else if (const auto mhz = highest_clock_mhz(text("pp_dpm_sclk").value_or(""))) {
      reading_.set("clock_max_mhz", *mhz, "pp_dpm_sclk");
    }
    if (const auto mhz = highest_clock_mhz(text("pp_dpm_mclk").value_or(""))) {
      reading_.set("memory_clock_max_mhz", *mhz, "pp_dpm_mclk");
    }
  }

  void read_metrics() {
    const auto bytes = file_bytes(folder_ / "gpu_metrics");
    const auto metrics = gpu_metrics(bytes.value_or(""));
    if (!metrics) {
      const std::string why = bytes ? "gpu_metrics is of an unknown version" : "no gpu_metrics";
      for (const auto* item : {"throttle", "energy_j", "links"}) {
        reading_.lack(item, why);
      }
      return;
    }
    const auto source = "gpu_metrics " + metrics->version;
    if (const auto status = metrics->value("indep_throttle_status")) {
      reading_.set("throttle", amd_throttle_words(*status), source);
    } else {
      reading_.lack("throttle", source + " does not tell it");
    }
    if (const auto joules = joules_of(*metrics)) {
      reading_.set("energy_j", *joules, source);
    }
    read_package_link(*metrics, reading_);
    read_residency(*metrics, source);
    read_links(*metrics, source);
  }

  /// Cycles since the driver was loaded, of a length that is documented nowhere: seconds come of
  /// two snapshots.
  void read_residency(const GpuMetrics& metrics, const std::string& source) {
    const auto cycles = metrics.value("accumulation_counter");
    if (!cycles) {
      return;
    }
    Residency residency;
    residency.cycles = *cycles;
    for (const auto& [word, name] : {std::pair(throttle::power, "ppt_residency_acc"),
                                     std::pair(throttle::thermal, "socket_thm_residency_acc"),
                                     std::pair(throttle::thermal, "hbm_thm_residency_acc"),
                                     std::pair(throttle::hardware, "vr_thm_residency_acc"),
                                     std::pair(throttle::hardware, "prochot_residency_acc")}) {
      if (const auto count = metrics.value(name)) {
        residency.counts[word].push_back(*count);
      }
    }
    residency.source = source;
    residency.at = wall_seconds();
    reading_.residency = residency;
  }

  void read_links(const GpuMetrics& metrics, const std::string& source) {
    const auto status = metrics.values.find("xgmi_link_status");
    if (status == metrics.values.end()) {
      reading_.lack("links", source + " does not tell the state of xGMI links");
      return;
    }
    const auto width = metrics.value("xgmi_link_width");
    const auto speed = metrics.value("xgmi_link_speed");
    LinkReading links;
    for (unsigned i = 0; i < status->second.size(); ++i) {
      // Any other value is of a link that the device does not have.
      if (status->second[i] == kLinkUp) {
        links.up();
      } else if (status->second[i] == kLinkDown) {
        links.down(i);
      }
    }
    if (links.empty()) {
      reading_.lack("links", source + " tells of no xGMI link");
      return;
    }
    if (width && speed) {
      // One width, and one speed of a lane in Gbit/s, for all links.
      links.set_speed(*width, static_cast<double>(*width * *speed) / 8);
    }
    reading_.set("links", links.json(), source);
  }

  /// The counters of the blocks that the driver watches (RAS): whichever it has files of. The
  /// driver adds what the hardware counted to a sum since it was loaded, so that no reader takes
  /// anything from another.
  void read_ras() {
    LinkErrors of_links;
    std::string link_sources;
    std::uint64_t corrected = 0;
    std::uint64_t uncorrected = 0;
    std::string sources;
    bool of_memory = false;
    for (const auto& [block, name] : ras_files()) {
      const auto kinds = link_block(block);
      const auto shown = text(name);
      auto numbers = numbers_by_name(shown);
      if (numbers.count("ue") == 0 || numbers.count("ce") == 0) {
        const auto why = shown ? name + " is '" + *shown + "'" : name + " cannot be read";
        reading_.lack(kinds ? std::string("link_errors.") + kinds->corrected : "memory_errors",
                      why);
        continue;
      }
      if (kinds) {
        of_links.add(kinds->corrected, LinkErrors::kAllLinks, numbers["ce"]);
        of_links.add(kinds->uncorrected, LinkErrors::kAllLinks, numbers["ue"]);
        link_sources += (link_sources.empty() ? "" : ", ") + name;
        continue;
      }
      corrected += numbers["ce"];
      uncorrected += numbers["ue"];
      sources += (sources.empty() ? "" : ", ") + name;
      of_memory = of_memory || block == "umc";
    }
    if (!sources.empty()) {
      reading_.set("memory_errors.corrected", corrected, sources);
      reading_.set("memory_errors.uncorrected", uncorrected, sources);
    }
    if (!of_memory) {
      reading_.lack("memory_errors", "no ras/umc_err_count: those of its memory are not known");
    }
    reading_.set_link_errors(of_links, link_sources);
    if (of_links.json().count(link_error::xgmi_uncorrected) == 0) {
      reading_.lack(
          std::string("link_errors.") + link_error::xgmi_corrected,
          "no ras/xgmi_wafl_err_count: the driver has none where xGMI joins the device to "
          "the CPU, too; xgmi_error is reset by reading it, and not read");
    }
    unsigned long long mask = 0;
    const auto features = text("ras/features");
    if (features && std::sscanf(features->c_str(), "feature mask: %llx", &mask) == 1 &&
        (mask & 1) != 0) {
      reading_.set("ecc", true, "ras/features");
    }
  }

  /// By block the file of its counters. A block may have two files of the same counters.
  [[nodiscard]] std::map<std::string, std::string> ras_files() const {
    const std::string opening = "aca_";
    const std::string ending = "_err_count";
    std::map<std::string, std::string> files;
    for (const auto& name : names_in(folder_ / "ras")) {
      const auto stem = name.size() - std::min(name.size(), ending.size());
      if (name.substr(stem) == ending) {
        files[name.substr(0, stem)] = "ras/" + name;
      } else if (name.rfind(opening, 0) == 0) {
        files.emplace(name.substr(opening.size()), "ras/" + name);
      }
    }
    return files;
  }

  void read_versions() {
    if (const auto vbios = text("vbios_version"); vbios && !vbios->empty()) {
      reading_.set("vbios", *vbios, "vbios_version");
    }
    const std::string ending = "_fw_version";
    json firmware = json::object();
    for (const auto& name : names_in(folder_ / "fw_version")) {
      const auto version = text("fw_version/" + name);
      const auto stem = name.size() - std::min(name.size(), ending.size());
      if (version && name.substr(stem) == ending && std::strtoull(version->c_str(), nullptr, 16)) {
        firmware[name.substr(0, stem)] = *version;
      }
    }
    if (!firmware.empty()) {
      reading_.set("firmware", firmware, "fw_version");
    }
  }

  void read_processes() {
    const auto all = sys_ / "class/kfd/kfd/proc";
    std::error_code none;
    if (gpu_ids_.empty() || !fs::is_directory(all, none)) {
      reading_.lack("processes", gpu_ids_.empty() ? "no node of the compute driver (KFD) can be "
                                                    "read that has the device's PCI address"
                                                  : "no /sys/class/kfd/kfd/proc");
      return;
    }
    std::vector<DriverProcess> processes;
    for (const int pid : kfd_processes(sys_)) {
      const auto folder = all / std::to_string(pid);
      std::uint64_t bytes = 0;
      bool used = false;
      for (const auto& id : gpu_ids_) {
        bytes += static_cast<std::uint64_t>(
            std::max(0.0, number_of(file_text(folder / ("vram_" + id))).value_or(0)));
      }
      for (const auto& queue : names_in(folder / "queues")) {
        const auto id = file_text(folder / "queues" / queue / "gpuid").value_or("");
        used = used || std::find(gpu_ids_.begin(), gpu_ids_.end(), id) != gpu_ids_.end();
      }
      // One that only has the driver open, as monitors do, uses no device.
      if (used || bytes > 0) {
        processes.push_back({pid, bytes});
      }
    }
    reading_.list(std::move(processes), "/sys/class/kfd/kfd/proc", true);
  }

  fs::path sys_;
  std::string address_;
  fs::path folder_;
  DeviceReading& reading_;
  std::vector<std::string> gpu_ids_;
  std::uint64_t highest_clock_ = 0;
};

}  // namespace

std::optional<double> highest_clock_mhz(const std::string& levels) {
  std::optional<double> highest;
  std::istringstream text(levels);
  for (std::string line; std::getline(text, line);) {
    double mhz = 0;
    if (std::sscanf(line.c_str(), "%*d: %lf%*[Mm]%*[Hh]%*[Zz]", &mhz) == 1 && mhz > 0) {
      highest = std::max(highest.value_or(0), mhz);
    }
  }
  return highest;
}

std::optional<double> watts_of(const std::string& microwatts) {
  double value = 0;
  if (std::sscanf(microwatts.c_str(), "%lf", &value) != 1 || !(value > 0)) {
    return std::nullopt;
  }
  return 1e-6 * value;
}

void read_amdgpu(const std::string& sys, const std::string& pci_address, DeviceReading& reading) {
  Reader(sys, pci_address, reading).read();
}

void read_amdgpu_modes(const std::string& sys, const std::string& pci_address, Reading& reading) {
  const auto folder = device_folder(sys, pci_address);
  for (const auto& [item, name] : {std::pair("compute_partition", "current_compute_partition"),
                                   std::pair("memory_partition", "current_memory_partition")}) {
    const auto mode = file_text(folder + "/" + name);
    if (mode && !mode->empty() && *mode != "UNKNOWN" && *mode != "Not supported") {
      reading.set(item, *mode, name);
    }
  }
}

void read_amdgpu_host_link(const std::string& sys, const std::string& pci_address,
                           Reading& reading) {
  const auto bytes = file_bytes(device_folder(sys, pci_address) + "/gpu_metrics");
  if (const auto metrics = gpu_metrics(bytes.value_or(""))) {
    read_package_link(*metrics, reading);
  }
}

std::optional<double> amdgpu_energy_j(const std::string& sys, const std::string& pci_address,
                                      std::string& why) {
  const auto bytes = file_bytes(device_folder(sys, pci_address) + "/gpu_metrics");
  const auto metrics = gpu_metrics(bytes.value_or(""));
  const auto joules = metrics ? joules_of(*metrics) : std::nullopt;
  if (!joules) {
    why = pci_address + ": " +
          (metrics ? "energy_accumulator of gpu_metrics " + metrics->version + " is 0"
           : bytes ? "gpu_metrics is of an unknown version"
                   : "no gpu_metrics");
  }
  return joules;
}

std::set<int> kfd_processes(const std::string& sys) {
  std::set<int> pids;
  for (const auto& name : names_in(fs::path(sys) / "class/kfd/kfd/proc")) {
    if (const int pid = std::atoi(name.c_str()); pid > 0) {
      pids.insert(pid);
    }
  }
  return pids;
}

}  // namespace fabricheck
