// What a reader (nvml.hpp, amdgpu.hpp) finds out of one device for the state of the node.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fabricheck {

/// A process that uses a device, as its driver lists it: of this run or of another.
struct DriverProcess {
  int pid = 0;
  std::optional<std::uint64_t> memory_bytes{};
};

/// For how many of its cycles a device was throttled: counters of its driver, whose cycles are of
/// unknown length. What they are in seconds two readings tell.
struct Residency {
  double at = 0;  ///< seconds, by the clock of wall_seconds()
  std::uint64_t cycles = 0;
  std::map<std::string, std::vector<std::uint64_t>> counts;  ///< by word; several may go together
  std::string source;
};

/// The links of a device to others, as a driver tells them one by one.
class LinkReading {
 public:
  void up(unsigned link, std::optional<std::uint64_t> errors = {});
  void down(unsigned link);
  /// Lanes and GB/s of those that are up.
  void set_speed(std::optional<std::uint64_t> width, std::optional<double> gb_per_s);

  [[nodiscard]] bool empty() const { return number_ == 0; }
  /// The member `links`.
  [[nodiscard]] nlohmann::json json() const;

 private:
  unsigned number_ = 0;
  std::vector<unsigned> down_;
  bool counted_ = false;
  std::map<unsigned, std::uint64_t> errors_;
  std::optional<std::uint64_t> width_;
  std::optional<double> gb_per_s_;
};

/// The members of the schema's device_state but for its index, with what told each, and why those
/// are null that nothing told.
class DeviceReading {
 public:
  DeviceReading();

  /// Sets a member, as `clock_mhz` or `pcie.width`, that `source` told.
  void set(const std::string& item, nlohmann::json value, const std::string& source);
  /// Says why a member is not known; an empty item stands for all. The first reason is kept.
  void lack(const std::string& item, const std::string& why);
  /// Sets the processes on the device. `of_host`: their numbers are those of the host even where
  /// this process is in a container.
  void list(std::vector<DriverProcess> processes, const std::string& source, bool of_host);
  /// Gives `why` for each member that is null without a reason.
  void explain_rest(const std::string& why);

  [[nodiscard]] const nlohmann::json& values() const { return values_; }
  [[nodiscard]] const std::map<std::string, std::string>& sources() const { return sources_; }
  [[nodiscard]] const std::map<std::string, std::string>& absent() const { return absent_; }

  /// Nothing where the driver does not tell.
  [[nodiscard]] const std::optional<std::vector<DriverProcess>>& processes() const {
    return processes_;
  }
  [[nodiscard]] bool processes_of_host() const { return processes_of_host_; }

  std::optional<Residency> residency{};

 private:
  std::optional<std::vector<DriverProcess>> processes_;
  bool processes_of_host_ = false;
  nlohmann::json values_;
  std::map<std::string, std::string> sources_;
  std::map<std::string, std::string> absent_;
};

/// The contents of a small file, such as those of /sys; nothing where it cannot be read.
std::optional<std::string> file_bytes(const std::string& path);

/// The same without blanks and line ends at its end.
std::optional<std::string> file_text(const std::string& path);

/// The folder of a PCI device under `sys` (/sys).
std::string device_folder(const std::string& sys, const std::string& pci_address);

}  // namespace fabricheck
