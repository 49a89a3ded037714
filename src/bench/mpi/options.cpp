#include "mpi/options.hpp"

#include "harness/sizes.hpp"

namespace fabricheck::mpi {

void MpiOptions::define(CommandLine& line) {
  line.add(
      {"--buffers",
       "memory of the messages: device or host; default: device, in a simulation where the rank "
       "was put"},
      buffers, {"device", "host"});
  line.add({"--pairs",
            "all, none, counterparts (ranks of two nodes with the same number there), or ordered "
            "pairs of ranks as in 0-1,0-6"},
           pairs);
  line.add({"--together",
            "disjoint pairs at the same time: rounds (each pair once, as in a tournament), nodes "
            "(all counterparts of two nodes), none, or one set as in 0-1,2-3"},
           together);
  line.add(
      {"--operations", "what to measure of pairs, in order: latency, bandwidth, bandwidth-both"},
      operations);
  line.add({"--sizes",
            "bytes of each message of a bandwidth: 1GiB, a list 1MiB,1GiB, or a doubling range "
            "256:8MiB; default: 256 MiB on devices, 1 MiB in memory of the host"},
           sizes);
  line.add({"--latency-size", "bytes of each message of a latency"}, latency_size);
  line.add({"--single-messages",
            "messages of a latency to time one by one too, for the time that 99 % do not exceed"},
           single_messages, 0, 1000000);
  line.add({"--places",
            "where NICs of different nodes are: address (as Slingshot gives them), none, or a file "
            "with a line NODE GROUP SWITCH for each node"},
           places);
  line.add({"--window", "messages under way at once; 0: 16 MiB of them, 4 to 64"}, window, 0, 1024);
  line.add({"--collectives",
            "none, or in order: bcast, allgather, reduce, allreduce, reduce_scatter, or reductions "
            "for the last three"},
           collectives);
  line.add({"--ranks", "numbers of ranks for collectives: each from 2 on, all, or as in 2,4,8"},
           ranks);
  line.add({"--collective-sizes", "bytes of each rank's message, as --sizes"}, collective_sizes);
  line.add({"--collective-type", "type of the elements of timed collectives"}, collective_type);
  line.add({"--types",
            "types that messages of every pair and the collectives are verified with, or none"},
           types);
  line.add({"--counts", "numbers of elements that they are verified with"}, counts);
  line.add({"--without",
            "collectives that this MPI does not support, as --collectives: they are recorded as "
            "skipped"},
           without);
  line.add({"--trial",
            "only verify, to see what this MPI does with these buffers: the document names what "
            "was not reached in `skipped`"},
           trial);
}

MpiRequest MpiOptions::request(const std::vector<std::string>& nodes,
                               const std::string& default_sizes) const {
  MpiRequest result;
  const int launched = static_cast<int>(nodes.size());
  result.ranks = launched;
  result.pair_operations = parse_pair_operations(operations);
  result.pairs = pairs == "counterparts" ? counterparts(nodes) : parse_rank_pairs(pairs, launched);
  result.together = together == "nodes" ? counterparts_at_once(nodes)
                                        : parse_together(together, result.pairs, launched);
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

}  // namespace fabricheck::mpi
