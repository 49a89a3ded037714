// The part of one rank in a round: its messages with its counterpart on another node.
#pragma once

#include <mpi.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/fault.hpp"
#include "mpi/arrays.hpp"
#include "mpi/messages.hpp"
#include "mpi/network.hpp"
#include "mpi/values.hpp"

namespace fabricheck::fabric {

/// What is measured of each pair of NICs.
struct Amounts {
  std::uint64_t bytes = 4 << 20;  ///< of a message of a rate
  int messages = 8;               ///< of a rate at once, a sample
  int repetitions = 3;            ///< samples, of which the rate is the median
  std::uint64_t latency_bytes = 8;
  int round_trips = 100;  ///< of a sample of a latency
};

class Meter {
 public:
  /// Collective. `here`: the ranks of this node. `accessor` null: buffers of the host.
  Meter(MPI_Comm world, Accessor accessor, const Amounts& amounts, std::vector<int> here,
        std::vector<Fault> faults);

  /// What the messages of this rank leave the node by: one NIC of a node after the other, all pairs
  /// of nodes at once. `peers`: the counterpart of each rank of this node; -1: none.
  nlohmann::json prove(const std::vector<int>& peers, int sequence, const std::string& node,
                       const Places& places, const mpi::Patience& patience);

  /// A round. `first`: this node's messages are those out. The result has the rates of which this
  /// rank has the clock, the comparison of what it received, and sentences on what failed.
  nlohmann::json round(const std::vector<int>& peers, int sequence, bool first,
                       const mpi::Patience& patience);

 private:
  /// Waits until all ranks of this node have come here.
  void gate(int tag, const mpi::Patience& patience);
  double rate(const mpi::Exchange& exchange, bool both, const mpi::Patience& patience) const;
  double latency(mpi::Exchange exchange, const mpi::Patience& patience) const;
  void apart(const mpi::Exchange& exchange, nlohmann::json& result, const mpi::Patience& patience);
  void check(int peer, nlohmann::json& result);
  void renew();
  [[nodiscard]] Region region(int rank) const;

  MPI_Comm comm_ = MPI_COMM_NULL;
  Accessor accessor_;
  Amounts amounts_;
  std::vector<int> here_;
  std::size_t position_ = 0;
  std::vector<Fault> faults_;
  int rank_ = 0;
  mpi::MessageArray source_, destination_;
  std::vector<mpi::MessageArray> given_up_;  // what a late message may still be written to
};

}  // namespace fabricheck::fabric
