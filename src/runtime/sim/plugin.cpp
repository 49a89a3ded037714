// The platform of `smpirun -platform libfabricheck_node.so`: the simulated node, with a host for
// ranks on each of its devices and NUMA domains.
#include <unistd.h>

#include <cstdio>
#include <simgrid/s4u.hpp>

#include "machine.hpp"

extern "C" __attribute__((visibility("default"))) void load_platform(
    const simgrid::s4u::Engine& /*engine*/) {
  const auto& problem = fabricheck_sim::problem();
  if (!problem.empty()) {
    std::fprintf(stderr, "fabricheck: %s\n", problem.c_str());
    std::fflush(nullptr);
    _exit(3);
  }
  fabricheck_sim::make_platform_for_ranks();
}
