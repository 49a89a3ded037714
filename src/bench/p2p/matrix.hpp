// Matrices over all pairs, for people.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

namespace fabricheck::p2p {

/// Prints one matrix of medians for every operation and size of a p2p document, sources down and
/// destinations across; then one line for each series of larger sets. Cells that are noisy or hold
/// wrong data are marked.
void print_pairs(const nlohmann::json& document, std::FILE* out);

}  // namespace fabricheck::p2p
