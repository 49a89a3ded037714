// The printed tables: matrices over pairs of ranks, collectives by numbers of ranks.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

namespace fabricheck::mpi {

/// Prints one matrix of medians for every operation and size of pairs, alone and at once, sources
/// down and destinations across, and the range of the sums; then the collectives, numbers of ranks
/// across; then what was only verified. Noisy (~) and wrong (!) values are marked.
void print_ranks(const nlohmann::json& document, std::FILE* out);

}  // namespace fabricheck::mpi
