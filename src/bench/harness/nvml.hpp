// NVIDIA's management library (NVML), opened at run time, so that no build needs it.
#pragma once

#include <optional>
#include <string>

#include "harness/device_reading.hpp"

namespace fabricheck {

constexpr const char* kNvml = "libnvidia-ml.so.1";

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

  /// Whether the device at a PCI address is in MIG mode; empty if the library does not tell it.
  [[nodiscard]] std::optional<bool> divided(const std::string& pci_address) const;

 private:
  /// Calls a function of the library. Returns the problem; empty when the call succeeded.
  template <typename... Arguments>
  std::optional<std::string> call(const char* name, Arguments... arguments) const;
  void read_power(void* device, DeviceReading& reading, const char* item,
                  const char* function) const;
  void read_clocks(void* device, DeviceReading& reading) const;
  void read_throttle(void* device, DeviceReading& reading) const;
  void read_fields(void* device, DeviceReading& reading) const;
  void read_memory_errors(void* device, DeviceReading& reading) const;
  void read_modes(void* device, DeviceReading& reading) const;
  void read_versions(void* device, DeviceReading& reading) const;
  void read_links(void* device, DeviceReading& reading) const;
  void read_processes(void* device, DeviceReading& reading) const;

  void* library_ = nullptr;
  bool ready_ = false;
  std::string problem_;
};

/// Words of the vocabulary (throttle) for NVML's bits of reasons. An idle device and requested
/// clocks are no reasons.
nlohmann::json throttle_words(unsigned long long reasons);

}  // namespace fabricheck
