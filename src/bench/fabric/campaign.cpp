#include "fabric/campaign.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/sampling.hpp"
#include "mpi/crossing.hpp"

namespace fabricheck::fabric {
namespace {

using nlohmann::json;

/// A NIC whose messages failed in so many rounds takes part in no other: each would last until the
/// time limit.
constexpr int kMostFailures = 2;

/// A pair that is low each time is measured so many times more: what else uses the network may hit
/// it twice.
constexpr int kPairsAgain = 3;

/// Rounds in which the networks of all nodes are read back: more than one where nodes are lost.
constexpr int kMostProofs = 3;

std::size_t index(int number) { return static_cast<std::size_t>(number); }

/// With five digits, which is more than a rate has: phase 2 follows from what the document has.
double rounded(double value) {
  if (value <= 0) {
    return 0;
  }
  const double scale = std::pow(10.0, 4 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

json column(const std::vector<PairRates>& pairs, std::vector<double> PairRates::* member) {
  json all = json::array();
  for (const auto& pair : pairs) {
    json rates = json::array();
    for (const double rate : pair.*member) {
      rates.push_back(rate > 0 ? json(rate) : json(nullptr));
    }
    all.push_back(std::move(rates));
  }
  return all;
}

std::string count_text(std::size_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

/// The model of a node: how many ranks it has, and the devices of them.
std::string model_text(const std::vector<const Member*>& members) {
  std::string devices;
  for (const auto* member : members) {
    if (!member->device.empty() && devices.find(member->device) == std::string::npos) {
      devices += (devices.empty() ? " on " : ", ") + member->device;
    }
  }
  return count_text(members.size(), "rank") + devices;
}

}  // namespace

Campaign::Campaign(Run& run, Crew& crew, const CampaignOptions& options,
                   const std::vector<Member>& members)
    : run_(run), crew_(crew), options_(options) {
  std::map<int, std::vector<int>> by_leader;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    by_leader[members[rank].leader].push_back(static_cast<int>(rank));
  }
  if (by_leader.size() < 2) {
    throw Failure(Status::unsupported,
                  "fabric needs two nodes, and the launch has one: " + members.front().node);
  }
  std::map<int, std::string> models;
  std::map<std::string, int> numbers;
  for (const auto& [leader, ranks] : by_leader) {
    std::vector<const Member*> members_of_leader;
    for (const int rank : ranks) {
      members_of_leader.push_back(&members[index(rank)]);
    }
    models[leader] = model_text(members_of_leader);
    ++numbers[models[leader]];
  }
  const auto usual =
      std::max_element(numbers.begin(), numbers.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  run_.document().set("rounds", {{"bytes", options_.amounts.bytes},
                                 {"messages", options_.amounts.messages},
                                 {"repetitions", options_.amounts.repetitions},
                                 {"memory", options_.memory},
                                 {"planned", 0},
                                 {"bytes_checked", 0},
                                 {"nodes", json::array()},
                                 {"rounds", json::array()},
                                 {"suspects", json::array()},
                                 {"low_pairs", json::array()},
                                 {"left_out", json::array()},
                                 {"failed", json::array()},
                                 {"wrong", json::array()}});
  for (const auto& [leader, ranks] : by_leader) {
    const auto& name = members[index(leader)].node;
    if (models[leader] != usual) {
      idle_leaders_.push_back(leader);
      leave_out(name, nullptr,
                name + " has " + models[leader] + ", where most nodes have " + usual +
                    ": it is left out.");
      continue;
    }
    nodes_.push_back({name, ranks, std::vector<std::string>(ranks.size()),
                      std::vector<std::optional<NetworkPlace>>(ranks.size())});
  }
}

std::vector<int> Campaign::leaders() const {
  auto idle = idle_leaders_;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (gone_.count(static_cast<int>(node)) == 0) {
      idle.push_back(nodes_[node].ranks.front());
    }
  }
  return idle;
}

void Campaign::leave_out(const std::string& node, const json& round, const std::string& reason) {
  run_.document().change("rounds", [&](json& rounds) {
    rounds["left_out"].push_back({{"node", node}, {"round", round}, {"reason", reason}});
  });
  run_.note(reason);
}

void Campaign::lose(int node, const std::string& reason) {
  if (!gone_.insert(node).second) {
    return;
  }
  const auto sentence =
      nodes_[index(node)].name + ": " + reason + ": it is left out from there on.";
  leave_out(nodes_[index(node)].name, measured_.empty() ? json(nullptr) : json(measured_.size()),
            sentence);
  trouble_ = trouble_.empty() ? sentence : trouble_;
}

std::string Campaign::nic_name(int node, std::size_t position) const {
  const auto& measured = nodes_[index(node)];
  return measured.name + ":" +
         (measured.nics[position].empty() ? "rank" + std::to_string(measured.ranks[position])
                                          : measured.nics[position]);
}

std::vector<int> Campaign::first_ranks() const {
  std::vector<int> leaders;
  for (const auto& node : nodes_) {
    leaders.push_back(node.ranks.front());
  }
  return leaders;
}

std::vector<json> Campaign::order(const std::string& what, const std::vector<NodePair>& pairs,
                                  Command::Kind kind) {
  std::vector<Command> commands(nodes_.size());
  for (const auto& [from, to] : pairs) {
    for (const auto& [node, peer] : {std::pair(from, to), std::pair(to, from)}) {
      auto& command = commands[index(node)];
      command.kind = kind;
      command.first = node == from;
      command.peers = nodes_[index(peer)].ranks;
      for (std::size_t k = 0; k < command.peers.size(); ++k) {
        for (const int end : {node, peer}) {
          const auto failed = failures_.find({end, k});
          if (failed != failures_.end() && failed->second >= kMostFailures) {
            command.peers[k] = -1;
          }
        }
      }
    }
  }
  auto replies = crew_.order(what, first_ranks(), commands);
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (commands[node].kind == Command::Kind::none) {
      continue;
    }
    const auto limit = json(options_.round_limit).dump() + " s in " + what;
    if (replies[node].is_null()) {
      lose(static_cast<int>(node), "it did not answer within " + limit);
      continue;
    }
    const auto& ranks = replies[node]["ranks"];
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      if (ranks[k].is_null()) {
        lose(static_cast<int>(node),
             "rank " + std::to_string(nodes_[node].ranks[k]) + " did not answer within " + limit);
      }
    }
  }
  return replies;
}

void Campaign::keep_counts(const std::vector<json>& replies) {
  json all = json::array();
  for (const auto& reply : replies) {
    for (const auto& nic :
         reply.is_null() || !reply.contains("nics") ? json::array() : reply["nics"]) {
      const auto key = nic["node"].get<std::string>() + "|" + nic["name"].get<std::string>();
      const auto before = counts_.try_emplace(key, nic).first->second;
      auto member = nic;
      for (auto& [counter, values] : member["errors"].items()) {
        if (before["errors"].contains(counter)) {
          values = {before["errors"][counter][0], values[1]};
        }
      }
      all.push_back(member);
    }
  }
  if (!all.empty()) {
    run_.document().set("nics", all);
  }
}

void Campaign::prove() {
  const auto count = static_cast<int>(nodes_.size());
  std::vector<json> networks(nodes_.size());
  std::vector<json> all_replies;
  for (int attempt = 0; attempt < kMostProofs; ++attempt) {
    std::vector<int> without;
    for (int node = 0; node < count; ++node) {
      if (networks[index(node)].is_null() && gone_.count(node) == 0) {
        without.push_back(node);
      }
    }
    if (without.empty()) {
      break;
    }
    if (without.size() % 2 == 1) {  // one that has met another already
      for (int node = 0; node < count; ++node) {
        if (gone_.count(node) == 0 &&
            std::find(without.begin(), without.end(), node) == without.end()) {
          without.push_back(node);
          break;
        }
      }
    }
    std::vector<NodePair> pairs;
    for (std::size_t i = 0; i + 1 < without.size(); i += 2) {
      pairs.push_back(std::minmax(without[i], without[i + 1]));
    }
    auto replies = order("the first messages", pairs, Command::Kind::prove);
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!replies[node].is_null() && gone_.count(static_cast<int>(node)) == 0 &&
          networks[node].is_null()) {
        const auto& ranks = replies[node]["ranks"];
        const bool failed = std::any_of(ranks.begin(), ranks.end(),
                                        [](const json& one) { return one.contains("failed"); });
        if (!failed || attempt + 1 == kMostProofs) {
          networks[node] = ranks;
        }
      }
    }
    all_replies.insert(all_replies.end(), replies.begin(), replies.end());
  }
  keep_counts(all_replies);
  auto ranks = run_.document().content()["ranks"];
  std::vector<std::string> unknown;
  json members = json::array();
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    auto& node_ = nodes_[node];
    json nics = json::array();
    for (std::size_t k = 0; k < node_.ranks.size(); ++k) {
      const auto network = networks[node].is_null() ? json(nullptr) : networks[node][k]["network"];
      if (!network.is_null()) {
        ranks[index(node_.ranks[k])]["network"] = network;
        node_.places[k] = mpi::network_place(network);
        if (!network["nics"].empty()) {
          node_.nics[k] = network["nics"][0]["name"];
        }
      }
      if (gone_.count(static_cast<int>(node)) == 0 &&
          (network.is_null() || network["transport"].is_null() || network["provider"].is_null())) {
        unknown.push_back("rank " + std::to_string(node_.ranks[k]) + " on " + node_.name);
      }
    }
    // Where several of its ranks use one NIC, or one name, each still is a place of its own.
    for (std::size_t k = 0; k < node_.ranks.size(); ++k) {
      if (std::count(node_.nics.begin(), node_.nics.end(), node_.nics[k]) > 1) {
        node_.nics[k] =
            node_.nics[k].empty() ? "" : node_.nics[k] + "/" + std::to_string(node_.ranks[k]);
      }
      const auto& place = node_.places[k];
      const json where =
          place ? json{{"group", place->group},
                       {"switch", place->network_switch},
                       {"port", place->port.empty() ? json(nullptr) : json(place->port)}}
                : json(nullptr);
      nics.push_back({{"name", node_.nics[k].empty() ? json(nullptr) : json(node_.nics[k])},
                      {"place", where}});
    }
    members.push_back({{"node", node_.name}, {"ranks", node_.ranks}, {"nics", nics}});
  }
  run_.document().set("ranks", ranks);
  run_.document().change("rounds", [&members](json& rounds) { rounds["nodes"] = members; });
  if (!unknown.empty()) {
    run_.note(
        "what the messages of " + unknown.front() +
        (unknown.size() > 1 ? " and " + std::to_string(unknown.size() - 1) + " more ranks" : "") +
        " leave their node by cannot be told (transport or provider): no rate of them proves "
        "anything about a NIC");
  }
}

