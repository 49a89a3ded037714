#include <doctest/doctest.h>

#include <string>

#include "harness/devices.hpp"
#include "harness/hip.hpp"
#include "harness/status.hpp"

using namespace fabricheck;
using Sets = std::vector<std::vector<int>>;

TEST_CASE("device sets") {
  CHECK(parse_device_sets({"each"}, 3) == Sets{{0}, {1}, {2}});
  CHECK(parse_device_sets({"all"}, 3) == Sets{{0, 1, 2}});
  CHECK(parse_device_sets({"0", "2,0"}, 3) == Sets{{0}, {2, 0}});
}

TEST_CASE("device sets that cannot be are refused") {
  const auto status_of = [](const std::string& text) {
    try {
      (void)parse_device_sets({text}, 2);
    } catch (const Failure& failure) {
      return failure.status();
    }
    return Status::good;
  };
  CHECK(status_of("2") == Status::unsupported);
  CHECK(status_of("0,0") == Status::usage);
  CHECK(status_of("some") == Status::usage);
  CHECK(status_of("0,,1") == Status::usage);
}

TEST_CASE("where the caches are unknown, large ones are assumed") {
  CHECK_FALSE(past_caches(1 << 30, 0));
  CHECK(past_caches(2ULL << 30, 0));
  // Two processors with 1152 MiB each.
  CHECK_FALSE(past_caches((4ULL << 30) - 1, 2304ULL << 20));
  CHECK(past_caches(4ULL << 30, 2304ULL << 20));
}

TEST_CASE("a program without kernels for a device is a setting, and names both architectures") {
  // What HIP's launches end with, and CUDA's.
  for (const int error : {98, 209}) {
    CAPTURE(error);
    const auto failure =
        hip_failure(static_cast<hipError_t>(error), "a launch", 0, "gfx90a, gfx942");
    CHECK(failure.status() == Status::setting);
    CHECK(failure.what() ==
          std::string("device 0 is host, but this program was compiled for gfx90a, gfx942: compile "
                      "it for that architecture"));
    // Of what else is wrong with a function the runtime has the words.
    for (const auto& other : {hip_failure(static_cast<hipError_t>(error), "a launch", 0, ""),
                              hip_failure(hipErrorInvalidValue, "a launch", 0, "gfx90a")}) {
      CHECK(other.status() == Status::refused);
      CHECK(std::string(other.what()).rfind("a launch on device 0 failed: ", 0) == 0);
    }
  }
}
