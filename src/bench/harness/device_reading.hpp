// The results of a reader (nvml.hpp, amdgpu.hpp) about one device, for the state of the node.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fabricheck {

/// A process that uses a device, as its driver lists it: of this run or of another.
struct DriverProcess {
  int pid = 0;
  std::optional<std::uint64_t> memory_bytes{};
};

/// The number of cycles in which a device was throttled: counters of its driver, whose cycles have
/// an unknown length. Two readings give the length in seconds.
struct Residency {
  double at = 0;  ///< seconds, by the clock of wall_seconds()
  std::uint64_t cycles = 0;
  std::map<std::string, std::vector<std::uint64_t>> counts;  ///< by word; several may go together
  std::string source;
};

/// The links of a device to others, as a driver lists them.
class LinkReading {
 public:
  void up();
  void down(unsigned link);
  /// Lanes and GB/s of the active links.
  void set_speed(std::optional<std::uint64_t> width, std::optional<double> gb_per_s);

  [[nodiscard]] bool empty() const { return number_ == 0; }
  [[nodiscard]] unsigned number() const { return number_; }
  [[nodiscard]] bool is_down(unsigned link) const;
  /// The member `links`.
  [[nodiscard]] nlohmann::json json() const;

 private:
  unsigned number_ = 0;
  std::vector<unsigned> down_;
  std::optional<std::uint64_t> width_;
  std::optional<double> gb_per_s_;
};

/// The errors that a driver counts of the links of a device.
class LinkErrors {
 public:
  /// Where a driver has one counter for all links.
  static constexpr const char* kAllLinks = "all";

  /// Adds a counter; `kind` is a word of the vocabulary (link_error).
  void add(const char* kind, const std::string& link, std::uint64_t count);

  [[nodiscard]] bool empty() const { return kinds_.empty(); }
  /// The member `link_errors`: a counter that is 0 is left out, its kind is not.
  [[nodiscard]] const nlohmann::json& json() const { return kinds_; }

 private:
  nlohmann::json kinds_ = nlohmann::json::object();
};

/// Members of a JSON object as a driver tells them, with the source of each, and the reason for
/// each null.
class Reading {
 public:
  /// The members, null; of those that have members the objects they become with the first of them.
  using Members = std::map<std::string, nlohmann::json>;

  /// `members` must live as long.
  explicit Reading(const Members& members);

  /// Sets a member, such as `clock_mhz` or `pcie.width`, with its source `source`.
  void set(const std::string& item, nlohmann::json value, const std::string& source);
  /// Sets why a member is unknown; an empty item stands for all members. The first reason is kept.
  void lack(const std::string& item, const std::string& why);
  /// Sets `why` as the reason of each member that is null without one.
  void explain_rest(const std::string& why);

  [[nodiscard]] bool has(const std::string& item) const { return sources_.count(item) > 0; }
  [[nodiscard]] const nlohmann::json& values() const { return values_; }
  [[nodiscard]] const std::map<std::string, std::string>& sources() const { return sources_; }
  [[nodiscard]] const std::map<std::string, std::string>& absent() const { return absent_; }

 protected:
  std::map<std::string, std::string> sources_;

 private:
  const Members& members_;
  nlohmann::json values_;
  std::map<std::string, std::string> absent_;
};

/// The members of the schema's device_state except its index.
class DeviceReading : public Reading {
 public:
  DeviceReading();

  /// Sets the processes on the device. `of_host`: their numbers are those of the host even if this
  /// process is in a container.
  void list(std::vector<DriverProcess> processes, const std::string& source, bool of_host);

  /// Empty if the driver does not report it.
  [[nodiscard]] const std::optional<std::vector<DriverProcess>>& processes() const {
    return processes_;
  }
  [[nodiscard]] bool processes_of_host() const { return processes_of_host_; }

  /// Sets the errors of links of one source beside those of others.
  void set_link_errors(const LinkErrors& errors, const std::string& source);

  std::optional<Residency> residency{};

 private:
  std::optional<std::vector<DriverProcess>> processes_;
  bool processes_of_host_ = false;
};

/// Where the members of several readings are from, and why those that are null are unknown: each
/// item once.
class Provenance {
 public:
  /// `items` names the readings in a document ("devices"), `noun` one of them in a sentence.
  Provenance(std::string items, std::string noun)
      : items_(std::move(items)), noun_(std::move(noun)) {}

  /// `name` is that of the reading among the others, such as its index.
  void add(const Reading& reading, const std::string& name);
  void lack(const std::string& item, const std::string& why, const std::string& name);
  /// Of `count` readings in all: a reason names those that have it, unless all have.
  void write(std::size_t count, nlohmann::json& absent, nlohmann::json& sources) const;

 private:
  std::string items_;
  std::string noun_;
  std::map<std::string, std::map<std::string, std::vector<std::string>>> reasons_;
  std::map<std::string, std::set<std::string>> sources_;
};

/// The contents of a small file, such as those of /sys; empty if it cannot be read.
std::optional<std::string> file_bytes(const std::string& path);

/// The same without trailing blanks and line ends.
std::optional<std::string> file_text(const std::string& path);

/// The folder of a PCI device under `sys` (/sys).
std::string device_folder(const std::string& sys, const std::string& pci_address);

/// The cores in a list such as 0-63,128, as the system writes it.
std::vector<int> cores_in(const std::string& list);

}  // namespace fabricheck
