#include "ranks/board.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

namespace fabricheck {
namespace {

template <std::size_t N>
void copy_text(char (&to)[N], const std::string& text) {
  const auto length = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

}  // namespace

bool is_dead(long process) {
  if (kill(static_cast<pid_t>(process), 0) != 0) {
    return errno == ESRCH;
  }
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  // The state follows the name, which stands in brackets and may hold any of them.
  const auto name_end = line.rfind(") ");
  return name_end != std::string::npos && (line[name_end + 2] == 'Z' || line[name_end + 2] == 'X');
}

std::optional<Outcome> trouble_on(const std::vector<const Notice*>& board, bool processes) {
  for (std::size_t rank = 0; rank < board.size(); ++rank) {
    const auto* notice = board[rank];
    const auto name = "rank " + std::to_string(rank);
    if (notice != nullptr && notice->failed != 0) {
      return Outcome{static_cast<Status>(notice->failed.load()), name + ": " + notice->sentence,
                     false};
    }
    if (notice != nullptr && processes && notice->process > 0 && !notice->gone &&
        is_dead(notice->process)) {
      const auto where =
          notice->entered > 0 ? std::string(", after it came to: ") + notice->step : std::string();
      return Outcome{Status::software, name + " died" + where, false};
    }
  }
  return std::nullopt;
}

std::string waited_for_on(const std::vector<const Notice*>& board) {
  int furthest = 0;
  const Notice* ahead = nullptr;
  for (const auto* notice : board) {
    if (notice != nullptr && notice->entered > furthest) {
      furthest = notice->entered;
      ahead = notice;
    }
  }
  if (ahead == nullptr) {
    return "";
  }
  std::vector<int> behind;
  std::vector<int> inside;
  std::size_t known = 0;
  for (std::size_t rank = 0; rank < board.size(); ++rank) {
    if (board[rank] != nullptr) {
      ++known;
      const bool came = board[rank]->entered == furthest;
      (came ? inside : behind).push_back(static_cast<int>(rank));
      if (came && board[rank]->left == furthest) {
        inside.pop_back();
      }
    }
  }
  const std::string step = ahead->step;
  if (!behind.empty()) {
    const auto* have = behind.size() == 1 ? " has" : " have";
    return "; " + ranks_text(behind) + have + " not come to: " + step;
  }
  if (!inside.empty() && inside.size() < known) {
    return "; " + ranks_text(inside) + (inside.size() == 1 ? " is" : " are") + " still at: " + step;
  }
  return "; at: " + step;
}

void enter(Notice& notice, const std::string& step) {
  copy_text(notice.step, step);
  ++notice.entered;
}

void fail(Notice& notice, const Outcome& outcome) {
  copy_text(notice.sentence, outcome.sentence);
  notice.failed = static_cast<int>(outcome.status);
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace fabricheck
