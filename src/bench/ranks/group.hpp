// Some ranks of a launch that do something together, and the samples of it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "harness/sampling.hpp"
#include "ranks/team.hpp"

namespace fabricheck {

/// Ranks with a communicator of their own, in which member i is ranks()[i].
class Group {
 public:
  /// To be made by its members alone, all of them; `tag` tells groups apart that overlap and are
  /// made at the same time. Throws Failure(runtime_error) where this rank is none of them.
  Group(const Team& team, std::vector<int> ranks, int tag = 0);
  Group(Group&&) noexcept;
  Group& operator=(Group&&) = delete;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  [[nodiscard]] const std::vector<int>& ranks() const { return ranks_; }
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  /// This rank's number in the group.
  [[nodiscard]] int member() const { return member_; }
  /// A pointer to its MPI_Comm (mpi_call.hpp: `comm_of`); valid as long as the group.
  [[nodiscard]] const void* communicator() const { return communicator_.get(); }

 private:
  struct Communicator;
  std::vector<int> ranks_;
  int member_ = 0;
  std::unique_ptr<Communicator> communicator_;
};

/// Runs `batch` operations as this member and returns its own seconds.
using MemberBatch = std::function<double(int batch)>;

/// What of the members' times is the time of a sample: their mean (as OSU reports collectives), the
/// first member's (the sender's), or the slowest's.
enum class TimeOf { mean, first, slowest };

struct GroupSamples {
  int batch = 1;
  /// Of each sample the time of each member, in seconds; the same on every member.
  std::vector<std::vector<double>> members;
  /// The time of each sample.
  std::vector<double> seconds;
};

/// Samples by the rules, those of a program. Each batch starts after a barrier of the group. The
/// first member decides on the length of a batch and the number of samples. To be called by all
/// members.
GroupSamples sample(const Group& group, const MemberBatch& run, const SamplingRules& rules,
                    TimeOf of);

/// That time of one sample.
double time_of(const std::vector<double>& members, TimeOf of);

}  // namespace fabricheck
