#include "mpi/worker.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "harness/simulation.hpp"
#include "harness/statistics.hpp"
#include "mpi/guard.hpp"

namespace fabricheck::mpi {
namespace {

constexpr int kMessage = 1;

/// A simulation moves a slice of messages between two ranks; collectives are moved as a whole.
std::uint64_t moved_of(const MpiJob& job) {
  return job.ranks > 0 ? job.bytes() : moved_bytes(job.bytes());
}

std::vector<Region> moved_of(const MpiJob& job, std::vector<Region> regions) {
  for (auto& region : regions) {
    region.count = std::min(region.count, moved_of(job) / type_bytes(job.type));
  }
  return regions;
}

int count_of(const MpiJob& job) { return static_cast<int>(job.count); }

}  // namespace

MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::byte:
      return MPI_BYTE;
    case DataType::int32:
      return MPI_INT32_T;
    case DataType::float32:
      return MPI_FLOAT;
    case DataType::float64:
      return MPI_DOUBLE;
  }
  return MPI_BYTE;
}

Worker::Worker(MPI_Comm world, Accessor accessor, int window, bool armed)
    : world_(world), accessor_(accessor), window_(window), armed_(armed) {
  FABRICHECK_MPI(MPI_Comm_rank(world_, &rank_));
}

Worker::~Worker() {
  for (auto& [members, comm] : comms_) {
    (void)MPI_Comm_free(&comm);
  }
}

void Worker::provide(const std::vector<MpiJob>& jobs) {
  struct Need {
    std::uint64_t source = 16, destination = 16, moved = 16;
  };
  std::map<bool, Need> needs;
  for (const auto& job : jobs) {
    if (!job.has(rank_)) {
      continue;
    }
    const auto contents = contents_of(job, rank_);
    auto& need = needs[moved_of(job) < job.bytes()];
    need.source = std::max(need.source, extent_of(contents.given) * type_bytes(job.type));
    need.destination =
        std::max(need.destination, extent_of(contents.received) * type_bytes(job.type));
    need.moved = std::max(need.moved, moved_of(job));
  }
  for (const auto& [sliced, need] : needs) {
    Arrays arrays;
    const auto slice = sliced ? need.moved : std::max(need.source, need.destination);
    arrays.source = MessageArray(accessor_, need.source, std::min(slice, need.source));
    arrays.destination =
        MessageArray(accessor_, need.destination, std::min(slice, need.destination));
    arrays_[sliced] = std::move(arrays);
  }
}

Worker::Arrays& Worker::arrays_of(const MpiJob& job) {
  return arrays_.at(moved_of(job) < job.bytes());
}

MPI_Comm Worker::comm_of(const MpiJob& job) {
  auto members = job.members();
  std::sort(members.begin(), members.end());
  const auto known = comms_.find(members);
  if (known != comms_.end()) {
    return known->second;
  }
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  FABRICHECK_MPI(MPI_Comm_group(world_, &all));
  FABRICHECK_MPI(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some));
  FABRICHECK_MPI(MPI_Comm_create_group(world_, some, 0, &comm));
  FABRICHECK_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  FABRICHECK_MPI(MPI_Group_free(&some));
  FABRICHECK_MPI(MPI_Group_free(&all));
  comms_[members] = comm;
  return comm;
}

void Worker::prepare(const MpiJob& job) {
  const auto contents = contents_of(job, rank_);
  auto& arrays = arrays_of(job);
  auto& given = contents.in_place ? arrays.destination : arrays.source;
  for (const auto& region : moved_of(job, contents.given)) {
    fill(accessor_, given.data(), region);
  }
  if (job.members().size() > 2) {
    (void)comm_of(job);
  }
}

int Worker::messages_of(const MpiJob& job) const {
  const bool windowed =
      job.operation == MpiOperation::bandwidth || job.operation == MpiOperation::bandwidth_both;
  if (!windowed) {
    return 1;
  }
  return window_ > 0 ? window_ : window_for(job.bytes());
}

double Worker::run(const MpiJob& job, int batch) {
  const auto contents = contents_of(job, rank_);
  if (!contents.in_place) {
    const auto bytes = extent_of(moved_of(job, contents.received)) * type_bytes(job.type);
    poison(accessor_, arrays_of(job).destination.data(), bytes);
  }
  double seconds = 0;
  guarded(armed_, [&] { seconds = job.ranks > 0 ? calls(job, batch) : messages(job, batch); });
  return seconds;
}

double Worker::messages(const MpiJob& job, int batch) {
  if (job.pairs.size() > 1) {
    FABRICHECK_MPI(MPI_Barrier(comm_of(job)));
  }
  for (const auto& pair : job.pairs) {
    if (pair.from != rank_ && pair.to != rank_) {
      continue;
    }
    if (job.operation == MpiOperation::latency) {
      return ping_pong(job, pair, batch);
    }
    const bool both = job.operation == MpiOperation::bandwidth_both;
    return windows(exchange_of(job, pair), both, messages_of(job), batch);
  }
  return 0;
}

