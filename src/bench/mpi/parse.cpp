// Parsing of the options of mpi.
#include <algorithm>
#include <utility>

#include "harness/sizes.hpp"
#include "harness/status.hpp"
#include "mpi/plan.hpp"

namespace fabricheck::mpi {
namespace {

using Names = std::vector<std::pair<MpiOperation, const char*>>;

const Names& pair_names() {
  static const Names names{{MpiOperation::latency, operation::latency},
                           {MpiOperation::bandwidth, operation::bandwidth},
                           {MpiOperation::bandwidth_both, operation::bandwidth_both}};
  return names;
}

const Names& collective_names() {
  static const Names names{{MpiOperation::reduce, operation::reduce},
                           {MpiOperation::bcast, operation::bcast},
                           {MpiOperation::allreduce, operation::allreduce},
                           {MpiOperation::reduce_scatter, operation::reduce_scatter},
                           {MpiOperation::allgather, operation::allgather}};
  return names;
}

MpiOperation find_name(const Names& names, const std::string& name, const std::string& what) {
  std::string known;
  for (const auto& [operation, word] : names) {
    if (name == word) {
      return operation;
    }
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  throw Failure(Status::usage, "'" + name + "' is not " + what + ": choose from " + known);
}

/// Adds a new item; throws Failure(usage) for one that occurs twice.
void add_once(std::vector<MpiOperation>& operations, MpiOperation operation,
              const std::string& text) {
  if (std::find(operations.begin(), operations.end(), operation) != operations.end()) {
    throw Failure(Status::usage, "'" + text + "' names " + operation_name(operation) + " twice");
  }
  operations.push_back(operation);
}

[[noreturn]] void no_such_rank(int rank, const std::string& where, int ranks) {
  throw Failure(Status::unsupported, "rank " + std::to_string(rank) + where +
                                         " does not exist: the launch has " +
                                         std::to_string(ranks) + ", " + rank_range(0, ranks - 1));
}

RankPair parse_rank_pair(const std::string& text, int ranks) {
  const auto dash = text.find('-');
  if (dash == std::string::npos) {
    throw Failure(Status::usage, "'" + text + "' is not a pair: write two ranks as in 0-1");
  }
  const RankPair pair{parse_index(text.substr(0, dash), "the rank"),
                      parse_index(text.substr(dash + 1), "the rank")};
  for (const int rank : {pair.from, pair.to}) {
    if (rank >= ranks) {
      no_such_rank(rank, " of the pair " + text, ranks);
    }
  }
  if (pair.from == pair.to) {
    throw Failure(Status::usage, "the pair " + text + " is one rank twice");
  }
  return pair;
}

/// Throws Failure(usage) when a rank would be in two pairs at the same time.
void check_disjoint(const std::vector<RankPair>& set, const std::string& text) {
  std::set<int> seen;
  for (const auto& pair : set) {
    if (!seen.insert(pair.from).second || !seen.insert(pair.to).second) {
      throw Failure(Status::usage, "in the set " + text + " a rank is in two pairs, the second " +
                                       std::to_string(pair.from) + "-" + std::to_string(pair.to));
    }
  }
}

/// The ranks of each node, nodes in the order of their first ranks. Throws Failure(unsupported).
std::vector<std::vector<int>> ranks_by_node(const std::vector<std::string>& nodes) {
  std::vector<std::string> names;
  std::vector<std::vector<int>> ranks;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    const auto known = std::find(names.begin(), names.end(), nodes[rank]);
    const auto number = static_cast<std::size_t>(known - names.begin());
    if (known == names.end()) {
      names.push_back(nodes[rank]);
      ranks.emplace_back();
    }
    ranks[number].push_back(static_cast<int>(rank));
  }
  if (ranks.size() < 2) {
    throw Failure(Status::unsupported,
                  "counterparts are ranks of two nodes, and the launch has one: " + names.front());
  }
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i].size() != ranks[0].size()) {
      throw Failure(Status::unsupported,
                    "counterparts need as many ranks on each node: " + names[0] + " has " +
                        std::to_string(ranks[0].size()) + ", " + names[i] + " has " +
                        std::to_string(ranks[i].size()));
    }
  }
  return ranks;
}

}  // namespace

const char* operation_name(MpiOperation operation) {
  for (const auto* names : {&pair_names(), &collective_names()}) {
    for (const auto& [known, word] : *names) {
      if (known == operation) {
        return word;
      }
    }
  }
  return operation::exchange;
}

bool is_between_pairs(MpiOperation operation) {
  return operation == MpiOperation::latency || operation == MpiOperation::bandwidth ||
         operation == MpiOperation::bandwidth_both;
}

bool is_reduction(MpiOperation operation) {
  return operation == MpiOperation::reduce || operation == MpiOperation::allreduce ||
         operation == MpiOperation::reduce_scatter;
}

std::vector<MpiOperation> parse_pair_operations(const std::string& text) {
  std::vector<MpiOperation> operations;
  for (const auto& name : split_list(text, "the list of operations")) {
    add_once(operations, find_name(pair_names(), name, "an operation of pairs"), text);
  }
  return operations;
}

