// Injected faults of ranks, which test that the other ranks notice them.
#pragma once

#include <string>
#include <vector>

#include "harness/fault.hpp"

namespace fabricheck {

/// An injected fault that stops a rank: `rank:R:hang`, `die` or `throw`, at step N (from 1;
/// `rank:R:hang:N`), or a fault in the data of rank R: `rank:R:flip-bit:OFFSET:BIT`.
struct RankFault {
  enum class Kind { hang, die, fail, data } kind = Kind::hang;
  int rank = 0;
  int step = 1;
  Fault data;
};
/// Throws Failure(usage). `host_memory`: the program can put host memory on another NUMA domain
/// than requested, by `rank:R:pages-on:DOMAIN`.
RankFault parse_rank_fault(const std::string& text, bool host_memory = false);

/// Injects the faults of `rank` at a step. Some do not return, one throws Failure.
void inject_rank_faults(const std::vector<RankFault>& faults, int rank, int step);

}  // namespace fabricheck
