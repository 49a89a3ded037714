// The first messages of ranks to other nodes, which show what they leave the node by; and what the
// NICs of the nodes count meanwhile.
#pragma once

#include <mpi.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/document.hpp"
#include "mpi/messages.hpp"
#include "mpi/network.hpp"
#include "mpi/plan.hpp"
#include "mpi/values.hpp"
#include "ranks/rank_group.hpp"

namespace fabricheck::mpi {

/// Sends messages to `peer` on another node and receives as many, and reads the counters of this
/// node's NICs around those sent. The lower rank sends first. Collective of the two; no other rank
/// of the nodes may send meanwhile. `node` is this rank's. Throws NoAnswer.
NetworkUse cross(MPI_Comm world, Accessor accessor, int peer, const std::string& node,
                 const Places& places, const Patience& patience = {});

/// The member `network` of this rank: crosses to the other rank of its first pair of two nodes, one
/// pair of the launch after the other. Null for a rank without such a pair. Collective.
nlohmann::json read_back(const std::vector<RankPair>& pairs, const Places& places,
                         Accessor accessor, const RankGroup& group);

/// The place in a member `network`, which may be null.
std::optional<NetworkPlace> network_place(const nlohmann::json& network);

/// Counters by NIC and name.
using NicCounts = std::map<std::string, std::map<std::string, std::uint64_t>>;

/// The NICs of this node whose errors are kept: interfaces of the kernel's stack only where there
/// is no other.
std::vector<Nic> counted_nics();

/// The entries of a node in the member `nics` of the document.
nlohmann::json nics_member(const std::string& node, const std::vector<Nic>& nics,
                           const NicCounts& before, const NicCounts& after);

/// The error counters of all nodes' NICs in a launch over several nodes. Collective.
class NicErrors {
 public:
  /// Reads the counters of this rank's node, on its first rank.
  explicit NicErrors(const RankGroup& group);
  /// Reads them again, and writes both into the member `nics` of the document.
  void write(const RankGroup& group, Document& document) const;

 private:
  std::vector<Nic> nics_;  // of the first rank of each node; else none
  NicCounts before_;
};

}  // namespace fabricheck::mpi
