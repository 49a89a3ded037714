// Rank 0 coordinates a job and the other ranks follow: the length of batches, the number of
// samples, and their collection.
#pragma once

#include <mpi.h>

#include <set>
#include <string>
#include <vector>

#include "harness/fault.hpp"
#include "harness/sampling.hpp"
#include "harness/series.hpp"
#include "mpi/network.hpp"
#include "mpi/plan.hpp"
#include "mpi/worker.hpp"
#include "ranks/mail.hpp"

namespace fabricheck::mpi {

/// The location of each rank's messages, for the document.
struct RankPlace {
  std::string node;                     ///< name of its node
  std::string memory = memory::device;  ///< word of the schema
  int device = -1;                      ///< as the document numbers it; -1: none
  int numa_domain = -1;                 ///< of memory of the host
  std::uint64_t cache_bytes = 0;        ///< last level, of the device or of the host
  std::optional<NetworkPlace> network;  ///< of the NIC of its messages to other nodes
};

class Coordinator {
 public:
  /// Collective. `places` by rank. `single_messages` of a latency are also timed one by one.
  Coordinator(MPI_Comm world, Worker& worker, std::vector<RankPlace> places, int single_messages);

  /// Collective: all ranks measure the same jobs in the same order; a rank that is not in a job
  /// returns at once. Only rank 0 returns series. `faults` are those of the calling rank.
  std::vector<Series> measure(const MpiJob& job, const SamplingRules& rules,
                              const std::vector<Fault>& faults);

 private:
  /// The values that members report to rank 0.
  struct Reply {
    double seconds = 0;
    double start = 0, end = 0;  // by the machine's clock
    std::uint64_t bytes_checked = 0, errors = 0;
    std::uint64_t offset = 0, expected = 0, found = 0;  // the first mismatch, with errors
    NLOHMANN_DEFINE_TYPE_INTRUSIVE(Reply, seconds, start, end, bytes_checked, errors, offset,
                                   expected, found)
  };

  void follow(const MpiJob& job, const std::vector<Fault>& faults);
  std::vector<Series> coordinate(const MpiJob& job, const SamplingRules& rules,
                                 const std::vector<Fault>& faults);
  void send_command(const MpiJob& job, int batch);
  [[nodiscard]] Verification verification_of(const MpiJob& job, int rank, const Reply& reply) const;
  [[nodiscard]] double warm_up_for(const MpiJob& job, const SamplingRules& rules);
  std::vector<Reply> gather_replies(const MpiJob& job, const Reply& of_root);
  Reply execute(const MpiJob& job, int batch, const std::vector<Fault>& faults);
  BatchTimes times(const MpiJob& job, int batch);
  [[nodiscard]] Series describe(const MpiJob& job, const std::vector<int>& ranks) const;
  [[nodiscard]] std::vector<Series> describe_parts(const MpiJob& job) const;

  Mail mail_;
  Worker& worker_;
  std::vector<RankPlace> places_;
  int single_messages_;
  std::set<int> warmed_;
  int rank_ = 0;
};

}  // namespace fabricheck::mpi
