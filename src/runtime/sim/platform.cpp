// The SimGrid platform of the node, the simulation itself, and how operations spend time in it.
#include <unistd.h>

#include <algorithm>
#include <set>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
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
bool own_engine = false;  // else, where there is one, it is SMPI's

/// Calls `visit(route, number)` for every route of operations, always in the same order: the names
/// of its ends have the number.
template <typename Visit>
void for_each_route(const NodeDescription& node, const Visit& visit) {
  std::size_t number = 0;
  const auto visit_sizes = [&](const Route& route) {
    visit(route, std::to_string(number++));
    for (const auto& [least, sized] : route.by_size) {
      visit(sized, std::to_string(number++));
    }
  };
  for (const auto& [key, route] : node.kernel) {
    visit_sizes(route);
  }
  for (const auto* routes : {&node.copy, &node.pageable, &node.migration}) {
    for (const auto& [key, route] : *routes) {
      visit_sizes(route);
    }
  }
}

/// Builds the zone of a node.
class Builder {
 public:
  explicit Builder(const NodeDescription& node) : zone_(s4u::create_full_zone("node")) {
    for (const auto& description : node.links) {
      auto* link = zone_->create_link(description.name, description.bytes_per_second);
      // Latencies are spent before a flow starts: SimGrid would share a link by latency otherwise.
      link->set_latency(0);
      link->set_sharing_policy(description.each ? s4u::Link::SharingPolicy::FATPIPE
                                                : s4u::Link::SharingPolicy::SHARED);
      link->seal();
      links_.emplace_back(link);
    }
  }

  s4u::Host* new_host(const std::string& name) {
    auto* host = zone_->create_host(name, 1e9);  // nothing is computed: any speed will do
    host->seal();
    return host;
  }

  void add(const s4u::Host* source, const s4u::Host* destination, const Route& route) {
    std::vector<s4u::LinkInRoute> links;
    for (const auto link : route.links) {
      links.push_back(links_[link]);
    }
    zone_->add_route(source->get_netpoint(), destination->get_netpoint(), nullptr, nullptr, links,
                     false);
  }

  void seal() { zone_->seal(); }

  /// With the part of its bandwidth that each flow gets.
  template <typename Part>
  void seal(const Part& part) {
    zone_->get_network_model()->set_bw_factor_cb(
        [part](double bytes, const s4u::Host* source, const s4u::Host* destination,
               const std::vector<s4u::Link*>&, const std::unordered_set<s4u::NetZone*>&) {
          return part(bytes, source, destination);
        });
    zone_->seal();
  }

 private:
  s4u::NetZone* zone_;
  std::vector<s4u::LinkInRoute> links_;
};

void make_platform(const NodeDescription& node, Builder& builder) {
  platform.home = builder.new_host("home");
  for_each_route(node, [&builder](const Route& route, const std::string& number) {
    const Ends ends{builder.new_host("source" + number), builder.new_host("destination" + number)};
    builder.add(ends.source, ends.destination, route);
    platform.ends[&route] = ends;
  });
}

/// Finds what the plug-in made, by name.
void attach(Machine& all) {
  platform.home = s4u::Host::by_name_or_null("home");
  for_each_route(all.node, [](const Route& route, const std::string& number) {
    const Ends ends{s4u::Host::by_name_or_null("source" + number),
                    s4u::Host::by_name_or_null("destination" + number)};
    if (platform.home == nullptr || ends.source == nullptr || ends.destination == nullptr) {
      platform.home = nullptr;
    }
    platform.ends[&route] = ends;
  });
  if (platform.home == nullptr || rank_place() == "home") {
    all.problem =
        "this simulation is not one of a node: start it by smpirun -platform libfabricheck_node.so";
    all.visible.clear();
  }
  // Each rank has noise of its own.
  all.random.seed(all.random() + static_cast<std::uint64_t>(s4u::this_actor::get_pid()));
}

void configure() {
  // A plain max-min model: no factors of protocols that this node does not have. That of bandwidths
  // is 1 in this model, and where there are messages it is a callback instead.
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/latency-factor:1");
  s4u::Engine::set_config("network/weight-S:0");
  s4u::Engine::set_config("network/TCP-gamma:0");
  s4u::Engine::set_config("network/crosstraffic:no");
  // Small transfers take less than SimGrid's usual nanosecond.
  s4u::Engine::set_config("surf/precision:1e-12");
}

