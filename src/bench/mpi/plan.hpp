// The measurements of mpi: pairs of ranks, collectives on the first ranks, sizes and types, in
// order.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "mpi/values.hpp"

namespace fabricheck::mpi {

/// A message from one rank to another.
struct RankPair {
  int from = 0;
  int to = 0;
};

inline bool operator==(const RankPair& a, const RankPair& b) {
  return a.from == b.from && a.to == b.to;
}

enum class MpiOperation {
  latency,         ///< one message there and one back; half of that
  bandwidth,       ///< windows of messages one way, each window acknowledged
  bandwidth_both,  ///< the same both ways at once
  exchange,        ///< each rank sends a message of its own to each other one, all at once
  bcast,
  allgather,
  reduce,
  allreduce,
  reduce_scatter,
};

/// The name in the result document.
const char* operation_name(MpiOperation operation);
/// Whether it is between two ranks; every other operation is of all ranks of a communicator.
bool is_between_pairs(MpiOperation operation);
/// Whether ranks' values are summed.
bool is_reduction(MpiOperation operation);

/// Operations of comma-separated lists: of pairs, and of collectives, where "reductions" stands for
/// three of them; "none" is an empty list. Throw Failure(usage) for an unknown or repeated name.
std::vector<MpiOperation> parse_pair_operations(const std::string& text);
std::vector<MpiOperation> parse_collectives(const std::string& text);

/// Ordered pairs of a launch of `ranks`: "all", "none", or "0-1,1-0". Throws Failure(usage) for any
/// other text or a repeated pair, and Failure(unsupported) for a rank that does not exist.
std::vector<RankPair> parse_rank_pairs(const std::string& text, int ranks);

/// The rounds of a tournament in which each of `players` meets each other one: one stays, the
/// others rotate; with an odd number, one rests in each round.
std::vector<std::vector<RankPair>> tournament(int players);

/// Pairs that work at the same time: no rank is in two of them. "rounds" makes sets of `pairs` like
/// the rounds of a tournament, each ordered pair in one of them; "none" makes none; "0-1,2-3" is
/// one set. A set of fewer than two pairs is left out. Throws as parse_rank_pairs does.
std::vector<std::vector<RankPair>> parse_together(const std::string& text,
                                                  const std::vector<RankPair>& pairs, int ranks);

/// The ordered pairs of ranks on different nodes that have the same number on their nodes: the
/// ranks beside the same NIC. `nodes` has the node of each rank. Throws Failure(unsupported) for
/// one node, or for nodes with different numbers of ranks.
std::vector<RankPair> counterparts(const std::vector<std::string>& nodes);

/// For each ordered pair of nodes the set of its counterparts, which work at the same time. A set
/// of fewer than two pairs is left out. Throws as counterparts does.
std::vector<std::vector<RankPair>> counterparts_at_once(const std::vector<std::string>& nodes);

/// The numbers of ranks of collectives: "each" number from 2 on, "all" of them, or "2,4". Throws as
/// parse_rank_pairs does.
std::vector<int> parse_rank_counts(const std::string& text, int ranks);

/// Numbers of elements of a comma-separated list. Throws Failure(usage).
std::vector<std::uint64_t> parse_counts(const std::string& text);

/// "0 to 7", or "2".
std::string rank_range(int first, int last);

/// One measurement.
struct MpiJob {
  MpiOperation operation = MpiOperation::bandwidth;
  std::vector<RankPair> pairs;  ///< at the same time; empty for what is no operation of pairs
  int ranks = 0;                ///< otherwise: ranks 0 to ranks - 1
  DataType type = DataType::byte;
  std::uint64_t count = 0;  ///< elements of a message; of reduce_scatter all that a rank gives
  bool timed = true;        ///< otherwise called once, to be verified: E12

  [[nodiscard]] const char* experiment() const;
  [[nodiscard]] std::uint64_t bytes() const { return count * type_bytes(type); }
  /// The ranks that take part, in the order of the result document.
  [[nodiscard]] std::vector<int> members() const;
  [[nodiscard]] bool has(int rank) const;
  /// "allreduce of 1000 B of float among ranks 0 to 7", "bandwidth of 1 MiB of byte from rank 0 to
  /// 1, 2 to 3".
  [[nodiscard]] std::string text() const;
};

/// The requested measurements.
struct MpiRequest {
  int ranks = 2;  ///< of the launch
  std::vector<MpiOperation> pair_operations;
  std::vector<RankPair> pairs;
  std::vector<std::vector<RankPair>> together;
  std::vector<std::uint64_t> sizes;  ///< bytes of messages of bandwidths
  std::uint64_t latency_bytes = 16;
  std::vector<MpiOperation> collectives;
  std::vector<int> rank_counts;
  std::vector<std::uint64_t> collective_sizes;  ///< bytes
  DataType type = DataType::float32;            ///< of timed collectives
  std::vector<DataType> types;                  ///< of E12
  std::vector<std::uint64_t> counts;            ///< of E12, elements
  std::set<MpiOperation> without;               ///< what MPI is known not to do
  bool verify_only = false;                     ///< E12 alone
};

/// All jobs: pairs, then collectives, and reductions last, because there an MPI without device
/// support was seen to crash. For every type and count, all ranks verify the messages of every two
/// of them, if pairs are requested, and the collectives on the largest requested number of ranks.
/// Bytes are not reduced. Throws Failure(usage) when a size is no multiple of the element's, or
/// more ranks are summed than values allow.
std::vector<MpiJob> plan_mpi(const MpiRequest& request);

/// The number of messages of a window, so that at most 16 MiB are under way: at least 4 and at most
/// 64.
int window_for(std::uint64_t bytes);

}  // namespace fabricheck::mpi
