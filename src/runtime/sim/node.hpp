// The simulated node as `fabricheck node platform` describes it.
#pragma once

#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim.hpp"

namespace fabricheck_sim {

/// Where memory lies, as the platform names it: device3, domain1.
using Place = std::string;

struct Device {
  std::string model;
  std::string architecture;
  std::uint64_t memory_bytes = 0;
  int compute_units = 1;
  int cache_bytes = 0;
  int domain = 0;
  std::optional<std::string> pci_address;
};

/// What an overlay makes of the transfers over a link, or of some of them.
struct LinkFault {
  std::uint64_t least = 0;  ///< bytes of a transfer that has it
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  double part = 1;   ///< of the link's bandwidth, for all that have the fault together
  double delay = 0;  ///< seconds before a transfer starts
  std::uint64_t times = std::numeric_limits<std::uint64_t>::max();  ///< so many transfers have it
  bool hangs = false;                                               ///< a transfer never ends

  [[nodiscard]] bool hits(std::uint64_t bytes) const {
    return bytes >= least && bytes <= most && times > 0;
  }
};

/// Seconds of a soak and values, in order; straight lines between them.
using OverTime = std::vector<std::pair<double, double>>;

/// The value at a time; before the first point that of the first, after the last that of the last.
double value_at(const OverTime& points, double seconds);
/// When a value may be another one than at `seconds`: at the next point, and on a slope after
/// `step` at the latest; infinite after the last.
double next_change(const OverTime& points, double seconds, double step);

/// A counter of a device's driver, as the document's state names it: pcie.replays.
struct CounterOverTime {
  int device = 0;
  std::string name;
  OverTime points;
};

/// A bit that is wrong once in the memory of a device.
struct FlipOverTime {
  int device = 0;
  double at = 0;  ///< seconds of a soak
  std::uint64_t offset_bytes = 0;
  int bit = 0;
};

struct LinkDescription {
  std::string name;
  double bytes_per_second = 0;
  bool each = false;  ///< every flow may have that much, else all flows share it
  std::vector<LinkFault> faults{};
  OverTime over_time{};  ///< the part of its bandwidth that is left; empty: all of it, always
};

/// A fault that takes bandwidth of a link from some sizes only.
struct SlowSizes {
  std::size_t link = 0;    ///< that has the fault
  std::size_t narrow = 0;  ///< that transfers of its sizes share beside it
  LinkFault fault;
};

/// Links of a flow, by index, and the seconds before it starts.
struct Route {
  std::vector<std::size_t> links;
  double start = 0;
  /// The route of transfers of at least so many bytes, where links are slow for some sizes only.
  std::map<std::uint64_t, Route> by_size{};

  /// The route of a transfer of so many bytes.
  [[nodiscard]] const Route& of(std::uint64_t bytes) const {
    const auto after = by_size.upper_bound(bytes);
    return after == by_size.begin() ? *this : std::prev(after)->second;
  }
};

/// The ways of messages of MPI between two places.
struct MessageRoutes {
  Route by_engine;
  Route by_kernel;
  std::optional<std::size_t> queue{};  ///< the link that is the engine, for all messages of the way
};

/// A NIC of a node of a system.
struct NicDescription {
  std::string name;
  std::string interface;
  std::string address;
  int group = 0;
  int network_switch = 0;  ///< by number in its group
};

/// The end of messages between nodes at one place: its NIC, by index, and the links out and in.
struct NetworkEnd {
  std::size_t nic = 0;
  double seconds = 0;  ///< that the end takes beside the network
  std::vector<std::size_t> out;
  std::vector<std::size_t> in;
};

/// A node; of a system, too, but then `links` are those of all nodes, and of the network.
struct NodeDescription {
  std::string name;  ///< node2 of a system; empty for the only node
  std::string provider;
  std::vector<NicDescription> nics;
  std::map<Place, NetworkEnd> ends;
  nlohmann::json identity;
  std::string rocm;  ///< the version of ROCm that the node behaves as
  std::vector<Device> devices;
  std::vector<Domain> domains;
  double launch = 0;  ///< seconds of a kernel beside its traffic
  std::vector<LinkDescription> links;
  std::vector<SlowSizes> slow;
  std::vector<CounterOverTime> counters;
  std::vector<FlipOverTime> flips;
  std::map<std::tuple<int, Place, bool>, Route> kernel;  ///< device, memory, whether it writes
  std::map<std::pair<Place, Place>, Route> copy;         ///< source and destination
  std::map<std::pair<Place, Place>, int> parallel;       ///< links of direct ways of devices
  std::map<std::pair<Place, Place>, Route> pageable;     ///< copies of pageable memory
  std::map<std::pair<Place, Place>, Route> migration;    ///< of pages, host and device only
  std::map<std::pair<Place, Place>, MessageRoutes> messages;
  double message_cost = 0;        ///< seconds of a message of device memory beside its bytes
  double small_message_cost = 0;  ///< the same of a small one, and of host memory
  std::uint64_t small_message_bytes = 0;  ///< messages of fewer bytes are small
  double pin = 0;                         ///< seconds until the pages of a pageable copy are pinned
  std::uint64_t staged_bytes = 0;         ///< pageable copies of so many bytes need no pinning
};

/// The network of a system.
struct NetworkDescription {
  double same_switch = 0;  ///< seconds of a message beside its bytes
  double same_group = 0;
  double other_group = 0;
  std::map<std::pair<int, int>, std::vector<std::size_t>> groups;  ///< links from one to another
};

/// A system, or the one node of a platform that is none.
struct SystemDescription {
  std::vector<NodeDescription> nodes;
  NetworkDescription network;
};

/// Gives a route over links that are slow for some sizes only others for these sizes.
void split_by_size(const NodeDescription& node, Route& route);

/// Reads the first node of a platform. Throws std::runtime_error with one sentence that names the
/// file.
NodeDescription read_node(const std::string& path);
/// Reads all nodes of a platform, and their network.
SystemDescription read_system(const std::string& path);

}  // namespace fabricheck_sim
