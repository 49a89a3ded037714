#include "harness/identity.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "harness/devices.hpp"
#include "harness/kfd.hpp"
#include "harness/nvml.hpp"
#include "harness/pci.hpp"
#include "harness/state.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

/// The hexadecimal number in a file of PCI, such as 0x74a1.
std::optional<unsigned> hexadecimal_in(const std::string& path) {
  const auto text = file_text(path);
  if (!text || text->empty()) {
    return std::nullopt;
  }
  char* end = nullptr;
  const auto number = std::strtoul(text->c_str(), &end, 16);
  return *end == '\0' ? std::optional(static_cast<unsigned>(number)) : std::nullopt;
}

void read_folder(const std::string& folder, Reading& reading) {
  const auto vendor = hexadecimal_in(folder + "/vendor");
  const auto device = hexadecimal_in(folder + "/device");
  if (!vendor || !device) {
    return;
  }
  reading.set("pci_id", pci_number(*vendor, *device), "vendor, device");
  const auto board_vendor = hexadecimal_in(folder + "/subsystem_vendor");
  const auto board = hexadecimal_in(folder + "/subsystem_device");
  // A board that has no number of its own has zero.
  if (board_vendor && board && *board_vendor != 0) {
    reading.set("pci_subsystem", pci_number(*board_vendor, *board),
                "subsystem_vendor, subsystem_device");
  }
}

/// AMD's runtime writes the number of a partition as the function, and PCI has function 0 alone.
std::string whole_card(const std::string& pci_address) {
  return pci_address.substr(0, pci_address.find('.')) + ".0";
}

void read_compute_driver(const std::string& sys, const std::string& pci_address, Reading& reading) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  if (std::sscanf(pci_address.c_str(), "%x:%x:%x", &domain, &bus, &slot) != 3) {
    return;
  }
  for (const auto& [number, node] : kfd_nodes(sys + "/class/kfd/kfd/topology")) {
    const bool here =
        node.device && node.domain == domain && node.bus() == bus && node.slot() == slot;
    if (here && node.vendor_id > 0 && node.device_id > 0) {
      reading.set(
          "pci_id",
          pci_number(static_cast<unsigned>(node.vendor_id), static_cast<unsigned>(node.device_id)),
          "KFD vendor_id, device_id");
      return;
    }
  }
}

}  // namespace

void read_identity(const std::string& sys, const std::string& nvml, const std::string& pci_address,
                   Reading& reading) {
  read_folder(device_folder(sys, pci_address), reading);
  if (!reading.has("pci_id")) {
    read_folder(device_folder(sys, whole_card(pci_address)), reading);
  }
  if (!reading.has("pci_id")) {
    read_compute_driver(sys, pci_address, reading);
  }
  if (!reading.has("pci_id")) {
    Nvml(nvml).read_identity(pci_address, reading);
  }
}

json device_identity(int device) {
  static const Reading::Members members{{"pci_id", nullptr}, {"pci_subsystem", nullptr}};
  Reading reading(members);
  if (const auto address = device_pci_address(device)) {
    const StateRoots roots;
    read_identity(roots.sys, roots.nvml, *address, reading);
  }
  return reading.values();
}

}  // namespace fabricheck
