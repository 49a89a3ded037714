// The simulated node: implements simulation.hpp, and replaces the machine as described there.
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>
#include <vector>

#include "harness/concurrent.hpp"
#include "harness/device_reading.hpp"
#include "harness/document.hpp"
#include "harness/host.hpp"
#include "harness/huge_pages.hpp"
#include "harness/identity.hpp"
#include "harness/kfd.hpp"
#include "harness/nics.hpp"
#include "harness/numa.hpp"
#include "harness/rocm.hpp"
#include "harness/simulation.hpp"
#include "harness/status.hpp"
#include "sim.hpp"

namespace fabricheck {

using nlohmann::json;

const bool kSimulated = true;

double host_seconds() { return fabricheck_sim::now(); }

void declare_traffic(hipStream_t stream, std::initializer_list<Traffic> traffic) {
  std::vector<fabricheck_sim::Access> accesses;
  for (const auto& part : traffic) {
    accesses.push_back({part.array, part.bytes, part.write});
  }
  fabricheck_sim::declare(stream, std::move(accesses));
}

void declare_loads(hipStream_t, const void*, std::uint64_t) {
  throw Failure(Status::unsupported,
                "the node model does not tell how long a load takes: dependent loads are not "
                "simulated");
}

void declare_host_access(const void* array, std::uint64_t bytes) {
  fabricheck_sim::host_access(array, bytes);
}

std::uint64_t moved_bytes(std::uint64_t bytes) { return fabricheck_sim::moved_bytes(bytes); }

void run_simulated(const std::function<void()>& body) { fabricheck_sim::run(body); }

void require_node() {
  if (!fabricheck_sim::problem().empty()) {
    throw Failure(Status::unsupported, fabricheck_sim::problem());
  }
}

SamplingRules simulated_rules(SamplingRules rules) {
  if (!fabricheck_sim::noisy()) {
    rules.min_samples = 1;
    rules.max_samples = 1;
  }
  rules.batch_seconds = 0;
  rules.warm_up_seconds = 0;
  return rules;
}

json describe_node() { return fabricheck_sim::node_identity(); }

SimulatedPlace simulated_place() {
  const std::string of_domain = "domain";
  SimulatedPlace place{fabricheck_sim::rank_place(), fabricheck_sim::rank_device().value_or(-1)};
  if (place.name.rfind(of_domain, 0) == 0) {
    place.domain = std::stoi(place.name.substr(of_domain.size()));
  }
  return place;
}

std::string simulated_node() { return fabricheck_sim::rank_node(); }

std::vector<SimulatedNic> simulated_nics() {
  std::vector<SimulatedNic> nics;
  for (const auto& nic : fabricheck_sim::rank_nics()) {
    nics.push_back({nic.name, nic.interface, nic.address, nic.sent_bytes});
  }
  return nics;
}

std::string simulated_provider() { return fabricheck_sim::rank_provider(); }

json simulated_state() {
  const auto counted = fabricheck_sim::counters_now();
  if (counted.empty()) {
    return nullptr;
  }
  json host;
  for (const auto* item : {"load_1min", "cores", "others", "governor", "huge_pages_reserved",
                           "huge_pages_free", "huge_page_bytes", "free_bytes"}) {
    host[item] = nullptr;
  }
  json devices = json::array();
  json sources = json::object();
  for (const auto& [device, counters] : counted) {
    auto state = DeviceReading().values();
    state["index"] = device;
    for (const auto& [name, value] : counters) {
      const auto dot = name.find('.');
      const auto member = name.substr(0, dot);
      const auto part = name.substr(dot + 1);
      if (state[member].is_null() && member == "memory_errors") {
        state[member] = {{"corrected", 0}, {"uncorrected", 0}};
      } else if (state[member].is_null() && member == "pcie") {
        state[member] = {{"width", nullptr},          {"width_max", nullptr},
                         {"width_max_port", nullptr}, {"gt_per_s", nullptr},
                         {"gt_per_s_max", nullptr},   {"replays", 0}};
      }
      // Counters count whole events; throttled seconds are not.
      state[member][part] =
          member == "throttled_s" ? json(value) : json(static_cast<std::uint64_t>(value));
      sources["devices." + name] = "the overlay of the simulated node";
    }
    devices.push_back(state);
  }
  return {{"at", timestamp()}, {"seconds", 0.0},     {"opening_seconds", nullptr},
          {"host", host},      {"devices", devices}, {"absent", json::array()},
          {"sources", sources}};
}

std::vector<SimulatedFlip> simulated_flips() {
  std::vector<SimulatedFlip> flips;
  for (const auto& flip : fabricheck_sim::flips()) {
    flips.push_back({flip.device, flip.at, flip.offset_bytes, flip.bit});
  }
  return flips;
}

std::function<void()> on_simulated_halt(const std::function<void()>& halt) {
  return fabricheck_sim::on_halt(halt);
}

json describe_host() {
  const auto identity = fabricheck_sim::node_identity();
  json domains = json::array();
  std::vector<int> cores;
  for (const auto& domain : fabricheck_sim::domains()) {
    domains.push_back(
        {{"index", domain.index}, {"cores", domain.cores}, {"memory_bytes", domain.memory_bytes}});
    cores.insert(cores.end(), domain.cores.begin(), domain.cores.end());
  }
  const auto name = identity.is_null() ? "unknown" : identity["name"].get<std::string>();
  return {{"hostname", name + " (simulated)"}, {"kernel", "none (simulated)"},
          {"cpu_model", "none (simulated)"},   {"cores_allowed", cores},
          {"numa_domains", domains},           {"last_level_cache_bytes", host_last_level_cache()},
          {"page_size_bytes", 4096},           {"numa_balancing", nullptr},
          {"transparent_hugepage", nullptr}};
}

std::uint64_t host_memory_available() { return fabricheck_sim::free_host_memory(); }

// The model has no caches: every access goes to memory.
std::uint64_t host_last_level_cache() { return 0; }

void* map_pages(std::size_t bytes) { return fabricheck_sim::allocate_pageable(bytes); }

void unmap_pages(void* data, std::size_t) { fabricheck_sim::release_pageable(data); }

void touch_pages(void*, std::size_t) {}

PagePlaces page_places(const void* data, std::size_t bytes) {
  const auto pages = [](std::uint64_t part) { return (part + 4095) / 4096; };
  PagePlaces places;
  places.off_host = pages(fabricheck_sim::bytes_on_devices(data, bytes));
  places.on_host = pages(bytes) - places.off_host;
  if (const auto domain = fabricheck_sim::domain_of(data); domain && places.on_host > 0) {
    places.domains = {*domain};
  }
  return places;
}

int numa_domain_of(const void* data, std::size_t bytes) {
  const auto places = page_places(data, bytes);
  return places.domains.empty() ? -1 : places.domains.front();
}

// What runs in the simulation is not of the machine that simulates it, nor of its drivers.
std::optional<std::uint64_t> huge_page_bytes(const void*, std::size_t) { return std::nullopt; }
std::optional<std::string> numa_balancing_setting(const std::string&) { return std::nullopt; }
std::optional<std::string> kernel_module_version() { return std::nullopt; }

std::optional<PeerWay> peer_way(int from, int to) { return fabricheck_sim::peer_way(from, to); }
std::uint64_t driver_cache(int) { return 0; }
json device_identity(int) { return {{"pci_id", nullptr}, {"pci_subsystem", nullptr}}; }

// A node model states a ROCm of before 10, which HIP's version is one with.
std::string hip_version() { return fabricheck_sim::rocm(); }
std::optional<std::string> rocm_version() { return std::nullopt; }

// The simulated system says where pages are, and puts them where they are asked for.
std::string pages_obstacle() { return ""; }
void move_pages_to(int, void*, std::size_t) {}
void prefer_domain(int, void*, std::size_t) {}
std::map<int, std::uint64_t> free_memory_of_domains(const std::filesystem::path&) { return {}; }

std::vector<HostDomain> host_domains() {
  std::vector<HostDomain> domains;
  for (const auto& domain : fabricheck_sim::domains()) {
    domains.push_back({domain.index, domain.cores, domain.memory_bytes, ""});
  }
  return domains;
}

// Calls on the simulated host take no time, wherever they come from.
CoreBinding::CoreBinding(int) {}
CoreBinding::~CoreBinding() = default;
void bind_to_core(int) {}

std::vector<double> run_at_once(const std::vector<std::function<void()>>& works) {
  const double start = host_seconds();
  std::vector<double> seconds(works.size());
  std::vector<simgrid::s4u::ActorPtr> actors;
  std::exception_ptr error;
  for (std::size_t i = 0; i < works.size(); ++i) {
    actors.push_back(simgrid::s4u::Actor::create("thread", simgrid::s4u::this_actor::get_host(),
                                                 [&works, &seconds, &error, start, i] {
                                                   try {
                                                     works[i]();
                                                   } catch (...) {
                                                     error = std::current_exception();
                                                   }
                                                   seconds[i] = host_seconds() - start;
                                                 }));
  }
  for (const auto& actor : actors) {
    actor->join();
  }
  if (error) {
    std::rethrow_exception(error);
  }
  return seconds;
}

int numa_domain_of_pci(const std::string& address) {
  return fabricheck_sim::domain_of_pci(address).value_or(-1);
}

// Each NIC is there as its driver has it and, as on a real node, as an interface of the kernel. A
// node of its own has no network.
std::vector<Nic> nics(const NicRoots&) {
  std::vector<Nic> all;
  for (const auto& nic : simulated_nics()) {
    all.push_back({Nic::Kind::cxi, nic.name, nic.interface, nic.address});
  }
  for (const auto& nic : simulated_nics()) {
    all.push_back({Nic::Kind::net, nic.interface, nic.interface, nic.address});
  }
  return all;
}

std::map<std::string, std::uint64_t> sent_bytes(const std::vector<Nic>&, const NicRoots&) {
  const bool by_kernel = simulated_provider() == "tcp";
  std::map<std::string, std::uint64_t> sent;
  for (const auto& nic : simulated_nics()) {
    sent[nic.name] = nic.sent_bytes;  // it also carries what the kernel sends
    sent[nic.interface] = by_kernel ? nic.sent_bytes : 0;
  }
  return sent;
}

std::map<std::string, std::map<std::string, std::uint64_t>> nic_errors(const std::vector<Nic>&,
                                                                       const NicRoots&) {
  return {};
}
std::string open_provider(const NicRoots&) {
  const auto provider = simulated_provider();
  return provider == "tcp" ? "" : provider;
}

HostBinding::HostBinding(int numa_domain) {
  if (numa_domain < 0) {
    return;
  }
  for (const auto& domain : fabricheck_sim::domains()) {
    if (domain.index == numa_domain) {
      fabricheck_sim::bind_host_memory(numa_domain);
      bound_ = true;
    }
  }
  if (!bound_) {
    throw Failure(Status::setting,
                  "NUMA domain " + std::to_string(numa_domain) + " is not open to this process");
  }
}

HostBinding::~HostBinding() {
  if (bound_) {
    fabricheck_sim::bind_host_memory(std::nullopt);
  }
}

}  // namespace fabricheck
