#include "fabric/choosing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "harness/statistics.hpp"

namespace fabricheck::fabric {
namespace {

constexpr double kLeastLow = 0.015;
constexpr double kDeviations = 3;
constexpr int kMostNodes = 4;  // one of so many
constexpr std::size_t kFewestPartners = 3;
constexpr double kLowPair = 0.9;
constexpr int kPairsAgain = 3;
constexpr unsigned kSeedOfSuspects = 2;

/// A rate of phase 1: its class, the NICs that send and receive, its logarithm.
struct Sample {
  std::string distance;
  int position = 0;
  int sender = 0;
  int receiver = 0;
  NodePair pair;
  double log = 0;
};

void add_together(const PairRates& rates, const std::vector<double>& its, int sender, int receiver,
                  const std::string& distance, std::vector<Sample>& samples) {
  double sum = 0;
  for (const double rate : its) {
    if (rate <= 0) {
      return;
    }
    sum += rate;
  }
  if (!its.empty()) {
    samples.push_back({distance, kAllNics, sender, receiver, rates.pair, std::log(sum)});
  }
}

std::vector<Sample> samples_of(const std::vector<Node>& nodes,
                               const std::vector<MeasuredRound>& rounds) {
  std::vector<Sample> samples;
  for (const auto& round : rounds) {
    if (round.phase != 1) {
      continue;
    }
    for (const auto& rates : round.pairs) {
      const auto [one, other] = rates.pair;
      const auto& first = nodes[static_cast<std::size_t>(one)];
      const auto& second = nodes[static_cast<std::size_t>(other)];
      for (std::size_t k = 0; k < rates.out.size(); ++k) {
        const auto distance = fabricheck::distance_of(first.places[k], second.places[k]);
        const int position = static_cast<int>(k);
        if (rates.out[k] > 0) {
          samples.push_back({distance, position, one, other, rates.pair, std::log(rates.out[k])});
        }
        if (rates.back[k] > 0) {
          samples.push_back({distance, position, other, one, rates.pair, std::log(rates.back[k])});
        }
      }
      const auto farthest = distance_of(first, second);
      add_together(rates, rates.together_out, one, other, farthest, samples);
      add_together(rates, rates.together_back, other, one, farthest, samples);
    }
  }
  return samples;
}

/// Subtracts from each logarithm the median of its class.
void relate(std::vector<Sample>& samples) {
  std::map<std::pair<std::string, int>, std::vector<double>> classes;
  for (const auto& sample : samples) {
    classes[{sample.distance, sample.position}].push_back(sample.log);
  }
  std::map<std::pair<std::string, int>, double> middle;
  for (const auto& [key, values] : classes) {
    middle[key] = median(values);
  }
  for (auto& sample : samples) {
    sample.log -= middle[{sample.distance, sample.position}];
  }
}

/// The lowest score of each NIC that is low, of those apart or of all at once.
void add_low(const std::vector<Sample>& samples, bool together,
             std::map<std::pair<int, int>, double>& low, std::set<int>& seen) {
  std::map<std::tuple<int, int, bool>, std::vector<double>> ends;
  for (const auto& sample : samples) {
    if ((sample.position == kAllNics) == together) {
      ends[{sample.sender, sample.position, true}].push_back(sample.log);
      ends[{sample.receiver, sample.position, false}].push_back(sample.log);
    }
  }
  std::vector<std::pair<std::pair<int, int>, double>> scores;
  std::vector<double> sizes;
  for (auto& [end, values] : ends) {
    if (values.size() >= kFewestPartners) {
      scores.push_back({{std::get<0>(end), std::get<1>(end)}, median(std::move(values))});
      sizes.push_back(std::abs(scores.back().second));
      seen.insert(std::get<0>(end));
    }
  }
  if (scores.empty()) {
    return;
  }
  const double limit = std::max(-std::log(1 - kLeastLow), kDeviations * median(sizes));
  for (const auto& [end, score] : scores) {
    if (score < -limit) {
      const auto [entry, fresh] = low.try_emplace(end, score);
      entry->second = std::min(entry->second, score);
    }
  }
}

std::vector<NodePair> low_pairs_of(const std::vector<Sample>& samples, std::set<int> taken) {
  std::map<NodePair, double> lowest;
  for (const auto& sample : samples) {
    if (sample.position != kAllNics && sample.log < std::log(kLowPair)) {
      const auto [entry, fresh] = lowest.try_emplace(sample.pair, sample.log);
      entry->second = std::min(entry->second, sample.log);
    }
  }
  std::vector<std::pair<double, NodePair>> order;
  for (const auto& [pair, log] : lowest) {
    order.emplace_back(log, pair);
  }
  std::sort(order.begin(), order.end());
  std::vector<NodePair> pairs;
  for (const auto& [log, pair] : order) {
    if (taken.count(pair.first) == 0 && taken.count(pair.second) == 0) {
      taken.insert({pair.first, pair.second});
      pairs.push_back(pair);
    }
  }
  return pairs;
}

/// How near another node is, for the choice of a partner.
int nearness(const Node& one, const Node& other) {
  const auto word = distance_of(one, other);
  return word == distance::same_switch ? 0 : word == distance::same_group ? 1 : 2;
}

}  // namespace

Chosen choose(const std::vector<Node>& nodes, const std::vector<MeasuredRound>& rounds) {
  auto samples = samples_of(nodes, rounds);
  relate(samples);
  std::map<std::pair<int, int>, double> low;
  std::set<int> seen;
  add_low(samples, false, low, seen);
  add_low(samples, true, low, seen);

  std::vector<std::pair<double, std::pair<int, int>>> order;
  for (const auto& [end, score] : low) {
    order.emplace_back(score, end);
    seen.erase(end.first);
  }
  std::sort(order.begin(), order.end());
  Chosen chosen;
  std::set<int> suspected;
  const auto most = std::max<std::size_t>(1, nodes.size() / kMostNodes);
  for (const auto& [score, end] : order) {
    if (suspected.count(end.first) > 0 || suspected.size() < most) {
      suspected.insert(end.first);
      chosen.suspects.push_back({end.first, end.second});
    }
  }
  chosen.proven = std::move(seen);
  chosen.low_pairs = low_pairs_of(samples, suspected);
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
      int nearest = 3;
      for (auto other = free.begin(); other != free.end(); ++other) {
        const int far = nearness(nodes[static_cast<std::size_t>(node)],
                                 nodes[static_cast<std::size_t>(*other)]);
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
  std::vector<NodePair> pairs;
  for (const auto& pair : chosen.low_pairs) {
    if (gone.count(pair.first) == 0 && gone.count(pair.second) == 0) {
      pairs.push_back(pair);
    }
  }
  for (int i = 0; i < kPairsAgain && !pairs.empty(); ++i) {
    rounds.push_back({2, "", pairs});
  }
  return rounds;
}

}  // namespace fabricheck::fabric
