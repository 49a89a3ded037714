#include "mpi/network.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "harness/status.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck {
namespace {

constexpr double kLeastPart = 0.05;  ///< of the bytes, for a NIC to be one of those that sent them
constexpr double kCarried = 0.5;     ///< of the bytes, for a way to be the one that they left by

// Bits of a Slingshot address, from the lowest: HPE's guide to fabric validation.
constexpr int kPortBits = 6;
constexpr int kSwitchBits = 5;
constexpr int kGroupBits = 9;

/// The place in a Slingshot address, which is locally administered and of one receiver; nothing in
/// another one.
std::optional<NetworkPlace> slingshot_place(const std::string& address) {
  std::array<unsigned, 6> part{};
  char rest = 0;
  if (std::sscanf(address.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%c", &part[0], &part[1], &part[2],
                  &part[3], &part[4], &part[5], &rest) != 6 ||
      (part[0] & 3U) != 2) {
    return std::nullopt;
  }
  unsigned low = part[3] << 16U | part[4] << 8U | part[5];
  const auto take = [&low](int bits) {
    const auto value = low & ((1U << bits) - 1);
    low >>= bits;
    return std::to_string(value);
  };
  NetworkPlace place;
  place.port = take(kPortBits);
  place.network_switch = take(kSwitchBits);
  place.group = take(kGroupBits);
  return place;
}

}  // namespace

nlohmann::json to_json(const NetworkUse& use) {
  using nlohmann::json;
  const auto or_null = [](const std::string& text) { return text.empty() ? json() : json(text); };
  json nics = json::array();
  for (const auto& [name, part] : use.nics) {
    nics.push_back({{"name", name}, {"part", part}});
  }
  json place;
  if (use.place) {
    place = {{"group", use.place->group},
             {"switch", use.place->network_switch},
             {"port", or_null(use.place->port)}};
  }
  return {{"nics", nics},
          {"transport", or_null(use.transport)},
          {"provider", or_null(use.provider)},
          {"place", place}};
}

NetworkUse network_use(const std::vector<Nic>& nics,
                       const std::map<std::string, std::uint64_t>& before,
                       const std::map<std::string, std::uint64_t>& after, std::uint64_t bytes,
                       const std::string& provider) {
  NetworkUse use;
  double by_nic = 0;
  double by_kernel = 0;
  bool all_counted = true;
  std::vector<std::pair<std::string, double>> moved[2];
  for (const auto& nic : nics) {
    const auto first = before.find(nic.name);
    const auto last = after.find(nic.name);
    if (first == before.end() || last == after.end()) {
      all_counted = false;
      continue;
    }
    const auto sent = last->second > first->second ? last->second - first->second : 0;
    const double part = static_cast<double>(sent) / static_cast<double>(bytes);
    (nic.bypasses_kernel() ? by_nic : by_kernel) += part;
    if (part >= kLeastPart) {
      moved[nic.bypasses_kernel() ? 0 : 1].emplace_back(nic.name, part);
    }
  }
  if (by_kernel >= kCarried) {
    use.transport = transport::kernel;
    use.nics = moved[1];
  } else if (by_nic >= kCarried) {
    use.transport = transport::nic;
    use.nics = moved[0];
  } else if (all_counted) {
    use.transport = transport::within_node;
  }
  std::stable_sort(use.nics.begin(), use.nics.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  use.provider = provider.empty() && use.transport == transport::kernel ? "tcp" : provider;
  return use;
}

Places::Places(const std::string& text) : by_address_(text == "address") {
  if (text == "none" || by_address_) {
    return;
  }
  std::ifstream file(text);
  if (!file) {
    throw Failure(Status::usage, "the file of places '" + text + "' cannot be read");
  }
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::istringstream words(line);
    std::string node;
    std::string more;
    NetworkPlace place;
    if (!(words >> node)) {
      continue;
    }
    if (!(words >> place.group >> place.network_switch) || words >> more) {
      throw Failure(Status::usage, "line " + std::to_string(number) + " of the file of places '" +
                                       text + "' is not NODE GROUP SWITCH: '" + line + "'");
    }
    const auto& first = nodes_.emplace(node, place).first->second;
    if (first.group != place.group || first.network_switch != place.network_switch) {
      throw Failure(Status::usage,
                    "node " + node + " is at two places in the file of places '" + text + "'");
    }
  }
  if (file.bad() || nodes_.empty()) {
    throw Failure(Status::usage, "the file of places '" + text + "' has no line");
  }
}

std::optional<NetworkPlace> Places::place_of(const std::string& node,
                                             const std::string& address) const {
  if (by_address_) {
    return slingshot_place(address);
  }
  const auto place = nodes_.find(node);
  return place == nodes_.end() ? std::nullopt : std::optional(place->second);
}

std::string distance_of(const std::optional<NetworkPlace>& first,
                        const std::optional<NetworkPlace>& second) {
  if (!first || !second) {
    return "";
  }
  if (first->group != second->group) {
    return distance::other_group;
  }
  return first->network_switch == second->network_switch ? distance::same_switch
                                                         : distance::same_group;
}

}  // namespace fabricheck
