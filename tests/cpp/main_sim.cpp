#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

#include "harness/simulation.hpp"

// All tests run in one simulation, of the node in three_devices.json.
int main(int argc, char** argv) {
  setenv("FABRICHECK_SIMULATED_NODE", FABRICHECK_TEST_NODE, 1);
  int result = 1;
  fabricheck::run_simulated([&] {
    fabricheck::require_node();
    result = doctest::Context(argc, argv).run();
  });
  return result;
}
