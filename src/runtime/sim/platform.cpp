// The SimGrid platform of the node, the simulation itself, and how operations spend time in it.
#include <unistd.h>

#include <algorithm>
#include <cmath>
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

/// The beginning of the names of a node's hosts; of a system's nodes they follow the node's name.
std::string prefix(const std::string& node) { return node.empty() ? "" : node + "/"; }

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

/// Seconds between two looks at a bandwidth on a slope.
constexpr double kStep = 60;

double bandwidth_now(const LinkDescription& link) {
  return link.over_time.empty() ? link.bytes_per_second
                                : link.bytes_per_second * value_at(link.over_time, soak_seconds());
}

/// Has the links that an overlay changes with time follow it.
void follow_time(const std::vector<LinkDescription>& links) {
  for (const auto& description : links) {
    if (description.over_time.empty()) {
      continue;
    }
    s4u::Actor::create("time of " + description.name, platform.home, [description] {
      auto* link = s4u::Link::by_name(description.name);
      for (;;) {
        const double now = soak_seconds();
        const double next = next_change(description.over_time, now, kStep);
        if (std::isinf(next)) {
          return;
        }
        s4u::this_actor::sleep_for(std::max(next - now, 1e-6));
        link->set_bandwidth(bandwidth_now(description));
      }
    })->daemonize();
  }
}

/// Builds a zone of hosts and routes.
class Builder {
 public:
  /// The zone of all, with links.
  Builder(const std::string& name, const std::vector<LinkDescription>& links)
      : zone_(s4u::create_full_zone(name)) {
    for (const auto& description : links) {
      auto* link = zone_->create_link(description.name, bandwidth_now(description));
      // Latencies are spent before a flow starts: SimGrid would share a link by latency otherwise.
      link->set_latency(0);
      link->set_sharing_policy(description.each ? s4u::Link::SharingPolicy::FATPIPE
                                                : s4u::Link::SharingPolicy::SHARED);
      link->seal();
      links_.push_back(link);
    }
  }

  /// A zone inside another one, whose links it uses: a table of routes has the square of its hosts.
  Builder(const std::string& name, const Builder& around)
      : zone_(s4u::create_full_zone(name)), links_(around.links_) {
    zone_->set_parent(around.zone_);
  }

  s4u::Host* new_host(const std::string& name) {
    auto* host = zone_->create_host(name, 1e9);  // nothing is computed: any speed will do
    host->seal();
    return host;
  }

  /// With `late`, flows have a latency of one second times the factor of a callback.
  void add(const s4u::Host* source, const s4u::Host* destination, const Route& route,
           bool late = false) {
    std::vector<s4u::LinkInRoute> links;
    if (late) {
      links.emplace_back(
          new_second("second of " + source->get_name() + "-" + destination->get_name()));
    }
    for (const auto link : route.links) {
      links.emplace_back(links_[link]);
    }
    zone_->add_route(source->get_netpoint(), destination->get_netpoint(), nullptr, nullptr, links,
                     false);
  }

  [[nodiscard]] s4u::NetZone* zone() const { return zone_; }
  void seal() { zone_->seal(); }

 private:
  /// The link that makes flows late. SimGrid shares links by latency, so that of all flows must be
  /// the same, or 1. Each route has its own, and has it first: of flows whose latency ends at the
  /// same time, SimGrid 3.32 forgets the further links of those that share their first one.
  s4u::Link* new_second(const std::string& name) {
    auto* link = zone_->create_link(name, 1e15);
    link->set_latency(1)->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)->seal();
    return link;
  }

  s4u::NetZone* zone_;
  std::vector<s4u::Link*> links_;
};

void make_platform(const NodeDescription& node, Builder& builder) {
  const auto names = prefix(node.name);
  platform.home = builder.new_host(names + "home");
  for_each_route(node, [&builder, &names](const Route& route, const std::string& number) {
    const Ends ends{builder.new_host(names + "source" + number),
                    builder.new_host(names + "destination" + number)};
    builder.add(ends.source, ends.destination, route);
    platform.ends[&route] = ends;
  });
}

