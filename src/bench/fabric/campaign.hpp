// The whole measurement, as rank 0 leads it: which nodes take part, their networks, the rounds of
// both phases, and what becomes of them in the document.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fabric/choosing.hpp"
#include "fabric/crew.hpp"
#include "fabric/plan.hpp"
#include "harness/run.hpp"

namespace fabricheck::fabric {

struct CampaignOptions {
  Amounts amounts;
  int all_to = 128;
  int rounds = 16;
  int again = 8;
  double round_limit = 30;
  std::string memory;  ///< word of the schema
};

/// A rank, as rank 0 is told before the first round.
struct Member {
  std::string node;
  int leader = 0;      ///< the first rank of its node
  std::string device;  ///< what it is; empty without one
};

class Campaign {
 public:
  /// Throws Failure(unsupported) for fewer than two nodes.
  Campaign(Run& run, Crew& crew, const CampaignOptions& options,
           const std::vector<Member>& members);

  /// Throws Failure(software) at the end when nodes were lost or messages failed.
  void measure();

  /// The first ranks of the nodes that answer, and whether one does not.
  [[nodiscard]] std::vector<int> leaders() const;
  [[nodiscard]] bool has_lost() const { return !gone_.empty(); }

 private:
  void leave_out(const std::string& node, const nlohmann::json& round, const std::string& reason);
  void lose(int node, const std::string& reason);
  void prove();
  void keep_counts(const std::vector<nlohmann::json>& replies);
  void do_round(const Round& round, const std::string& what);
  [[nodiscard]] std::vector<nlohmann::json> order(const std::string& what,
                                                  const std::vector<NodePair>& pairs,
                                                  Command::Kind kind);
  PairRates take(const NodePair& pair, const nlohmann::json& first, const nlohmann::json& second);
  void take_failures(const NodePair& pair, std::size_t position, const nlohmann::json& first,
                     const nlohmann::json& second);
  void take_wrong(int from, int to, std::size_t position, const nlohmann::json& wrong);
  void write(const MeasuredRound& round);
  [[nodiscard]] std::vector<int> first_ranks() const;
  [[nodiscard]] std::string nic_name(int node, std::size_t position) const;

  Run& run_;
  Crew& crew_;
  CampaignOptions options_;
  std::vector<Node> nodes_;
  std::vector<int> idle_leaders_;  // of nodes of another model
  std::set<int> gone_;
  std::map<std::pair<int, std::size_t>, int> failures_;  // of a NIC, by node and position
  std::vector<MeasuredRound> measured_;
  std::map<std::string, nlohmann::json> counts_;  // of a node's NICs, before
  std::string trouble_;
};

}  // namespace fabricheck::fabric
