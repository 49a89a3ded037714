#include "mpi/contents.hpp"

#include <algorithm>
#include <numeric>

namespace fabricheck::mpi {
namespace {

Contents of_pairs(const MpiJob& job, int rank) {
  Contents result;
  const bool both = job.operation != MpiOperation::bandwidth;
  const auto message_of = [&job](int from) {
    return Region{0, job.count, {job.type, from, 1, 0, 0}};
  };
  for (const auto& pair : job.pairs) {
    if (pair.from == rank || (both && pair.to == rank)) {
      result.given.push_back(message_of(rank));
    }
    if (pair.to == rank || (both && pair.from == rank)) {
      result.received.push_back(message_of(pair.to == rank ? pair.from : pair.to));
    }
  }
  return result;
}

/// Every message differs, so that a message to the wrong rank is found.
Contents of_exchange(const MpiJob& job, int rank) {
  Contents result;
  for (int other = 0; other < job.ranks; ++other) {
    const auto offset = static_cast<std::uint64_t>(other) * job.count;
    if (other != rank) {
      result.given.push_back(
          {offset, job.count, {job.type, rank, 1, 0, static_cast<std::uint32_t>(other) + 1}});
      result.received.push_back(
          {offset, job.count, {job.type, other, 1, 0, static_cast<std::uint32_t>(rank) + 1}});
    }
  }
  return result;
}

}  // namespace

std::vector<int> scatter_counts(std::uint64_t count, int ranks) {
  const auto parts = static_cast<std::uint64_t>(ranks);
  std::vector<int> counts;
  for (std::uint64_t rank = 0; rank < parts; ++rank) {
    counts.push_back(static_cast<int>(count / parts + (rank < count % parts ? 1 : 0)));
  }
  return counts;
}

Contents contents_of(const MpiJob& job, int rank) {
  if (!job.has(rank)) {
    return {};
  }
  if (job.ranks == 0) {
    return of_pairs(job, rank);
  }
  const Region of_rank{0, job.count, {job.type, rank, 1, 0, 0}};
  const Region sum{0, job.count, {job.type, 0, job.ranks, 0, 0}};
  switch (job.operation) {
    case MpiOperation::bcast: {
      const Region message{0, job.count, {job.type, 0, 1, 0, 0}};
      return rank == 0 ? Contents{{message}, {message}, true} : Contents{{}, {message}};
    }
    case MpiOperation::allgather: {
      Contents result{{of_rank}, {}};
      for (int other = 0; other < job.ranks; ++other) {
        result.received.push_back(
            {static_cast<std::uint64_t>(other) * job.count, job.count, {job.type, other, 1, 0, 0}});
      }
      return result;
    }
    case MpiOperation::reduce:
      return rank == 0 ? Contents{{of_rank}, {sum}} : Contents{{of_rank}, {}};
    case MpiOperation::allreduce:
      return {{of_rank}, {sum}};
    case MpiOperation::reduce_scatter: {
      const auto counts = scatter_counts(job.count, job.ranks);
      auto part = sum;
      part.count = static_cast<std::uint64_t>(counts.at(static_cast<std::size_t>(rank)));
      part.content.first = std::accumulate(counts.begin(), counts.begin() + rank, std::uint64_t{0});
      return {{of_rank}, {part}};
    }
    default:
      return of_exchange(job, rank);
  }
}

std::uint64_t extent_of(const std::vector<Region>& regions) {
  std::uint64_t extent = 0;
  for (const auto& region : regions) {
    extent = std::max(extent, region.offset + region.count);
  }
  return extent;
}

}  // namespace fabricheck::mpi
