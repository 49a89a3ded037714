#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "harness/status.hpp"
#include "p2p/plan.hpp"

using namespace fabricheck;
using namespace fabricheck::p2p;

namespace {

/// The exit status and sentence that `parse` fails with.
template <typename Parse>
std::pair<Status, std::string> failure_of(const Parse& parse) {
  try {
    (void)parse();
  } catch (const Failure& failure) {
    return {failure.status(), failure.what()};
  }
  return {Status::good, ""};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> texts(const std::vector<Job>& jobs) {
  std::vector<std::string> result;
  for (const auto& job : jobs) {
    result.push_back(job.text());
  }
  return result;
}

}  // namespace

TEST_CASE("where they may be, pairs are of a device and itself, for copy-engine transfers only") {
  const auto local = parse_pairs("self", 3, true);
  REQUIRE(local.size() == 3);
  CHECK(local[2] == Pair{2, 2});
  CHECK(parse_pairs("1-1,0-1", 2, true).front() == Pair{1, 1});
  CHECK_THROWS_AS(parse_pairs("self", 3), Failure);
  const auto jobs = plan_jobs(parse_measurements("engine,latency"), local, {}, {1024});
  CHECK(jobs.size() == 6);
  CHECK(jobs[1].text() == "engine of 1 KiB from device 1 to 1");
  for (const std::string name : {"engine-both", "read", "write", "copy", "chase"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH(plan_jobs(parse_measurements(name), local, {}, {1024}),
                      (name + " is between two devices, and the pair 0-0 is one: choose from "
                              "engine, latency, latency-host")
                          .c_str());
  }
}

TEST_CASE("all pairs of eight devices are 56") {
  const auto pairs = parse_pairs("all", 8);
  CHECK(pairs.size() == 56);
  CHECK(pairs.front() == Pair{0, 1});
  CHECK(pairs.back() == Pair{7, 6});
}

TEST_CASE("pairs are ordered and in the order written") {
  const auto pairs = parse_pairs("3-0,0-3", 4);
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0] == Pair{3, 0});
  CHECK(pairs[1] == Pair{0, 3});
}

TEST_CASE("pairs that mean nothing are refused by name") {
  for (const auto& [written, part] :
       std::vector<std::pair<std::string, std::string>>{{"0", "'0' is not a pair"},
                                                        {"0:1", "'0:1' is not a pair"},
                                                        {"0-x", "'x' is not a whole number"},
                                                        {"0-0", "the pair 0-0 is one device twice"},
                                                        {"0-1,0-1", "names the pair 0-1 twice"},
                                                        {"0-1,", "has an empty item"},
                                                        {"all,0-1", "'all' is not a pair"}}) {
    const auto& text = written;  // no lambda of C++17 may use a structured binding
    CAPTURE(text);
    const auto [status, sentence] = failure_of([&text] { return parse_pairs(text, 4); });
    CHECK(status == Status::usage);
    CHECK(contains(sentence, part));
  }
  const auto [status, sentence] = failure_of([] { return parse_pairs("0-1,2-9", 4); });
  CHECK(status == Status::unsupported);
  CHECK(contains(sentence, "device 9 of the pair 2-9 does not exist: the runtime has 4, 0 to 3"));
}

TEST_CASE("pairs of a set that share a device have lanes of their own there") {
  using Lanes = std::vector<std::pair<int, int>>;  // stream, destination
  const auto lanes = [](const std::string& operation, const std::string& set) {
    Lanes found;
    for (const auto& lane :
         lanes_of({parse_measurements(operation).front(), parse_pairs(set, 4), 0})) {
      found.emplace_back(lane.stream, lane.destination);
    }
    return found;
  };
  CHECK(lanes("engine", "0-1,2-3") == Lanes{{0, 0}, {0, 0}});
  CHECK(lanes("write", "0-1,1-2,2-0") == Lanes{{0, 0}, {0, 0}, {0, 0}});  // a ring
  CHECK(lanes("write", "1-0,2-0,3-0") == Lanes{{0, 0}, {0, 1}, {0, 2}});
  CHECK(lanes("read", "1-0,2-0,3-0") == Lanes{{0, 0}, {1, 1}, {2, 2}});  // device 0 executes
  CHECK(lanes("engine", "0-1,0-2,0-3") == Lanes{{0, 0}, {1, 0}, {2, 0}});
  CHECK(lanes("read", "0-1,0-2,0-3") == Lanes{{0, 0}, {0, 0}, {0, 0}});
}

