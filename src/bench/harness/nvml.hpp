// NVIDIA's management library (NVML), opened while the program runs: no build needs it.
#pragma once

#include <optional>
#include <string>

#include "harness/device_reading.hpp"

namespace fabricheck {

constexpr const char* kNvml = "libnvidia-ml.so.1";

class Nvml {
 public:
  /// Opens and initializes the library; what hinders it is in problem().
  explicit Nvml(const std::string& library = kNvml);
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  /// Why nothing can be read, as a sentence without its stop; empty where it can.
  [[nodiscard]] const std::string& problem() const { return problem_; }

  /// Reads the state of the device at a PCI address, but for the width and speed of its link to
  /// the host: those cost less in /sys. Nothing is reset, and nothing read that reading resets.
  void read(const std::string& pci_address, DeviceReading& reading) const;

 private:
  /// Calls a function of the library. Returns what is wrong; nothing when it answered.
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

/// Words of the vocabulary (throttle) for NVML's bits of reasons. That a device is idle or has the
/// clocks that it was told to have is none.
nlohmann::json throttle_words(unsigned long long reasons);

}  // namespace fabricheck
