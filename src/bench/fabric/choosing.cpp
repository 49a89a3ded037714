#include "fabric/choosing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "harness/statistics.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck::fabric {
namespace {

constexpr double kLeastLow = 0.015;
constexpr double kDeviations = 3;
constexpr int kMostNodes = 4;  // one of so many
constexpr std::size_t kFewestPartners = 3;
constexpr double kLowPair = 0.9;
constexpr std::size_t kFewestOfClass = 24;
constexpr std::size_t kMostPairs = 8;  // of a node
constexpr unsigned kSeedOfSuspects = 2;
constexpr int kLeftOut = 0;  // the phase of rounds that are not looked at

/// A rate of phase 1: its class, the NICs that send and receive, its logarithm.
struct Sample {
  std::string distance;
  int position = 0;
  int sender = 0;
  int receiver = 0;
  NodePair pair;
  double log = 0;
  int phase = 1;
};

void add_together(const PairRates& rates, const std::vector<double>& together, int sender,
                  int receiver, const std::string& distance, int phase,
                  std::vector<Sample>& samples) {
  double sum = 0;
  for (const double rate : together) {
    if (rate <= 0) {
      return;
    }
    sum += rate;
  }
  if (!together.empty()) {
    samples.push_back({distance, kAllNics, sender, receiver, rates.pair, std::log(sum), phase});
  }
}

std::vector<Sample> samples_of(const std::vector<Node>& nodes,
                               const std::vector<MeasuredRound>& rounds) {
  std::vector<Sample> samples;
  for (const auto& round : rounds) {
    for (const auto& rates : round.pairs) {
      const auto [from, to] = rates.pair;
      const auto& first = nodes[static_cast<std::size_t>(from)];
      const auto& second = nodes[static_cast<std::size_t>(to)];
      for (std::size_t k = 0; k < rates.out.size(); ++k) {
        const auto distance = fabricheck::distance_of(first.places[k], second.places[k]);
        const int position = static_cast<int>(k);
        if (rates.out[k] > 0) {
          samples.push_back(
              {distance, position, from, to, rates.pair, std::log(rates.out[k]), round.phase});
        }
        if (rates.back[k] > 0) {
          samples.push_back(
              {distance, position, to, from, rates.pair, std::log(rates.back[k]), round.phase});
        }
      }
      const auto farthest = distance_of(first, second);
      add_together(rates, rates.together_out, from, to, farthest, round.phase, samples);
      add_together(rates, rates.together_back, to, from, farthest, round.phase, samples);
    }
  }
  return samples;
}

/// Distances in order; the last is an unknown one.
int order_of(const std::string& distance) {
  if (distance == distance::same_switch) {
    return 0;
  }
  if (distance == distance::same_group) {
    return 1;
  }
  if (distance == distance::other_group) {
    return 2;
  }
  return 3;
}

/// Puts the rates of small classes into the largest of their position, of equal ones the nearest.
void join_classes(std::vector<Sample>& samples) {
  std::map<int, std::map<int, std::size_t>> sizes;
  std::map<std::pair<int, int>, std::map<int, std::size_t>> of_node;  // by position and distance
  std::map<int, std::string> words;
  for (const auto& sample : samples) {
    const int order = order_of(sample.distance);
    words[order] = sample.distance;
    if (sample.phase == 1) {
      ++sizes[sample.position][order];
      ++of_node[{sample.position, order}][sample.sender];
      ++of_node[{sample.position, order}][sample.receiver];
    }
  }
  std::set<std::pair<int, int>> with_a_median;
  for (const auto& [group, nodes] : of_node) {
    std::size_t most = 0;
    for (const auto& [node, rates] : nodes) {
      most = std::max(most, rates);
    }
    if (sizes[group.first][group.second] - most >= kFewestOfClass) {
      with_a_median.insert(group);
    }
  }
  for (auto& sample : samples) {
    const auto& by_order = sizes[sample.position];
    if (by_order.empty() || with_a_median.count({sample.position, order_of(sample.distance)}) > 0) {
      continue;
    }
    const auto largest =
        std::max_element(by_order.begin(), by_order.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    sample.distance = words[largest->first];
  }
}

/// Subtracts from each logarithm the median of its class in phase 1.
void relate(std::vector<Sample>& samples) {
  join_classes(samples);
  std::map<std::pair<std::string, int>, std::vector<double>> classes;
  for (const auto& sample : samples) {
    if (sample.phase == 1) {
      classes[{sample.distance, sample.position}].push_back(sample.log);
    }
  }
  std::map<std::pair<std::string, int>, double> middle;
  for (const auto& [key, values] : classes) {
    middle[key] = median(values);
  }
  for (auto& sample : samples) {
    sample.log -= middle[{sample.distance, sample.position}];
  }
}

/// A NIC that sends or receives; of all of a node at once the position is kAllNics.
struct End {
  int node = 0;
  int position = 0;
  bool sends = false;
};

bool operator<(const End& a, const End& b) {
  return std::tie(a.node, a.position, a.sends) < std::tie(b.node, b.position, b.sends);
}

using Scores = std::map<End, double>;

/// A NIC of a node, by both numbers.
using Nic = std::pair<int, int>;

/// The scores of phase 1, of NICs apart or of all at once, less the median of their position.
Scores scores_of(const std::vector<Sample>& samples, bool together) {
  std::map<End, std::vector<double>> logs;
  for (const auto& sample : samples) {
    const bool of_all = sample.position == kAllNics;
    if (sample.phase == 1 && of_all == together) {
      logs[{sample.sender, sample.position, true}].push_back(sample.log);
      logs[{sample.receiver, sample.position, false}].push_back(sample.log);
    }
  }
  Scores scores;
  for (auto& [end, values] : logs) {
    if (values.size() >= kFewestPartners) {
      scores[end] = median(std::move(values));
    }
  }
  std::map<std::pair<int, bool>, std::vector<double>> alike;  // by position and direction
  for (const auto& [end, score] : scores) {
    alike[{end.position, end.sends}].push_back(score);
  }
  for (auto& [end, score] : scores) {
    score -= median(alike[{end.position, end.sends}]);
  }
  return scores;
}

/// Adds the lowest score of each NIC that is low.
void add_low(const Scores& scores, std::map<Nic, double>& low) {
  std::vector<double> sizes;
  for (const auto& [end, score] : scores) {
    sizes.push_back(std::abs(score));
  }
  if (sizes.empty()) {
    return;
  }
  const double limit = std::max(-std::log(1 - kLeastLow), kDeviations * median(sizes));
  for (const auto& [end, score] : scores) {
    if (score < -limit) {
      const Nic nic{end.node, end.position};
      const auto [entry, fresh] = low.try_emplace(nic, score);
      entry->second = std::min(entry->second, score);
    }
  }
}

/// What a NIC is low with most partners; 0 for one that is not.
double low_of(const Scores& scores, int node, int position, bool sends) {
  const auto score = scores.find({node, position, sends});
  return score == scores.end() ? 0 : std::min(0.0, score->second);
}

/// The low pairs, the lowest first.
std::vector<NodePair> lowest_of(const std::vector<Sample>& samples, const Scores& scores,
                                int phase) {
  std::map<NodePair, double> lowest;
  for (const auto& sample : samples) {
    if (sample.phase != phase || sample.position == kAllNics) {
      continue;
    }
    const double rest = sample.log - low_of(scores, sample.sender, sample.position, true) -
                        low_of(scores, sample.receiver, sample.position, false);
    if (rest < std::log(kLowPair)) {
      const auto [entry, fresh] = lowest.try_emplace(sample.pair, rest);
      entry->second = std::min(entry->second, rest);
    }
  }
  std::vector<std::pair<double, NodePair>> order;
  for (const auto& [pair, log] : lowest) {
    order.emplace_back(log, pair);
  }
  std::sort(order.begin(), order.end());
  std::vector<NodePair> pairs;
  for (const auto& [log, pair] : order) {
    pairs.push_back(pair);
  }
  return pairs;
}

/// The number of the first of some sets that has neither node; that of a new one if all have.
std::size_t free_set(const std::vector<std::set<int>>& sets, const NodePair& pair) {
  const auto set_of_pair = std::find_if(sets.begin(), sets.end(), [&pair](const auto& set) {
    return set.count(pair.first) == 0 && set.count(pair.second) == 0;
  });
  return static_cast<std::size_t>(set_of_pair - sets.begin());
}

/// The low NICs of at most so many nodes, the lowest first.
std::vector<Suspect> suspects_of(const std::map<Nic, double>& low, std::size_t most_nodes) {
  std::vector<std::pair<double, Nic>> order;
  for (const auto& [nic, score] : low) {
    order.emplace_back(score, nic);
  }
  std::sort(order.begin(), order.end());
  std::vector<Suspect> suspects;
  std::set<int> suspected;
  for (const auto& [score, nic] : order) {
    const auto [node, position] = nic;
    if (suspected.count(node) == 0 && suspected.size() == most_nodes) {
      continue;
    }
    suspected.insert(node);
    suspects.push_back({node, position});
  }
  return suspects;
}

/// The nodes with a score and no low NIC.
std::set<int> proven_by(const Scores& apart, const Scores& together,
                        const std::map<Nic, double>& low) {
  std::set<int> nodes;
  for (const auto* scores : {&apart, &together}) {
    for (const auto& [end, score] : *scores) {
      nodes.insert(end.node);
    }
  }
  for (const auto& [nic, score] : low) {
    nodes.erase(nic.first);
  }
  return nodes;
}

/// The first pairs, of which at most kMostPairs have a node in common.
std::vector<NodePair> first_of(const std::vector<NodePair>& pairs) {
  std::vector<std::set<int>> sets(kMostPairs);
  std::vector<NodePair> first;
  for (const auto& pair : pairs) {
    const auto at = free_set(sets, pair);
    if (at < sets.size()) {
      sets[at].insert({pair.first, pair.second});
      first.push_back(pair);
    }
  }
  return first;
}

}  // namespace

Chosen choose(const std::vector<Node>& nodes, const std::vector<MeasuredRound>& rounds) {
  auto samples = samples_of(nodes, rounds);
  relate(samples);
  const auto apart = scores_of(samples, false);
  const auto together = scores_of(samples, true);
  std::map<Nic, double> low;
  add_low(apart, low);
  add_low(together, low);
  Chosen chosen;
  chosen.suspects = suspects_of(low, std::max<std::size_t>(1, nodes.size() / kMostNodes));
  chosen.proven = proven_by(apart, together, low);
  chosen.low_pairs = first_of(lowest_of(samples, apart, 1));
  return chosen;
}

std::vector<Round> plan_again(const std::vector<Node>& nodes, const Chosen& chosen, int again,
                              const std::set<int>& gone) {
  std::vector<int> suspected;
  for (const auto& suspect : chosen.suspects) {
    if (gone.count(suspect.node) == 0 &&
        std::find(suspected.begin(), suspected.end(), suspect.node) == suspected.end()) {
      suspected.push_back(suspect.node);
    }
  }
  std::vector<int> proven;
  for (const int node : chosen.proven) {
    if (gone.count(node) == 0) {
      proven.push_back(node);
    }
  }
  std::mt19937 random(kSeedOfSuspects);
  std::set<NodePair> met;
  std::vector<Round> rounds;
  for (int i = 0; i < again && !suspected.empty(); ++i) {
    Round round{2, "", {}};
    auto free = proven;
    for (const int node : suspected) {
      auto best = free.end();
      int nearest = order_of("") + 1;
      for (auto other = free.begin(); other != free.end(); ++other) {
        const int far = order_of(distance_of(nodes[static_cast<std::size_t>(node)],
                                             nodes[static_cast<std::size_t>(*other)]));
        if (far < nearest && met.count(std::minmax(node, *other)) == 0) {
          best = other;
          nearest = far;
        }
      }
      if (best != free.end()) {
        const NodePair pair = std::minmax(node, *best);
        met.insert(pair);
        round.pairs.push_back(pair);
        free.erase(best);
      }
    }
    if (round.pairs.empty()) {
      break;
    }
    // The other nodes work as in phase 1, and tell what a round like this one gives good ones.
    std::set<NodePair> others;
    for (const auto& pair : match(nodes, free, "", others, random)) {
      round.pairs.push_back(pair);
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

std::vector<Round> plan_pairs(const std::vector<NodePair>& pairs, const std::set<int>& gone) {
  std::vector<std::set<int>> sets;
  std::vector<Round> rounds;
  for (const auto& pair : pairs) {
    if (gone.count(pair.first) > 0 || gone.count(pair.second) > 0) {
      continue;
    }
    const auto at = free_set(sets, pair);
    if (at == sets.size()) {
      sets.emplace_back();
      rounds.push_back({2, "", {}});
    }
    sets[at].insert({pair.first, pair.second});
    rounds[at].pairs.push_back(pair);
  }
  return rounds;
}

std::vector<NodePair> still_low(const std::vector<Node>& nodes,
                                const std::vector<MeasuredRound>& rounds, std::size_t count) {
  auto considered = rounds;
  const std::size_t earlier = considered.size() - std::min(count, considered.size());
  for (std::size_t i = 0; i < earlier; ++i) {
    if (considered[i].phase == 2) {
      considered[i].phase = kLeftOut;
    }
  }
  auto samples = samples_of(nodes, considered);
  relate(samples);
  return lowest_of(samples, scores_of(samples, false), 2);
}

}  // namespace fabricheck::fabric
