// Phase 2: which NICs and pairs of phase 1 are measured again, and with whom.
#pragma once

#include <set>
#include <vector>

#include "fabric/plan.hpp"

namespace fabricheck::fabric {

/// The position that stands for all NICs of a node at once.
constexpr int kAllNics = -1;

/// A NIC of a node, by its position, or all of its NICs at once.
struct Suspect {
  int node = 0;
  int nic = kAllNics;
};

inline bool operator==(const Suspect& a, const Suspect& b) {
  return a.node == b.node && a.nic == b.nic;
}

struct Chosen {
  std::vector<Suspect> suspects;    ///< the lowest first
  std::set<int> proven;             ///< nodes without a low NIC
  std::vector<NodePair> low_pairs;  ///< the lowest first
};

/// Of the rounds of phase 1, the logarithm of each rate over the median of its class (distance and
/// NIC position; one of fewer than 24 rates is part of the largest of its position); the score of a
/// NIC in a direction is the median over at least three partners, less
/// that of the scores of its position. Suspects are those whose score is
/// below zero by more than 1.5 % and by more than three median absolute deviations of all scores
/// (the rule of src/fabricheck/core/peers.py with these parameters), of at most a quarter of the
/// nodes, the lowest first. Low pairs have no suspect and a rate below 90 %, each node in one of
/// them. tests/fabric/choosing.py asks that rule, and a test compares both.
Chosen choose(const std::vector<Node>& nodes, const std::vector<MeasuredRound>& rounds);

/// The rounds of phase 2: `again` of each node with a suspect and a proven one, the nearest first,
/// while the other proven nodes meet each other. `gone`: nodes that were lost.
std::vector<Round> plan_again(const std::vector<Node>& nodes, const Chosen& chosen, int again,
                              const std::set<int>& gone);

/// Rounds of pairs, each in one of them.
std::vector<Round> plan_pairs(const std::vector<NodePair>& pairs, const std::set<int>& gone);

/// Those of the last `count` rounds whose pair was low, by the medians of phase 1.
std::vector<NodePair> still_low(const std::vector<Node>& nodes,
                                const std::vector<MeasuredRound>& rounds, std::size_t count);

}  // namespace fabricheck::fabric
