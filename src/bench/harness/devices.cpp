#include "harness/devices.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "harness/hip.hpp"
#include "harness/host.hpp"
#include "harness/identity.hpp"
#include "harness/kfd.hpp"
#include "harness/rocm.hpp"
#include "harness/settings.hpp"
#include "harness/sizes.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

hipDeviceProp_t properties_of(int device) {
  hipDeviceProp_t properties{};
  FABRICHECK_HIP(hipGetDeviceProperties(&properties, device));
  return properties;
}

/// AMD's runtime fills the 16 bytes with text, NVIDIA's with a binary UUID.
json unique_id(int device) {
  hipUUID uuid{};
  if (hipDeviceGetUuid(&uuid, device) != hipSuccess) {
    (void)hipGetLastError();
    return nullptr;
  }
  const std::string bytes(uuid.bytes, sizeof uuid.bytes);
  if (std::all_of(bytes.begin(), bytes.end(),
                  [](unsigned char byte) { return std::isxdigit(byte) != 0; })) {
    return "GPU-" + bytes;
  }
  std::string text = "GPU";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::array<char, 4> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned char>(bytes[i]));
    text += (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) ? "-" : "";
    text += digits.data();
  }
  return text;
}

/// 5.7.31921 for HIP's 50731921 and 13.0 for CUDA's 13000: both put the major number first.
std::string version_text(int version) {
  if (version >= 10000000) {
    return std::to_string(version / 10000000) + "." + std::to_string(version / 100000 % 100) + "." +
           std::to_string(version % 100000);
  }
  if (version >= 1000) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
  return std::to_string(version);
}

bool attribute(int device, hipDeviceAttribute_t which) {
  int value = 0;
  if (hipDeviceGetAttribute(&value, which, device) != hipSuccess) {
    (void)hipGetLastError();  // a runtime from before the attribute
    return false;
  }
  return value != 0;
}

json managed_memory_json(int device) {
  const auto known = managed_memory(device);
  return {{"managed", known.managed},
          {"concurrent_access", known.concurrent_access},
          {"pageable_access", known.pageable_access},
          {"xnack", known.xnack ? json(*known.xnack) : json(nullptr)}};
}

}  // namespace

ManagedMemory managed_memory(int device) {
  return {attribute(device, hipDeviceAttributeManagedMemory),
          attribute(device, hipDeviceAttributeConcurrentManagedAccess),
          attribute(device, hipDeviceAttributePageableMemoryAccess), xnack_of(device_arch(device))};
}

std::string device_arch(int device) { return properties_of(device).gcnArchName; }

std::optional<bool> xnack_of(const std::string& arch) {
  const std::string name = ":xnack";
  const auto start = arch.find(name);
  const auto mode = start == std::string::npos ? arch.size() : start + name.size();
  if (mode >= arch.size() || (arch[mode] != '+' && arch[mode] != '-')) {
    return std::nullopt;
  }
  return arch[mode] == '+';
}

int device_count() {
  int count = 0;
  const auto error = hipGetDeviceCount(&count);
  if (error != hipSuccess || count == 0) {
    throw lacks_devices(
        std::string("no device: ") +
            (error == hipSuccess ? "the runtime lists none" : hipGetErrorString(error)) + " (" +
            hipGetErrorName(error) + ")",
        0);
  }
  return count;
}

std::uint64_t device_last_level_cache(int device) {
  const auto l2_bytes = static_cast<std::uint64_t>(std::max(0, properties_of(device).l2CacheSize));
  return std::max(l2_bytes, driver_cache(device));
}

bool past_caches(std::uint64_t bytes, std::uint64_t cache_bytes) {
  // If the system hides its caches, half a gibibyte is assumed, more than any cache of 2025.
  constexpr std::uint64_t assumed = 1ULL << 29;
  return bytes >= std::min(4 * (cache_bytes > 0 ? cache_bytes : assumed), kPastAnyCache);
}

