// Lists of names in the form of options.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "harness/sizes.hpp"
#include "harness/status.hpp"

namespace fabricheck {

/// Values of a comma-separated list by their names; `known` holds pairs of both. `what` names the
/// list, `kind` one of its items, as in "an operation". Throws Failure(usage) for a name that is
/// unknown or occurs twice.
template <typename Known>
auto parse_names(const std::string& text, const Known& known, const std::string& what,
                 const std::string& kind) {
  std::vector<typename Known::value_type::first_type> values;
  for (const auto& name : split_list(text, what)) {
    const auto match = std::find_if(known.begin(), known.end(),
                                    [&name](const auto& entry) { return entry.second == name; });
    if (match == known.end()) {
      std::string names;
      for (const auto& entry : known) {
        names += (names.empty() ? "" : ", ") + std::string(entry.second);
      }
      throw Failure(Status::usage, "'" + name + "' is not " + kind + ": choose from " + names);
    }
    if (std::find(values.begin(), values.end(), match->first) != values.end()) {
      throw Failure(Status::usage, what + " '" + text + "' names " + name + " twice");
    }
    values.push_back(match->first);
  }
  return values;
}

}  // namespace fabricheck
