// How a run ends: exit codes, and the one exception the programs throw.
#pragma once

#include <stdexcept>
#include <string>

namespace fabricheck {

/// Exit codes of every program; docs/result-document.md lists them for users.
enum class Status {
  good = 0,
  usage = 2,
  unsupported = 3,
  runtime_error = 4,
  wrong_data = 5,
  time_limit = 6,
  too_noisy = 7,
  setting = 8,
};

/// The word of the result document's schema for a status.
inline const char* status_word(Status status) {
  switch (status) {
    case Status::good:
      return "good";
    case Status::usage:
      return "usage";
    case Status::unsupported:
      return "unsupported";
    case Status::runtime_error:
      return "runtime-error";
    case Status::wrong_data:
      return "wrong-data";
    case Status::time_limit:
      return "time-limit";
    case Status::too_noisy:
      return "too-noisy";
    case Status::setting:
      return "setting";
  }
  return "runtime-error";
}

/// A run cannot go on. `what()` is one sentence that names the device, file or option.
class Failure : public std::runtime_error {
 public:
  Failure(Status status, const std::string& sentence)
      : std::runtime_error(sentence), status_(status) {}
  [[nodiscard]] Status status() const { return status_; }

 private:
  Status status_;
};

}  // namespace fabricheck
