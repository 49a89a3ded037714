#include <doctest/doctest.h>

#include <set>
#include <string>

#include "harness/fault.hpp"
#include "harness/pattern.hpp"

using namespace fabricheck;

namespace {

constexpr std::uint64_t kWords = 10007;  // no multiple of a block: the tail counts

struct Array {
  TimedStream stream{0};
  Buffer buffer = Buffer::on_device(0, kWords * sizeof(double));
  double* data = buffer.as<double>();
};

}  // namespace

TEST_CASE("values lie in [1, 2), differ, and depend on the seed") {
  std::set<double> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const double value = pattern_value(i, 1);
    CHECK(value >= 1);
    CHECK(value < 2);
    seen.insert(value);
  }
  CHECK(seen.size() > 990);
  CHECK(pattern_value(5, 1) != pattern_value(5, 2));
  CHECK(pattern_value(5, 1) != pattern_value(5 + (1ULL << 32), 1));
}

TEST_CASE("what was filled is found, on every word") {
  const Array array;
  fill(array.stream, array.data, kWords, 3);
  const auto found = compare(array.stream, array.data, kWords, {1, 3, 0, 0});
  CHECK(found.errors == 0);
  CHECK(found.bytes_checked == kWords * 8);
  CHECK_FALSE(found.first_mismatch);
}

TEST_CASE("poison equals no value") {
  const Array array;
  poison(array.stream, array.data, kWords);
  const auto found = compare(array.stream, array.data, kWords, {1, 3, 0, 0});
  CHECK(found.errors == kWords);
  CHECK(found.first_mismatch->offset_bytes == 0);
}

TEST_CASE("one flipped bit anywhere is found and named") {
  const Array array;
  for (const std::uint64_t word : {std::uint64_t{0}, std::uint64_t{4321}, kWords - 1}) {
    for (const int bit : {0, 31, 63}) {
      CAPTURE(word);
      CAPTURE(bit);
      fill(array.stream, array.data, kWords, 3);
      inject(parse_faults({"flip-bit:" + std::to_string(word * 8) + ":" + std::to_string(bit)}),
             array.stream, array.data, kWords);
      const auto found = compare(array.stream, array.data, kWords, {1, 3, 0, 0});
      CHECK(found.errors == 1);
      REQUIRE(found.first_mismatch);
      CHECK(found.first_mismatch->offset_bytes == word * 8);
      CHECK((found.first_mismatch->expected ^ found.first_mismatch->found) == 1ULL << bit);
    }
  }
}

TEST_CASE("a destination that was never written is found") {
  const Array array;
  fill(array.stream, array.data, kWords, 3);
  inject(parse_faults({"unwritten"}), array.stream, array.data, kWords);
  CHECK(compare(array.stream, array.data, kWords, {1, 3, 0, 0}).errors == kWords);
}

TEST_CASE("faults that cannot be made are refused") {
  for (const std::string text : {"flip", "flip-bit:1", "flip-bit:1:64", "flip-bit:x:1", ""}) {
    CHECK_THROWS_AS((void)parse_faults({text}), Failure);
  }
  const Array array;
  const auto outside = parse_faults({"flip-bit:" + std::to_string(8 * kWords) + ":0"});
  CHECK_THROWS_AS(inject(outside, array.stream, array.data, kWords), Failure);
}

TEST_CASE("pages on another domain are a fault of host memory only") {
  CHECK(pages_on(parse_faults({"unwritten", "pages-on:3"}, true)) == 3);
  CHECK_FALSE(pages_on(parse_faults({"unwritten"}, true)));
  for (const std::string text : {"pages-on", "pages-on:", "pages-on:x", "pages-on:-1"}) {
    CHECK_THROWS_AS((void)parse_faults({text}, true), Failure);
  }
  CHECK_THROWS_AS((void)parse_faults({"pages-on:3"}), Failure);
}

TEST_CASE("sums of scaled values are exact") {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const double a = pattern_value(i, 1);
    const double b = pattern_value(i, 2);
    CHECK(static_cast<double>(static_cast<long double>(a) + 3.0L * b) == a + 3.0 * b);
    CHECK((a + 3.0 * b) - 3.0 * b == a);
  }
}