std::vector<MpiOperation> parse_collectives(const std::string& text) {
  std::vector<MpiOperation> operations;
  if (text == "none") {
    return operations;
  }
  for (const auto& name : split_list(text, "the list of collectives")) {
    if (name != "reductions") {
      add_once(operations, find_name(collective_names(), name, "a collective"), text);
      continue;
    }
    for (const auto& known : collective_names()) {
      if (is_reduction(known.first)) {
        add_once(operations, known.first, text);
      }
    }
  }
  return operations;
}

std::vector<RankPair> parse_rank_pairs(const std::string& text, int ranks) {
  std::vector<RankPair> pairs;
  if (text == "none") {
    return pairs;
  }
  if (text == "all") {
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        if (from != to) {
          pairs.push_back({from, to});
        }
      }
    }
    return pairs;
  }
  for (const auto& item : split_list(text, "the list of pairs")) {
    const auto pair = parse_rank_pair(item, ranks);
    if (std::find(pairs.begin(), pairs.end(), pair) != pairs.end()) {
      throw Failure(Status::usage, "'" + text + "' names the pair " + item + " twice");
    }
    pairs.push_back(pair);
  }
  return pairs;
}

std::vector<std::vector<RankPair>> tournament(int players) {
  const int seats = players + players % 2;
  std::vector<std::vector<RankPair>> rounds;
  for (int round = 0; round + 1 < seats; ++round) {
    std::vector<RankPair> meetings;
    for (int table = 0; table < seats / 2; ++table) {
      const int first = table == 0 ? seats - 1 : (round + table) % (seats - 1);
      const int second = (round + seats - 1 - table) % (seats - 1);
      const auto [low, high] = std::minmax(first, second);
      if (high < players) {
        meetings.push_back({low, high});
      }
    }
    std::sort(meetings.begin(), meetings.end(),
              [](const RankPair& a, const RankPair& b) { return a.from < b.from; });
    rounds.push_back(std::move(meetings));
  }
  return rounds;
}

std::vector<std::vector<RankPair>> parse_together(const std::string& text,
                                                  const std::vector<RankPair>& pairs, int ranks) {
  std::vector<std::vector<RankPair>> sets;
  if (text != "rounds" && text != "none") {
    sets.push_back(parse_rank_pairs(text, ranks));
    check_disjoint(sets.front(), text);
    return sets;
  }
  const auto asked = [&pairs](const RankPair& pair) {
    return std::find(pairs.begin(), pairs.end(), pair) != pairs.end();
  };
  for (const auto& round : text == "rounds" ? tournament(ranks) : decltype(sets){}) {
    std::vector<RankPair> there;
    std::vector<RankPair> back;
    for (const auto& pair : round) {
      const RankPair reverse{pair.to, pair.from};
      if (asked(pair)) {
        there.push_back(pair);
      }
      if (asked(reverse)) {
        back.push_back(reverse);
      }
    }
    for (auto* set : {&there, &back}) {
      if (set->size() > 1) {
        sets.push_back(std::move(*set));
      }
    }
  }
  return sets;
}

std::vector<RankPair> counterparts(const std::vector<std::string>& nodes) {
  std::vector<RankPair> pairs;
  const auto ranks = ranks_by_node(nodes);
  for (std::size_t number = 0; number < ranks.front().size(); ++number) {
    for (const auto& from : ranks) {
      for (const auto& to : ranks) {
        if (&from != &to) {
          pairs.push_back({from[number], to[number]});
        }
      }
    }
  }
  return pairs;
}

std::vector<std::vector<RankPair>> counterparts_at_once(const std::vector<std::string>& nodes) {
  std::vector<std::vector<RankPair>> sets;
  const auto ranks = ranks_by_node(nodes);
  for (const auto& from : ranks) {
    for (const auto& to : ranks) {
      if (&from == &to || from.size() < 2) {
        continue;
      }
      sets.emplace_back();
      for (std::size_t number = 0; number < from.size(); ++number) {
        sets.back().push_back({from[number], to[number]});
      }
    }
  }
  return sets;
}

std::vector<int> parse_rank_counts(const std::string& text, int ranks) {
  std::vector<int> counts;
  if (text == "all") {
    return {ranks};
  }
  if (text == "each") {
    for (int count = 2; count <= ranks; ++count) {
      counts.push_back(count);
    }
    return counts;
  }
  for (const auto& item : split_list(text, "the list of numbers of ranks")) {
    const int count = parse_index(item, "the number of ranks");
    if (count < 2) {
      throw Failure(Status::usage, "a collective needs two ranks, and '" + text + "' has " + item);
    }
    if (count > ranks) {
      no_such_rank(count - 1, " of a collective on " + item, ranks);
    }
    if (std::find(counts.begin(), counts.end(), count) != counts.end()) {
      throw Failure(Status::usage, "'" + text + "' has " + item + " twice");
    }
    counts.push_back(count);
  }
  return counts;
}

std::vector<std::uint64_t> parse_counts(const std::string& text) {
  std::vector<std::uint64_t> counts;
  for (const auto& item : split_list(text, "the list of counts")) {
    counts.push_back(parse_whole(item, "the number of elements"));
    if (counts.back() == 0 || counts.back() > (1ULL << 30)) {
      throw Failure(Status::usage, "the number of elements '" + item + "' is not 1 to 2^30");
    }
  }
  return counts;
}

std::string rank_range(int first, int last) {
  return std::to_string(first) + (last > first ? " to " + std::to_string(last) : "");
}

}  // namespace fabricheck::mpi
