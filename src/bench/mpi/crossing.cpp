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
const int kMessages = kSimulated ? 1 : 4;
const int kMessageBytes = (kSimulated ? 1 : 16) << 20;
/// A driver may update its counters a little later.
constexpr auto kCountersSettle = std::chrono::milliseconds(20);

constexpr int kCrossing = 11;

void settle() {
  if (!kSimulated) {
    std::this_thread::sleep_for(kCountersSettle);
  }
}

}  // namespace

NetworkUse cross(MPI_Comm world, Accessor accessor, int peer, const std::string& node,
                 const Places& places, const Patience& patience) {
  int rank = 0;
  FABRICHECK_MPI(MPI_Comm_rank(world, &rank));
  const auto all = nics();
  const MessageArray array(accessor, kMessageBytes, kMessageBytes);
  NetworkUse use;
  for (const bool sends : {rank<peer, rank> peer}) {
    const Exchange exchange{world,        peer,          sends,    array.data(),
                            array.data(), kMessageBytes, MPI_BYTE, kCrossing};
    std::map<std::string, std::uint64_t> before;
    if (sends) {
      settle();
      before = sent_bytes(all);
    }
    (void)windows(exchange, false, kMessages, 1, patience);
    if (sends) {
      settle();
      use = network_use(all, before, sent_bytes(all),
                        static_cast<std::uint64_t>(kMessages) * kMessageBytes, open_provider());
    }
    // The sender reads its counters before the other one sends, which moves them on one machine.
    meet(exchange, patience);
  }
  const auto busiest = std::find_if(all.begin(), all.end(), [&use](const Nic& nic) {
    return !use.nics.empty() && nic.name == use.nics.front().first;
  });
  use.place = places.place_of(node, busiest == all.end() ? "" : busiest->address);
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
    for (const auto& [mine, peer] :
         {std::pair(pair.from, pair.to), std::pair(pair.to, pair.from)}) {
      if (mine == group.rank()) {
        network = to_json(cross(MPI_COMM_WORLD, accessor, peer, node_of(mine), places));
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

std::vector<Nic> counted_nics() {
  auto all = nics();
  const auto of_kernel = std::stable_partition(
      all.begin(), all.end(), [](const Nic& nic) { return nic.bypasses_kernel(); });
  if (of_kernel != all.begin()) {
    all.erase(of_kernel, all.end());
  }
  return all;
}

NicErrors::NicErrors(const RankGroup& group) {
  const auto& nodes = group.nodes();
  const auto& node = nodes[static_cast<std::size_t>(group.rank())];
  if (group.several_nodes() &&
      std::find(nodes.begin(), nodes.end(), node) - nodes.begin() == group.rank()) {
    nics_ = counted_nics();
    before_ = nic_errors(nics_);
  }
}

nlohmann::json nics_member(const std::string& node, const std::vector<Nic>& nics,
                           const NicCounts& before, const NicCounts& after) {
  using nlohmann::json;
  const auto or_null = [](const std::string& text) { return text.empty() ? json() : json(text); };
  json member = json::array();
  for (const auto& nic : nics) {
    json errors = json::object();
    for (const auto& [counter, count] :
         before.count(nic.name) > 0 ? before.at(nic.name) : NicCounts::mapped_type{}) {
      if (after.count(nic.name) > 0 && after.at(nic.name).count(counter) > 0) {
        errors[counter] = {count, after.at(nic.name).at(counter)};
      }
    }
    member.push_back({{"node", node},
                      {"name", nic.name},
                      {"interface", or_null(nic.interface)},
                      {"address", or_null(nic.address)},
                      {"errors", errors}});
  }
  return member;
}

void NicErrors::write(const RankGroup& group, Document& document) const {
  using nlohmann::json;
  const auto mine = nics_member(group.nodes()[static_cast<std::size_t>(group.rank())], nics_,
                                before_, nic_errors(nics_));
  json all = json::array();
  for (const auto& part : group.gather(mine)) {
    all.insert(all.end(), part.begin(), part.end());
  }
  document.set("nics", all);
}

}  // namespace fabricheck::mpi