void Campaign::take_failures(const NodePair& pair, std::size_t position, const json& first,
                             const json& second) {
  const int first_node = pair.first;
  const int second_node = pair.second;
  if (gone_.count(first_node) > 0 || gone_.count(second_node) > 0) {
    return;
  }
  std::string reason;
  for (const auto* side : {&first, &second}) {
    if (side->contains("failed") && reason.empty()) {
      reason = (*side)["failed"].get<std::string>();
    }
  }
  if (reason.empty()) {
    return;
  }
  const auto sentence = "Messages between " + nic_name(first_node, position) + " and " +
                        nic_name(second_node, position) + " failed: " + reason + ".";
  run_.document().change("rounds", [&](json& rounds) {
    rounds["failed"].push_back({{"round", measured_.size()},
                                {"nodes", {first_node, second_node}},
                                {"nic", position},
                                {"reason", sentence}});
  });
  trouble_ = trouble_.empty() ? sentence : trouble_;
  for (const int node : {first_node, second_node}) {
    if (++failures_[{node, position}] == kMostFailures) {
      run_.note(nic_name(node, position) + " failed in " + std::to_string(kMostFailures) +
                " rounds and takes part in no other.");
    }
  }
}

void Campaign::take_wrong(int from, int to, std::size_t position, const json& wrong) {
  json entry = wrong;
  entry["round"] = measured_.size();
  entry["from"] = from;
  entry["to"] = to;
  entry["nic"] = position;
  run_.document().change("rounds", [&entry](json& rounds) { rounds["wrong"].push_back(entry); });
  run_.worsen(Status::wrong_data, "messages from " + nic_name(from, position) + " to " +
                                      nic_name(to, position) + ": " +
                                      std::to_string(wrong["errors"].get<std::uint64_t>()) +
                                      " bytes are wrong, the first at byte " +
                                      std::to_string(wrong["offset_bytes"].get<std::uint64_t>()) +
                                      ": expected " + wrong["expected"].get<std::string>() +
                                      ", found " + wrong["found"].get<std::string>());
}

