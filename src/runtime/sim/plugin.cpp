// The platform of `smpirun -platform libfabricheck_node.so`: the simulated node or system, with a
// host for ranks on each device and NUMA domain.
#include <unistd.h>

#include <cstdio>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>

#include "machine.hpp"

namespace {

[[noreturn]] void end_because(const std::string& problem) {
  std::fprintf(stderr, "fabricheck: %s\n", problem.c_str());
  std::fflush(nullptr);
  _exit(3);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void load_platform(
    const simgrid::s4u::Engine& /*engine*/) {
  if (!fabricheck_sim::problem().empty()) {
    end_because(fabricheck_sim::problem());
  }
  try {
    fabricheck_sim::make_platform_for_ranks();
  } catch (const std::runtime_error& error) {  // of a node of a system that is not the first
    end_because(error.what());
  }
}
