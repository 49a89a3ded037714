// The data that every rank gives to an operation of MPI, and the data that it holds afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/plan.hpp"
#include "mpi/values.hpp"

namespace fabricheck::mpi {

/// One rank's arrays of a job, in elements of its type.
struct Contents {
  std::vector<Region> given;     ///< of the source array
  std::vector<Region> received;  ///< of the destination array; what it does not cover stays poison
  bool in_place = false;         ///< the root of a bcast: `given` is of the destination array
};

/// Elements of reduce_scatter's result for each of `ranks`: equal parts, and one more for the first
/// ranks if the count is no multiple.
std::vector<int> scatter_counts(std::uint64_t count, int ranks);

/// The data that `rank` gives and receives; none for a rank that does not take part. The root is
/// rank 0.
Contents contents_of(const MpiJob& job, int rank);

/// The number of elements up to the end of the last region.
std::uint64_t extent_of(const std::vector<Region>& regions);

}  // namespace fabricheck::mpi
