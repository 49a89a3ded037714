#include <doctest/doctest.h>

#include <string>

#include "harness/sizes.hpp"
#include "harness/status.hpp"

using namespace fabricheck;

namespace {

std::string failure_of(const std::string& text) {
  try {
    (void)parse_size_list(text);
  } catch (const Failure& failure) {
    CHECK(failure.status() == Status::usage);
    return failure.what();
  }
  return "";
}

}  // namespace

TEST_CASE("sizes are read with binary and decimal units") {
  CHECK(parse_size("256") == 256);
  CHECK(parse_size("16B") == 16);
  CHECK(parse_size("1KiB") == 1024);
  CHECK(parse_size("3MiB") == 3u << 20);
  CHECK(parse_size("8GiB") == 8ULL << 30);
  CHECK(parse_size("1GB") == 1000000000ULL);
}

TEST_CASE("what is no size is refused by a sentence that quotes it") {
  for (const std::string text : {"", "0", "-1", "1.5GiB", "GiB", "1 GiB", "12XB", "1gib",
                                 "99999999999999999999", "99999999999TiB"}) {
    CAPTURE(text);
    CHECK_THROWS_AS((void)parse_size(text), Failure);
  }
  CHECK(failure_of("12XB").find("'12XB' is not a size") != std::string::npos);
}

TEST_CASE("lists hold sizes and doubling ranges in the order written") {
  CHECK(parse_size_list("1KiB:8KiB") == std::vector<std::uint64_t>{1024, 2048, 4096, 8192});
  CHECK(parse_size_list("4KiB,1KiB") == std::vector<std::uint64_t>{4096, 1024});
  // The end of a range that doubling does not hit is not measured.
  CHECK(parse_size_list("1KiB:3KiB") == std::vector<std::uint64_t>{1024, 2048});
  CHECK(failure_of("8KiB:1KiB").find("ends below its start") != std::string::npos);
  CHECK(failure_of("1KiB,").find("empty item") != std::string::npos);
  CHECK(failure_of(",1KiB").find("empty item") != std::string::npos);
}

TEST_CASE("sizes are written with binary prefixes") {
  CHECK(format_size(100) == "100 B");
  CHECK(format_size(1536) == "1.5 KiB");
  CHECK(format_size(8ULL << 30) == "8 GiB");
}

TEST_CASE("indices are whole numbers of zero or more") {
  CHECK(parse_index("7", "the device") == 7);
  CHECK(parse_whole("4294967296", "the offset") == 4294967296ULL);
  CHECK_THROWS_AS((void)parse_index("4294967296", "the device"), Failure);
  for (const std::string text : {"", "-1", "1x", "x"}) {
    CHECK_THROWS_AS((void)parse_index(text, "the device"), Failure);
  }
}