PairRates Campaign::take(const NodePair& pair, const json& first, const json& second) {
  const auto positions = nodes_[index(pair.first)].ranks.size();
  PairRates rates{pair, {}, {}, {}, {}, {}, {}};
  std::uint64_t checked = 0;
  for (std::size_t k = 0; k < positions; ++k) {
    const auto side = [k](const json& reply) {
      return reply.is_null() || reply["ranks"][k].is_null() ? json::object() : reply["ranks"][k];
    };
    const auto from_first = side(first);
    const auto from_second = side(second);
    take_failures(pair, k, from_first, from_second);
    rates.out.push_back(rounded(from_first.value("out", 0.0)));
    rates.back.push_back(rounded(from_second.value("back", 0.0)));
    rates.together_out.push_back(rounded(from_first.value("together_out", 0.0)));
    rates.together_back.push_back(rounded(from_second.value("together_back", 0.0)));
    rates.both.push_back(rounded(from_first.value("both", 0.0)));
    rates.latency.push_back(rounded(from_first.value("latency", 0.0)));
    for (const auto* reply : {&from_first, &from_second}) {
      checked += reply->value("checked", std::uint64_t{0});
    }
    if (from_first.contains("wrong")) {
      take_wrong(pair.second, pair.first, k, from_first["wrong"]);
    }
    if (from_second.contains("wrong")) {
      take_wrong(pair.first, pair.second, k, from_second["wrong"]);
    }
  }
  run_.document().change("rounds", [checked](json& rounds) {
    rounds["bytes_checked"] = rounds["bytes_checked"].get<std::uint64_t>() + checked;
  });
  return rates;
}