/// Finds what the plug-in made, by name.
void attach(Machine& all) {
  const auto names = prefix(all.node.name);
  platform.home = s4u::Host::by_name_or_null(names + "home");
  for_each_route(all.node, [&names](const Route& route, const std::string& number) {
    const Ends ends{s4u::Host::by_name_or_null(names + "source" + number),
                    s4u::Host::by_name_or_null(names + "destination" + number)};
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
  // A plain max-min model: no factors of protocols that this node does not have. Those of
  // bandwidths and latencies are 1 in this model, and where there are messages they are callbacks
  // instead.
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/weight-S:0");
  // No window limits a flow that has a latency.
  s4u::Engine::set_config("network/TCP-gamma:1e30");
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
void gang_messages(const NodeDescription& node, std::vector<LinkDescription>& links) {
  for (const auto& [ends, routes] : node.messages) {
    if (routes.queue) {
      const auto engines = mover_of(ends.first, ends.second, kLargeMessage).engines.value_or(1);
      links[*routes.queue].bytes_per_second *= engines;
    }
  }
}

/// The link of what a NIC sends, which carries the count of it: the plug-in and the ranks have no
/// other memory together.
std::string outward_link(const NodeDescription& node, const NicDescription& nic) {
  return "nic " + nic.name + " of " + node.name + " out";
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

/// The messages of ranks, by the hosts of their places.
struct Messages {
  struct Sent {
    MessageWay way;
    std::uint64_t* bytes = nullptr;  ///< that the sender's NIC has sent
  };

  SystemDescription system;
  std::map<std::string, s4u::Host*> places;
  std::map<std::pair<const s4u::Host*, const s4u::Host*>, Sent> ways;

  Sent* find(const s4u::Host* source, const s4u::Host* destination) {
    const auto entry = ways.find({source, destination});
    return entry == ways.end() ? nullptr : &entry->second;
  }

  /// Which part of its bandwidth a message gets that starts now.
  double part(double bytes, const s4u::Host* source, const s4u::Host* destination) {
    const auto* message = find(source, destination);
    if (message == nullptr) {
      return 1;
    }
    if (message->bytes != nullptr) {
      *message->bytes += static_cast<std::uint64_t>(data_of_message(bytes));
    }
    const double most = machine().device_messages / message->way.bytes_per_second;
    const double noise = message->way.nic ? noise_factor() : 1;
    const double factor = message_factor(system.nodes.front(), message->way, bytes) / noise;
    return message->way.host_only ? factor : std::min(factor, most);
  }
};

/// Adds the ways of messages from one node to another, or within one, with a host for each place.
void add_ways(Messages& messages, const NodeDescription& from, const NodeDescription& to,
              Builder& places) {
  const bool within = &from == &to;
  const auto host = [&](const NodeDescription& node, const Place& place) {
    auto& made = messages.places[prefix(node.name) + place];
    return made = made != nullptr ? made : places.new_host(prefix(node.name) + place);
  };
  for (const auto& [ends, way] : within ? message_ways(from, goes_by_engine)
                                        : network_ways(from, to, messages.system.network)) {
    auto* source = host(from, ends.first);
    auto* destination = host(to, ends.second);
    places.add(source, destination, way.route, way.nic.has_value());
    auto& sent = messages.ways[{source, destination}] = {way};
    if (way.nic) {
      const auto* link = s4u::Link::by_name(outward_link(from, from.nics[*way.nic]));
      sent.bytes = link->get_data<std::uint64_t>();
    }
  }
}

/// The host of the calling rank; empty for no rank.
std::string host_name() {
  const auto* actor = is_rank() ? s4u::Actor::self() : nullptr;
  const auto* host = actor == nullptr ? nullptr : actor->get_host();
  return host == nullptr ? "" : host->get_name();
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
  const auto name = host_name();
  return name.substr(name.find('/') + 1);
}

std::string rank_node() {
  const auto name = host_name();
  const auto end = name.find('/');
  return end == std::string::npos ? "" : name.substr(0, end);
}

const NodeDescription* description_for_rank() {
  const auto* home = is_rank() ? s4u::Host::by_name_or_null(prefix(rank_node()) + "home") : nullptr;
  return home == nullptr ? nullptr : home->get_data<NodeDescription>();
}

std::vector<RankNic> rank_nics() {
  const auto& node = machine().node;
  std::vector<RankNic> nics;
  for (const auto& nic : node.nics) {
    const auto* link = s4u::Link::by_name_or_null(outward_link(node, nic));
    const auto* sent = link == nullptr ? nullptr : link->get_data<std::uint64_t>();
    nics.push_back({nic.name, nic.interface, nic.address, sent == nullptr ? 0 : *sent});
  }
  return nics;
}

const std::string& rank_provider() { return machine().node.provider; }

std::function<void()> on_halt(const std::function<void()>& halt) {
  const auto wanted = std::make_shared<bool>(true);
  s4u::Engine::on_deadlock_cb([wanted, halt] {
    if (*wanted) {
      halt();
    }
  });
  return [wanted] { *wanted = false; };
}

void make_platform_for_ranks() {
  // What ranks get is as it was read: it lasts as long as the process, as their machines do.
  const auto& read =
      *new SystemDescription(read_system(*variable(fabricheck::env::simulated_node)));
  auto messages = std::make_shared<Messages>();
  messages->system = read;
  auto& nodes = messages->system.nodes;
  auto& links = nodes.front().links;
  for (const auto& node : nodes) {
    gang_messages(node, links);
  }
  configure();
  s4u::Engine::set_config("smpi/simulate-computation:no");
  // Memory without data is mapped in blocks of so many bytes.
  s4u::Engine::set_config("smpi/shared-malloc-blocksize:67108864");
  Builder all("node", links);
  auto places = all;
  if (nodes.front().name.empty()) {
    make_platform(nodes.front(), all);
  } else {
    places = Builder("places", all);
    for (auto& node : nodes) {
      node.links = links;
      Builder inside("zone of " + node.name, all);
      make_platform(node, inside);
      for (const auto& nic : node.nics) {
        s4u::Link::by_name(outward_link(node, nic))->set_data(new std::uint64_t(0));
      }
    }
  }
  for (const auto& node : read.nodes) {
    // The plug-in and the ranks are modules of one process with the same code.
    s4u::Host::by_name(prefix(node.name) + "home")->set_data(const_cast<NodeDescription*>(&node));
  }
  for (const auto& from : nodes) {
    for (const auto& to : nodes) {
      add_ways(*messages, from, to, places);
    }
  }
  auto* model = all.zone()->get_network_model();
  model->set_bw_factor_cb(
      [messages](double bytes, const s4u::Host* source, const s4u::Host* destination, const auto&,
                 const auto&) { return messages->part(bytes, source, destination); });
  model->set_lat_factor_cb([messages](double, const s4u::Host* source, const s4u::Host* destination,
                                      const auto&, const auto&) {
    const auto* message = messages->find(source, destination);
    return message == nullptr || !message->way.nic ? 1.0 : noise_factor() * message->way.latency;
  });
  all.seal();
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
  Builder builder("node", all.node.links);
  make_platform(all.node, builder);
  builder.seal();
  follow_time(all.node.links);
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
