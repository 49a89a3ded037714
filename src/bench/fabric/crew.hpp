// Commands of rank 0 to the nodes, and their replies: through the first rank of each node, and
// never longer than a time limit, so that a node that dies or hangs delays no other.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fabric/meter.hpp"
#include "ranks/mail.hpp"
#include "ranks/rank_group.hpp"

namespace fabricheck::fabric {

/// What a node is told.
struct Command {
  enum class Kind {
    none,   ///< nothing: the node rests
    prove,  ///< what the messages of each of its ranks leave it by
    round,  ///< a round with another node
    count,  ///< the error counters of its NICs
  } kind = Kind::none;
  std::vector<int> peers;  ///< the counterpart of each of its ranks; -1: none
  bool first = false;      ///< its messages are those out
};

class Crew {
 public:
  /// `limit`: seconds of a round.
  Crew(RankGroup& group, Mail& mail, Meter& meter, Places places, std::string node, double limit);

  /// Does what rank 0 commands, up to its end().
  void follow();

  /// Rank 0: commands the nodes with these first ranks. The reply of a node has its `ranks` in
  /// order, null for one that did not answer in time, and may have `nics`; a node that did not
  /// answer at all has null.
  std::vector<nlohmann::json> order(const std::string& what, const std::vector<int>& leaders,
                                    const std::vector<Command>& commands);

  /// Rank 0: lets the nodes go. `lost`: ranks do not answer any more, so MPI cannot be left
  /// together.
  void end(const std::vector<int>& leaders, bool lost);

 private:
  nlohmann::json execute(const nlohmann::json& command);
  nlohmann::json lead(const nlohmann::json& command);
  [[nodiscard]] std::optional<double> deadline(double more) const;

  RankGroup& group_;
  Mail& mail_;
  Meter& meter_;
  Places places_;
  std::string node_;
  double limit_;
  int sequence_ = 0;
};

}  // namespace fabricheck::fabric