TEST_CASE("operations know who executes, whose memory they need, and what moves the data") {
  const Pair pair{0, 1};
  struct Row {
    const char* name;
    int executor, owner;
    bool kernel, latency, both;
  };
  for (const auto& row :
       {Row{"engine", 0, 1, false, false, false}, Row{"engine-both", 0, 1, false, false, true},
        Row{"read", 1, 0, true, false, false}, Row{"read-both", 1, 0, true, false, true},
        Row{"write", 0, 1, true, false, false}, Row{"write-both", 0, 1, true, false, true},
        Row{"copy", 0, 1, true, false, false}, Row{"latency", 0, 1, false, true, false},
        Row{"latency-host", 0, 1, false, true, false}, Row{"chase", 1, 0, true, true, false}}) {
    CAPTURE(row.name);
    const auto measurements = parse_measurements(row.name);
    REQUIRE(measurements.size() == 1);
    const auto& what = measurements.front();
    CHECK(what.name() == row.name);
    CHECK(what.executor(pair) == row.executor);
    CHECK(what.owner(pair) == row.owner);
    CHECK(what.by_kernel() == row.kernel);
    CHECK(what.is_latency() == row.latency);
    CHECK(what.both == row.both);
  }
}

TEST_CASE("operations that are none are refused with those that are") {
  for (const std::string text : {"copy-both", "chase-both", "memcpy", ""}) {
    CHECK(failure_of([&text] { return parse_measurements(text); }).first == Status::usage);
  }
  CHECK(contains(failure_of([] { return parse_measurements("dma"); }).second,
                 "'dma' is not an operation: choose from engine, engine-both, read"));
  CHECK(contains(failure_of([] { return parse_measurements("read,read"); }).second,
                 "names the operation read twice"));
}

TEST_CASE("a plan has every operation at every size for every pair") {
  const auto jobs =
      plan_jobs(parse_measurements("engine,read"), parse_pairs("0-1,1-0", 2), {}, {1024, 2048});
  CHECK(texts(jobs) ==
        std::vector<std::string>{
            "engine of 1 KiB from device 0 to 1", "engine of 1 KiB from device 1 to 0",
            "engine of 2 KiB from device 0 to 1", "engine of 2 KiB from device 1 to 0",
            "read of 1 KiB from device 0 to 1", "read of 1 KiB from device 1 to 0",
            "read of 2 KiB from device 0 to 1", "read of 2 KiB from device 1 to 0"});
}

TEST_CASE("both directions of two devices are measured once") {
  const auto jobs = plan_jobs(parse_measurements("engine-both"), parse_pairs("all", 3), {}, {1024});
  CHECK(texts(jobs) == std::vector<std::string>{"engine-both of 1 KiB from device 0 to 1, 1 to 0",
                                                "engine-both of 1 KiB from device 0 to 2, 2 to 0",
                                                "engine-both of 1 KiB from device 1 to 2, 2 to 1"});
}

TEST_CASE("latencies have no size, and a chase is local to each device once") {
  const auto jobs =
      plan_jobs(parse_measurements("latency,chase"), parse_pairs("0-1,1-0", 2), {}, {1024, 2048});
  CHECK(texts(jobs) ==
        std::vector<std::string>{"latency from device 0 to 1", "latency from device 1 to 0",
                                 "chase from device 0 to 0", "chase from device 1 to 1",
                                 "chase from device 0 to 1", "chase from device 1 to 0"});
}

TEST_CASE("sets are measured by what has a bandwidth") {
  const auto sets = std::vector<std::vector<Pair>>{parse_pairs("0-1,2-3", 4)};
  CHECK(texts(plan_jobs(parse_measurements("write,latency"), {}, sets, {1024})) ==
        std::vector<std::string>{"write of 1 KiB from device 0 to 1, 2 to 3"});
  const auto both = plan_jobs(parse_measurements("engine-both"), {}, sets, {1024});
  CHECK(both.front().pairs.size() == 4);
  const auto all_of_two = std::vector<std::vector<Pair>>{parse_pairs("0-1,1-0", 2)};
  CHECK(plan_jobs(parse_measurements("engine-both"), {}, all_of_two, {16})[0].pairs.size() == 2);
  const auto ring = std::vector<std::vector<Pair>>{parse_pairs("0-1,1-2,2-0", 3)};
  CHECK(plan_jobs(parse_measurements("engine-both"), {}, ring, {16})[0].pairs.size() == 6);
}

TEST_CASE("a queue is asked for each copy that a device may make at once, and two more") {
  CHECK(queues_needed({}) == 2);
  CHECK(queues_needed({"0-1,2-3"}) == 3);
  CHECK(queues_needed({"0-1", "0-1,0-2,0-3,0-4,0-5"}) == 7);
  CHECK(queues_needed({"1-0,2-0,3-0"}) == 5);
  CHECK(queues_needed({"all"}) == 17);
  CHECK(queues_needed({"nonsense", "", ",,-"}) > 0);  // refused later, by a sentence
}
