// How messages of ranks leave their node: over which NIC, by which way, read back from counters.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/nics.hpp"

namespace fabricheck {

/// Where a NIC is in the network.
struct NetworkPlace {
  std::string group;
  std::string network_switch;
  std::string port;  ///< empty if unknown
};

/// What messages left a node by, as counters and open files show.
struct NetworkUse {
  std::vector<std::pair<std::string, double>> nics;  ///< each with its part of the bytes
  std::string transport;                             ///< word of the schema; empty if unknown
  std::string provider;                              ///< empty if unknown
  std::optional<NetworkPlace> place;                 ///< of the busiest NIC
};

/// The member `network` of a rank in the document.
nlohmann::json to_json(const NetworkUse& use);

/// What `bytes` of messages left by, from the counters before and after them. NICs and interfaces
/// count whose counters moved by a twentieth of the bytes or more: other traffic moves them, too.
/// The kernel's stack sent them if its interfaces moved by at least half of the bytes, whatever the
/// NICs did, which carry what the kernel sends. They stayed within the node if all NICs have a
/// counter and none moved by half. `provider` is that of the NICs that the process keeps open.
NetworkUse network_use(const std::vector<Nic>& nics,
                       const std::map<std::string, std::uint64_t>& before,
                       const std::map<std::string, std::uint64_t>& after, std::uint64_t bytes,
                       const std::string& provider);

/// Where places of NICs come from: their addresses as Slingshot gives them, a list of nodes, or
/// nothing.
class Places {
 public:
  /// `text`: "none", "address", or a file with a line NODE GROUP SWITCH for each node. Throws
  /// Failure(usage) for a file that cannot be read, has another line or none, or has a node twice.
  explicit Places(const std::string& text);

  /// The place of a NIC with an address, of a node; nothing where it is unknown.
  [[nodiscard]] std::optional<NetworkPlace> place_of(const std::string& node,
                                                     const std::string& address) const;

 private:
  bool by_address_ = false;
  std::map<std::string, NetworkPlace> nodes_;
};

/// The word of the schema for how far apart two NICs are; empty where a place is unknown.
std::string distance_of(const std::optional<NetworkPlace>& first,
                        const std::optional<NetworkPlace>& second);

}  // namespace fabricheck
