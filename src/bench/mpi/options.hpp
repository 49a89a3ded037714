// The options of mpi, as text and as parsed.
#pragma once

#include <string>

#include "harness/command_line.hpp"
#include "mpi/plan.hpp"

namespace fabricheck::mpi {

struct MpiOptions {
  std::string buffers;  ///< device or host; empty: device where the rank has one
  std::string pairs = "all";
  std::string together = "rounds";
  std::string operations = "latency,bandwidth";
  std::string sizes;  ///< empty: follows from the buffers
  std::string latency_size = "16";
  std::string collectives = "bcast,allgather,reduce,allreduce,reduce_scatter";
  std::string ranks = "each";
  std::string collective_sizes = "1MiB";
  std::string collective_type = datatype::float32;
  std::string types = "byte,int32,float,double";
  std::string counts = "1,1009,262147";  ///< the two large ones are prime
  std::string without;
  std::string places = "none";
  int window = 0;           ///< 0: as window_for() says
  int single_messages = 0;  ///< timed alone, beside those of a latency
  bool trial = false;

  void define(CommandLine& line);
  /// The jobs of a launch of ranks on `nodes` (each one's), with the default of sizes. A trial
  /// requests E12 only. Throws Failure(usage) or Failure(unsupported).
  [[nodiscard]] MpiRequest request(const std::vector<std::string>& nodes,
                                   const std::string& default_sizes) const;
};

}  // namespace fabricheck::mpi
