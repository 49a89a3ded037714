// Printed matrices of NUMA domains and devices.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

namespace fabricheck::copies {

/// Prints a memcpy document: of E4 one matrix of medians for every operation, size and kind of host
/// memory, domains down and devices across; of E2 one line for each series.
void print_domains(const nlohmann::json& document, std::FILE* out);

}  // namespace fabricheck::copies
