#include "fabric/crew.hpp"

#include <map>
#include <utility>

#include "harness/document.hpp"
#include "harness/simulation.hpp"
#include "mpi/crossing.hpp"

namespace fabricheck::fabric {
namespace {

using nlohmann::json;

constexpr int kCommand = 1;
// A reply that came too late must not be taken for that of a later command.
constexpr int kSequences = 1000;
constexpr int kReplyOfRank = 2000;
constexpr int kReplyOfNode = 4000;

// Seconds that the first rank of a node waits longer than the ranks, and rank 0 longer than that.
constexpr double kLeaderLater = 1;
constexpr double kRootLater = 2;

}  // namespace

Crew::Crew(RankGroup& group, Mail& mail, Meter& meter, Places places, std::string node,
           double limit)
    : group_(group),
      mail_(mail),
      meter_(meter),
      places_(std::move(places)),
      node_(std::move(node)),
      limit_(limit) {}

std::optional<double> Crew::deadline(double more) const {
  // In a simulation nothing hangs by itself, and real time means nothing.
  return kSimulated ? std::nullopt : std::optional(wall_seconds() + limit_ + more);
}

json Crew::execute(const json& command) {
  json result;
  try {
    group_.begin_alone(command["what"]);
    const auto kind = static_cast<Command::Kind>(command["kind"].get<int>());
    const std::vector<int> peers = command["peers"];
    const int sequence = command["sequence"];
    if (kind == Command::Kind::prove) {
      result = meter_.prove(peers, sequence, node_, places_, mpi::Patience(deadline(0)));
    } else if (kind == Command::Kind::round) {
      result = meter_.round(peers, sequence, command["first"], mpi::Patience(deadline(0)));
    }
  } catch (const Failure& failure) {
    result["failed"] = failure.what();
  }
  return result;
}

json Crew::lead(const json& command) {
  const auto& here = group_.ranks_here();
  const int tag = kReplyOfRank + command["sequence"].get<int>() % kSequences;
  const auto text = dumped(command);
  for (std::size_t i = 1; i < here.size(); ++i) {
    mail_.send(here[i], kCommand, text);
  }
  const auto until = deadline(kLeaderLater);
  json reply = {{"leader", group_.rank()}, {"ranks", json::array()}};
  reply["ranks"].push_back(execute(command));
  for (std::size_t i = 1; i < here.size(); ++i) {
    const auto answer = mail_.receive_until(here[i], tag, until);
    reply["ranks"].push_back(answer ? json::parse(*answer) : json(nullptr));
  }
  const auto kind = static_cast<Command::Kind>(command["kind"].get<int>());
  if (kind == Command::Kind::prove || kind == Command::Kind::count) {
    const auto nics = mpi::counted_nics();
    const auto counts = nic_errors(nics);
    reply["nics"] = mpi::nics_member(node_, nics, counts, counts);
  }
  return reply;
}

void Crew::follow() {
  const int leader = group_.ranks_here().front();
  const bool leads = leader == group_.rank();
  for (;;) {
    const auto command = json::parse(mail_.receive(leads ? 0 : leader, kCommand));
    const int sequence = command["sequence"];
    if (command.contains("lost")) {
      if (command["lost"].get<bool>()) {
        group_.lose_ranks();
      }
      for (const int rank : leads ? group_.ranks_here() : std::vector<int>{}) {
        if (rank != leader) {
          mail_.send(rank, kCommand, dumped(command));
        }
      }
      return;
    }
    if (leads) {
      mail_.send(0, kReplyOfNode + sequence % kSequences, dumped(lead(command)));
    } else {
      mail_.send(leader, kReplyOfRank + sequence % kSequences, dumped(execute(command)));
    }
  }
}

std::vector<json> Crew::order(const std::string& what, const std::vector<int>& leaders,
                              const std::vector<Command>& commands) {
  ++sequence_;
  std::map<int, std::size_t> waiting;  // for the node with that first rank
  json of_root;
  std::size_t own_index = 0;
  for (std::size_t i = 0; i < leaders.size(); ++i) {
    if (commands[i].kind == Command::Kind::none) {
      continue;
    }
    const json command = {{"what", what},
                          {"kind", static_cast<int>(commands[i].kind)},
                          {"sequence", sequence_},
                          {"peers", commands[i].peers},
                          {"first", commands[i].first}};
    if (leaders[i] == 0) {
      of_root = command;
      own_index = i;
    } else {
      mail_.send(leaders[i], kCommand, dumped(command));
      waiting[leaders[i]] = i;
    }
  }
  const auto until = deadline(kRootLater);
  std::vector<json> replies(leaders.size());
  if (!of_root.is_null()) {
    replies[own_index] = lead(of_root);
  }
  while (!waiting.empty()) {
    const auto answer =
        mail_.receive_until(MPI_ANY_SOURCE, kReplyOfNode + sequence_ % kSequences, until);
    if (!answer) {
      break;
    }
    auto reply = json::parse(*answer);
    const auto from = waiting.find(reply["leader"]);
    if (from != waiting.end()) {
      replies[from->second] = std::move(reply);
      waiting.erase(from);
    }
  }
  return replies;
}

void Crew::end(const std::vector<int>& leaders, bool lost) {
  const auto text = dumped({{"lost", lost}, {"sequence", ++sequence_}});
  for (const int leader : leaders) {
    if (leader != 0) {
      mail_.send(leader, kCommand, text);
    }
  }
  for (const int rank : group_.ranks_here()) {
    if (rank != 0) {
      mail_.send(rank, kCommand, text);
    }
  }
  if (lost) {
    group_.lose_ranks();
  }
}

}  // namespace fabricheck::fabric
