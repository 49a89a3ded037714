// The ways of messages between ranks, which live on hosts of the simulation: device3, domain1, in a
// system node2/device3.
#include <algorithm>

#include "machine.hpp"

namespace fabricheck_sim {
namespace {

/// Bytes that SMPI adds to every message.
constexpr double kEnvelope = 16;

/// Bytes per second of a message that has all links of a route for itself.
double rate_alone(const NodeDescription& node, const Route& route) {
  double rate = node.links[route.links.front()].bytes_per_second;
  for (const auto link : route.links) {
    const auto times = std::count(route.links.begin(), route.links.end(), link);
    const auto& description = node.links[link];
    rate = std::min(
        rate, description.bytes_per_second / static_cast<double>(description.each ? 1 : times));
  }
  return rate;
}

double latency(const NicDescription& from, const NicDescription& to,
               const NetworkDescription& network) {
  if (from.group != to.group) {
    return network.other_group;
  }
  return from.network_switch == to.network_switch ? network.same_switch : network.same_group;
}

void append(Route& route, const std::vector<std::size_t>& links) {
  route.links.insert(route.links.end(), links.begin(), links.end());
}

}  // namespace

std::map<std::pair<Place, Place>, MessageWay> message_ways(const NodeDescription& node,
                                                           const ByEngine& by_engine) {
  std::map<std::pair<Place, Place>, MessageWay> ways;
  for (const auto& [ends, routes] : node.messages) {
    const auto& route = by_engine(ends.first, ends.second) ? routes.by_engine : routes.by_kernel;
    const bool host_only = !is_device(ends.first) && !is_device(ends.second);
    ways[ends] = {route, rate_alone(node, route), host_only};
  }
  return ways;
}

std::map<std::pair<Place, Place>, MessageWay> network_ways(const NodeDescription& from,
                                                           const NodeDescription& to,
                                                           const NetworkDescription& network) {
  std::map<std::pair<Place, Place>, MessageWay> ways;
  for (const auto& [source, out] : from.ends) {
    for (const auto& [destination, in] : to.ends) {
      const auto& sender = from.nics[out.nic];
      const auto& receiver = to.nics[in.nic];
      MessageWay way;
      append(way.route, out.out);
      const auto between = network.groups.find({sender.group, receiver.group});
      if (between != network.groups.end()) {
        append(way.route, between->second);
      }
      append(way.route, in.in);
      split_by_size(from, way.route);
      way.bytes_per_second = rate_alone(from, way.route);
      way.host_only = !is_device(source) && !is_device(destination);
      way.latency = latency(sender, receiver, network) + out.seconds + in.seconds;
      way.nic = out.nic;
      ways[{source, destination}] = way;
    }
  }
  return ways;
}

double data_of_message(double bytes) { return std::max(0.0, bytes - kEnvelope); }

double message_factor(NodeDescription& node, const MessageWay& way, double bytes) {
  const double data = data_of_message(bytes);
  const bool small = way.host_only || data < static_cast<double>(node.small_message_bytes);
  const auto size = static_cast<std::uint64_t>(data);
  const double per_message = small ? node.small_message_cost : node.message_cost;
  const double cost = (way.nic ? 0 : per_message) + delay_by_faults(node, {{&way.route, size}});
  const double moving = bytes / way.bytes_per_second;
  const double slowed = bytes / rate_alone(node, way.route.of(size));
  return bytes > 0 ? moving / (slowed + cost) : 1;
}

}  // namespace fabricheck_sim
