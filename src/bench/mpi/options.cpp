#include "mpi/options.hpp"

#include "harness/sizes.hpp"

namespace fabricheck {

void MpiOptions::define(CLI::App& app) {
  app.add_option("--buffers", buffers,
                 "where messages lie: device or host; default: device, in a simulation where the "
                 "rank was put")
      ->check(CLI::IsMember({"device", "host"}));
  app.add_option("--pairs", pairs, "all, none, or ordered pairs of ranks as in 0-1,0-6")
      ->capture_default_str();
  app.add_option("--together", together,
                 "disjoint pairs at the same time: rounds (each pair once, as in a tournament), "
                 "none, or one set as in 0-1,2-3")
      ->capture_default_str();
  app.add_option("--operations", operations,
                 "what to measure of pairs, in order: latency, bandwidth, bandwidth-both")
      ->capture_default_str();
  app.add_option(
      "--sizes", sizes,
      "bytes of each message of a bandwidth: 1GiB, a list 1MiB,1GiB, or a doubling range "
      "256:8MiB; default: 256 MiB on devices, 1 MiB in memory of the host");
  app.add_option("--latency-size", latency_size, "bytes of each message of a latency")
      ->capture_default_str();
  app.add_option("--window", window, "messages under way at once; default: 16 MiB of them, 4 to 64")
      ->check(CLI::Range(1, 1024));
  app.add_option("--collectives", collectives,
                 "none, or in order: bcast, allgather, reduce, allreduce, reduce_scatter, or "
                 "reductions for the last three")
      ->capture_default_str();
  app.add_option("--ranks", ranks,
                 "how many ranks collectives are on: each number from 2, all, or as in 2,4,8")
      ->capture_default_str();
  app.add_option("--collective-sizes", collective_sizes, "bytes of each rank's message, as --sizes")
      ->capture_default_str();
  app.add_option("--collective-type", collective_type, "type of the elements of timed collectives")
      ->capture_default_str();
  app.add_option("--types", types,
                 "types that messages of every pair and the collectives are verified with, or none")
      ->capture_default_str();
  app.add_option("--counts", counts, "numbers of elements that they are verified with")
      ->capture_default_str();
  app.add_option(
      "--without", without,
      "collectives that this MPI is known not to do, as --collectives: they are noted as "
      "skipped");
  app.add_flag("--trial", trial,
               "only verify, to see what this MPI does with these buffers: the document names what "
               "was not reached in `skipped`");
}

nlohmann::json MpiOptions::json() const {
  return {{"buffers", buffers},
          {"pairs", pairs},
          {"together", together},
          {"operations", operations},
          {"sizes", sizes},
          {"latency_size", latency_size},
          {"window", window > 0 ? nlohmann::json(window) : nlohmann::json(nullptr)},
          {"collectives", collectives},
          {"rank_counts", ranks},
          {"collective_sizes", collective_sizes},
          {"collective_type", collective_type},
          {"types", types},
          {"counts", counts},
          {"without", without},
          {"trial", trial}};
}

MpiRequest MpiOptions::request(int launched, const std::string& default_sizes) const {
  MpiRequest result;
  result.ranks = launched;
  result.pair_operations = parse_pair_operations(operations);
  result.pairs = parse_rank_pairs(pairs, launched);
  result.together = parse_together(together, result.pairs, launched);
  result.sizes = parse_size_list(sizes.empty() ? default_sizes : sizes);
  result.latency_bytes = parse_size(latency_size);
  result.collectives = parse_collectives(collectives);
  result.rank_counts = parse_rank_counts(ranks, launched);
  result.collective_sizes = parse_size_list(collective_sizes);
  const auto type = parse_types(collective_type);
  if (type.size() != 1 || type.front() == DataType::byte) {
    throw Failure(Status::usage, "the type of collectives is one of int32, float, double, not '" +
                                     collective_type + "'");
  }
  result.type = type.front();
  if (types != "none") {
    result.types = parse_types(types);
  }
  result.counts = parse_counts(counts);
  if (!without.empty()) {
    for (const auto operation : parse_collectives(without)) {
      result.without.insert(operation);
    }
  }
  result.verify_only = trial;
  return result;
}

}  // namespace fabricheck