/// An MPI copies between devices in pieces of any size that a message has: as a large one.
constexpr std::uint64_t kLargeMessage = 1 << 30;

bool goes_by_engine(const Place& source, const Place& destination) {
  return (is_device(source) || is_device(destination)) &&
         mover_of(source, destination, kLargeMessage).engine == fabricheck::engine::copy_engine;
}

/// Gives messages that several engines share the bandwidth of all of these.
void gang_messages(NodeDescription& node) {
  for (const auto& [ends, routes] : node.messages) {
    if (routes.queue) {
      const auto engines = mover_of(ends.first, ends.second, kLargeMessage).engines.value_or(1);
      node.links[*routes.queue].bytes_per_second *= engines;
    }
  }
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

double delay_by_faults(NodeDescription& node, const std::vector<Flow>& flows) {
  double most = 0;
  std::set<LinkFault*> hit;
  for (const auto& flow : flows) {
    double delay = 0;
    for (const auto link : std::set(flow.route->links.begin(), flow.route->links.end())) {
      for (auto& fault : node.links[link].faults) {
        if (fault.hits(flow.transfer_bytes())) {
          while (fault.hangs) {
            pause();
          }
          delay += fault.delay;
          hit.insert(&fault);
        }
      }
    }
    most = std::max(most, delay);
  }
  for (auto* fault : hit) {
    --fault->times;
  }
  return most;
}

void spend(const Cost& cost) {
  const double factor = noise_factor();
  s4u::this_actor::sleep_for(factor * (cost.start + delay_by_faults(machine().node, cost.flows)));
  std::vector<s4u::CommPtr> flows;
  for (const auto& flow : cost.flows) {
    if (flow.bytes > 0) {
      const auto& ends = platform.ends.at(&flow.route->of(flow.transfer_bytes()));
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

bool is_rank() { return !own_engine && s4u::Engine::has_instance(); }

std::string rank_place() {
  return is_rank() ? s4u::this_actor::get_host()->get_name() : std::string();
}

std::function<void()> on_halt(const std::function<void()>& told) {
  const auto wanted = std::make_shared<bool>(true);
  s4u::Engine::on_deadlock_cb([wanted, told] {
    if (*wanted) {
      told();
    }
  });
  return [wanted] { *wanted = false; };
}

void make_platform_for_ranks() {
  auto& node = machine().node;
  gang_messages(node);
  configure();
  s4u::Engine::set_config("smpi/simulate-computation:no");
  // Memory without data is mapped in blocks of so many bytes.
  s4u::Engine::set_config("smpi/shared-malloc-blocksize:67108864");
  Builder builder(node);
  make_platform(node, builder);
  std::map<Place, s4u::Host*> places;
  std::map<std::pair<const s4u::Host*, const s4u::Host*>, MessageWay> ways;
  for (const auto& [ends, way] : message_ways(node, goes_by_engine)) {
    for (const auto& place : {ends.first, ends.second}) {
      if (places.count(place) == 0) {
        places[place] = builder.new_host(place);
      }
    }
    const std::pair hosts{places[ends.first], places[ends.second]};
    builder.add(hosts.first, hosts.second, way.route);
    ways[hosts] = way;
  }
  builder.seal([&node, ways](double bytes, const s4u::Host* source, const s4u::Host* destination) {
    const auto way = ways.find({source, destination});
    if (way == ways.end()) {
      return 1.0;
    }
    const double most = machine().device_messages / way->second.bytes_per_second;
    const double factor = message_factor(node, way->second, bytes);
    return way->second.host_only ? factor : std::min(factor, most);
  });
}

void run(const std::function<void()>& body) {
  auto& all = machine();
  if (is_rank() && all.problem.empty()) {
    attach(all);
  }
  if (is_rank() || !all.problem.empty()) {
    body();
    return;
  }
  own_engine = true;
  int count = 2;
  std::string name = "fabricheck";
  std::string quiet = "--log=root.thresh:critical";
  char* arguments[] = {name.data(), quiet.data(), nullptr};
  s4u::Engine engine(&count, arguments);
  configure();
  Builder builder(all.node);
  make_platform(all.node, builder);
  builder.seal();
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