Verification Worker::verify(const MpiJob& job, const std::vector<Fault>& faults) {
  const auto regions = moved_of(job, contents_of(job, rank_).received);
  auto* const data = arrays_of(job).destination.data();
  const auto bytes = extent_of(regions) * type_bytes(job.type);
  for (const auto& fault : faults) {
    // The word of 64 bits that holds the byte, as in other programs; no array is that short there.
    const auto byte = fault.offset_bytes / 8 * 8 + static_cast<std::uint64_t>(fault.bit / 8);
    if (fault.kind == Fault::Kind::unwritten) {
      poison(accessor_, data, bytes);
      made_fault_ = true;
    } else if (fault.kind == Fault::Kind::flip_bit && byte < bytes) {
      flip_bit(accessor_, data, byte, fault.bit % 8);
      made_fault_ = true;
    }
  }
  Verification verification;
  for (const auto& region : regions) {
    add(verification, compare(accessor_, data, region));
  }
  return verification;
}

Exchange Worker::exchange_of(const MpiJob& job, const RankPair& pair) {
  const bool first = pair.from == rank_;
  auto& arrays = arrays_of(job);
  return {world_,
          first ? pair.to : pair.from,
          first,
          arrays.source.data(),
          arrays.destination.data(),
          count_of(job),
          mpi_type(job.type),
          kMessage};
}

double Worker::ping_pong(const MpiJob& job, const RankPair& pair, int batch) {
  const auto exchange = exchange_of(job, pair);
  meet(exchange);
  const double start = MPI_Wtime();
  for (int i = 0; i < batch; ++i) {
    there_and_back(exchange);
  }
  return (MPI_Wtime() - start) / 2;
}

double Worker::single_messages(const MpiJob& job, int count) {
  const auto exchange = exchange_of(job, job.pairs.front());
  std::vector<double> seconds;
  guarded(armed_, [&] {
    meet(exchange);  // the other rank hears of it later
    double end = MPI_Wtime();
    for (int i = 0; i < count; ++i) {
      const double start = end;
      there_and_back(exchange);
      end = MPI_Wtime();
      seconds.push_back((end - start) / 2);
    }
  });
  return percentile(std::move(seconds), 99);
}

double Worker::calls(const MpiJob& job, int batch) {
  const MPI_Comm comm = comm_of(job);
  double seconds = 0;
  for (int i = 0; i < batch; ++i) {
    FABRICHECK_MPI(MPI_Barrier(comm));
    const double start = MPI_Wtime();
    call(job, comm);
    seconds += MPI_Wtime() - start;
  }
  return seconds;
}

void Worker::call(const MpiJob& job, MPI_Comm comm) {
  auto& arrays = arrays_of(job);
  const auto* source = arrays.source.data();
  auto* destination = arrays.destination.data();
  const auto type = mpi_type(job.type);
  const int count = count_of(job);
  switch (job.operation) {
    case MpiOperation::bcast:
      FABRICHECK_MPI(MPI_Bcast(destination, count, type, 0, comm));
      break;
    case MpiOperation::allgather:
      FABRICHECK_MPI(MPI_Allgather(source, count, type, destination, count, type, comm));
      break;
    case MpiOperation::reduce:
      FABRICHECK_MPI(MPI_Reduce(source, destination, count, type, MPI_SUM, 0, comm));
      break;
    case MpiOperation::allreduce:
      FABRICHECK_MPI(MPI_Allreduce(source, destination, count, type, MPI_SUM, comm));
      break;
    case MpiOperation::reduce_scatter: {
      const auto counts = scatter_counts(job.count, job.ranks);
      FABRICHECK_MPI(MPI_Reduce_scatter(source, destination, counts.data(), type, MPI_SUM, comm));
      break;
    }
    default:
      exchange(job, comm);
  }
}

void Worker::exchange(const MpiJob& job, MPI_Comm comm) {
  const auto type = mpi_type(job.type);
  const auto step = job.bytes();
  auto& arrays = arrays_of(job);
  requests_.clear();
  for (int other = 0; other < job.ranks; ++other) {
    const auto at = static_cast<std::uint64_t>(other) * step;
    if (other != rank_) {
      FABRICHECK_MPI(MPI_Irecv(static_cast<char*>(arrays.destination.data()) + at, count_of(job),
                               type, other, kMessage, comm, &requests_.emplace_back()));
      FABRICHECK_MPI(MPI_Isend(static_cast<char*>(arrays.source.data()) + at, count_of(job), type,
                               other, kMessage, comm, &requests_.emplace_back()));
    }
  }
  FABRICHECK_MPI(
      MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
}

}  // namespace fabricheck::mpi
