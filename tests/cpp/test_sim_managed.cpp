#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "harness/devices.hpp"
#include "harness/hip.hpp"
#include "harness/host.hpp"
#include "harness/simulation.hpp"
#include "machine.hpp"

using namespace fabricheck;
using doctest::Approx;
using fabricheck_sim::Pages;
using fabricheck_sim::Place;

namespace {

// Of three_devices.json: device 0 reaches domain 0 at 50 GB/s, and its pages migrate at 2 GB/s.
constexpr std::uint64_t kMany = 1000000000;
constexpr double kLaunch = 2e-6;
constexpr double kCopyStart = 3e-6;
constexpr double kOverTheLink = 0.02;
constexpr double kMigrating = 0.5;
constexpr double kLocal = 1e-3;

class Xnack {
 public:
  explicit Xnack(const char* value) { setenv("HSA_XNACK", value, 1); }
  ~Xnack() { unsetenv("HSA_XNACK"); }
};

__global__ void nothing_kernel(int*) {}

void use(const TimedStream& stream, const void* array, std::uint64_t bytes) {
  declare_traffic(stream.get(), {{array, bytes, false}});
  hipLaunchKernelGGL(nothing_kernel, dim3(1), dim3(1), 0, stream.get(), nullptr);
}

/// Simulated seconds of one kernel that reads the first `bytes` of an array.
double seconds_of_kernel(const TimedStream& stream, const void* array,
                         std::uint64_t bytes = kMany) {
  const double start = host_seconds();
  use(stream, array, bytes);
  stream.synchronize();
  return host_seconds() - start;
}

double seconds_of_host(const void* array, std::uint64_t bytes = kMany) {
  const double start = host_seconds();
  declare_host_access(array, bytes);
  return host_seconds() - start;
}

double seconds_of_prefetch(const TimedStream& stream, const void* array, int to) {
  const double start = host_seconds();
  FABRICHECK_HIP(hipMemPrefetchAsync(array, kMany, to, stream.get()));
  stream.synchronize();
  return host_seconds() - start;
}

}  // namespace

TEST_CASE("pages are moved whole, and runs of them are counted by place") {
  using Bytes = std::map<Place, std::uint64_t>;
  Pages pages("a");
  CHECK(pages.bytes(0, 10000) == Bytes{{"a", 10000}});
  pages.move(5000, 5001, "b");
  CHECK(pages.at(4095) == "a");
  CHECK(pages.at(4096) == "b");
  CHECK(pages.at(8191) == "b");
  CHECK(pages.at(8192) == "a");
  CHECK(pages.bytes(4000, 9000) == Bytes{{"a", 904}, {"b", 4096}});
  pages.move(0, 20480, "c");
  CHECK(pages.bytes(0, 40960) == Bytes{{"a", 20480}, {"c", 20480}});
  pages.move(8192, 12288, "c");
  CHECK(pages.bytes(0, 20480) == Bytes{{"c", 20480}});
}

TEST_CASE("with xnack a kernel waits for pages on the host, and finds them on the device after") {
  const Xnack on("1");
  const TimedStream stream(0);
  const auto array = Buffer::managed(0, kMany);
  declare_host_access(array.as<void>(), kMany);
  CHECK(seconds_of_kernel(stream, array.as<void>()) == Approx(kLaunch + kMigrating).epsilon(1e-6));
  CHECK(seconds_of_kernel(stream, array.as<void>()) == Approx(kLaunch + kLocal).epsilon(1e-6));
  CHECK(seconds_of_host(array.as<void>()) == Approx(kMigrating).epsilon(1e-6));
  CHECK(seconds_of_host(array.as<void>()) == 0);
  CHECK(seconds_of_kernel(stream, array.as<void>()) == Approx(kLaunch + kMigrating).epsilon(1e-6));
}

TEST_CASE("only the pages that a kernel uses migrate") {
  const Xnack on("1");
  const TimedStream stream(0);
  const auto array = Buffer::managed(0, kMany);
  declare_host_access(array.as<void>(), kMany);
  constexpr std::uint64_t part = 65536 * 4096;
  CHECK(seconds_of_kernel(stream, array.as<void>(), part) == Approx(kLaunch + part / 2e9));
  CHECK(seconds_of_kernel(stream, array.as<void>()) == Approx(kLaunch + (kMany - part) / 2e9));
  CHECK(seconds_of_host(array.as<char>() + part, kMany - part) == Approx((kMany - part) / 2e9));
  CHECK(seconds_of_host(array.as<char>() + kMany - 8, 8) == 0);
  CHECK(seconds_of_host(array.as<void>()) == Approx(part / 2e9));
}

TEST_CASE("kernels of one device share what its page faults are served at") {
  const Xnack on("1");
  const TimedStream first(0);
  const TimedStream second(0);
  const auto a = Buffer::managed(0, kMany);
  const auto b = Buffer::managed(0, kMany);
  declare_host_access(a.as<void>(), kMany);
  declare_host_access(b.as<void>(), kMany);
  const double start = host_seconds();
  use(first, a.as<void>(), kMany);
  use(second, b.as<void>(), kMany);
  first.synchronize();
  second.synchronize();
  CHECK(host_seconds() - start == Approx(kLaunch + 2 * kMigrating).epsilon(1e-6));
}

