#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "harness/fault.hpp"
#include "overlap/beside.hpp"
#include "overlap/compute.hpp"

using namespace fabricheck;
using namespace fabricheck::overlap;

namespace {

constexpr std::uint64_t kBytes = 1 << 20;
/// Of a test on shared cores: what is tested is not when both start.
constexpr double kAnySkew = 1e9;

SamplingRules quick() {
  SamplingRules rules;
  rules.batch_seconds = 1e-3;
  rules.series_seconds = 0;
  rules.warm_up_seconds = 0;
  return rules;
}

copies::HostSide host_side() {
  copies::CopyArrays arrays;
  arrays.bytes = kBytes;
  arrays.to_host = true;
  return {-1, HostMemory::pinned, arrays, std::nullopt};
}

std::string failure_of(const std::function<void()>& what, Status status) {
  try {
    what();
  } catch (const Failure& failure) {
    CHECK(failure.status() == status);
    return failure.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the kernel's result tells that each value went through all multiply-adds") {
  const TimedStream stream(0);
  Compute compute(stream);
  CHECK(compute.bytes() % (2048 * 4 * sizeof(double)) == 0);
  for (const int iterations : {1, 7, 1000}) {
    CAPTURE(iterations);
    compute.set_iterations(iterations);
    compute.poison_result(stream);
    compute.queue(stream, 2);
    CHECK(compute.check(stream, {}).errors == 0);
    CHECK(compute.check(stream, {}).bytes_checked == compute.bytes());
  }
  compute.set_iterations(999);
  CHECK(compute.check(stream, {}).errors == compute.bytes() / sizeof(double));
  compute.set_iterations(1000);
  compute.poison_result(stream);
  CHECK(compute.check(stream, {}).errors == compute.bytes() / sizeof(double));
}

TEST_CASE("each is measured alone and beside the other, by engine and by kernel") {
  const auto host = host_side();
  struct Row {
    Copy copy;
    const char* experiment;
    const char* operation;
    const char* engine;
    const char* destination;
  };
  for (const auto& row : {Row{{0, 1, false}, "E7", "engine", "copy-engine", "peer"},
                          Row{{0, 1, true}, "E8", "write", "kernel", "peer"},
                          Row{{0, -1, false}, "E2", "d2h", "copy-engine", "host-pinned"},
                          Row{{0, -1, true}, "E3", "write", "kernel", "host-pinned"}}) {
    CAPTURE(row.copy.text());
    Overlap overlap(row.copy, kBytes, 128, row.copy.peer < 0 ? &host : nullptr);
    const auto series = overlap.measure(quick(), {}, kAnySkew);
    REQUIRE(series.size() == 4);
    for (std::size_t i = 0; i < series.size(); ++i) {
      const auto& one = series[i];
      const bool computes = i % 2 == 0;
      const bool alone = i < 2;
      CAPTURE(i);
      CHECK(one.experiment == row.experiment);
      CHECK(one.operation == (computes ? "compute" : row.operation));
      CHECK(one.engine == (computes ? "kernel" : row.engine));
      CHECK(one.role == (alone ? "single" : "beside"));
      CHECK(one.latency == computes);
      CHECK(one.device == 0);
      const bool pair = row.copy.peer == 1 && !(computes && alone);
      CHECK(one.device_set == (pair ? std::vector<int>{0, 1} : std::vector<int>{0}));
      CHECK(one.source.memory == "device");
      CHECK(one.destination.memory == (computes ? "device" : row.destination));
      CHECK(one.movement == (!computes && one.experiment == "E3" ? "zero-copy" : ""));
      CHECK((one.block_size > 0) == (one.engine == "kernel"));
      CHECK(one.verification.errors == 0);
      CHECK(one.verification.bytes_checked == one.bytes);
      CHECK(one.seconds.size() >= 7);
      CHECK(one.host_seconds.size() == (alone ? one.seconds.size() : 0));
    }
    CHECK(overlap.proof().skew >= 0);
    CHECK(overlap.tflops() > 0);
  }
}

TEST_CASE("wrong data of the kernel and of the copies are found, alone and beside each other") {
  const auto host = host_side();
  for (const auto& copy : {Copy{0, 1, false}, Copy{0, -1, true}}) {
    CAPTURE(copy.text());
    Overlap overlap(copy, kBytes, 128, copy.peer < 0 ? &host : nullptr);
    for (const auto& one : overlap.measure(quick(), parse_faults({"flip-bit:16:3"}), kAnySkew)) {
      CAPTURE(one.operation);
      CAPTURE(one.role);
      CHECK(one.verification.errors == 1);
      REQUIRE(one.verification.first_mismatch);
      CHECK(one.verification.first_mismatch->offset_bytes == 16);
      const bool computes = one.operation == "compute";
      CHECK(one.verification.first_mismatch->device == (computes ? 0 : copy.peer));
    }
  }
}

TEST_CASE("what does not start together is no measurement") {
  CHECK(failure_of([] { require_together(0.0501); }, Status::software) ==
        "the kernel and the copies started 5.01 % of their time apart, and at the same time is at "
        "most 5 %: a longer --batch-time makes it less");
  require_together(0.05);
  Overlap overlap({0, 1, false}, kBytes, 128, nullptr);
  CHECK_FALSE(failure_of([&] { overlap.measure(quick(), {}, -1); }, Status::software).empty());
}

TEST_CASE("copies that are too small for their queue are refused") {
  Overlap overlap({0, 1, false}, 4096, 128, nullptr);
  auto rules = quick();
  rules.batch_seconds = 0.05;
  const auto said = failure_of([&] { overlap.measure(rules, {}, kAnySkew); }, Status::usage);
  CHECK(said.find("copies of 4 KiB, as many as can be queued, take ") != std::string::npos);
}
