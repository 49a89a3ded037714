#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "harness/energy.hpp"
#include "harness/sampling.hpp"
#include "harness/status.hpp"

using namespace fabricheck;

namespace {

/// A device whose operations take a known time, and a clock that only it moves.
struct FakeDevice {
  double seconds_per_operation = 1e-4;
  double noise = 0;
  double now = 0;
  int batches = 0;
  int largest_batch = 0;
  std::mt19937 generator{11};

  RunBatch run() {
    return [this](int batch) {
      std::uniform_real_distribution<double> spread(1 - noise, 1 + noise);
      const double time = batch * seconds_per_operation * spread(generator);
      now += time;
      ++batches;
      largest_batch = std::max(largest_batch, batch);
      return BatchTimes{{time}, time};
    };
  }
  Clock clock() {
    return [this] { return now; };
  }
};

}  // namespace

TEST_CASE("a batch becomes as long as asked and little longer") {
  for (const double operation : {1e-7, 1e-6, 3e-5, 2e-3}) {
    CAPTURE(operation);
    FakeDevice device{operation};
    SamplingRules rules;
    rules.batch_seconds = 0.01;
    rules.max_batch = 1000000;
    const int batch = calibrate(device.run(), rules, 0, device.clock());
    CHECK(batch * operation >= 0.01);
    CHECK(batch * operation <= 0.0125);
  }
}

TEST_CASE("an operation longer than a batch is not repeated") {
  FakeDevice device{0.5};
  CHECK(calibrate(device.run(), {}, 0, device.clock()) == 1);
  CHECK(device.batches == 1);
}

TEST_CASE("a batch never exceeds its limit") {
  FakeDevice device{1e-9};
  SamplingRules rules;
  rules.max_batch = 128;
  CHECK(calibrate(device.run(), rules, 0, device.clock()) == 128);
  CHECK(device.largest_batch == 128);
}

TEST_CASE("calibration works the device for the warm-up time") {
  FakeDevice device{1e-4};
  (void)calibrate(device.run(), {}, 0.5, device.clock());
  CHECK(device.now >= 0.5);
}

TEST_CASE("a quiet series stops at the least number of samples") {
  FakeDevice device;
  CHECK(take_samples(device.run(), 10, {}, device.clock()).size() == 7);
}

TEST_CASE("a noisy series takes more samples, up to its limits") {
  FakeDevice device;
  device.noise = 0.5;
  SamplingRules rules;
  rules.max_samples = 40;
  CHECK(take_samples(device.run(), 10, rules, device.clock()).size() == 40);

  FakeDevice slow{1.0, 0.5};
  rules.series_seconds = 15;
  rules.noise_limit = 1;
  const auto samples = take_samples(slow.run(), 1, rules, slow.clock()).size();
  CHECK(samples >= 10);
  CHECK(samples <= 30);
}

TEST_CASE("a series that is still noisy has longer, and one that is not has not") {
  // One sample of the first seven takes twice as long, and none behind it.
  double now = 0;
  int taken = 0;
  const RunBatch burst = [&](int) {
    const double time = ++taken == 7 ? 2 : 1;
    now += time;
    return BatchTimes{{time}, time};
  };
  SamplingRules rules;
  rules.precision = 0;
  rules.series_seconds = 8;
  rules.noise_limit = 0.1;
  const auto samples = take_samples(burst, 1, rules, [&] { return now; }).size();
  CHECK(samples > 7);
  CHECK(samples <= 12);
  now = taken = 0;
  rules.noise_limit = 0.6;
  CHECK(take_samples(burst, 1, rules, [&] { return now; }).size() == 7);
}

TEST_CASE("noise makes a run as long again at most, all series together") {
  // Every second sample takes twice as long in the noisy series, none in the quiet ones.
  double now = 0;
  int taken = 0;
  const auto series = [&](bool noisy, const SamplingRules& rules) {
    const double began = now;
    const RunBatch run = [&, noisy](int) {
      const double time = noisy && ++taken % 2 == 0 ? 2 : 1;
      now += time;
      return BatchTimes{{time}, time};
    };
    const auto samples = take_samples(run, 1, rules, [&] { return now; }).size();
    CHECK(samples >= 7);
    return now - began;
  };
  SamplingRules rules;
  rules.precision = 0;
  rules.max_samples = 1000;
  rules.series_seconds = 20;
  const double quiet = series(false, rules) + series(false, rules) + series(false, rules);
  CHECK(quiet == doctest::Approx(3 * 7));
  // The first noisy one has the time of all four, the next only its own.
  CHECK(series(true, rules) == doctest::Approx(20 + 21 + 20).epsilon(0.05));
  CHECK(series(true, rules) == doctest::Approx(20 + 20).epsilon(0.1));
  CHECK(series(true, rules) == doctest::Approx(20 + 20).epsilon(0.1));
  CHECK(now <= 2 * (3 * 7 + 3 * 20) + 6);
  // What copies the rules shares the allowance; another run has its own.
  const SamplingRules copied = rules;
  CHECK(series(true, copied) == doctest::Approx(20 + 20).epsilon(0.1));
  SamplingRules other;
  other.precision = 0;
  other.series_seconds = 20;
  other.max_samples = 1000;
  CHECK(series(true, other) == doctest::Approx(20 + 20).epsilon(0.1));
}

TEST_CASE("a series of slow operations keeps its samples, and their time is its own") {
  double now = 0;
  int taken = 0;
  const RunBatch slow = [&](int) {
    const double time = ++taken % 2 == 0 ? 20 : 10;
    now += time;
    return BatchTimes{{time}, time};
  };
  SamplingRules rules;
  rules.precision = 0;
  rules.series_seconds = 1;
  CHECK(take_samples(slow, 1, rules, [&] { return now; }).size() >= 7);
  CHECK(now <= 2 * 100 + 20);
}

TEST_CASE("what varies between the devices of a set takes no more samples") {
  int taken = 0;
  const RunBatch in_turn = [&taken](int) {
    return ++taken % 2 == 0 ? BatchTimes{{0.7, 1}, 1} : BatchTimes{{1, 0.7}, 1};
  };
  CHECK(take_samples(in_turn, 1, {}, [] { return 0.0; }).size() == 7);
}

TEST_CASE("the slowest device decides, unless the devices did not work all at once") {
  CHECK(BatchTimes{{1, 3, 2}, 3.05}.together() == 3);
  CHECK(BatchTimes{{1, 3, 2}, 4}.together() == 4);
  CHECK(BatchTimes{{3}, 4}.together() == 3);  // of one device the host's clock is a cross-check
}

TEST_CASE("a time that is not positive is an error, not a rate") {
  for (const double time : {0.0, -1.0, std::nan("")}) {
    const RunBatch broken = [time](int) { return BatchTimes{{1.0, time}, 1.0}; };
    CHECK_THROWS_AS((void)calibrate(broken, {}, 0), Failure);
    CHECK_THROWS_AS((void)take_samples(broken, 1, {}), Failure);
  }
}

TEST_CASE("a batch that is held for its energy lasts a second") {
  FakeDevice device{0.3};
  SamplingRules rules;
  rules.meter = std::make_shared<EnergyMeter>(
      std::vector<EnergyCounter>{}, [] { return nlohmann::json::array(); }, 0.0);
  const auto held = hold(device.run(), {{{0.6}, 0.6}}, 2, rules);
  REQUIRE(held != nullptr);
  CHECK(held->operations == 4);
}
