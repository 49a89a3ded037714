// NVIDIA's management library (NVML), opened at run time, so that no build needs it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "harness/device_reading.hpp"

namespace fabricheck {

constexpr const char* kNvml = "libnvidia-ml.so.1";

/// What the links of a device that are up lead to.
struct NvLinkEnds {
  std::map<std::string, int> devices;  ///< links by PCI address: 0000:00:07.0
  int switches = 0;                    ///< links to switches
  std::optional<double> gb_per_s;      ///< of one link, one way
  std::string problem;                 ///< why nothing is known of links; empty: it is
  std::string speed_problem;           ///< why their speed is not
};

class Nvml {
 public:
  /// Opens and initializes the library; problem() has the obstacle, if any.
  explicit Nvml(const std::string& library = kNvml);
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  /// Why nothing can be read, as a sentence without its full stop; empty if nothing is wrong.
  [[nodiscard]] const std::string& problem() const { return problem_; }

  /// Reads the state of the device at a PCI address, except the width and speed of its link to the
  /// host, which cost less in /sys. Nothing is reset, and no value is read that reading resets.
  void read(const std::string& pci_address, DeviceReading& reading) const;

  /// Joules that the device at a PCI address has taken since its driver was loaded; empty, with the
  /// reason in `why`, if the library does not tell it.
  [[nodiscard]] std::optional<double> energy_j(const std::string& pci_address,
                                               std::string& why) const;

  /// Reads what does not change from run to run: the name, the NUMA domain and the cores near the
  /// device (where the system does not tell it), the link to the host, and the mode MIG.
  void read_form(const std::string& pci_address, Reading& reading) const;

  /// Reads the members pci_id and pci_subsystem of the device at a PCI address.
  void read_identity(const std::string& pci_address, Reading& reading) const;

  /// The ends of the links of the device at a PCI address.
  [[nodiscard]] NvLinkEnds link_ends(const std::string& pci_address) const;

  /// Whether kernels on one device may use the memory of another; empty, with the reason in `why`,
  /// if the library does not tell it.
  [[nodiscard]] std::optional<bool> peer_access(const std::string& from, const std::string& to,
                                                std::string& why) const;

  /// The architecture of the device at a PCI address, such as sm_90; empty if the library has no
  /// such device.
  [[nodiscard]] std::optional<std::string> architecture(const std::string& pci_address) const;

  /// Whether the library lists a device at a PCI address.
  [[nodiscard]] bool lists(const std::string& pci_address) const;

  /// Whether the device at a PCI address is in MIG mode; empty if the library does not tell it.
  [[nodiscard]] std::optional<bool> divided(const std::string& pci_address) const;

 private:
  /// Calls a function of the library. Returns the problem; empty when the call succeeded.
  template <typename... Arguments>
  std::optional<std::string> call(const char* name, Arguments... arguments) const;
  /// The handle of the device at a PCI address; returns the problem, as call() does.
  std::optional<std::string> find(const std::string& pci_address, void*& device) const;
  void read_near(void* device, Reading& reading) const;
  void read_power(void* device, DeviceReading& reading, const char* item,
                  const char* function) const;
  void read_clocks(void* device, DeviceReading& reading) const;
  void read_throttle(void* device, DeviceReading& reading) const;
  void read_fields(void* device, DeviceReading& reading) const;
  void read_memory_errors(void* device, DeviceReading& reading) const;
  void read_modes(void* device, DeviceReading& reading) const;
  void read_versions(void* device, DeviceReading& reading) const;
  void read_links(void* device, DeviceReading& reading) const;
  void read_link_errors(void* device, const LinkReading& links, DeviceReading& reading) const;
  void read_link_error_fields(void* device, const LinkReading& links, DeviceReading& reading) const;
  void read_processes(void* device, DeviceReading& reading) const;

  void* library_ = nullptr;
  bool ready_ = false;
  std::string problem_;
};

/// Words of the vocabulary (throttle) for NVML's bits of reasons. An idle device and requested
/// clocks are no reasons.
nlohmann::json throttle_words(unsigned long long reasons);

}  // namespace fabricheck
