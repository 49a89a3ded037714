#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "harness/concurrent.hpp"
#include "harness/pattern.hpp"
#include "harness/simulation.hpp"
#include "memcpy/copies.hpp"

using namespace fabricheck;
using namespace fabricheck::copies;

namespace {

constexpr std::uint64_t kBytes = 16 * 1021;

SamplingRules quick() {
  SamplingRules rules;
  rules.batch_seconds = 1e-5;
  rules.series_seconds = 0;
  return rules;
}

/// Host memory of one kind and a device with its arrays.
struct Sides {
  explicit Sides(HostMemory memory)
      : host(-1, memory, {2 * kBytes, true, true}, std::nullopt),
        copies(0, host, {2 * kBytes, true, true}) {}

  std::vector<Series> measure(const std::string& name, const std::vector<Fault>& faults = {}) {
    const CopyJob job{{0, -1}, host.memory(), parse_copy_operations(name).front(), kBytes};
    return copies.measure(job, "E2", quick(), 0, faults);
  }

  HostSide host;
  Copies copies;
};

}  // namespace

TEST_CASE("every copy arrives, and its series says what moved where") {
  for (const auto memory : {HostMemory::pinned, HostMemory::pageable}) {
    Sides sides(memory);
    for (const std::string name : {"h2d", "d2h", "h2d-sync", "d2h-sync"}) {
      CAPTURE(name);
      const auto measured = sides.measure(name);
      REQUIRE(measured.size() == 1);
      const auto& series = measured.front();
      const bool to_device = name[0] == 'h';
      const auto& on_host = to_device ? series.source : series.destination;
      const auto& on_device = to_device ? series.destination : series.source;
      CHECK(series.role == "single");
      CHECK(series.operation == name);
      CHECK(series.device == 0);
      CHECK(on_host.memory == memory_word(memory));
      CHECK(on_host.device == -1);
      CHECK(on_device.memory == "device");
      CHECK(on_device.device == 0);
      CHECK(series.engine == "copy-engine");
      CHECK(series.direction == "one-way");
      CHECK(series.bytes_moved == kBytes);
      CHECK_FALSE(series.read_and_write);
      CHECK(series.verification.bytes_checked == kBytes);
      CHECK(series.verification.errors == 0);
      CHECK(series.seconds.size() >= 7);
      const bool by_events = memory == HostMemory::pinned && name.size() == 3;
      CHECK(series.host_seconds.size() == (by_events ? series.seconds.size() : 0));
    }
  }
}

TEST_CASE("a latency is the time of one copy") {
  Sides sides(HostMemory::pinned);
  CopyJob job{{0, -1}, HostMemory::pinned, CopyOperation::h2d_latency, kLatencyBytes};
  const auto measured = sides.copies.measure(job, "E2", quick(), 0, {});
  REQUIRE(measured.size() == 1);
  CHECK(measured.front().latency);
  CHECK(measured.front().bytes_moved == kLatencyBytes);
  CHECK(measured.front().verification.bytes_checked == kLatencyBytes);
  CHECK(measured.front().verification.errors == 0);
}

TEST_CASE("both directions at once are two shares and their sum, of all that was compared") {
  for (const auto memory : {HostMemory::pinned, HostMemory::pageable}) {
    Sides sides(memory);
    const auto series = sides.measure("both");
    REQUIRE(series.size() == 3);
    CHECK(series[0].source.memory == memory_word(memory));
    CHECK(series[0].destination.memory == "device");
    CHECK(series[1].source.memory == "device");
    CHECK(series[1].destination.memory == memory_word(memory));
    for (const auto& share : {series[0], series[1]}) {
      CHECK(share.role == "share");
      CHECK(share.device == 0);
      CHECK(share.direction == "both-ways");
      CHECK(share.verification.bytes_checked == kBytes);
    }
    CHECK(series[2].role == "sum");
    CHECK(series[2].device == -1);
    CHECK(series[2].bytes_moved == 2 * kBytes);
    CHECK(series[2].source.memory == memory_word(memory));
    CHECK(series[2].source.numa_domain == series[0].source.numa_domain);
    CHECK(series[2].destination.device == -1);
    CHECK(series[2].verification.bytes_checked == 2 * kBytes);
    // Copies of pageable memory are by the host's clock, and never wait at a gate.
    CHECK(series[2].host_seconds.empty() == (memory == HostMemory::pageable));
  }
}

