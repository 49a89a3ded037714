#include <doctest/doctest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "harness/devices.hpp"
#include "harness/pattern.hpp"
#include "p2p/peers.hpp"

using namespace fabricheck;
using namespace fabricheck::p2p;

namespace {

constexpr std::uint64_t kBytes = 16 * 1021;  // a prime number of elements: no block size divides it
constexpr std::uint64_t kChase = 1 << 16;

SamplingRules quick() {
  SamplingRules rules;
  rules.batch_seconds = 1e-5;
  rules.series_seconds = 0;
  rules.warm_up_seconds = 0;
  return rules;
}

Job job_of(const std::string& name, std::vector<Pair> pairs) {
  const auto what = parse_measurements(name).front();
  return {what, std::move(pairs), what.is_latency() ? 0 : kBytes};
}

Peers two_peers() { return Peers({0, 1}, {kBytes, kChase, 100}); }

std::string places(const Series& series) {
  return series.source.memory + " " + std::to_string(series.source.device) + " -> " +
         series.destination.memory + " " + std::to_string(series.destination.device);
}

}  // namespace

TEST_CASE("every operation arrives, and its series says what moved where") {
  auto peers = two_peers();
  struct Row {
    const char* name;
    const char* experiment;
    const char* engine;
    int device;
    const char* places;
    const char* direction;
    std::uint64_t moved;
  };
  for (const auto& row :
       {Row{"engine", "E7", "copy-engine", 0, "device 0 -> peer 1", "one-way", kBytes},
        Row{"read", "E8", "kernel", 1, "peer 0 -> device 1", "one-way", kBytes},
        Row{"write", "E8", "kernel", 0, "device 0 -> peer 1", "one-way", kBytes},
        Row{"copy", "E8", "kernel", 0, "peer 1 -> peer 1", "both-ways", 2 * kBytes},
        Row{"latency", "E7", "copy-engine", 0, "device 0 -> peer 1", "one-way", 16},
        Row{"latency-host", "E7", "copy-engine", 0, "device 0 -> peer 1", "one-way", 16},
        Row{"chase", "E8", "kernel", 1, "peer 0 -> device 1", "one-way", 8}}) {
    CAPTURE(row.name);
    const auto measured = peers.measure(job_of(row.name, {{0, 1}}), quick(), {});
    REQUIRE(measured.size() == 1);
    const auto& series = measured.front();
    const bool latency = job_of(row.name, {}).bytes == 0;
    CHECK(series.operation == row.name);
    CHECK(series.experiment == row.experiment);
    CHECK(series.engine == row.engine);
    CHECK(series.role == "single");
    CHECK(series.device == row.device);
    CHECK(series.device_set == std::vector<int>{0, 1});
    CHECK(places(series) == row.places);
    CHECK(series.direction == row.direction);
    CHECK(series.bytes_moved == row.moved);
    CHECK(series.read_and_write == (std::string(row.name) == "copy"));
    CHECK(series.latency == latency);
    CHECK(series.stores.empty() == (series.engine != "kernel"));
    CHECK((series.block_size == 0) == (series.engine != "kernel"));
    CHECK(series.verification.errors == 0);
    CHECK(series.verification.bytes_checked > 0);
    CHECK(series.seconds.size() >= 7);
    CHECK(series.host_seconds.size() ==
          (series.operation == "latency-host" ? 0 : series.seconds.size()));
  }
}

TEST_CASE("both directions at once give a share of each device and their sum") {
  auto peers = two_peers();
  for (const std::string name : {"engine-both", "read-both", "write-both"}) {
    CAPTURE(name);
    const auto series = peers.measure(job_of(name, {{0, 1}, {1, 0}}), quick(), {});
    REQUIRE(series.size() == 3);
    CHECK(series[0].role == "share");
    CHECK(series[0].direction == "both-ways");
    CHECK(series[0].device != series[1].device);
    CHECK(series[0].verification.bytes_checked == kBytes);
    CHECK(series[1].verification.bytes_checked == kBytes);
    CHECK(series[2].role == "sum");
    CHECK(series[2].bytes_moved == 2 * kBytes);
    CHECK(series[2].verification.errors == 0);
    CHECK(series[0].batch <= StartGate::max_queued());
  }
}

TEST_CASE("a copy of a device within its memory by the call for peers is local, and verified") {
  auto peers = two_peers();
  for (const std::string name : {"engine", "latency"}) {
    CAPTURE(name);
    const auto series = peers.measure(job_of(name, {{1, 1}}), quick(), {}).front();
    CHECK(series.experiment == "E7");
    CHECK(series.direction == "local");
    CHECK(series.device_set == std::vector<int>{1});
    CHECK(places(series) == "device 1 -> device 1");
    CHECK(series.bytes_moved == series.bytes);
    CHECK(series.verification.errors == 0);
    CHECK(series.verification.bytes_checked > 0);
    const auto faulty =
        peers.measure(job_of(name, {{1, 1}}), quick(), parse_faults({"flip-bit:8:7"})).front();
    CHECK(faulty.verification.errors == 1);
  }
}

TEST_CASE("a chase of a device through its own memory is local") {
  auto peers = two_peers();
  const auto series = peers.measure(job_of("chase", {{1, 1}}), quick(), {}).front();
  CHECK(series.direction == "local");
  CHECK(series.device_set == std::vector<int>{1});
  CHECK(places(series) == "device 1 -> device 1");
  CHECK(series.bytes == kChase);
  CHECK_FALSE(series.in_memory);
}

