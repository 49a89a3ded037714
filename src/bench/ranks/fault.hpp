// Injected faults of ranks, to see that the others notice.
#pragma once

#include <string>
#include <vector>

#include "harness/fault.hpp"

namespace fabricheck {

/// Why a rank goes no further, an injected fault: `rank:R:hang`, `die` or `throw`, at step N (from
/// 1; `rank:R:hang:N`), or a fault of data that rank R makes: `rank:R:flip-bit:OFFSET:BIT`.
struct RankFault {
  enum class Kind { hang, die, fail, data } kind = Kind::hang;
  int rank = 0;
  int step = 1;
  Fault data;
};
/// Throws Failure(usage). `host_memory`: the program can put host memory on another NUMA domain
/// than it asks for, by `rank:R:pages-on:DOMAIN`.
RankFault parse_rank_fault(const std::string& text, bool host_memory = false);

/// Injects the faults that `rank` has at a step: does not return from some, throws Failure of one.
void inject_rank_faults(const std::vector<RankFault>& faults, int rank, int step);

}  // namespace fabricheck
