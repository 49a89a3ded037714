#include "harness/pci.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <tuple>

#include "harness/nvml.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

constexpr unsigned long kDisplay = 0x03;                  ///< class, without what follows it
constexpr unsigned long kProcessingAccelerator = 0x1200;  ///< class and subclass

bool is_accelerator(const std::string& vendor, const std::string& class_code) {
  const auto code = std::strtoul(class_code.c_str(), nullptr, 16);
  return (vendor == kAmd || vendor == kNvidia) &&
         (code >> 16 == kDisplay || code >> 8 == kProcessingAccelerator);
}

/// Whether the function answers: one that fell off the bus keeps its folder, and all bits are set.
bool answers(const std::string& folder) {
  const auto config = file_bytes(folder + "/config");
  return !config || config->empty() ||
         std::any_of(config->begin(), config->end(), [](char byte) { return byte != '\xff'; });
}

/// Whether this process may open the device's file of its driver, which a control group or a
/// container can prevent; null where the driver names none. `root` has dev and proc, `folder` is
/// that of the function.
json accessible(const std::filesystem::path& root, const std::string& folder,
                const std::string& address) {
  namespace fs = std::filesystem;
  std::error_code none;
  std::string file;
  for (const auto& entry : fs::directory_iterator(folder + "/drm", none)) {
    const auto name = entry.path().filename().string();
    if (name.rfind("renderD", 0) == 0) {
      file = "dri/" + name;
    }
  }
  const auto information =
      file_text((root / "proc/driver/nvidia/gpus" / address / "information").string()).value_or("");
  const std::string minor = "Device Minor:";
  const auto place = information.find(minor);
  if (place != std::string::npos) {
    file = "nvidia" + std::to_string(std::atoi(information.c_str() + place + minor.size()));
  }
  if (file.empty()) {
    return nullptr;
  }
  return access((root / "dev" / file).c_str(), R_OK | W_OK) == 0;
}

/// The mode in which the driver divides the device, or that it does not; null if unknown.
json mode(const std::string& folder, const std::string& address, const std::string& vendor,
          const Nvml* nvml) {
  if (vendor == kAmd) {
    const auto partition = file_text(folder + "/current_compute_partition");
    return partition ? json(*partition) : json(nullptr);
  }
  const auto divided = nvml == nullptr ? std::nullopt : nvml->divided(address);
  return divided ? json(*divided ? "MIG" : "none") : json(nullptr);
}

/// The folder of the port at the other end of a device's link. Switches within the package of the
/// device are of its vendor, and not the port unless nothing is above them.
std::string port_folder(const std::string& device) {
  std::error_code none;
  const auto vendor = file_text(device + "/vendor");
  auto port = std::filesystem::canonical(device, none).parent_path();
  while (file_text(port / "vendor") == vendor &&
         std::filesystem::exists(port.parent_path() / "vendor", none)) {
    port = port.parent_path();
  }
  return port;
}

}  // namespace

std::string pci_number(unsigned vendor, unsigned device) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04x:%04x", vendor & 0xffff, device & 0xffff);
  return text.data();
}

void read_host_link(const std::string& folder, Reading& reading) {
  constexpr double unknown = 255;  // what the kernel says of a width that it does not know
  const auto port = port_folder(folder);
  for (const auto& [item, where, name] :
       {std::tuple("pcie.width", &folder, "current_link_width"),
        std::tuple("pcie.width_max", &folder, "max_link_width"),
        std::tuple("pcie.width_max_port", &port, "max_link_width"),
        std::tuple("pcie.gt_per_s", &folder, "current_link_speed"),
        std::tuple("pcie.gt_per_s_max", &folder, "max_link_speed")}) {
    const auto text = file_text(*where + "/" + name);
    double value = 0;
    if (!text || std::sscanf(text->c_str(), "%lf", &value) != 1 || value == unknown) {
      reading.lack(item, text ? std::string(name) + " is '" + *text + "'"
                              : "no file " + std::string(name) + " of the " +
                                    (where == &port ? "port above the " : "") + "device in /sys");
    } else if (std::string(name).find("width") != std::string::npos) {
      reading.set(item, static_cast<int>(value), name);
    } else {
      reading.set(item, value, name);
    }
  }
}

void read_host_link_errors(const std::string& folder, DeviceReading& reading) {
  LinkErrors errors;
  std::string sources;
  for (const auto& [kind, name, total] :
       {std::tuple(link_error::aer_corrected, "aer_dev_correctable", "TOTAL_ERR_COR"),
        std::tuple(link_error::aer_nonfatal, "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL"),
        std::tuple(link_error::aer_fatal, "aer_dev_fatal", "TOTAL_ERR_FATAL")}) {
    const auto text = file_text(folder + "/" + name).value_or("");
    const auto place = text.find(total);
    unsigned long long count = 0;
    if (place == std::string::npos ||
        std::sscanf(text.c_str() + place + std::strlen(total), "%llu", &count) != 1) {
      reading.lack(std::string("link_errors.") + kind,
                   "no " + std::string(total) + " in " + name + " of the device in /sys");
      continue;
    }
    errors.add(kind, LinkErrors::kAllLinks, count);
    sources += (sources.empty() ? "" : ", ") + std::string(name);
  }
  reading.set_link_errors(errors, sources);
}

json pci_functions(const std::string& sys, const Nvml* nvml) {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::directory_iterator entries(sys + "/bus/pci/devices", none);
  if (none) {
    return nullptr;
  }
  const auto root = fs::path(sys).parent_path();
  std::map<std::string, json> by_address;
  for (const auto& entry : entries) {
    const auto folder = entry.path().string();
    const auto address = entry.path().filename().string();
    const auto vendor = file_text(folder + "/vendor").value_or("");
    if (!is_accelerator(vendor, file_text(folder + "/class").value_or("")) ||
        fs::exists(folder + "/physfn", none) || !answers(folder)) {
      continue;
    }
    const auto driver = fs::read_symlink(folder + "/driver", none).filename().string();
    by_address[address] = {{"address", address},
                           {"vendor", vendor},
                           {"device", file_text(folder + "/device").value_or("")},
                           {"driver", driver.empty() ? json(nullptr) : json(driver)},
                           {"mode", mode(folder, address, vendor, nvml)},
                           {"accessible", accessible(root, folder, address)}};
  }
  json functions = json::array();
  for (const auto& [address, function] : by_address) {
    functions.push_back(function);
  }
  return functions;
}

}  // namespace fabricheck
