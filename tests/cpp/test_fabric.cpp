// The rounds of fabric: which nodes meet, and what is measured again.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "fabric/choosing.hpp"
#include "fabric/plan.hpp"

using namespace fabricheck;
using namespace fabricheck::fabric;

namespace {

/// Nodes with two NICs on two switches that `of_switch` nodes share, in groups of two such
/// switches.
std::vector<Node> system_of(int count, int of_switch) {
  std::vector<Node> nodes;
  for (int i = 0; i < count; ++i) {
    const auto block = i / of_switch;
    Node node{"n" + std::to_string(i), {2 * i, 2 * i + 1}, {"cxi0", "cxi1"}, {}};
    for (int k = 0; k < 2; ++k) {
      node.places.push_back(
          NetworkPlace{std::to_string(block / 2), std::to_string(2 * (block % 2) + k), ""});
    }
    nodes.push_back(node);
  }
  return nodes;
}

/// What a round would measure: 20 GB/s, less what `loss` has of a NIC or a pair.
MeasuredRound measured(const Round& round, const std::map<std::pair<int, int>, double>& of_nic,
                       const std::map<NodePair, double>& of_pair = {}) {
  MeasuredRound result{round.phase, round.distance, 0, {}};
  for (const auto& pair : round.pairs) {
    PairRates rates{pair, {}, {}, {}, {}, {}, {}};
    for (int k = 0; k < 2; ++k) {
      double rate = 20;
      for (const int node : {pair.first, pair.second}) {
        rate *= of_nic.count({node, k}) > 0 ? of_nic.at({node, k}) : 1;
      }
      rate *= of_pair.count(pair) > 0 ? of_pair.at(pair) : 1;
      rates.out.push_back(rate);
      rates.back.push_back(rate);
    }
    rates.together_out = rates.together_back = {20, 20};
    result.pairs.push_back(rates);
  }
  return result;
}

void check_rounds(const std::vector<Round>& rounds) {
  std::set<NodePair> met;
  for (const auto& round : rounds) {
    std::set<int> busy;
    for (const auto& pair : round.pairs) {
      CHECK(pair.first < pair.second);
      CHECK(busy.insert(pair.first).second);
      CHECK(busy.insert(pair.second).second);
      CHECK(met.insert(pair).second);
    }
  }
}

}  // namespace

TEST_CASE("few nodes meet each other one once, and of an odd number one rests") {
  for (const int count : {2, 5, 8}) {
    const auto rounds = plan_rounds(system_of(count, 4), 128, 16);
    check_rounds(rounds);
    std::size_t pairs = 0;
    for (const auto& round : rounds) {
      CHECK(round.pairs.size() == static_cast<std::size_t>(count / 2));
      pairs += round.pairs.size();
    }
    CHECK(pairs == static_cast<std::size_t>(count * (count - 1) / 2));
  }
}

TEST_CASE("many nodes have some rounds of each distance") {
  const auto nodes = system_of(64, 8);
  const auto rounds = plan_rounds(nodes, 16, 4);
  check_rounds(rounds);
  std::map<std::string, int> count;
  for (const auto& round : rounds) {
    ++count[round.distance];
    CHECK(round.pairs.size() >= 26);  // nearly all nodes
    for (const auto& pair : round.pairs) {
      CHECK(distance_of(nodes[static_cast<std::size_t>(pair.first)],
                        nodes[static_cast<std::size_t>(pair.second)]) == round.distance);
    }
  }
  CHECK(count ==
        std::map<std::string, int>{{"same-switch", 4}, {"same-group", 4}, {"other-group", 4}});
}

TEST_CASE("many nodes without known places have rounds of any distance") {
  auto nodes = system_of(40, 8);
  nodes[3].places[1] = std::nullopt;
  const auto rounds = plan_rounds(nodes, 16, 4);
  check_rounds(rounds);
  CHECK(rounds.size() == 4);
  CHECK(rounds.front().distance.empty());
}

TEST_CASE("a low NIC is a suspect, meets proven nodes again, and a low pair blames no node") {
  const auto nodes = system_of(16, 8);
  const std::map<std::pair<int, int>, double> of_nic{{{5, 1}, 0.95}};
  const std::map<NodePair, double> of_pair{{{2, 9}, 0.7}};
  std::vector<MeasuredRound> rounds;
  for (const auto& round : plan_rounds(nodes, 128, 16)) {
    rounds.push_back(measured(round, of_nic, of_pair));
  }
  const auto chosen = choose(nodes, rounds);
  CHECK(chosen.suspects == std::vector<Suspect>{{5, 1}});
  CHECK(chosen.proven.size() == 15);
  CHECK(chosen.low_pairs == std::vector<NodePair>{{2, 9}});

  const auto again = plan_again(nodes, chosen, 6, {7});
  CHECK(again.size() == 6);
  std::set<int> partners;
  for (const auto& round : again) {
    CHECK(round.phase == 2);
    CHECK(round.pairs.size() == 7);  // of 15 nodes that are there
    for (const auto& pair : round.pairs) {
      CHECK(pair.first != 7);
      CHECK(pair.second != 7);
      if (pair.first == 5 || pair.second == 5) {
        partners.insert(pair.first + pair.second - 5);
      }
    }
  }
  CHECK(partners == std::set<int>{0, 1, 2, 3, 4, 6});  // those at its switches, each once

  rounds.push_back(measured({2, "", chosen.low_pairs}, of_nic, of_pair));
  CHECK(still_low(nodes, rounds, 1) == chosen.low_pairs);
  rounds.push_back(measured({2, "", chosen.low_pairs}, of_nic));
  CHECK(still_low(nodes, rounds, 1).empty());
}

TEST_CASE("pairs are measured in rounds in which no node is twice") {
  const auto rounds = plan_pairs({{0, 1}, {1, 2}, {2, 3}, {4, 5}}, {4});
  check_rounds(rounds);
  REQUIRE(rounds.size() == 2);
  CHECK(rounds[0].pairs == std::vector<NodePair>{{0, 1}, {2, 3}});
  CHECK(rounds[1].pairs == std::vector<NodePair>{{1, 2}});
}
