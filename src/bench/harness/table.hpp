// The table for people.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

namespace fabricheck {

/// Prints one line per series of a result document, units and bytes convention in the header.
void print_table(const nlohmann::json& document, std::FILE* out);

}  // namespace fabricheck