TEST_CASE("pages that a kernel touches first are on its device, and none moves") {
  const Xnack on("1");
  const TimedStream stream(0);
  const auto array = Buffer::managed(0, kMany);
  CHECK(seconds_of_kernel(stream, array.as<void>()) == Approx(kLaunch + kLocal).epsilon(1e-6));
  CHECK(seconds_of_host(array.as<void>()) == Approx(kMigrating).epsilon(1e-6));
}

TEST_CASE("without xnack pages stay on the host, and kernels use them over the link") {
  for (const char* value : {"0", ""}) {
    const Xnack off(value);
    const TimedStream stream(0);
    const auto array = Buffer::managed(0, kMany);
    for (int i = 0; i < 2; ++i) {
      CHECK(seconds_of_kernel(stream, array.as<void>()) ==
            Approx(kLaunch + kOverTheLink).epsilon(1e-6));
      CHECK(seconds_of_host(array.as<void>()) == 0);
    }
    CHECK(hipMemPrefetchAsync(array.as<void>(), kMany, 0, stream.get()) == hipErrorNotSupported);
    CHECK(hipGetLastError() == hipErrorNotSupported);
    CHECK(*fabricheck_sim::page_place(array.as<void>()) == "domain0");
  }
}

TEST_CASE("a prefetch moves pages as a copy does, and only those that are elsewhere") {
  const Xnack on("1");
  const TimedStream stream(0);
  const auto array = Buffer::managed(0, kMany);
  declare_host_access(array.as<void>(), kMany);
  const double copying = kCopyStart + kOverTheLink;
  CHECK(seconds_of_prefetch(stream, array.as<void>(), 0) == Approx(copying).epsilon(1e-6));
  CHECK(*fabricheck_sim::page_place(array.as<void>()) == "device0");
  CHECK(seconds_of_prefetch(stream, array.as<void>(), 0) == 0);
  CHECK(seconds_of_kernel(stream, array.as<void>()) == Approx(kLaunch + kLocal).epsilon(1e-6));
  CHECK(seconds_of_prefetch(stream, array.as<void>(), hipCpuDeviceId) ==
        Approx(copying).epsilon(1e-6));
  CHECK(*fabricheck_sim::page_place(array.as<void>()) == "domain0");
  CHECK(seconds_of_host(array.as<void>()) == 0);
}

TEST_CASE("a prefetch of other memory, or to no device, is an error") {
  const Xnack on("1");
  const TimedStream stream(0);
  const auto managed = Buffer::managed(0, 4096);
  const auto other = Buffer::on_device(0, 4096);
  const auto prefetch = [&stream](const Buffer& buffer, int device) {
    return hipMemPrefetchAsync(buffer.as<void>(), 4096, device, stream.get());
  };
  CHECK(prefetch(other, 0) == hipErrorInvalidValue);
  CHECK(prefetch(managed, 4) == hipErrorInvalidDevice);
  CHECK(prefetch(managed, -2) == hipErrorInvalidDevice);
  (void)hipGetLastError();
}

TEST_CASE("pages on one device do not migrate to another one: that is not simulated") {
  const Xnack on("1");
  const TimedStream first(0);
  const TimedStream second(1);
  const auto array = Buffer::managed(0, kMany);
  (void)seconds_of_kernel(first, array.as<void>());
  use(second, array.as<void>(), kMany);
  CHECK(hipGetLastError() == hipErrorInvalidDevice);
  CHECK(*fabricheck_sim::page_place(array.as<void>()) == "device0");
}

TEST_CASE("the device says what HSA_XNACK makes of it") {
  {
    const Xnack on("1");
    CHECK(device_arch(0) == "gfx0:sramecc+:xnack+");
    const auto known = describe_devices()[0]["managed_memory"];
    CHECK(known["managed"] == true);
    CHECK(known["concurrent_access"] == true);
    CHECK(known["pageable_access"] == true);
    CHECK(known["xnack"] == true);
  }
  CHECK(device_arch(0) == "gfx0:sramecc+:xnack-");
  const auto known = describe_devices()[0]["managed_memory"];
  CHECK(known["managed"] == true);
  CHECK(known["concurrent_access"] == false);
  CHECK(known["pageable_access"] == false);
  CHECK(known["xnack"] == false);
  int value = 0;
  CHECK(hipDeviceGetAttribute(&value, hipDeviceAttributeManagedMemory, 4) == hipErrorInvalidDevice);
  (void)hipGetLastError();
}

TEST_CASE("managed memory is the host's, where it was bound, and is given back") {
  for (const char* value : {"0", "1"}) {
    const Xnack xnack(value);
    const auto before = fabricheck_sim::free_memory_of("domain1");
    {
      const HostBinding binding(1);
      const auto array = Buffer::managed(0, kMany);
      CHECK(numa_domain_of(array.as<void>(), kMany) == 1);
      CHECK(fabricheck_sim::free_memory_of("domain1") == before - kMany);
      CHECK_FALSE(fabricheck_sim::page_place(array.as<char>() + kMany).has_value());
    }
    CHECK(fabricheck_sim::free_memory_of("domain1") == before);
  }
}

TEST_CASE("there is never more managed memory than the device or the host can hold") {
  CHECK_THROWS_WITH_AS((void)Buffer::managed(3, 2 << 20),
                       "device 3 has 1 MiB of memory free, but 2 MiB more are needed", Failure);
  CHECK_THROWS_WITH_AS(
      (void)Buffer::managed(0, 65ULL << 30),
      "the host has 64 GiB of memory free, but 65 GiB more of managed memory are needed", Failure);
}