void Campaign::write(const MeasuredRound& round) {
  json pairs = json::array();
  for (const auto& rates : round.pairs) {
    pairs.push_back({rates.pair.first, rates.pair.second});
  }
  json entry = {{"phase", round.phase},
                {"distance", round.distance.empty() ? json(nullptr) : json(round.distance)},
                {"seconds", rounded(round.seconds)},
                {"pairs", pairs},
                {"out", column(round.pairs, &PairRates::out)},
                {"back", column(round.pairs, &PairRates::back)},
                {"together_out", column(round.pairs, &PairRates::together_out)},
                {"together_back", column(round.pairs, &PairRates::together_back)},
                {"both", column(round.pairs, &PairRates::both)},
                {"latency", column(round.pairs, &PairRates::latency)}};
  run_.document().change("rounds",
                         [&entry](json& rounds) { rounds["rounds"].push_back(std::move(entry)); });
}

void Campaign::do_round(const Round& round, const std::string& what) {
  std::vector<NodePair> pairs;
  for (const auto& pair : round.pairs) {
    if (gone_.count(pair.first) == 0 && gone_.count(pair.second) == 0) {
      pairs.push_back(pair);
    }
  }
  run_.begin(what);
  const double start = wall_seconds();
  const auto replies = order(what, pairs, Command::Kind::round);
  MeasuredRound measured{round.phase, round.distance, wall_seconds() - start, {}};
  for (const auto& pair : pairs) {
    measured.pairs.push_back(take(pair, replies[index(pair.first)], replies[index(pair.second)]));
  }
  write(measured);
  measured_.push_back(std::move(measured));
}

void Campaign::measure() {
  run_.begin("the first messages");
  prove();
  const auto plan = plan_rounds(nodes_, options_.all_to, options_.rounds);
  run_.document().change("rounds", [&plan](json& rounds) { rounds["planned"] = plan.size(); });
  run_.plan(plan.size() + 1);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    do_round(plan[i], "round " + std::to_string(i + 1) + " of " + std::to_string(plan.size()));
  }
  const auto chosen = choose(nodes_, measured_);
  json suspects = json::array();
  for (const auto& suspect : chosen.suspects) {
    suspects.push_back({{"node", suspect.node},
                        {"nic", suspect.nic == kAllNics ? json(nullptr) : json(suspect.nic)}});
  }
  json low_pairs = json::array();
  for (const auto& pair : chosen.low_pairs) {
    low_pairs.push_back({pair.first, pair.second});
  }
  run_.document().change("rounds", [&](json& rounds) {
    rounds["suspects"] = suspects;
    rounds["low_pairs"] = low_pairs;
  });
  const auto again = plan_again(nodes_, chosen, options_.again, gone_);
  auto planned = plan.size() + 1 + again.size();
  run_.plan(planned);
  for (std::size_t i = 0; i < again.size(); ++i) {
    do_round(again[i], "round " + std::to_string(i + 1) + " of " + std::to_string(again.size()) +
                           " with suspects");
  }
  auto low = chosen.low_pairs;
  for (int time = 0; time < kPairsAgain && !low.empty(); ++time) {
    const auto rounds = plan_pairs(low, gone_);
    planned += rounds.size();
    run_.plan(planned);
    for (const auto& round : rounds) {
      do_round(round, "a round of pairs that were low");
    }
    low = still_low(nodes_, measured_, rounds.size());
  }
  std::vector<Command> commands(nodes_.size());
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (gone_.count(static_cast<int>(node)) == 0) {
      commands[node].kind = Command::Kind::count;
    }
  }
  keep_counts(crew_.order("the last counters", first_ranks(), commands));
  if (!trouble_.empty()) {
    throw Failure(Status::software, trouble_);
  }
}

}  // namespace fabricheck::fabric
