#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "harness/gate.hpp"
#include "harness/hip.hpp"
#include "harness/host.hpp"

using namespace fabricheck;

namespace {

__global__ void number_kernel(unsigned* out, unsigned base) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned i = block * blockDim.x * blockDim.y * blockDim.z + thread;
  out[i] = base + i;
}

}  // namespace

TEST_CASE("there are at least two devices and each can be set") {
  int count = 0;
  FABRICHECK_HIP(hipGetDeviceCount(&count));
  CHECK(count >= 2);
  CHECK(hipSetDevice(count) == hipErrorInvalidDevice);
  CHECK(hipGetLastError() == hipErrorInvalidDevice);
  CHECK(hipGetLastError() == hipSuccess);
}

TEST_CASE("a kernel runs every thread of every block once") {
  const TimedStream stream(0);
  const auto buffer = Buffer::on_device(0, 4 * 2 * 3 * 2 * 5 * 2 * 3);
  auto* out = buffer.as<unsigned>();
  hipLaunchKernelGGL(number_kernel, dim3(2, 3, 2), dim3(5, 2, 3), 0, stream.get(), out, 7u);
  stream.synchronize();
  for (unsigned i = 0; i < 360; ++i) {
    CHECK(out[i] == 7 + i);
  }
}

TEST_CASE("a stream works in order and events time it") {
  const TimedStream stream(0);
  std::vector<int> order;
  stream.mark_start();
  for (int i = 0; i < 3; ++i) {
    fabricheck_cpu::enqueue(stream.get(), [&order, i](int) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      order.push_back(i);
    });
  }
  stream.mark_stop();
  stream.synchronize();
  CHECK(order == std::vector<int>{0, 1, 2});
  CHECK(stream.seconds() >= 0.015);
}

TEST_CASE("an event that has not happened has no time") {
  const TimedStream stream(0);
  std::atomic<bool> go{false};
  fabricheck_cpu::enqueue(stream.get(), [&go](int) {
    while (!go) {
      std::this_thread::yield();
    }
  });
  hipEvent_t event = nullptr;
  FABRICHECK_HIP(hipEventCreate(&event));
  FABRICHECK_HIP(hipEventRecord(event, stream.get()));
  float milliseconds = 0;
  CHECK(hipEventElapsedTime(&milliseconds, event, event) == hipErrorNotReady);
  CHECK(hipGetLastError() == hipErrorNotReady);
  go = true;
  FABRICHECK_HIP(hipEventSynchronize(event));
  CHECK(hipEventElapsedTime(&milliseconds, event, event) == hipSuccess);
  FABRICHECK_HIP(hipEventDestroy(event));
}

TEST_CASE("streams behind a gate start together") {
  const TimedStream first(0);
  const TimedStream second(1);
  StartGate gate;
  gate.close();
  std::atomic<int> started{0};
  for (const auto* stream : {&first, &second}) {
    gate.wait_on(*stream);
    fabricheck_cpu::enqueue(stream->get(), [&started](int) { ++started; });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(started == 0);
  gate.open();
  first.synchronize();
  second.synchronize();
  CHECK(started == 2);
  gate.check();
}

TEST_CASE("a gate that goes away lets its streams go first") {
  const TimedStream stream(0);
  {
    StartGate gate;
    gate.close();
    gate.wait_on(stream);
  }
  stream.synchronize();
  CHECK(hipGetLastError() == hipSuccess);
}

TEST_CASE("host memory tells where its pages are") {
  const auto buffer = Buffer::on_host(-1, 1 << 20);
  const auto domains = describe_host()["numa_domains"];
  void* page = buffer.as<void>();
  int domain = -1;  // where the system does not tell, as in some containers
  if (syscall(SYS_move_pages, 0, 1UL, &page, nullptr, &domain, 0) != 0) {
    domain = -1;
  }
  if (domains.size() == 1) {
    CHECK(buffer.numa_domain() == domain);
    CHECK((domain == -1 || domain == domains[0]["index"]));
    CHECK(Buffer::on_host(buffer.numa_domain(), 4096).numa_domain() == buffer.numa_domain());
  }
  CHECK_THROWS_AS((void)Buffer::on_host(4095, 4096), Failure);
}

TEST_CASE("more memory than there is is refused with both sizes") {
  try {
    (void)Buffer::on_device(0, 1ULL << 50);
    FAIL("no failure");
  } catch (const Failure& failure) {
    CHECK(failure.status() == Status::unsupported);
    CHECK(std::string(failure.what()).find("device 0 has") == 0);
    CHECK(std::string(failure.what()).find("1024 TiB more are needed") != std::string::npos);
  }
}

TEST_CASE("copies move every byte") {
  const auto from = Buffer::on_device(0, 100003);
  const auto to = Buffer::on_device(1, 100003);
  for (int i = 0; i < 100003; ++i) {
    from.as<char>()[i] = static_cast<char>(i % 251);
  }
  FABRICHECK_HIP(hipMemcpy(to.as<void>(), from.as<void>(), 100003, hipMemcpyDefault));
  CHECK(std::equal(from.as<char>(), from.as<char>() + 100003, to.as<char>()));
}

TEST_CASE("a copy whose kind names memory of a device where pageable memory lies is refused") {
  std::vector<char> host(64);
  const auto device = Buffer::on_device(0, 2 * host.size());
  const auto pinned = Buffer::on_host(-1, host.size());
  const auto copied = [](void* to, const void* from, hipMemcpyKind kind) {
    return hipMemcpy(to, from, 64, kind);
  };
  CHECK(copied(device.as<void>(), host.data(), hipMemcpyDeviceToHost) == hipErrorInvalidValue);
  CHECK(copied(host.data(), device.as<void>(), hipMemcpyHostToDevice) == hipErrorInvalidValue);
  CHECK(hipGetLastError() == hipErrorInvalidValue);
  CHECK(copied(host.data(), device.as<char>() + 64, hipMemcpyDeviceToHost) == hipSuccess);
  // Devices reach pinned memory, and ROCm takes it for either.
  CHECK(copied(device.as<void>(), pinned.as<void>(), hipMemcpyDeviceToHost) == hipSuccess);
}

TEST_CASE("a copy between devices that exist moves every byte, also where kernels may not reach") {
  const TimedStream stream(0);
  const auto from = Buffer::on_device(0, 1000);
  const auto to = Buffer::on_device(1, 1000);
  std::fill_n(from.as<char>(), 1000, 'a');
  REQUIRE(setenv("FABRICHECK_HOST_NO_PEER_ACCESS", "1-0,0-1", 1) == 0);
  const auto copied = hipMemcpyPeerAsync(to.as<void>(), 1, from.as<void>(), 0, 1000, stream.get());
  int possible = 1;
  FABRICHECK_HIP(hipDeviceCanAccessPeer(&possible, 0, 1));
  CHECK_THROWS_AS(enable_peer_access(0, 1), Failure);
  REQUIRE(unsetenv("FABRICHECK_HOST_NO_PEER_ACCESS") == 0);
  CHECK(possible == 0);
  enable_peer_access(0, 1);
  CHECK(copied == hipSuccess);
  stream.synchronize();
  CHECK(std::equal(from.as<char>(), from.as<char>() + 1000, to.as<char>()));
  CHECK(hipMemcpyPeerAsync(to.as<void>(), 99, from.as<void>(), 0, 8, stream.get()) ==
        hipErrorInvalidDevice);
  CHECK(hipGetLastError() == hipErrorInvalidDevice);
}
