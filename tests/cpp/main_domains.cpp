// Tests on a machine with four NUMA domains, whatever this one has: hwloc is told of them, and what
// the kernel does with memory policies and pages is in test_domains.cpp.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("HWLOC_SYNTHETIC", "numa:4 l3:1(size=1048576) core:1 pu:1", 1);
  setenv("HWLOC_THISSYSTEM", "1", 1);
  setenv("FABRICHECK_HOST_DEVICES", "4", 1);
  return doctest::Context(argc, argv).run();
}
