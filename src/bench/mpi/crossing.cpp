#include "mpi/crossing.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "harness/simulation.hpp"
#include "mpi/arrays.hpp"
#include "ranks/mpi_call.hpp"

namespace fabricheck::mpi {
namespace {

// Enough to stand out of what else a node sends, in messages as large as those that are timed.
constexpr int kMessages = kSimulated ? 1 : 4;
constexpr int kMessageBytes = (kSimulated ? 1 : 16) << 20;
/// A driver may update its counters a little later.
constexpr auto kCountersSettle = std::chrono::milliseconds(20);

enum CrossingTag { kCrossing = 11, kArrived };

void settle() {
  if (!kSimulated) {
    std::this_thread::sleep_for(kCountersSettle);
  }
}

}  // namespace

NetworkUse cross(MPI_Comm world, Accessor accessor, int peer, const std::string& node,
                 const Places& places) {
  int rank = 0;
  FABRICHECK_MPI(MPI_Comm_rank(world, &rank));
  const auto all = nics();
  const MessageArray array(accessor, kMessageBytes, kMessageBytes);
  NetworkUse use;
  for (const bool send : {rank<peer, rank> peer}) {
    if (!send) {
      for (int i = 0; i < kMessages; ++i) {
        FABRICHECK_MPI(MPI_Recv(array.data(), kMessageBytes, MPI_BYTE, peer, kCrossing, world,
                                MPI_STATUS_IGNORE));
      }
      FABRICHECK_MPI(MPI_Send(nullptr, 0, MPI_BYTE, peer, kArrived, world));
      // The peer reads its counters before this rank sends, which moves them on one machine.
      FABRICHECK_MPI(MPI_Recv(nullptr, 0, MPI_BYTE, peer, kArrived, world, MPI_STATUS_IGNORE));
      continue;
    }
    settle();
    const auto before = sent_bytes(all);
    for (int i = 0; i < kMessages; ++i) {
      FABRICHECK_MPI(MPI_Send(array.data(), kMessageBytes, MPI_BYTE, peer, kCrossing, world));
    }
    FABRICHECK_MPI(MPI_Recv(nullptr, 0, MPI_BYTE, peer, kArrived, world, MPI_STATUS_IGNORE));
    settle();
    use = network_use(all, before, sent_bytes(all), std::uint64_t{kMessages} * kMessageBytes,
                      open_provider());
    FABRICHECK_MPI(MPI_Send(nullptr, 0, MPI_BYTE, peer, kArrived, world));
  }
  const auto busiest = std::find_if(all.begin(), all.end(), [&use](const Nic& nic) {
    return !use.nics.empty() && nic.name == use.nics.front().first;
  });
  use.place = places.of(node, busiest == all.end() ? "" : busiest->address);
  return use;
}

nlohmann::json read_back(const std::vector<RankPair>& pairs, const Places& places,
                         Accessor accessor, const RankGroup& group) {
  const auto node_of = [&group](int rank) { return group.nodes()[static_cast<std::size_t>(rank)]; };
  nlohmann::json network;
  std::set<int> crossed;
  for (const auto& pair : pairs) {
    if (node_of(pair.from) == node_of(pair.to) ||
        (crossed.count(pair.from) > 0 && crossed.count(pair.to) > 0)) {
      continue;
    }
    crossed.insert({pair.from, pair.to});
    group.barrier();
    for (const auto& [own, peer] : {std::pair(pair.from, pair.to), std::pair(pair.to, pair.from)}) {
      if (own == group.rank()) {
        network = to_json(cross(MPI_COMM_WORLD, accessor, peer, node_of(own), places));
      }
    }
  }
  return network;
}

std::optional<NetworkPlace> network_place(const nlohmann::json& network) {
  if (network.is_null() || network["place"].is_null()) {
    return std::nullopt;
  }
  const auto& place = network["place"];
  return NetworkPlace{place["group"], place["switch"],
                      place["port"].is_null() ? "" : place["port"]};
}

NicErrors::NicErrors(const RankGroup& group) {
  const auto& nodes = group.nodes();
  const auto& own = nodes[static_cast<std::size_t>(group.rank())];
  const bool several = std::set(nodes.begin(), nodes.end()).size() > 1;
  if (several && std::find(nodes.begin(), nodes.end(), own) - nodes.begin() == group.rank()) {
    nics_ = nics();
    const auto of_kernel = std::stable_partition(
        nics_.begin(), nics_.end(), [](const Nic& nic) { return nic.bypasses_kernel(); });
    // Interfaces of the kernel's stack are the network only where there is no other.
    if (of_kernel != nics_.begin()) {
      nics_.erase(of_kernel, nics_.end());
    }
    before_ = nic_errors(nics_);
  }
}

void NicErrors::write(const RankGroup& group, Document& document) const {
  using nlohmann::json;
  const auto after = nic_errors(nics_);
  json mine = json::array();
  for (const auto& nic : nics_) {
    json errors = json::object();
    for (const auto& [counter, count] :
         before_.count(nic.name) > 0 ? before_.at(nic.name) : decltype(before_)::mapped_type{}) {
      if (after.count(nic.name) > 0 && after.at(nic.name).count(counter) > 0) {
        errors[counter] = {count, after.at(nic.name).at(counter)};
      }
    }
    const auto or_null = [](const std::string& text) { return text.empty() ? json() : json(text); };
    mine.push_back({{"node", group.nodes()[static_cast<std::size_t>(group.rank())]},
                    {"name", nic.name},
                    {"interface", or_null(nic.interface)},
                    {"address", or_null(nic.address)},
                    {"errors", errors}});
  }
  json all = json::array();
  for (const auto& part : group.gather(mine)) {
    all.insert(all.end(), part.begin(), part.end());
  }
  if (!all.empty()) {
    document.set("nics", all);
  }
}

}  // namespace fabricheck::mpi
