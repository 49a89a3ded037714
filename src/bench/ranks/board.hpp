// The step that each rank of this machine is in, in shared memory: a waiting rank can tell which
// rank it waits for, without that rank's help.
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

/// The first rank that failed or, with `processes`, whose process does not exist any more; empty
/// otherwise. Null for a rank of another machine.
std::optional<Outcome> trouble_on(const std::vector<const Notice*>& board, bool processes);

/// Whether a process has ended, including a zombie that its parent has not reaped yet.
bool is_dead(long process);

/// "; rank 1 has not come to: step 4" if ranks are at different steps, else "; at: step 4", or an
/// empty text before the first step.
std::string waited_for_on(const std::vector<const Notice*>& board);

/// Records that a step begins, and that a rank cannot continue.
void enter(Notice& notice, const std::string& step);
void fail(Notice& notice, const Outcome& outcome);

/// "rank 3", "ranks 1, 2"
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace fabricheck
