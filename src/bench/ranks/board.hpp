// What each rank of this machine is about, in memory that all of them see: a rank that waits for
// another can tell which, without the other's help.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "harness/launch.hpp"

namespace fabricheck {

/// One rank's part of the board.
struct Notice {
  std::atomic<long> process{0};   ///< its number; 0: not said yet
  std::atomic<int> entered{0};    ///< steps that it began
  std::atomic<int> left{0};       ///< steps that it ended
  std::atomic<bool> gone{false};  ///< it leaves as it should
  std::atomic<int> failed{0};     ///< its status, once it cannot go on
  char sentence[1024] = {};       ///< why; written before `failed`
  char step[128] = {};            ///< the last one entered; written before `entered`
};

/// The first rank that failed or, with `processes`, whose process is no more; nothing otherwise.
/// Null for a rank of another machine.
std::optional<Outcome> trouble_on(const std::vector<const Notice*>& board, bool processes);

/// Whether a process is no more, or a zombie that its parent has not looked at yet.
bool is_dead(long process);

/// "; rank 1 has not come to: step 4" where ranks are not equally far, else "; at: step 4", or
/// nothing before the first step.
std::string waited_for_on(const std::vector<const Notice*>& board);

/// Puts down that a step begins, and that a rank cannot go on.
void enter(Notice& notice, const std::string& step);
void fail(Notice& notice, const Outcome& outcome);

/// "rank 3", "ranks 1, 2"
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace fabricheck
