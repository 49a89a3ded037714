#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <vector>

#include "mpi/values.hpp"

using namespace fabricheck;

namespace {

const std::vector<DataType> kAll{DataType::byte, DataType::int32, DataType::float32,
                                 DataType::float64};

/// An array of one rank's values in memory of the host, filled by the calling thread.
std::vector<unsigned char> filled(const Region& region) {
  std::vector<unsigned char> memory((region.offset + region.count) *
                                    type_bytes(region.content.type));
  poison(nullptr, memory.data(), memory.size());
  fill(nullptr, memory.data(), region);
  return memory;
}

template <typename T>
std::vector<T> values_of(DataType type, int first_rank, int ranks, std::uint64_t count) {
  const auto memory = filled({0, count, {type, first_rank, ranks, 0, 0}});
  std::vector<T> values(count);
  std::memcpy(values.data(), memory.data(), memory.size());
  return values;
}

/// Sums rank by rank in the order given, as an MPI may.
template <typename T>
std::vector<T> summed(DataType type, const std::vector<int>& order, std::uint64_t count) {
  std::vector<T> sum(count, T(0));
  for (const int rank : order) {
    const auto values = values_of<T>(type, rank, 1, count);
    std::transform(sum.begin(), sum.end(), values.begin(), sum.begin(),
                   [](T a, T b) { return static_cast<T>(a + b); });
  }
  return sum;
}

}  // namespace

TEST_CASE("types have the names and sizes of the result document") {
  CHECK(type_bytes(DataType::byte) == 1);
  CHECK(type_bytes(DataType::int32) == 4);
  CHECK(type_bytes(DataType::float32) == 4);
  CHECK(type_bytes(DataType::float64) == 8);
  CHECK(parse_types("byte,int32,float,double") == kAll);
  CHECK_THROWS_WITH_AS((void)parse_types("half"),
                       "'half' is not a type: choose from byte, int32, float, double", Failure);
  CHECK_THROWS_WITH_AS((void)parse_types("byte,byte"), "'byte,byte' names the type byte twice",
                       Failure);
  CHECK_THROWS_AS((void)parse_types("byte,"), Failure);
}

TEST_CASE("values are not constant, differ between ranks and messages, and are never the poison") {
  for (const auto type : kAll) {
    CAPTURE(type_name(type));
    std::set<std::uint64_t> seen;
    int equal = 0;
    const auto most = type_bytes(type) == 8 ? ~0ULL : (1ULL << 8 * type_bytes(type)) - 1;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const auto bits = element_bits({type, 0, 1, 0, 0}, i);
      seen.insert(bits);
      equal += bits == element_bits({type, 1, 1, 0, 0}, i) ? 1 : 0;
      equal += bits == element_bits({type, 0, 1, 0, 1}, i) ? 1 : 0;
      CHECK(bits != most);
    }
    CHECK(seen.size() > 200);
    CHECK(equal < 60);  // chance alone gives 16 of 4000 for bytes
  }
}

TEST_CASE("sums are exact in every order") {
  std::vector<int> order(64);
  std::iota(order.begin(), order.end(), 0);
  const std::uint64_t count = 50;
  const auto check = [&](auto zero, DataType type) {
    using T = decltype(zero);
    const auto expected = values_of<T>(type, 0, 64, count);
    CHECK(summed<T>(type, order, count) == expected);
    auto reversed = order;
    std::reverse(reversed.begin(), reversed.end());
    CHECK(summed<T>(type, reversed, count) == expected);
    auto pairwise = summed<T>(type, {order.begin(), order.begin() + 32}, count);
    const auto other = summed<T>(type, {order.begin() + 32, order.end()}, count);
    std::transform(pairwise.begin(), pairwise.end(), other.begin(), pairwise.begin(),
                   [](T a, T b) { return static_cast<T>(a + b); });
    CHECK(pairwise == expected);
  };
  check(std::int32_t{}, DataType::int32);
  check(float{}, DataType::float32);
  check(double{}, DataType::float64);
}

TEST_CASE("the most ranks that may be summed stay within what a type holds exactly") {
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto number = [i](DataType type) {
      return std::stod(element_text(type, element_bits({type, 0, kMostRanksOfSums, 0, 0}, i)));
    };
    CHECK(number(DataType::int32) > 0);
    CHECK(number(DataType::int32) < 2147483648.0);
    CHECK(number(DataType::float32) <= 16777216.0);
    CHECK(number(DataType::float64) <= 9007199254740992.0);
  }
}

