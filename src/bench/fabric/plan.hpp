// Which nodes meet in which round, and what they measured there.
#pragma once

#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mpi/network.hpp"

namespace fabricheck::fabric {

/// A node of the launch and the places of its NICs, one beside each of its ranks.
struct Node {
  std::string name;
  std::vector<int> ranks;
  std::vector<std::string> nics;  ///< names; empty where unknown
  std::vector<std::optional<NetworkPlace>> places;
};

/// Two nodes, by their numbers, the lower first.
using NodePair = std::pair<int, int>;

/// How far apart two nodes are: the farthest of the NICs at the same position. A word of the
/// schema; empty where a place is unknown.
std::string distance_of(const Node& first, const Node& second);

/// Pairs at the same time, no node in two of them.
struct Round {
  int phase = 1;
  std::string distance;  ///< of all of its pairs; empty where they differ or it is unknown
  std::vector<NodePair> pairs;
};

/// The rounds of phase 1: up to `all_to` nodes each with each other one; for more nodes `rounds` of
/// each distance that occurs, in which no two nodes meet twice. Fewer where no more are found.
std::vector<Round> plan_rounds(const std::vector<Node>& nodes, int all_to, int rounds);

/// Pairs of `waiting` nodes at a distance (empty: at any) that are not in `met` yet, which gets
/// them.
std::vector<NodePair> match(const std::vector<Node>& nodes, std::vector<int> waiting,
                            const std::string& distance, std::set<NodePair>& met,
                            std::mt19937& random);

/// What two nodes measured, by NIC position: GB/s, latencies in us; 0 where nothing was measured.
struct PairRates {
  NodePair pair;
  std::vector<double> out;           ///< from the first node, each NIC apart
  std::vector<double> back;          ///< to the first node
  std::vector<double> together_out;  ///< from the first node, all NICs at once
  std::vector<double> together_back;
  std::vector<double> both;  ///< both ways at once, all NICs at once
  std::vector<double> latency;
};

struct MeasuredRound {
  int phase = 1;
  std::string distance;
  double seconds = 0;
  std::vector<PairRates> pairs;
};

}  // namespace fabricheck::fabric
