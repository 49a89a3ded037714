#include "mpi/plan.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "harness/sizes.hpp"
#include "harness/status.hpp"

namespace fabricheck::mpi {
namespace {

std::uint64_t elements_of(std::uint64_t bytes, DataType type) {
  if (bytes % type_bytes(type) != 0) {
    throw Failure(Status::usage, format_size(bytes) + " is not a multiple of the " +
                                     std::to_string(type_bytes(type)) + " B of " + type_name(type));
  }
  return bytes / type_bytes(type);
}

/// Throws Failure(usage) when more ranks are summed than values allow.
void check_sum(MpiOperation operation, int ranks) {
  if (is_reduction(operation) && ranks > kMostRanksOfSums) {
    throw Failure(Status::usage, std::string(operation_name(operation)) + " is of at most " +
                                     std::to_string(kMostRanksOfSums) +
                                     " ranks, whose sums are exact in every order");
  }
}

/// Whether the set, or its reverse with the same traffic in both directions, occurs already.
bool has_either_way(const std::vector<std::vector<RankPair>>& sets,
                    const std::vector<RankPair>& set) {
  auto reverse = set;
  for (auto& pair : reverse) {
    std::swap(pair.from, pair.to);
  }
  return std::find(sets.begin(), sets.end(), set) != sets.end() ||
         std::find(sets.begin(), sets.end(), reverse) != sets.end();
}

/// Each pair alone, then each set. Both directions at once are the same for a pair and its reverse.
void plan_pairs(const MpiRequest& request, std::vector<MpiJob>& jobs) {
  for (const auto operation : request.pair_operations) {
    const bool latency = operation == MpiOperation::latency;
    std::vector<std::vector<RankPair>> sets;
    for (const auto& pair : request.pairs) {
      sets.push_back({pair});
    }
    if (!latency) {
      sets.insert(sets.end(), request.together.begin(), request.together.end());
    }
    for (const auto size :
         latency ? std::vector<std::uint64_t>{request.latency_bytes} : request.sizes) {
      std::vector<std::vector<RankPair>> done;
      for (const auto& set : sets) {
        if (operation == MpiOperation::bandwidth_both && has_either_way(done, set)) {
          continue;
        }
        done.push_back(set);
        jobs.push_back({operation, set, 0, DataType::byte, size});
      }
    }
  }
}

/// Every type and count of E12.
void plan_verification(MpiOperation operation, int ranks, const MpiRequest& request,
                       std::vector<MpiJob>& jobs) {
  for (const auto type : request.types) {
    if (type == DataType::byte && is_reduction(operation)) {
      continue;
    }
    for (const auto count : request.counts) {
      jobs.push_back({operation, {}, ranks, type, count, false});
    }
  }
}

}  // namespace

const char* MpiJob::experiment() const {
  return !timed ? experiment::E12 : is_between_pairs(operation) ? experiment::E9 : experiment::E10;
}

std::vector<int> MpiJob::members() const {
  std::vector<int> result;
  for (const auto& pair : pairs) {
    result.insert(result.end(), {pair.from, pair.to});
  }
  for (int rank = 0; rank < ranks; ++rank) {
    result.push_back(rank);
  }
  return result;
}

bool MpiJob::has(int rank) const {
  const auto all = members();
  return std::find(all.begin(), all.end(), rank) != all.end();
}

std::string MpiJob::text() const {
  auto result = std::string(operation_name(operation)) + " of " + format_size(bytes()) + " of " +
                type_name(type);
  if (ranks > 0) {
    result += " among ranks " + rank_range(0, ranks - 1);
  }
  for (const auto& pair : pairs) {
    result += (pair == pairs.front() ? " from rank " : ", ") + std::to_string(pair.from) + " to " +
              std::to_string(pair.to);
  }
  return result;
}

std::vector<MpiJob> plan_mpi(const MpiRequest& request) {
  const int most = request.rank_counts.empty()
                       ? 0
                       : *std::max_element(request.rank_counts.begin(), request.rank_counts.end());
  std::vector<MpiJob> jobs;
  plan_pairs(request, jobs);
  for (const bool reduce : {false, true}) {
    for (const auto operation : request.collectives) {
      if (is_reduction(operation) != reduce) {
        continue;
      }
      check_sum(operation, most);
      for (const int ranks : request.rank_counts) {
        for (const auto size : request.collective_sizes) {
          jobs.push_back({operation, {}, ranks, request.type, elements_of(size, request.type)});
        }
      }
    }
    if (!reduce && !request.pair_operations.empty() && !request.pairs.empty()) {
      plan_verification(MpiOperation::exchange, request.ranks, request, jobs);
    }
    for (const auto operation : request.collectives) {
      if (is_reduction(operation) == reduce) {
        plan_verification(operation, most, request, jobs);
      }
    }
  }
  for (const auto& job : jobs) {
    if (job.count > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
      throw Failure(Status::usage, format_size(job.bytes()) + " of " + type_name(job.type) +
                                       " are more elements than MPI counts, 2^31 - 1");
    }
  }
  jobs.erase(std::remove_if(jobs.begin(), jobs.end(),
                            [&request](const MpiJob& job) {
                              return request.without.count(job.operation) > 0 ||
                                     (job.timed && request.verify_only);
                            }),
             jobs.end());
  return jobs;
}

int window_for(std::uint64_t bytes) {
  constexpr std::uint64_t under_way = 16 << 20;
  return static_cast<int>(
      std::clamp<std::uint64_t>(under_way / std::max<std::uint64_t>(bytes, 1), 4, 64));
}

}  // namespace fabricheck::mpi
