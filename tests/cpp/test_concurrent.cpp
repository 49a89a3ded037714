#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/concurrent.hpp"
#include "harness/devices.hpp"
#include "harness/pattern.hpp"
#include "harness/run.hpp"

using namespace fabricheck;

namespace {

Series part_of(int device, std::uint64_t bytes) {
  Series series;
  series.device = device;
  series.device_set = {0, 1};
  series.source = {"device", device, -1};
  series.destination = {"peer", 1 - device, -1};
  series.bytes = bytes;
  series.bytes_moved = bytes;
  series.verification.bytes_checked = bytes;
  return series;
}

/// What a run of one set of two pairs ends as, of the times of both in each sample.
std::pair<Status, std::string> outcome_of(const std::string& experiment,
                                          const std::vector<BatchTimes>& samples) {
  std::vector<Series> parts{part_of(0, 1 << 30), part_of(1, 1 << 30)};
  for (auto& part : parts) {
    part.experiment = experiment;
    part.operation = operation::engine;
  }
  const CommonOptions options;
  Document document("-", nlohmann::json::object());
  Run run("p2p", options, document, false);
  for (const auto& series : with_samples(parts, samples)) {
    run.add(series);
  }
  const auto content = document.content();
  for (const auto& series : content["series"]) {
    CHECK(series["noisy"] == (series["relative_half_width"] > options.rules.noise_limit));
  }
  CHECK(content["series"][0]["noisy"] == true);
  return {run.status(), run.sentence()};
}

/// Samples of two pairs: one is done after a part of the time, by turns; the other one takes all.
std::vector<BatchTimes> taken_in_turn(const std::vector<double>& times) {
  std::vector<BatchTimes> samples;
  for (const double time : times) {
    const bool first = samples.size() % 2 == 0;
    samples.push_back({{first ? 0.7 * time : time, first ? time : 0.7 * time}, time});
  }
  return samples;
}

}  // namespace

// That a short one's time is its own, and not that of all, is tested on the simulated node.
TEST_CASE("of two streams it is known which started later, and which stopped") {
  const TimedStream first(0);
  const TimedStream second(0);
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  const auto mark = [&wait](const TimedStream& stream, void (TimedStream::*what)() const) {
    (stream.*what)();
    stream.synchronize();
    wait();
  };
  mark(first, &TimedStream::mark_start);
  mark(second, &TimedStream::mark_start);
  mark(second, &TimedStream::mark_stop);
  mark(first, &TimedStream::mark_stop);
  CHECK(second.starts_after(first) >= 0.02);
  CHECK(second.starts_after(first) == doctest::Approx(-first.starts_after(second)));
  CHECK(first.stops_after(second) >= 0.02);
  CHECK(second.stops_after(first) < 0);
  CHECK(first.seconds() > second.seconds());
}

TEST_CASE("every task runs a batch of operations and has a time") {
  const TimedStream first(0);
  const TimedStream second(1);
  constexpr std::uint64_t words = 1 << 12;
  const auto small = Buffer::on_device(0, words * sizeof(double));
  const auto large = Buffer::on_device(1, 256 * words * sizeof(double));
  int queued = 0;
  StartGate gate;
  ConcurrentBatch batch(
      {{&first,
        [&](int operations) {
          queued += operations;
          fill(first, small.as<double>(), words, 1);
        }},
       {&second, one_by_one([&] { fill(second, large.as<double>(), 256 * words, 2); })}},
      &gate);
  const auto times = batch.run(8);
  CHECK(queued == 9);  // one of them before the gate was ever closed
  REQUIRE(times.device.size() == 2);
  CHECK(times.device[0] > 0);
  CHECK(times.device[1] > 0);
  CHECK(times.together() >= times.device[0]);
  CHECK(times.together() >= times.device[1]);
  CHECK(batch.run(3).device.size() == 2);
  CHECK(queued == 12);
}

TEST_CASE("nothing waits behind a gate where launches block, nor on a CPU") {
  CHECK(queued_ahead(false, true));
  CHECK_FALSE(queued_ahead(true, true));
  CHECK_FALSE(queued_ahead(false, false));
  setenv("HIP_LAUNCH_BLOCKING", "0", 1);
  CHECK(queued_ahead(false, true));
  setenv("HIP_LAUNCH_BLOCKING", "1", 1);
  CHECK_FALSE(queued_ahead(false, true));
  unsetenv("HIP_LAUNCH_BLOCKING");
}

