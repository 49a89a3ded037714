// The end of a run: the one exception that the programs throw, and exit codes.
#pragma once

#include <stdexcept>
#include <string>

#include "harness/vocabulary.hpp"

namespace fabricheck {

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