TEST_CASE("what was filled compares equal, and the poison does not") {
  for (const auto type : kAll) {
    CAPTURE(type_name(type));
    const Region region{3, 1000, {type, 2, 1, 7, 5}};
    auto memory = filled(region);
    const auto good = compare(nullptr, memory.data(), region);
    CHECK(good.errors == 0);
    CHECK(good.bytes_checked == 1000 * type_bytes(type));
    poison(nullptr, memory.data(), memory.size());
    const auto bad = compare(nullptr, memory.data(), region);
    CHECK(bad.errors == 1000);
    CHECK(bad.first_mismatch->offset_bytes == 3 * type_bytes(type));
  }
}

TEST_CASE("a flipped bit is one wrong element, named by byte, expected and found") {
  for (const auto type : kAll) {
    CAPTURE(type_name(type));
    const auto size = type_bytes(type);
    const Region region{0, 500, {type, 1, 1, 0, 0}};
    auto memory = filled(region);
    flip_bit(nullptr, memory.data(), 100 * size, 2);
    const auto found = compare(nullptr, memory.data(), region);
    REQUIRE(found.errors == 1);
    CHECK(found.first_mismatch->offset_bytes == 100 * size);
    CHECK(found.first_mismatch->device == -1);
    CHECK((found.first_mismatch->expected ^ found.first_mismatch->found) == 4);
    CHECK(found.first_mismatch->expected == element_bits(region.content, 100));
  }
}

TEST_CASE("kernels hold, poison and find the same as the calling thread") {
  const TimedStream stream(0);
  for (const auto type : kAll) {
    CAPTURE(type_name(type));
    const Region region{1, 777, {type, 0, type == DataType::byte ? 1 : 3, 11, 0}};
    const auto bytes = 778 * type_bytes(type);
    const auto memory = Buffer::on_device(0, bytes);
    poison(&stream, memory.as<void>(), bytes);
    CHECK(compare(&stream, memory.as<void>(), region).errors == 777);
    fill(&stream, memory.as<void>(), region);
    CHECK(compare(&stream, memory.as<void>(), region).errors == 0);
    std::vector<unsigned char> seen(bytes);
    REQUIRE(hipMemcpy(seen.data(), memory.as<void>(), bytes, hipMemcpyDefault) == hipSuccess);
    CHECK(seen == filled(region));
    flip_bit(&stream, memory.as<void>(), 5 * type_bytes(type), 0);
    const auto found = compare(&stream, memory.as<void>(), region);
    CHECK(found.errors == 1);
    CHECK(found.first_mismatch->device == 0);
    CHECK(found.first_mismatch->offset_bytes == 5 * type_bytes(type));
    CHECK(found.first_mismatch->expected == element_bits(region.content, 4));
  }
}

TEST_CASE("an empty region is filled and compared without a look at memory") {
  const TimedStream stream(0);
  for (const auto* accessor : {static_cast<const TimedStream*>(nullptr), &stream}) {
    fill(accessor, nullptr, {0, 0, {}});
    CHECK(compare(accessor, nullptr, {0, 0, {}}).bytes_checked == 0);
  }
}

TEST_CASE("verifications add up and keep the first difference") {
  Verification sum;
  add(sum, {100, 0, std::nullopt});
  add(sum, {100, 2, Verification::Mismatch{-1, 64, 1, 2}});
  add(sum, {100, 1, Verification::Mismatch{-1, 8, 3, 4}});
  CHECK(sum.bytes_checked == 300);
  CHECK(sum.errors == 3);
  CHECK(sum.first_mismatch->offset_bytes == 8);
}

TEST_CASE("elements are written as people do") {
  CHECK(element_text(DataType::byte, 0xa5) == "0xa5");
  CHECK(element_text(DataType::int32, 0xffffffff) == "-1");
  CHECK(element_text(DataType::float32, 0x3fc00000) == "1.5");
  CHECK(element_text(DataType::float64, 0x4045000000000000ULL) == "42");
  CHECK(element_text(DataType::float64, ~0ULL).find("nan") != std::string::npos);
}
