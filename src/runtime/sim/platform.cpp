// The SimGrid platform of the node, the simulation itself, and how operations spend time in it.
#include <algorithm>
#include <stdexcept>

#include "machine.hpp"

namespace fabricheck_sim {
namespace {

namespace s4u = simgrid::s4u;

/// The two ends of a route. Each route has its own, because SimGrid knows one route per pair.
struct Ends {
  s4u::Host* source = nullptr;
  s4u::Host* destination = nullptr;
};

struct Platform {
  s4u::Host* home = nullptr;
  std::map<const Route*, Ends> ends;
};

Platform platform;

void make_platform(const NodeDescription& node) {
  auto* zone = s4u::create_full_zone("node");
  std::vector<s4u::LinkInRoute> links;
  for (const auto& description : node.links) {
    auto* link = zone->create_link(description.name, description.bytes_per_second);
    // Latencies are spent before a flow starts: SimGrid would share a link by latency otherwise.
    link->set_latency(0);
    link->set_sharing_policy(description.each ? s4u::Link::SharingPolicy::FATPIPE
                                              : s4u::Link::SharingPolicy::SHARED);
    link->seal();
    links.emplace_back(link);
  }
  const auto new_host = [zone](const std::string& name) {
    auto* host = zone->create_host(name, 1e9);  // nothing is computed: any speed will do
    host->seal();
    return host;
  };
  platform.home = new_host("home");
  const auto add = [&](const Route& route) {
    const auto number = std::to_string(platform.ends.size());
    const Ends ends{new_host("source" + number), new_host("destination" + number)};
    std::vector<s4u::LinkInRoute> of_route;
    for (const auto link : route.links) {
      of_route.push_back(links[link]);
    }
    zone->add_route(ends.source->get_netpoint(), ends.destination->get_netpoint(), nullptr, nullptr,
                    of_route, false);
    platform.ends[&route] = ends;
  };
  for (const auto& [key, route] : node.kernel) {
    add(route);
  }
  for (const auto* routes : {&node.copy, &node.pageable, &node.migration}) {
    for (const auto& [key, route] : *routes) {
      add(route);
    }
  }
  zone->seal();
}

void configure() {
  // A plain max-min model: no factors of protocols that this node does not have.
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/bandwidth-factor:1");
  s4u::Engine::set_config("network/latency-factor:1");
  s4u::Engine::set_config("network/weight-S:0");
  s4u::Engine::set_config("network/TCP-gamma:0");
  s4u::Engine::set_config("network/crosstraffic:no");
  // Small transfers take less than SimGrid's usual nanosecond.
  s4u::Engine::set_config("surf/precision:1e-12");
}

double noise_factor() {
  auto& all = machine();
  if (all.noise == 0) {
    return 1;
  }
  std::normal_distribution<double> distribution(0, 1);
  // Four deviations bound what a sample can be; the factor stays positive.
  const double deviation = std::clamp(distribution(all.random), -4.0, 4.0);
  return std::max(0.1, 1 + all.noise * deviation);
}

}  // namespace

s4u::Host* home() { return platform.home; }

double now() { return s4u::Engine::has_instance() ? s4u::Engine::get_clock() : 0; }

void spend(const Cost& cost) {
  const double factor = noise_factor();
  s4u::this_actor::sleep_for(factor * cost.start);
  std::vector<s4u::CommPtr> flows;
  for (const auto& flow : cost.flows) {
    if (flow.bytes > 0) {
      const auto& ends = platform.ends.at(flow.route);
      auto comm = s4u::Comm::sendto_init();
      comm->set_payload_size(static_cast<std::uint64_t>(factor * static_cast<double>(flow.bytes)));
      comm->set_source(ends.source);
      comm->set_destination(ends.destination);  // with both ends known, it starts
      flows.push_back(comm);
    }
  }
  for (const auto& flow : flows) {
    flow->wait();
  }
}

void run(const std::function<void()>& body) {
  const auto& all = machine();
  if (!all.problem.empty()) {
    body();
    return;
  }
  int count = 2;
  std::string name = "fabricheck";
  std::string quiet = "--log=root.thresh:critical";
  char* arguments[] = {name.data(), quiet.data(), nullptr};
  s4u::Engine engine(&count, arguments);
  configure();
  make_platform(all.node);
  bool finished = false;
  s4u::Actor::create("program", platform.home, [&body, &finished] {
    body();
    finished = true;
  });
  engine.run();
  if (!finished) {
    throw std::runtime_error("the simulation came to a halt: every stream waits for another one");
  }
}

}  // namespace fabricheck_sim
