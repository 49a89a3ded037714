#include "fabric/plan.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "mpi/plan.hpp"

namespace fabricheck::fabric {
namespace {

/// In the order of the search for a partner: how many waiting nodes are looked at.
constexpr int kCandidates = 40;

/// Rounds must be the same in each run of the same nodes.
constexpr unsigned kSeed = 1;

const std::array<std::string, 3>& distances() {
  static const std::array<std::string, 3> words{distance::same_switch, distance::same_group,
                                                distance::other_group};
  return words;
}

/// What nodes at a distance have in common, as far as that can be sorted by.
std::string common_of(const Node& node, const std::string& distance) {
  const auto& place = node.places.front();
  if (!place || distance.empty() || distance == distance::other_group) {
    return "";
  }
  return distance == distance::same_switch ? place->group + "|" + place->network_switch
                                           : place->group;
}

}  // namespace

std::string distance_of(const Node& first, const Node& second) {
  std::size_t farthest = 0;
  for (std::size_t i = 0; i < std::min(first.places.size(), second.places.size()); ++i) {
    const auto word = fabricheck::distance_of(first.places[i], second.places[i]);
    if (word.empty()) {
      return "";
    }
    const auto at = std::find(distances().begin(), distances().end(), word) - distances().begin();
    farthest = std::max(farthest, static_cast<std::size_t>(at));
  }
  return distances().at(farthest);
}

std::vector<NodePair> match(const std::vector<Node>& nodes, std::vector<int> waiting,
                            const std::string& distance, std::set<NodePair>& met,
                            std::mt19937& random) {
  // std::shuffle differs between libraries.
  for (std::size_t i = waiting.size(); i > 1; --i) {
    std::swap(waiting[i - 1], waiting[random() % i]);
  }
  const auto node_of = [&nodes](int index) -> const Node& {
    return nodes[static_cast<std::size_t>(index)];
  };
  std::stable_sort(waiting.begin(), waiting.end(), [&](int a, int b) {
    return common_of(node_of(a), distance) < common_of(node_of(b), distance);
  });
  std::vector<NodePair> pairs;
  while (waiting.size() > 1) {
    const int node = waiting.back();
    waiting.pop_back();
    int looked = 0;
    for (auto peer = waiting.rbegin(); peer != waiting.rend() && looked < kCandidates;
         ++peer, ++looked) {
      const NodePair pair = std::minmax(node, *peer);
      if ((distance.empty() || distance_of(node_of(node), node_of(*peer)) == distance) &&
          met.insert(pair).second) {
        pairs.push_back(pair);
        waiting.erase(std::next(peer).base());
        break;
      }
    }
  }
  return pairs;
}

std::vector<Round> plan_rounds(const std::vector<Node>& nodes, int all_to, int rounds) {
  const int count = static_cast<int>(nodes.size());
  std::vector<Round> plan;
  if (count <= all_to) {
    for (const auto& meetings : mpi::tournament(count)) {
      Round round;
      for (const auto& pair : meetings) {
        round.pairs.emplace_back(pair.from, pair.to);
      }
      std::set<std::string> seen;
      for (const auto& [first, second] : round.pairs) {
        seen.insert(distance_of(nodes[static_cast<std::size_t>(first)],
                                nodes[static_cast<std::size_t>(second)]));
      }
      round.distance = seen.size() == 1 ? *seen.begin() : "";
      if (!round.pairs.empty()) {
        plan.push_back(std::move(round));
      }
    }
    return plan;
  }
  std::mt19937 random(kSeed);
  std::vector<int> all(nodes.size());
  std::iota(all.begin(), all.end(), 0);
  const bool known = std::all_of(nodes.begin(), nodes.end(), [](const Node& node) {
    return std::all_of(node.places.begin(), node.places.end(),
                       [](const auto& place) { return place.has_value(); });
  });
  const auto& words = distances();
  const auto classes =
      known ? std::vector<std::string>(words.begin(), words.end()) : std::vector<std::string>{""};
  std::set<NodePair> met;
  for (const auto& distance : classes) {
    for (int i = 0; i < rounds; ++i) {
      Round round{1, distance, match(nodes, all, distance, met, random)};
      if (round.pairs.empty()) {
        break;
      }
      plan.push_back(std::move(round));
    }
  }
  return plan;
}

}  // namespace fabricheck::fabric
