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
      }
    }
  }
  return routes;
}

}  // namespace fabricheck_sim
