#include "machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace fabricheck_sim {
namespace {

/// A number in [0, most] of the environment. Throws std::runtime_error naming the variable.
double number(const char* name, double standard, double most) {
  const auto text = variable(name);
  if (!text) {
    return standard;
  }
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  if (*end != '\0' || !(value >= 0 && value <= most)) {
    throw std::runtime_error(std::string(name) + " is '" + *text + "', not a number from 0 to " +
                             std::to_string(static_cast<long long>(most)));
  }
  return value;
}

/// Devices that the variables of ROCm leave visible: ROCR first, then HIP among what that leaves.
/// CUDA_VISIBLE_DEVICES, which HIP reads where its own list is empty (clr, rocdevice.cpp), hides
/// devices of an NVIDIA machine that simulates, and none of the simulated node.
std::vector<int> visible_devices(std::size_t count) {
  std::vector<int> visible;
  for (std::size_t i = 0; i < count; ++i) {
    visible.push_back(static_cast<int>(i));
  }
  for (const char* name : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
    const auto text = variable(name);
    if (!text) {
      continue;
    }
    std::vector<int> chosen;
    for (std::size_t first = 0; first <= text->size();) {
      const auto comma = std::min(text->find(',', first), text->size());
      const auto item = text->substr(first, comma - first);
      first = comma + 1;
      const bool digits =
          !item.empty() && item.size() < 6 &&
          std::all_of(
              item.begin(), item.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
      const auto index = digits ? std::stoul(item) : visible.size();
      if (index >= visible.size()) {
        throw std::runtime_error(std::string(name) + " names '" + item +
                                 "', which is none of the " + std::to_string(visible.size()) +
                                 " devices of the node");
      }
      chosen.push_back(visible[index]);
    }
    visible = chosen;
  }
  return visible;
}

/// Reads FABRICHECK_SIM_MANAGED. Throws std::runtime_error naming a word that is none.
void read_managed(Machine& machine) {
  std::istringstream list(variable("FABRICHECK_SIM_MANAGED").value_or(""));
  for (std::string word; std::getline(list, word, ',');) {
    if (word == "idle-prefetch") {
      machine.idle_prefetch = true;
    } else if (word == "coherent-devices") {
      machine.coherent_devices = true;
    } else {
      throw std::runtime_error("FABRICHECK_SIM_MANAGED names '" + word +
                               "': choose from idle-prefetch, coherent-devices");
    }
  }
}

Machine* make_machine() {
  auto* machine = new Machine;
  try {
    const auto path = variable(fabricheck::env::simulated_node);
    if (!path) {
      throw std::runtime_error(
          "there is no node to simulate: name its file in FABRICHECK_SIMULATED_NODE; write it by: "
          "fabricheck node platform NODE > FILE");
    }
    const auto* given = description_for_rank();
    machine->node = given == nullptr ? read_node(*path) : *given;
    machine->visible = visible_devices(machine->node.devices.size());
    machine->clock = number(fabricheck::env::simulated_clock, 0, 1e7);
    machine->noise = number("FABRICHECK_SIM_NOISE", 0, 1);
    // An MPI that takes memory of devices for the host's copies it by the processor.
    machine->device_messages = 1e9 * number("FABRICHECK_SIM_MESSAGE_GBS", 1e6, 1e6);
    machine->random.seed(static_cast<std::uint64_t>(number("FABRICHECK_SIM_SEED", 1, 1e15)));
    read_managed(*machine);
  } catch (const std::runtime_error& error) {
    machine->problem = error.what();
    machine->visible.clear();
  }
  return machine;
}

/// The calling actor; 0 outside a simulation.
aid_t self() {
  return simgrid::s4u::Actor::self() == nullptr ? 0 : simgrid::s4u::this_actor::get_pid();
}

const Allocation* allocation_of(const void* data) {
  const auto& all = machine();
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const auto after = all.allocations.upper_bound(address);
  if (after == all.allocations.begin()) {
    return nullptr;
  }
  const auto& [start, allocation] = *std::prev(after);
  return address - start < allocation.bytes ? &allocation : nullptr;
}

/// The way between two devices: with the links of a direct one.
fabricheck::PeerWay way_of(const Place& source, const Place& destination) {
  const auto& parallel = machine().node.parallel;
  const auto links_between = parallel.find({source, destination});
  fabricheck::PeerWay way;
  way.direct = links_between != parallel.end();
  way.links = way.direct ? links_between->second : 1;
  return way;
}

Flow kernel_flow(int device, const Place& place, bool write, std::uint64_t bytes) {
  const auto& routes = machine().node.kernel;
  const auto route = routes.find({physical(device), place, write});
  if (route == routes.end()) {
    throw std::runtime_error("device " + std::to_string(device) + " has no way to the memory of " +
                             place);
  }
  return {&route->second, bytes};
}

}  // namespace

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

Machine& machine() {
  static Machine* made = make_machine();
  return *made;
}

bool exists(int device) {
  return device >= 0 && static_cast<std::size_t>(device) < machine().visible.size();
}

bool is_device(const Place& place) { return place.rfind("device", 0) == 0; }

int physical(int device) { return machine().visible[static_cast<std::size_t>(device)]; }

int current_device() { return machine().devices[self()]; }
void set_current_device(int device) { machine().devices[self()] = device; }

std::optional<int> rank_device() {
  for (int device = 0; exists(device); ++device) {
    if (place_of_device(device) == rank_place()) {
      return device;
    }
  }
  return std::nullopt;
}

hipError_t result(hipError_t error) {
  if (error != hipSuccess) {
    machine().errors[self()] = error;
  }
  return error;
}

hipError_t take_error() { return std::exchange(machine().errors[self()], hipSuccess); }

Place place_of_device(int device) { return "device" + std::to_string(physical(device)); }

Place place_of(const void* data) {
  if (const auto place = page_place(data)) {
    return *place;
  }
  const auto* allocation = allocation_of(data);
  return allocation != nullptr ? allocation->place
                               : "domain" + std::to_string(machine().node.domains.front().index);
}

bool is_pageable(const void* data) {
  const auto* allocation = allocation_of(data);
  return allocation == nullptr || allocation->pageable;
}

Cost kernel_cost(int device, const std::vector<Access>& accesses) {
  Cost cost{machine().node.launch, {}};
  for (const auto& access : accesses) {
    for (const auto& flow : pages_to_device(device, access.array, access.bytes)) {
      cost.flows.push_back(flow);
    }
    cost.flows.push_back(kernel_flow(device, place_of(access.array), access.write, access.bytes));
  }
  return cost;
}

const std::string& rocm() { return machine().node.rocm; }

std::optional<fabricheck::PeerWay> peer_way(int from, int to) {
  return way_of(place_of_device(from), place_of_device(to));
}

fabricheck::Mover mover_of(const Place& source, const Place& destination, std::uint64_t bytes) {
  if (!fabricheck::is_amd(machine().node.devices.front().architecture)) {
    return {fabricheck::engine::copy_engine, 1};
  }
  const fabricheck::CopyRules rules(rocm());
  return is_device(source) && is_device(destination)
             ? rules.peer(bytes, way_of(source, destination))
             : rules.host(bytes);
}

Cost copy_cost(int device, const void* to, const void* from, std::uint64_t bytes) {
  const auto source = place_of(from);
  const auto destination = place_of(to);
  const auto& node = machine().node;
  const bool pageable = is_pageable(from) || is_pageable(to);
  const double pinning = pageable && bytes > node.staged_bytes ? node.pin : 0;
  const auto& routes = pageable ? node.pageable : node.copy;
  const auto entry = routes.find({source, destination});
  const auto mover = entry == routes.end()
                         ? fabricheck::Mover{fabricheck::engine::kernel, std::nullopt}
                         : mover_of(source, destination, bytes);
  if (mover.engine == fabricheck::engine::copy_engine) {
    const auto& route = entry->second;
    const auto engines = static_cast<std::uint64_t>(mover.engines.value_or(1));
    Cost cost{route.start + pinning, {}};
    for (std::uint64_t left = bytes, i = engines; i > 0; --i) {
      const auto part = left / i;
      cost.flows.push_back({&route, part, bytes});
      left -= part;
    }
    return cost;
  }
  // Within a device, or with the engines off: a kernel of the stream's device.
  auto cost = kernel_cost(device, {{from, bytes, false}, {to, bytes, true}});
  cost.start += pinning;
  return cost;
}

double soak_seconds() { return machine().clock + now(); }

std::map<int, std::map<std::string, double>> counters_now() {
  std::map<int, std::map<std::string, double>> counted;
  for (int device = 0; exists(device); ++device) {
    for (const auto& counter : machine().node.counters) {
      if (counter.device == physical(device)) {
        counted[device][counter.name] += value_at(counter.points, soak_seconds());
      }
    }
  }
  return counted;
}

std::vector<Flip> flips() {
  std::vector<Flip> all;
  for (int device = 0; exists(device); ++device) {
    for (const auto& flip : machine().node.flips) {
      if (flip.device == physical(device)) {
        all.push_back({device, flip.at - machine().clock, flip.offset_bytes, flip.bit});
      }
    }
  }
  return all;
}

const std::string& problem() { return machine().problem; }
bool noisy() { return machine().noise > 0; }
nlohmann::json node_identity() { return machine().node.identity; }
const std::vector<Domain>& domains() { return machine().node.domains; }
void bind_host_memory(std::optional<int> domain) { machine().host_domain = domain; }

Place user_host_place() {
  const auto& all = machine();
  return "domain" + std::to_string(all.host_domain.value_or(all.node.domains.front().index));
}

std::uint64_t memory_of(const Place& place) {
  const auto& node = machine().node;
  const auto index = std::stoi(place.substr(6));
  if (is_device(place)) {
    return node.devices[static_cast<std::size_t>(index)].memory_bytes;
  }
  for (const auto& domain : node.domains) {
    if (domain.index == index) {
      return domain.memory_bytes;
    }
  }
  return 0;
}

std::uint64_t free_memory_of(const Place& place) {
  return memory_of(place) - machine().allocated[place];
}

std::uint64_t free_host_memory() {
  return problem().empty() ? free_memory_of(user_host_place()) : 0;
}

std::uint64_t moved_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t slice = 1 << 20;
  return std::min(bytes, slice);
}

std::optional<int> domain_of_pci(const std::string& address) {
  for (const auto& device : machine().node.devices) {
    if (device.pci_address == address) {
      return device.domain;
    }
  }
  return std::nullopt;
}

std::optional<int> domain_of(const void* data) {
  const auto place = place_of(data);
  const auto index = static_cast<std::size_t>(std::stoul(place.substr(6)));
  return is_device(place) ? machine().node.devices[index].domain : static_cast<int>(index);
}

}  // namespace fabricheck_sim