std::uint64_t largest_device_cache(int count) {
  std::uint64_t largest = 0;
  for (int i = 0; i < count; ++i) {
    largest = std::max(largest, device_last_level_cache(i));
  }
  return largest;
}

std::vector<std::uint64_t> array_sizes(const std::string& text, std::uint64_t cache_bytes) {
  if (text.empty()) {
    std::uint64_t size = 64ULL << 20;
    while (!past_caches(size, cache_bytes)) {
      size *= 2;
    }
    return {size};
  }
  const auto sizes = parse_size_list(text);
  for (const auto size : sizes) {
    if (size % 16 != 0) {
      throw Failure(Status::usage,
                    "the size of " + std::to_string(size) + " B is not a multiple of 16 B");
    }
  }
  return sizes;
}

std::optional<std::string> device_pci_address(int device) {
  std::array<char, 64> address{};
  if (hipDeviceGetPCIBusId(address.data(), int(address.size()), device) != hipSuccess) {
    (void)hipGetLastError();
    return std::nullopt;
  }
  return address.data();
}

bool device_is_cpu(int device) { return device_arch(device) == "host"; }

int device_numa_domain(int device) {
  if (const auto address = device_pci_address(device)) {
    return numa_domain_of_pci(*address);
  }
  // A virtual device has no PCI address, but its memory is host memory, which can be located.
  const auto probe = Buffer::on_device(device, 4096);
  FABRICHECK_HIP(hipMemset(probe.as<void>(), 0, 4096));
  return numa_domain_of(probe.as<void>(), 4096);
}

int compute_units(int device) { return std::max(1, properties_of(device).multiProcessorCount); }

json describe_devices() {
  json devices = json::array();
  const int count = device_count();
  for (int i = 0; i < count; ++i) {
    const auto properties = properties_of(i);
    const auto address = device_pci_address(i);
    const auto identity = device_identity(i);
    const int domain = device_numa_domain(i);
    devices.push_back({{"index", i},
                       {"name", properties.name},
                       {"arch", properties.gcnArchName},
                       {"pci_address", address ? json(*address) : json(nullptr)},
                       {"pci_id", identity["pci_id"]},
                       {"pci_subsystem", identity["pci_subsystem"]},
                       {"unique_id", unique_id(i)},
                       {"memory_bytes", properties.totalGlobalMem},
                       {"compute_units", properties.multiProcessorCount},
                       {"last_level_cache_bytes", device_last_level_cache(i)},
                       {"numa_domain", domain < 0 ? json(nullptr) : json(domain)},
                       {"managed_memory", managed_memory_json(i)}});
  }
  return devices;
}

json describe_versions() {
  int driver = 0;
  int runtime = 0;
  FABRICHECK_HIP(hipDriverGetVersion(&driver));
  FABRICHECK_HIP(hipRuntimeGetVersion(&runtime));
  const auto module = kernel_module_version();
  json versions{{"runtime", version_text(runtime)},
                {"driver", module.value_or(version_text(driver))}};
  if (const auto rocm = rocm_version()) {
    versions["rocm"] = *rocm;
  }
  return versions;
}

std::vector<std::vector<int>> parse_device_sets(const std::vector<std::string>& texts, int count) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(i);
  }
  std::vector<std::vector<int>> sets;
  for (const auto& text : texts) {
    if (text == "all") {
      sets.push_back(all);
    } else if (text == "each") {
      for (const int device : all) {
        sets.push_back({device});
      }
    } else {
      std::vector<int> set;
      for (const auto& item : split_list(text, "the device set")) {
        const int device = parse_index(item, "the device");
        if (device >= count) {
          throw no_such_device("device " + item, count);
        }
        if (std::find(set.begin(), set.end(), device) != set.end()) {
          throw Failure(Status::usage,
                        "the device set '" + text + "' names device " + item + " twice");
        }
        set.push_back(device);
      }
      sets.push_back(set);
    }
  }
  return sets;
}

}  // namespace fabricheck
