// Faults of single operations, which tests inject. Operations are the launches and copies of the
// process, numbered from 0 in the order of their calls.
#pragma once

#include <cstdint>

namespace fabricheck_host {

/// By how much a delayed operation takes longer.
constexpr double kDelaySeconds = 0.02;

/// The number of operations so far.
std::uint64_t operations();

/// Operation `number` is never made, and its call succeeds.
void drop(std::uint64_t number);

/// Operation `number` is late, and its call does not wait for it, as that of a copy of pageable
/// memory need not.
void delay(std::uint64_t number);

/// Whether an operation that is to be dropped or delayed has not come yet.
bool awaits_fault();

}  // namespace fabricheck_host
