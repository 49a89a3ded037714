#include "ranks/group.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ranks/mpi_call.hpp"

namespace fabricheck {

struct Group::Communicator {
  MPI_Comm comm = MPI_COMM_NULL;
};

MPI_Comm comm_of(const Group& group) { return *static_cast<const MPI_Comm*>(group.communicator()); }

Group::Group(const Team& team, std::vector<int> ranks, int tag)
    : ranks_(std::move(ranks)), communicator_(std::make_unique<Communicator>()) {
  const auto found = std::find(ranks_.begin(), ranks_.end(), team.rank());
  if (found == ranks_.end()) {
    throw Failure(Status::runtime_error, "the rank is not in the group that it makes");
  }
  member_ = static_cast<int>(found - ranks_.begin());
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group chosen = MPI_GROUP_NULL;
  FABRICHECK_MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
  FABRICHECK_MPI(MPI_Group_incl(world, size(), ranks_.data(), &chosen));
  FABRICHECK_MPI(MPI_Comm_create_group(MPI_COMM_WORLD, chosen, tag, &communicator_->comm));
  FABRICHECK_MPI(MPI_Group_free(&chosen));
  FABRICHECK_MPI(MPI_Group_free(&world));
}

Group::Group(Group&&) noexcept = default;

Group::~Group() {
  if (communicator_ != nullptr && communicator_->comm != MPI_COMM_NULL) {
    (void)MPI_Comm_free(&communicator_->comm);
  }
}

double time_of(const std::vector<double>& members, TimeOf of) {
  switch (of) {
    case TimeOf::first:
      return members.front();
    case TimeOf::slowest:
      return *std::max_element(members.begin(), members.end());
    case TimeOf::mean:
      break;
  }
  return std::accumulate(members.begin(), members.end(), 0.0) / static_cast<double>(members.size());
}

namespace {

/// One batch, of all members: their times are known to all of them afterwards.
std::vector<double> batch_of_all(const Group& group, const MemberBatch& run, int batch) {
  FABRICHECK_MPI(MPI_Barrier(comm_of(group)));
  const double own = run(batch);
  std::vector<double> all(group.ranks().size());
  FABRICHECK_MPI(MPI_Allgather(&own, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, comm_of(group)));
  return all;
}

/// Tells the others to run a batch; 0 ends a phase.
void announce(const Group& group, int batch) {
  FABRICHECK_MPI(MPI_Bcast(&batch, 1, MPI_INT, 0, comm_of(group)));
}

/// Runs the batches that the first member announces.
std::vector<std::vector<double>> follow(const Group& group, const MemberBatch& run, int* last) {
  std::vector<std::vector<double>> times;
  for (;;) {
    int batch = 0;
    FABRICHECK_MPI(MPI_Bcast(&batch, 1, MPI_INT, 0, comm_of(group)));
    if (batch == 0) {
      return times;
    }
    *last = batch;
    times.push_back(batch_of_all(group, run, batch));
  }
}

}  // namespace

GroupSamples sample(const Group& group, const MemberBatch& run, const SamplingRules& rules,
                    TimeOf of) {
  GroupSamples result;
  if (group.member() != 0) {
    (void)follow(group, run, &result.batch);             // calibration
    result.members = follow(group, run, &result.batch);  // samples
  } else {
    const RunBatch lead = [&](int batch) {
      announce(group, batch);
      result.members.push_back(batch_of_all(group, run, batch));
      return BatchTimes{{time_of(result.members.back(), of)}, 0};
    };
    result.batch = calibrate(lead, rules, rules.warm_up_seconds);
    announce(group, 0);
    result.members.clear();
    (void)take_samples(lead, result.batch, rules);
    announce(group, 0);
  }
  for (const auto& members : result.members) {
    result.seconds.push_back(time_of(members, of));
  }
  return result;
}

}  // namespace fabricheck
