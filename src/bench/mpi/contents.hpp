// What every rank gives to an operation of MPI, and what it holds afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/plan.hpp"
#include "ranks/values.hpp"

namespace fabricheck::mpi {

/// One rank's arrays of a job, in elements of its type.
struct Contents {
  std::vector<Region> given;     ///< of the source array
  std::vector<Region> received;  ///< of the destination array; what it does not cover stays poison
  bool in_place = false;         ///< the root of a bcast: `given` is of the destination array
};

/// Elements of reduce_scatter's result that each of `ranks` gets: equal parts, and one more for the
/// first of them where the count is no multiple.
std::vector<int> scatter_counts(std::uint64_t count, int ranks);

/// What `rank` gives and receives; nothing for a rank that does not take part. The root is rank 0.
Contents contents_of(const MpiJob& job, int rank);

/// Elements behind the last one of the regions.
std::uint64_t extent_of(const std::vector<Region>& regions);

}  // namespace fabricheck::mpi