TEST_CASE("faults are found on every path, by the device that holds the destination") {
  auto peers = two_peers();
  for (const std::string name : {"engine", "read", "write", "copy", "latency", "latency-host"}) {
    CAPTURE(name);
    const auto flipped =
        peers.measure(job_of(name, {{0, 1}}), quick(), parse_faults({"flip-bit:8:7"})).front();
    CHECK(flipped.verification.errors == 1);
    REQUIRE(flipped.verification.first_mismatch);
    CHECK(flipped.verification.first_mismatch->device == 1);
    CHECK(flipped.verification.first_mismatch->offset_bytes == 8);
    const auto unwritten =
        peers.measure(job_of(name, {{0, 1}}), quick(), parse_faults({"unwritten"})).front();
    CHECK(unwritten.verification.errors == unwritten.verification.bytes_checked / 8);
  }
  for (const std::string fault : {"flip-bit:0:7", "unwritten"}) {
    const auto chase =
        peers.measure(job_of("chase", {{0, 1}}), quick(), parse_faults({fault})).front();
    CHECK(chase.verification.errors == 1);
    CHECK(chase.verification.first_mismatch->expected != chase.verification.first_mismatch->found);
  }
  CHECK(peers.measure(job_of("engine", {{0, 1}}), quick(), {}).front().verification.errors == 0);
}

TEST_CASE("a size smaller than the arrays is copied and checked in part") {
  auto peers = two_peers();
  const Job job{parse_measurements("read").front(), {{1, 0}}, 256};
  const auto series = peers.measure(job, quick(), {}).front();
  CHECK(series.verification.bytes_checked == 256);
  CHECK(series.bytes_moved == 256);
}

TEST_CASE("a device is warmed up once") {
  auto peers = two_peers();
  auto rules = quick();
  rules.warm_up_seconds = 0.3;
  const double start = host_seconds();
  (void)peers.measure(job_of("engine", {{0, 1}}), rules, {});
  CHECK(host_seconds() - start >= 0.3);
  rules.warm_up_seconds = 86400;  // a second warm-up would not end before the tests' time limit
  (void)peers.measure(job_of("engine", {{1, 0}}), rules, {});
}

TEST_CASE("what a device cannot reach is known by a sentence") {
  if (!device_is_cpu(0)) {
    return;  // only the host runtime can be told to deny access
  }
  REQUIRE(setenv("FABRICHECK_HOST_NO_PEER_ACCESS", "0-1", 1) == 0);
  const PeerAccess access({0, 1});
  REQUIRE(unsetenv("FABRICHECK_HOST_NO_PEER_ACCESS") == 0);
  CHECK(access.obstacle(0, 1) == "device 0 cannot reach the memory of device 1 from its kernels");
  CHECK_FALSE(access.obstacle(1, 0));
  CHECK_FALSE(access.obstacle(0, 0));
}

TEST_CASE("a chase visits every line once and comes back") {
  for (const int bits : {1, 2, 3, 7, 12, 15}) {
    CAPTURE(bits);
    const auto lines = 1ULL << bits;
    std::set<std::uint64_t> visited;
    for (std::uint64_t step = 0; step < lines; ++step) {
      visited.insert(chase_line(step, bits));
    }
    CHECK(visited.size() == lines);
    CHECK(*visited.rbegin() == lines - 1);
    CHECK(chase_line(lines, bits) == chase_line(0, bits));
  }
}

TEST_CASE("only the device that all send to has an array for each of them") {
  const auto needed =
      lanes_needed({job_of("write", {{1, 0}, {2, 0}, {3, 0}}), job_of("read", {{0, 1}, {0, 2}})});
  CHECK(needed.at(0).destination == 3);
  CHECK(needed.at(1).destination == 1);
  CHECK(needed.at(1).stream == 1);
  CHECK(lanes_needed({job_of("read", {{1, 0}, {2, 0}})}).at(0).stream == 2);
}

TEST_CASE("the loads of a chase are spread over the compute units") {
  for (const unsigned units : {1U, 2U, 8U, 110U, 132U}) {
    CAPTURE(units);
    std::set<unsigned> used;
    for (unsigned turn = 100; turn < 100 + 3 * units; ++turn) {
      used.insert(chase_unit(turn, units));
    }
    CHECK(*used.rbegin() < units);
    CHECK(used.size() == units);
    std::set<unsigned> quarters;  // of any seven in a row, the fewest samples of a series
    for (unsigned turn = 5; turn < 12; ++turn) {
      quarters.insert(4 * chase_unit(turn, units) / units);
    }
    CHECK(quarters.size() == std::min(units, 4U));
  }
}

TEST_CASE("a chase has no stride that a prefetcher could follow") {
  constexpr int bits = 12;
  std::set<std::uint64_t> strides;
  for (std::uint64_t step = 0; step < 1000; ++step) {
    strides.insert((chase_line(step + 1, bits) - chase_line(step, bits)) & ((1 << bits) - 1));
  }
  CHECK(strides.size() > 500);
}

TEST_CASE("a chase that is broken on its way arrives elsewhere") {
  const TimedStream stream(0);
  ChaseArray chase(stream, 256);  // two lines, which name each other
  auto rules = quick();
  rules.batch_seconds = 1;  // more than the batch may last
  rules.max_batch = 3;
  const auto sound = chase.measure({}, stream, rules, 0, {});
  CHECK(sound.verification.errors == 0);
  CHECK(sound.batch == 3 * 255);  // odd: two lines that name themselves end elsewhere
  for (const std::uint64_t line : {0, 1}) {
    flip_bit(stream, reinterpret_cast<double*>(chase.words()), 16 * line, 7);  // names itself
  }
  stream.synchronize();
  const auto broken = chase.measure({}, stream, rules, 0, {});
  CHECK(broken.verification.errors == 1);
}
