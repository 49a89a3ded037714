#include "ranks/fault.hpp"

#include <unistd.h>

#include <csignal>

#include "harness/simulation.hpp"
#include "harness/sizes.hpp"
#include "ranks/mpi_call.hpp"

namespace fabricheck {

RankFault parse_rank_fault(const std::string& text, bool host_memory) {
  const auto bad = [&text, host_memory] {
    return Failure(Status::usage,
                   "'" + text +
                       "' is not a fault of a rank: write rank:R:hang, rank:R:die or "
                       "rank:R:throw, also with the number of a step behind, " +
                       (host_memory ? "rank:R:flip-bit:OFFSET:BIT or rank:R:pages-on:DOMAIN"
                                    : "or rank:R:flip-bit:OFFSET:BIT"));
  };
  const auto second = text.find(':', 5);
  if (text.rfind("rank:", 0) != 0 || second == std::string::npos) {
    throw bad();
  }
  RankFault fault;
  fault.rank = parse_index(text.substr(5, second - 5), "the rank");
  const auto what = text.substr(second + 1);
  const auto third = what.find(':');
  const auto kind = what.substr(0, third);
  if (kind == "flip-bit" || kind == "unwritten" || kind == "drop" || kind == "delay" ||
      (host_memory && kind == "pages-on")) {
    fault.kind = RankFault::Kind::data;
    fault.data = parse_faults({what}, host_memory).front();
    return fault;
  }
  if (kind != "hang" && kind != "die" && kind != "throw") {
    throw bad();
  }
  fault.kind = kind == "hang"  ? RankFault::Kind::hang
               : kind == "die" ? RankFault::Kind::die
                               : RankFault::Kind::fail;
  if (third != std::string::npos) {
    fault.step = parse_index(what.substr(third + 1), "the step");
  }
  return fault;
}

void inject_rank_faults(const std::vector<RankFault>& faults, int rank, int step) {
  for (const auto& fault : faults) {
    if (fault.rank != rank || fault.step != step) {
      continue;
    }
    if (fault.kind == RankFault::Kind::fail) {
      throw Failure(Status::software, "injected failure");
    }
    if (fault.kind == RankFault::Kind::die) {
      (void)raise(SIGKILL);
    }
    if (fault.kind == RankFault::Kind::hang && kSimulated) {
      int never = 0;  // a rank of a simulation that waits lets the others go on
      (void)MPI_Recv(&never, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    while (fault.kind == RankFault::Kind::hang) {
      (void)pause();
    }
  }
}

}  // namespace fabricheck
