#include <doctest/doctest.h>

#include <random>
#include <stdexcept>

#include "harness/statistics.hpp"

using namespace fabricheck;

TEST_CASE("median and median absolute deviation") {
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2.5);
  CHECK_THROWS_AS((void)median({}), std::invalid_argument);
  const auto summary = summarise({1, 2, 3, 4, 100});
  CHECK(summary.median == 3);
  CHECK(summary.mad == 1);  // deviations 2, 1, 0, 1, 97
}

TEST_CASE("ranks of the interval follow the binomial distribution") {
  // Tables of nonparametric intervals for a median, 95 %: n and rank of the lower end.
  CHECK_FALSE(interval_rank(5));
  CHECK(*interval_rank(6) == 1);
  CHECK(*interval_rank(8) == 1);
  CHECK(*interval_rank(9) == 2);
  CHECK(*interval_rank(11) == 2);
  CHECK(*interval_rank(12) == 3);
  CHECK(*interval_rank(15) == 4);
  CHECK(*interval_rank(20) == 6);
  CHECK(*interval_rank(51) == 19);
  CHECK(*interval_rank(1000) == 469);
}

TEST_CASE("the interval holds the true median at least 95 times in 100") {
  std::mt19937 generator(7);  // a fixed seed: this test gives the same answer every time
  std::exponential_distribution<double> skewed(1.0);
  const double truth = 0.6931471805599453;
  int held = 0;
  const int trials = 4000;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> samples(9);
    for (auto& sample : samples) {
      sample = skewed(generator);
    }
    const auto interval = *summarise(samples).interval;
    held += interval.first <= truth && truth <= interval.second ? 1 : 0;
  }
  CHECK(held >= 0.95 * trials);
  CHECK(held < 0.99 * trials);  // nor far too wide: 96.1 % is exact for nine samples
}

TEST_CASE("few samples have no interval and no width") {
  const auto summary = summarise({1, 2, 3});
  CHECK_FALSE(summary.interval);
  CHECK_FALSE(summary.relative_half_width());
}

TEST_CASE("the relative half width") {
  const auto summary = summarise({9, 10, 10, 10, 10, 11});
  REQUIRE(summary.interval);
  CHECK(summary.interval->first == 9);
  CHECK(summary.interval->second == 11);
  CHECK(*summary.relative_half_width() == doctest::Approx(0.1));
}

TEST_CASE("a percentile is the least value that so many do not exceed") {
  std::vector<double> values;
  for (int i = 200; i > 0; --i) {
    values.push_back(i);
  }
  CHECK(percentile(values, 99) == 198);
  CHECK(percentile(values, 100) == 200);
  CHECK(percentile({7}, 99) == 7);
  CHECK(percentile({1, 2}, 99) == 2);
}
