#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "harness/status.hpp"
#include "memcpy/plan.hpp"

using namespace fabricheck;
using namespace fabricheck::copies;

namespace {

using Pairs = std::vector<std::pair<int, int>>;

template <typename Parse>
std::pair<Status, std::string> failure_of(const Parse& parse) {
  try {
    (void)parse();
  } catch (const Failure& failure) {
    return {failure.status(), failure.what()};
  }
  return {Status::good, ""};
}

const std::vector<HostDomain> kDomains{
    {0, {0}, 1, ""}, {1, {1}, 0, "NUMA domain 1 has no memory"}, {3, {2}, 1, ""}};

Pairs positions(const std::string& domains, const std::vector<int>& devices,
                const std::vector<int>& nearest) {
  Pairs result;
  for (const auto& position : plan_positions(domains, devices, nearest, kDomains).positions) {
    result.emplace_back(position.domain, position.device);
  }
  return result;
}

}  // namespace

TEST_CASE("each device is near its own domain, and those of one domain follow each other") {
  CHECK(positions("near", {0, 1, 2, 3}, {3, 3, 0, 3}) == Pairs{{3, 0}, {3, 1}, {3, 3}, {0, 2}});
  CHECK(positions("near", {2}, {3, 3, 0, 3}) == Pairs{{0, 2}});
}

TEST_CASE("where no domain is asked for, each device has host memory of its own") {
  CHECK(positions("any", {1, 0}, {3, 0}) == Pairs{{-1, 1}, {-1, 0}});
  CHECK(plan_positions("any", {0}, {-1}, {}).notes.empty());
}

TEST_CASE("a device whose domain is unknown takes any, with a note") {
  const auto plan = plan_positions("near", {0}, {-1}, kDomains);
  CHECK(plan.positions.front().domain == -1);
  REQUIRE(plan.notes.size() == 1);
  CHECK(plan.notes[0].find("device 0") != std::string::npos);
  // With one usable domain there is nothing to guess.
  const auto only = plan_positions("near", {0}, {-1}, {kDomains[0], kDomains[1]});
  CHECK(only.positions.front().domain == 0);
  CHECK(only.notes.empty());
}

TEST_CASE("each usable domain is measured, the others are noted") {
  const auto plan = plan_positions("each", {0, 1}, {0, 0}, kDomains);
  CHECK(positions("each", {0, 1}, {0, 0}) == Pairs{{0, 0}, {0, 1}, {3, 0}, {3, 1}});
  CHECK(plan.notes == std::vector<std::string>{"NUMA domain 1 has no memory: it is not measured"});
}

TEST_CASE("domains asked for by number are taken in that order") {
  CHECK(positions("3,0", {1}, {0, 0}) == Pairs{{3, 1}, {0, 1}});
}

TEST_CASE("domains that cannot be measured are refused by name") {
  struct Row {
    const char* domains;
    std::vector<int> nearest;
    Status status;
    const char* sentence;
  };
  for (const auto& row :
       {Row{"7", {0}, Status::unsupported, "NUMA domain 7 does not exist: the host has 0, 1, 3"},
        Row{"0,1", {0}, Status::unsupported, "NUMA domain 1 has no memory"},
        Row{"near",
            {1},
            Status::unsupported,
            "NUMA domain 1 has no memory, and device 0 is attached to it"},
        Row{"0,0", {0}, Status::usage, "the list of NUMA domains '0,0' names 0 twice"},
        Row{"far", {0}, Status::usage, "the NUMA domain 'far' is not a whole number of 0 or more"},
        Row{"0,", {0}, Status::usage, "the list of NUMA domains '0,' has an empty item"}}) {
    CAPTURE(row.domains);
    const auto [status, sentence] =
        failure_of([&row] { return plan_positions(row.domains, {0}, row.nearest, kDomains); });
    CHECK(status == row.status);
    CHECK(sentence == row.sentence);
  }
  const auto [status, sentence] =
      failure_of([] { return plan_positions("each", {0}, {0}, {kDomains[1]}); });
  CHECK(status == Status::unsupported);
  CHECK(sentence == "no NUMA domain of the host can be measured");
}

TEST_CASE("a domain that is closed to this process is a setting, and none of the machine's") {
  HostDomain closed{0, {}, 1, "NUMA domain 0 is closed to this process"};
  closed.closed = true;
  const auto failure = failure_of([&] { return plan_positions("near", {0}, {0}, {closed}); });
  CHECK(failure.first == Status::setting);
  CHECK(failure.second ==
        "NUMA domain 0 is closed to this process, and device 0 is attached to it");
}

