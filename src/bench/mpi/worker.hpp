// The part of one rank in a measurement: its arrays, its messages, its clock.
#pragma once

#include <mpi.h>

#include <map>
#include <utility>
#include <vector>

#include "harness/fault.hpp"
#include "mpi/arrays.hpp"
#include "mpi/contents.hpp"
#include "mpi/messages.hpp"
#include "mpi/plan.hpp"
#include "ranks/mpi_call.hpp"

namespace fabricheck::mpi {

/// The datatype of MPI.
MPI_Datatype mpi_type(DataType type);

/// The work of a rank in the jobs of a launch. Every rank runs the same jobs in the same order.
class Worker {
 public:
  /// `world` must return errors. `accessor` null: buffers of the host. `armed`: a crash of MPI
  /// counts as missing device support.
  Worker(MPI_Comm world, Accessor accessor, int window, bool armed);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// Allocates for all of the jobs at once, so that arrays stay where they are.
  void provide(const std::vector<MpiJob>& jobs);

  /// Call this before the first batch of a job of this rank: fills the data that the rank gives.
  /// Collective among the members.
  void prepare(const MpiJob& job);

  /// The number of messages in one unit of a batch.
  [[nodiscard]] int messages_of(const MpiJob& job) const;

  /// Poisons, starts together with the other members, runs `batch` units. Returns this rank's
  /// seconds: for a pair's source from its first message to the last acknowledgement, for a latency
  /// half of the round trips, for a collective those of its calls.
  double run(const MpiJob& job, int batch);

  /// Of a latency: sends `count` messages there and back, each timed by itself. Returns the seconds
  /// that 99 % of them do not exceed, half of the way there and back.
  double single_messages(const MpiJob& job, int count);

  /// Applies faults to the destination and compares it; errors count elements.
  Verification verify(const MpiJob& job, const std::vector<Fault>& faults);
  /// Whether a fault was injected: a byte may lie outside every destination.
  [[nodiscard]] bool made_fault() const { return made_fault_; }

 private:
  struct Arrays {
    MessageArray source, destination;
  };

  [[nodiscard]] Arrays& arrays_of(const MpiJob& job);
  [[nodiscard]] MPI_Comm comm_of(const MpiJob& job);
  double messages(const MpiJob& job, int batch);
  [[nodiscard]] Exchange exchange_of(const MpiJob& job, const RankPair& pair);
  double ping_pong(const MpiJob& job, const RankPair& pair, int batch);
  double calls(const MpiJob& job, int batch);
  void call(const MpiJob& job, MPI_Comm comm);
  void exchange(const MpiJob& job, MPI_Comm comm);

  MPI_Comm world_;
  Accessor accessor_;
  int window_;  // 0: as window_for() says
  bool armed_;
  bool made_fault_ = false;
  int rank_ = 0;
  std::map<bool, Arrays> arrays_;  // by whether they are a slice of a larger one
  std::map<std::vector<int>, MPI_Comm> comms_;
  std::vector<MPI_Request> requests_;
};

}  // namespace fabricheck::mpi
