#include "ranks/place.hpp"

#include <hip/hip_runtime.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "harness/settings.hpp"
#include "harness/sizes.hpp"
#include "harness/status.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

json or_null(int value) { return value < 0 ? json(nullptr) : json(value); }

std::string key_of(const json& device, const std::string& node) {
  const auto text = [&device](const char* name) {
    return device[name].is_string() ? device[name].get<std::string>() : std::string();
  };
  const auto address = text("pci_address");
  const auto id = text("unique_id");
  const auto number =
      address.empty() && id.empty() ? std::to_string(device["index"].get<int>()) : std::string();
  return node + "|" + address + "|" + id + "|" + number;
}

/// Adds the domains, and cores of domains, that a rank sees and those before it did not.
void add_domains(json& domains, const json& more) {
  for (const auto& domain : more) {
    const auto same = std::find_if(domains.begin(), domains.end(), [&domain](const json& known) {
      return known["index"] == domain["index"];
    });
    if (same == domains.end()) {
      domains.push_back(domain);
      continue;
    }
    auto cores = (*same)["cores"].get<std::set<int>>();
    cores.merge(domain["cores"].get<std::set<int>>());
    (*same)["cores"] = cores;
  }
  std::sort(domains.begin(), domains.end(), [](const json& a, const json& b) {
    return a["index"].get<int>() < b["index"].get<int>();
  });
}

/// The number of this rank on its machine, as the launcher tells before MPI is initialized.
std::optional<int> announced_local_rank() {
  for (const char* name : {"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID",
                           "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') {
      return std::atoi(value);
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<int> numbers_of(const std::string& text, const std::string& what) {
  std::vector<int> numbers;
  if (!text.empty()) {
    for (const auto& item : split_list(text, "the list of " + what + "s")) {
      numbers.push_back(parse_index(item, "the " + what));
    }
  }
  return numbers;
}

void set_device_early(int argc, char** argv) {
  int count = 0;
  const auto local = announced_local_rank();
  if (!local || hipGetDeviceCount(&count) != hipSuccess || count == 0) {
    (void)hipGetLastError();
    return;
  }
  std::string map;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--map" && i + 1 < argc) {
      map = argv[i + 1];
    } else if (argument.rfind("--map=", 0) == 0) {
      map = argument.substr(6);
    }
  }
  try {
    // On one machine the rank is the local one; across machines the map is for all ranks.
    (void)hipSetDevice(choose_device(numbers_of(map, "device"), *local, *local, count));
  } catch (const Failure&) {
    // Said once the options are read.
  }
  (void)hipGetLastError();
}

int choose_device(const std::vector<int>& map, int rank, int local_rank, int count) {
  if (map.empty()) {
    return local_rank % count;
  }
  if (static_cast<std::size_t>(rank) >= map.size()) {
    throw Failure(Status::usage, "--map names the devices of " + std::to_string(map.size()) +
                                     " rank(s), and there are more");
  }
  const int device = map[static_cast<std::size_t>(rank)];
  if (device >= count) {
    throw no_such_device("device " + std::to_string(device), count, "the rank sees");
  }
  return device;
}

int domain_of_cores(const std::vector<int>& cores, const json& domains) {
  int domain_index = -1;
  for (const int core : cores) {
    for (const auto& domain : domains) {
      const auto& of_domain = domain["cores"];
      if (std::find(of_domain.begin(), of_domain.end(), core) != of_domain.end()) {
        const int index = domain["index"];
        if (domain_index >= 0 && domain_index != index) {
          return -1;
        }
        domain_index = index;
      }
    }
  }
  return domain_index;
}

Together together(const std::vector<RankReport>& reports) {
  Together result;
  result.numa_domains = reports.front().host["numa_domains"];
  for (const auto& report : reports) {
    result.nodes.push_back(report.node);
  }
  const bool several = std::set(result.nodes.begin(), result.nodes.end()).size() > 1;
  std::map<std::string, int> numbers;
  std::map<std::string, const json*> devices_of;  // the first rank of each node
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const auto& report = reports[rank];
    std::vector<int> visible;
    int device = -1;
    const auto& devices = *devices_of.emplace(report.node, &report.devices).first->second;
    for (const auto& seen : report.devices.is_null() ? devices : report.devices) {
      const auto [entry, fresh] =
          numbers.emplace(key_of(seen, report.node), static_cast<int>(numbers.size()));
      if (fresh) {
        auto described = seen;
        described["index"] = entry->second;
        result.devices.push_back(described);
      }
      visible.push_back(entry->second);
      if (seen["index"] == report.device) {
        device = entry->second;
      }
    }
    result.ranks.push_back({{"rank", rank},
                            {"host", several ? json(report.node) : report.host["hostname"]},
                            {"cores", report.cores},
                            {"numa_domain", or_null(report.numa_domain)},
                            {"memory_domain", or_null(report.memory_domain)},
                            {"visible_devices", visible},
                            {"device", or_null(device)}});
    if (report.node == reports.front().node && report.host.contains("numa_domains")) {
      add_domains(result.numa_domains, report.host["numa_domains"]);
    }
  }
  return result;
}

}  // namespace fabricheck
