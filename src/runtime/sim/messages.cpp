// The ways of messages between ranks, which live on hosts of the simulation: device3, domain1.
#include "machine.hpp"

namespace fabricheck_sim {
namespace {

/// A kernel of `device` that reads its own memory and writes that of `memory`.
Route by_kernel(const NodeDescription& node, int device, const Place& own, const Place& memory) {
  Route route = node.kernel.at({device, own, false});
  const auto& write = node.kernel.at({device, memory, true});
  route.links.insert(route.links.end(), write.links.begin(), write.links.end());
  route.start = node.launch;
  return route;
}

/// Through host memory near the sender, for devices without a way between them.
std::optional<Route> staged(const NodeDescription& node, const Place& source,
                            const Place& destination, int domain) {
  const auto host = "domain" + std::to_string(domain);
  const auto down = node.copy.find({source, host});
  const auto up = node.copy.find({host, destination});
  if (down == node.copy.end() || up == node.copy.end()) {
    return std::nullopt;
  }
  Route route = down->second;
  route.links.insert(route.links.end(), up->second.links.begin(), up->second.links.end());
  route.start += up->second.start;
  return route;
}

}  // namespace

std::map<std::pair<Place, Place>, Route> message_routes(const NodeDescription& node,
                                                        bool by_engine) {
  auto routes = node.messages;
  for (const auto& [ends, route] : node.copy) {
    routes[ends] = route;  // one of them may be in host memory
  }
  for (std::size_t i = 0; i < node.devices.size(); ++i) {
    const int device = static_cast<int>(i);
    const auto own = "device" + std::to_string(i);
    for (std::size_t j = 0; j < node.devices.size(); ++j) {
      const auto other = "device" + std::to_string(j);
      const bool reaches = node.kernel.count({device, other, true}) > 0;
      // No engine copies within a device.
      if (reaches && (i == j || !by_engine)) {
        routes[{own, other}] = by_kernel(node, device, own, other);
      } else if (routes.count({own, other}) == 0) {
        if (const auto route = staged(node, own, other, node.devices[i].domain)) {
          routes[{own, other}] = *route;
        }
      }
    }
  }
  return routes;
}

}  // namespace fabricheck_sim