TEST_CASE("wrong and missing data are found in every direction and kind of memory") {
  for (const auto memory : {HostMemory::pinned, HostMemory::pageable}) {
    Sides sides(memory);
    for (const std::string name : {"h2d", "d2h", "both", "h2d-sync", "d2h-sync"}) {
      CAPTURE(name);
      for (const auto& series : sides.measure(name, parse_faults({"flip-bit:8:7"}))) {
        CHECK(series.verification.errors == (series.role == "sum" ? 2 : 1));
        REQUIRE(series.verification.first_mismatch);
        const auto& first = *series.verification.first_mismatch;
        CHECK(first.offset_bytes == 8);
        CHECK((first.expected ^ first.found) == 1ULL << 7);
        CHECK(first.device == (series.destination.memory == "device" ? 0 : -1));
      }
      for (const auto& series : sides.measure(name, parse_faults({"unwritten"}))) {
        CHECK(series.verification.errors == series.verification.bytes_checked / 8);
      }
      for (const auto& series : sides.measure(name)) {
        CHECK(series.verification.errors == 0);
      }
    }
  }
}

TEST_CASE("data of another direction or device are not taken for the right ones") {
  Sides sides(HostMemory::pinned);
  const auto words = kBytes / sizeof(double);
  (void)sides.measure("d2h");
  // The host's own data in the place of the device's.
  std::copy_n(sides.host.source().as<double>(), words, sides.host.destination().as<double>());
  const auto from_host = compare(sides.host.destination().as<double>(), words,
                                 {1, 0x5eed0300U, 0, 0});  // what device 0 sends
  CHECK(from_host.errors > words / 2);
}

TEST_CASE("arrays in host memory are filled, poisoned and compared by the thread itself") {
  const auto buffer = Buffer::on_host(-1, kBytes, HostMemory::pageable);
  auto* data = buffer.as<double>();
  const auto words = kBytes / sizeof(double);
  const TimedStream stream(0);
  const auto on_device = Buffer::on_device(0, kBytes);
  fill(stream, on_device.as<double>(), words, 5);
  stream.synchronize();
  FABRICHECK_HIP(hipMemcpy(data, on_device.as<double>(), kBytes, hipMemcpyDeviceToHost));
  CHECK(compare(data, words, {1, 5, 0, 0}).errors == 0);  // as the device computes it
  poison(data, words);
  CHECK(compare(data, words, {1, 5, 0, 0}).errors == words);
  fill(data, words, 5);
  CHECK(compare(data, words, {1, 5, 0, 0}).errors == 0);
  flip_bit(data, 3, 63);
  const auto found = compare(data, words, {1, 5, 0, 0});
  CHECK(found.errors == 1);
  CHECK(found.first_mismatch->offset_bytes == 24);
  CHECK_THROWS_AS(inject(parse_faults({"flip-bit:16336:0"}), data, words), Failure);
}

TEST_CASE("work at once starts together, and each has its own time") {
  std::atomic<int> inside{0};
  const auto meet = [&inside] {  // ends only when both are there
    ++inside;
    while (inside < 2) {
      std::this_thread::yield();
    }
  };
  const auto seconds = run_at_once({meet, meet});
  REQUIRE(seconds.size() == 2);
  CHECK(seconds[0] > 0);
  CHECK(seconds[1] > 0);
}

TEST_CASE("what work at once throws is thrown when all have ended") {
  bool ended = false;
  const auto fail = [] { throw Failure(Status::software, "broken"); };
  CHECK_THROWS_WITH_AS((void)run_at_once({fail, [&ended] { ended = true; }}), "broken", Failure);
  CHECK(ended);
}
