#include <doctest/doctest.h>
#include <sched.h>

#include <set>
#include <string>

#include "harness/numa.hpp"
#include "harness/status.hpp"

using namespace fabricheck;

namespace {

/// A topology with what is disallowed, from a file or a description.
class Topology {
 public:
  explicit Topology(const std::string& text) {
    REQUIRE(hwloc_topology_init(&topology_) == 0);
    const bool file = text.find(".xml") != std::string::npos;
    REQUIRE((file ? hwloc_topology_set_xml(topology_, text.c_str())
                  : hwloc_topology_set_synthetic(topology_, text.c_str())) == 0);
    REQUIRE(hwloc_topology_set_flags(topology_, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0);
    REQUIRE(hwloc_topology_load(topology_) == 0);
  }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
  ~Topology() { hwloc_topology_destroy(topology_); }
  [[nodiscard]] std::vector<HostDomain> domains() const { return domains_of(topology_); }

 private:
  hwloc_topology_t topology_ = nullptr;
};

std::set<int> cores_of_this_thread() {
  cpu_set_t mask;
  REQUIRE(sched_getaffinity(0, sizeof mask, &mask) == 0);
  std::set<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &mask)) {
      cores.insert(core);
    }
  }
  return cores;
}

}  // namespace

TEST_CASE("domains have their cores and their memory") {
  const auto domains = Topology("pack:2 [numa(memory=1GB)] core:2 pu:1").domains();
  REQUIRE(domains.size() == 2);
  CHECK(domains[0].cores == std::vector<int>{0, 1});
  CHECK(domains[1].cores == std::vector<int>{2, 3});
  CHECK(domains[1].index == 1);
  CHECK(domains[1].memory_bytes == 1000000000);
  CHECK(domains[0].obstacle.empty());
  CHECK(domains[1].obstacle.empty());
}

TEST_CASE("domains without memory or cores, or closed to this process, say so") {
  // 1 has no memory, 2 no cores, the core of 3 and the memory of 4 are not allowed.
  const auto domains = Topology(FABRICHECK_TEST_TOPOLOGY).domains();
  REQUIRE(domains.size() == 5);
  CHECK(domains[0].obstacle.empty());
  CHECK(domains[1].obstacle == "NUMA domain 1 has no memory");
  CHECK(domains[2].obstacle == "NUMA domain 2 has no cores");
  CHECK(domains[3].obstacle ==
        "NUMA domain 3 is closed to this process, which may use none of its cores");
  CHECK(domains[4].obstacle ==
        "NUMA domain 4 is closed to this process, which may not use its memory");
  // Of the machine, or of this process alone.
  CHECK_FALSE(domains[1].closed);
  CHECK_FALSE(domains[2].closed);
  CHECK(domains[3].closed);
  CHECK(domains[4].closed);
}

TEST_CASE("a thread is bound to a domain for as long as it says") {
  const auto before = cores_of_this_thread();
  for (const auto& domain : host_domains()) {
    if (domain.obstacle.empty()) {
      const CoreBinding binding(domain.index);
      const std::set<int> allowed(domain.cores.begin(), domain.cores.end());
      CHECK(cores_of_this_thread() == allowed);
    }
    CHECK(cores_of_this_thread() == before);
  }
  const CoreBinding none(-1);
  CHECK(cores_of_this_thread() == before);
}

TEST_CASE("a domain that a thread cannot be brought to is an error") {
  const auto before = cores_of_this_thread();
  try {
    const CoreBinding binding(4711);
    FAIL("no error");
  } catch (const Failure& failure) {
    CHECK(failure.status() == Status::software);
    CHECK(std::string(failure.what()).find("NUMA domain 4711") != std::string::npos);
  }
  CHECK(cores_of_this_thread() == before);
}