TEST_CASE("operations know their directions") {
  struct Row {
    const char* name;
    bool to_device, to_host, synchronous, latency = false;
  };
  for (const auto& row :
       {Row{"h2d", true, false, false}, Row{"d2h", false, true, false},
        Row{"both", true, true, false}, Row{"h2d-sync", true, false, true},
        Row{"d2h-sync", false, true, true}, Row{"h2d-latency", true, false, false, true},
        Row{"d2h-latency", false, true, false, true}}) {
    CAPTURE(row.name);
    const auto operation = parse_copy_operations(row.name).front();
    CHECK(operation_name(operation) == std::string(row.name));
    CHECK(goes_to_device(operation) == row.to_device);
    CHECK(goes_to_host(operation) == row.to_host);
    CHECK(is_synchronous(operation) == row.synchronous);
    CHECK(is_latency(operation) == row.latency);
  }
}

TEST_CASE("a latency has one size of its own, and is queued ahead but for pageable memory") {
  for (const auto memory : {HostMemory::pinned, HostMemory::pageable}) {
    const auto jobs = plan_copies({{0, 1}}, {memory},
                                  {CopyOperation::h2d, CopyOperation::h2d_latency}, {4096, 8192});
    REQUIRE(jobs.size() == 3);
    CHECK(jobs[2].operation == CopyOperation::h2d_latency);
    CHECK(jobs[2].bytes == kLatencyBytes);
    CHECK_FALSE(jobs[0].needs_gate());
    CHECK(jobs[2].needs_gate() == (memory == HostMemory::pinned));
  }
}

TEST_CASE("lists of names are refused with those that are known") {
  CHECK(failure_of([] { return parse_copy_operations("h2d,dma"); }).second ==
        "'dma' is not an operation: choose from h2d, d2h, both, h2d-sync, d2h-sync, h2d-latency, "
        "d2h-latency");
  CHECK(failure_of([] { return parse_copy_operations("d2h,d2h"); }).second ==
        "the list of operations 'd2h,d2h' names d2h twice");
  CHECK(failure_of([] { return parse_host_memory("malloc"); }).second ==
        "'malloc' is not a kind of host memory: choose from pinned, noncoherent, pageable");
  CHECK(parse_host_memory("pageable,noncoherent,pinned") ==
        std::vector<HostMemory>{HostMemory::pageable, HostMemory::noncoherent, HostMemory::pinned});
  CHECK(std::string(memory_word(HostMemory::noncoherent)) == memory::host_noncoherent);
}

TEST_CASE("devices are measured one after the other, however they are named") {
  CHECK(parse_devices("each", 3) == std::vector<int>{0, 1, 2});
  CHECK(parse_devices("all", 3) == std::vector<int>{0, 1, 2});
  CHECK(parse_devices("2,0", 3) == std::vector<int>{2, 0});
  CHECK(failure_of([] { return parse_devices("3", 3); }).first == Status::unsupported);
  CHECK(failure_of([] { return parse_devices("0,0", 3); }).first == Status::usage);
}

TEST_CASE("jobs that share host memory follow each other, then those of one device") {
  std::vector<std::string> texts;
  for (const auto& job :
       plan_copies({{0, 3}, {1, 3}, {2, -1}}, parse_host_memory("pinned,pageable"),
                   parse_copy_operations("h2d,both"), {1024})) {
    texts.push_back(job.text());
  }
  CHECK(texts == std::vector<std::string>{
                     "h2d of 1 KiB between host-pinned memory of NUMA domain 3 and device 0",
                     "both of 1 KiB between host-pinned memory of NUMA domain 3 and device 0",
                     "h2d of 1 KiB between host-pinned memory of NUMA domain 3 and device 1",
                     "both of 1 KiB between host-pinned memory of NUMA domain 3 and device 1",
                     "h2d of 1 KiB between host-pageable memory of NUMA domain 3 and device 0",
                     "both of 1 KiB between host-pageable memory of NUMA domain 3 and device 0",
                     "h2d of 1 KiB between host-pageable memory of NUMA domain 3 and device 1",
                     "both of 1 KiB between host-pageable memory of NUMA domain 3 and device 1",
                     "h2d of 1 KiB between host-pinned memory and device 2",
                     "both of 1 KiB between host-pinned memory and device 2",
                     "h2d of 1 KiB between host-pageable memory and device 2",
                     "both of 1 KiB between host-pageable memory and device 2"});
}