TEST_CASE("behind a gate no more is queued than the gate allows") {
  StartGate gate;
  SamplingRules rules;
  rules.max_batch = 4096;
  CHECK(ConcurrentBatch({}, &gate).bounded(rules).max_batch == StartGate::max_queued());
  CHECK(ConcurrentBatch({}, nullptr).bounded(rules).max_batch == 4096);
  rules.max_batch = 5;
  CHECK(ConcurrentBatch({}, &gate).bounded(rules).max_batch == 5);
}

TEST_CASE("one part is a single with the host's clock beside its own") {
  const auto series = with_samples({part_of(1, 100)}, {{{1.0}, 1.5}, {{2.0}, 2.5}});
  REQUIRE(series.size() == 1);
  CHECK(series[0].role == "single");
  CHECK(series[0].seconds == std::vector<double>{1.0, 2.0});
  CHECK(series[0].host_seconds == std::vector<double>{1.5, 2.5});
}

TEST_CASE("several parts are shares, and their sum lasts as long as the slowest") {
  auto broken = part_of(1, 60);
  broken.verification.errors = 2;
  broken.verification.first_mismatch = Verification::Mismatch{1, 8, 3, 4};
  const auto series =
      with_samples({part_of(0, 100), broken}, {{{1.0, 3.0}, 3.02}, {{2.0, 1.0}, 2.5}});
  REQUIRE(series.size() == 3);
  CHECK(series[0].role == "share");
  CHECK(series[1].seconds == std::vector<double>{3.0, 1.0});
  CHECK(series[1].host_seconds.empty());
  const auto& sum = series[2];
  CHECK(sum.role == "sum");
  CHECK(sum.device == -1);
  CHECK(sum.destination.memory == "peer");
  CHECK(sum.destination.device == -1);
  CHECK(sum.bytes_moved == 160);
  // In the second sample the devices did not work all at once: the host's clock counts.
  CHECK(sum.seconds == std::vector<double>{3.0, 2.5});
  CHECK(sum.host_seconds == std::vector<double>{3.02, 2.5});
  CHECK(sum.verification.bytes_checked == 160);
  CHECK(sum.verification.errors == 2);
  CHECK(sum.verification.first_mismatch->offset_bytes == 8);
}

TEST_CASE("between devices the sum is judged, and the shares only say how they vary") {
  // The shares vary by 30 %, the sum by 0.1 %: two pairs that one engine serves.
  const auto steady = taken_in_turn({1, 1.001, 1, 0.999, 1, 1.001, 0.999, 1, 1});
  for (const char* experiment : {experiment::E7, experiment::E8}) {
    CAPTURE(experiment);
    CHECK(outcome_of(experiment, steady).first == Status::good);
  }
  const auto varied = taken_in_turn({1, 1.6, 1, 1.6, 1, 1.6, 1, 1.6, 1});
  const auto [status, sentence] = outcome_of(experiment::E7, varied);
  CHECK(status == Status::too_noisy);
  CHECK(sentence.rfind("engine of 1 GiB on devices 0, 1 at once: half the 95 % interval is ", 0) ==
        0);
}

TEST_CASE("a share that is a result of its own is judged") {
  const auto samples = taken_in_turn({1, 1, 1, 1, 1, 1, 1, 1, 1});
  for (const char* experiment : {experiment::E1, experiment::E2, experiment::E5, experiment::E9}) {
    CAPTURE(experiment);
    const auto [status, sentence] = outcome_of(experiment, samples);
    CHECK(status == Status::too_noisy);
    CHECK(sentence.find(" on device 0 from device 0 to device 1: ") != std::string::npos);
  }
}

TEST_CASE("what works beside something else is not judged by its noise, alone it is") {
  auto series = part_of(0, 1 << 30);
  series.experiment = experiment::E2;
  series.role = role::single;
  CHECK(is_judged(series));
  series.role = role::beside;
  CHECK_FALSE(is_judged(series));
}

TEST_CASE("sizes of arrays are multiples of 16 bytes, and past the caches by default") {
  CHECK(array_sizes("", 1) == std::vector<std::uint64_t>{64 << 20});
  CHECK(array_sizes("", 0) == std::vector<std::uint64_t>{2ULL << 30});
  CHECK(array_sizes("", 40 << 20) == std::vector<std::uint64_t>{256 << 20});
  CHECK(largest_device_cache(device_count()) >= device_last_level_cache(0));
  CHECK(array_sizes("16B,1KiB:2KiB", 1) == std::vector<std::uint64_t>{16, 1024, 2048});
  CHECK_THROWS_AS((void)array_sizes("24", 1), Failure);
  CHECK(past_caches(400, 100));
  CHECK_FALSE(past_caches(399, 100));
}
