#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "harness/concurrent.hpp"
#include "harness/devices.hpp"
#include "harness/hip.hpp"
#include "harness/host.hpp"
#include "harness/settings.hpp"
#include "harness/simulation.hpp"
#include "machine.hpp"

using namespace fabricheck;
using doctest::Approx;

namespace {

constexpr std::uint64_t kMany = 1000000000;  // bytes: 1 s at 1 GB/s
constexpr double kLaunch = 2e-6;

__global__ void nothing_kernel(int*) {}
__global__ void add_kernel(int* value, int summand) { *value = 10 * *value + summand; }

void work(const TimedStream& stream, std::initializer_list<Traffic> traffic) {
  declare_traffic(stream.get(), traffic);
  hipLaunchKernelGGL(nothing_kernel, dim3(1), dim3(1), 0, stream.get(), nullptr);
}

/// Simulated seconds of operations on streams that start together.
Task task(const TimedStream& stream, std::function<void()> queue) {
  return {&stream, one_by_one(std::move(queue))};
}

std::vector<double> seconds_of(std::vector<Task> tasks) {
  StartGate gate;
  return ConcurrentBatch(std::move(tasks), &gate).run(1).device;
}

double seconds_of(const TimedStream& stream, const std::function<void()>& queue) {
  return seconds_of({task(stream, queue)}).front();
}

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

struct Pageable {
  Pageable(int domain, std::size_t bytes) {
    fabricheck_sim::bind_host_memory(domain);
    data = fabricheck_sim::allocate_pageable(bytes);
    fabricheck_sim::bind_host_memory(std::nullopt);
    REQUIRE(data != nullptr);
  }
  ~Pageable() { fabricheck_sim::release_pageable(data); }
  Pageable(const Pageable&) = delete;
  Pageable& operator=(const Pageable&) = delete;

  void* data = nullptr;
};

}  // namespace

TEST_CASE("devices are those of the node, and said to be simulated") {
  CHECK(device_count() == 4);
  const auto devices = describe_devices();
  CHECK(devices[0]["name"] == "A (simulated)");
  CHECK(devices[0]["arch"] == "gfx0:sramecc+:xnack-");
  CHECK(devices[0]["pci_address"] == "0000:c1:00.0");
  CHECK(devices[0]["numa_domain"] == 0);
  CHECK(devices[1]["pci_address"].is_null());
  CHECK(devices[2]["numa_domain"] == 1);
  CHECK(describe_host()["hostname"] == "three (simulated)");
  CHECK(describe_node()["name"] == "three");
  CHECK(hipSetDevice(4) == hipErrorInvalidDevice);
  CHECK(hipGetLastError() == hipErrorInvalidDevice);
  CHECK(hipGetLastError() == hipSuccess);
}

TEST_CASE("a kernel takes its launch, and its traffic over the memory") {
  const TimedStream stream(0);
  const auto array = Buffer::on_device(0, kMany);
  CHECK(seconds_of(stream, [&] { work(stream, {}); }) == Approx(kLaunch).epsilon(1e-6));
  const auto local = seconds_of(stream, [&] {
    work(stream, {{array.as<void>(), kMany, false}, {array.as<void>(), kMany, true}});
  });
  CHECK(local == Approx(kLaunch + 2e-3).epsilon(1e-6));
}

TEST_CASE("traffic is declared for one kernel only") {
  const TimedStream stream(0);
  const auto array = Buffer::on_device(0, kMany);
  const auto both = seconds_of(stream, [&] {
    work(stream, {{array.as<void>(), kMany, true}});
    hipLaunchKernelGGL(nothing_kernel, dim3(1), dim3(1), 0, stream.get(), nullptr);
  });
  CHECK(both == Approx(2 * kLaunch + 1e-3).epsilon(1e-6));
}

TEST_CASE("a stream works in order, and the host's clock is the simulated one") {
  const TimedStream stream(0);
  const auto array = Buffer::on_device(0, sizeof(int));
  auto* value = array.as<int>();
  *value = 0;
  const double start = host_seconds();
  for (const int summand : {1, 2, 3}) {
    hipLaunchKernelGGL(add_kernel, dim3(1), dim3(1), 0, stream.get(), value, summand);
  }
  CHECK(*value == 0);
  stream.synchronize();
  CHECK(*value == 123);
  CHECK(host_seconds() - start == Approx(3 * kLaunch));
}

TEST_CASE("an event has no time before its stream has come to it") {
  const TimedStream stream(0);
  hipEvent_t event = nullptr;
  FABRICHECK_HIP(hipEventCreate(&event));
  work(stream, {});
  FABRICHECK_HIP(hipEventRecord(event, stream.get()));
  float milliseconds = 0;
  CHECK(hipEventElapsedTime(&milliseconds, event, event) == hipErrorNotReady);
  CHECK(hipGetLastError() == hipErrorNotReady);
  FABRICHECK_HIP(hipEventSynchronize(event));
  CHECK(hipEventElapsedTime(&milliseconds, event, event) == hipSuccess);
  hipEvent_t later = nullptr;
  FABRICHECK_HIP(hipEventCreate(&later));
  work(stream, {});
  FABRICHECK_HIP(hipEventRecord(later, stream.get()));
  CHECK(hipEventElapsedTime(&milliseconds, event, later) == hipErrorNotReady);
  CHECK(hipEventElapsedTime(&milliseconds, later, event) == hipErrorNotReady);
  (void)hipGetLastError();
  FABRICHECK_HIP(hipEventSynchronize(later));
  FABRICHECK_HIP(hipEventDestroy(later));
  FABRICHECK_HIP(hipEventDestroy(event));
}

TEST_CASE("a kernel reads a peer over the links of the route, the narrowest counts") {
  const TimedStream stream(0);
  const auto on_1 = Buffer::on_device(1, kMany);
  const auto on_2 = Buffer::on_device(2, kMany);
  const auto from = [&](const Buffer& array) {
    return seconds_of(stream, [&] { work(stream, {{array.as<void>(), kMany, false}}); });
  };
  CHECK(from(on_1) == Approx(kLaunch + 0.1).epsilon(1e-6));
  CHECK(from(on_2) == Approx(kLaunch + 0.1).epsilon(1e-6));
  const TimedStream second(1);
  const auto wide = seconds_of(second, [&] { work(second, {{on_2.as<void>(), kMany, false}}); });
  CHECK(wide == Approx(kLaunch + 0.05).epsilon(1e-6));
}

TEST_CASE("two flows on one link take twice as long, on others they do not") {
  const TimedStream reader(0);
  const TimedStream writer(1);
  const auto on_0 = Buffer::on_device(0, kMany);
  const auto on_1 = Buffer::on_device(1, kMany);
  const auto together = [&](bool same_direction) {
    const void* array = same_direction ? on_0.as<void>() : on_1.as<void>();
    const auto& other = same_direction ? writer : reader;
    // Device 0 writes to 1; meanwhile 1 reads from 0 (the same link), or 0 reads from 1 (the
    // other).
    const TimedStream first(0);
    return seconds_of({task(first, [&] { work(first, {{on_1.as<void>(), kMany, true}}); }),
                       task(other, [&] { work(other, {{array, kMany, false}}); })});
  };
  const auto same = together(true);
  CHECK(same[0] == Approx(kLaunch + 0.2).epsilon(1e-6));
  CHECK(same[1] == Approx(kLaunch + 0.2).epsilon(1e-6));
  const auto opposite = together(false);
  CHECK(opposite[0] == Approx(kLaunch + 0.1).epsilon(1e-6));
  CHECK(opposite[1] == Approx(kLaunch + 0.1).epsilon(1e-6));
}

TEST_CASE("a flow takes of a link as often as its route names it") {
  const TimedStream once(0);
  const TimedStream twice(1);
  const auto array = Buffer::on_host(0, kMany);
  const auto read = [&](const TimedStream& stream) {
    return Task{&stream, one_by_one([&] { work(stream, {{array.as<void>(), kMany, false}}); })};
  };
  CHECK(seconds_of({read(once)}).front() == Approx(kLaunch + 0.02).epsilon(1e-6));
  CHECK(seconds_of({read(twice)}).front() == Approx(kLaunch + 0.04).epsilon(1e-6));
  for (const double both : seconds_of({read(once), read(twice)})) {
    CHECK(both == Approx(kLaunch + 0.06).epsilon(1e-6));  // neither is faster than the other
  }
}

TEST_CASE("a flow that ends leaves its share to the others") {
  const TimedStream first(0);
  const TimedStream second(0);
  const auto array = Buffer::on_device(1, kMany);
  const auto times =
      seconds_of({task(first, [&] { work(first, {{array.as<void>(), kMany, true}}); }),
                  task(second, [&] { work(second, {{array.as<void>(), kMany / 2, true}}); })});
  CHECK(times[0] == Approx(kLaunch + 0.15).epsilon(1e-6));
  CHECK(times[1] == Approx(kLaunch + 0.1).epsilon(1e-6));
}

TEST_CASE("an engine limits each copy, not several together") {
  const TimedStream first(1);
  const TimedStream second(1);
  const auto from = Buffer::on_device(1, kMany);
  const auto to = Buffer::on_device(2, kMany);
  const auto copy = [&](const TimedStream& stream) {
    FABRICHECK_HIP(hipMemcpyPeerAsync(to.as<void>(), 2, from.as<void>(), 1, kMany, stream.get()));
  };
  const auto alone = seconds_of(first, [&] { copy(first); });
  CHECK(alone == Approx(5e-6 + 0.125).epsilon(1e-6));
  const auto both =
      seconds_of({task(first, [&] { copy(first); }), task(second, [&] { copy(second); })});
  CHECK(both[0] == Approx(alone));
  CHECK(both[1] == Approx(alone));
}

TEST_CASE("with the engines off, a kernel of the stream's device copies") {
  const TimedStream stream(0);
  const auto from = Buffer::on_device(0, kMany);
  const auto to = Buffer::on_device(1, kMany);
  const auto copied = [&] {
    return seconds_of(stream, [&] {
      FABRICHECK_HIP(hipMemcpyPeerAsync(to.as<void>(), 1, from.as<void>(), 0, kMany, stream.get()));
    });
  };
  CHECK(copied() == Approx(5e-6 + 0.125).epsilon(1e-6));
  {
    const Variable off("HSA_ENABLE_PEER_SDMA", "0");
    CHECK(copied() == Approx(kLaunch + 0.1).epsilon(1e-6));
  }
  {
    const Variable off("HSA_ENABLE_SDMA", "0");
    CHECK(copied() == Approx(kLaunch + 0.1).epsilon(1e-6));
  }
  const Variable on("HSA_ENABLE_PEER_SDMA", "1");
  CHECK(copied() == Approx(5e-6 + 0.125).epsilon(1e-6));
}

TEST_CASE("kernel copies between peers leave copies from the host to the engine") {
  const TimedStream stream(0);
  const auto host = Buffer::on_host(0, kMany);
  const auto device = Buffer::on_device(0, kMany);
  const auto copied = [&] {
    return seconds_of(stream, [&] {
      FABRICHECK_HIP(hipMemcpyAsync(device.as<void>(), host.as<void>(), kMany,
                                    hipMemcpyHostToDevice, stream.get()));
    });
  };
  const Variable off("HSA_ENABLE_PEER_SDMA", "0");
  CHECK(copied() == Approx(3e-6 + 0.02).epsilon(1e-6));
}

TEST_CASE("copies of pageable memory have their own rate, and pin larger memory first") {
  const Pageable host(0, kMany);
  const auto device = Buffer::on_device(0, kMany);
  const auto seconds = [](const void* from, void* to, std::uint64_t bytes) {
    const double start = host_seconds();
    FABRICHECK_HIP(hipMemcpy(to, from, bytes, hipMemcpyDefault));
    return host_seconds() - start;
  };
  for (const std::uint64_t bytes : {std::uint64_t{4}, std::uint64_t{65536}}) {
    CHECK(seconds(host.data, device.as<void>(), bytes) ==
          Approx(3e-6 + static_cast<double>(bytes) / 40e9).epsilon(1e-6));
  }
  CHECK(seconds(host.data, device.as<void>(), 65537) == Approx(10e-6 + 65537 / 40e9).epsilon(1e-6));
  CHECK(seconds(device.as<void>(), host.data, kMany) == Approx(10e-6 + 0.025).epsilon(1e-6));
  const Variable off("HSA_ENABLE_SDMA", "0");
  CHECK(seconds(host.data, device.as<void>(), kMany) ==
        Approx(7e-6 + kLaunch + 0.02).epsilon(1e-6));
}

TEST_CASE("memory that the runtime did not allocate is pageable") {
  std::vector<char> host(1 << 20, 1);
  const auto device = Buffer::on_device(0, host.size());
  const double start = host_seconds();
  FABRICHECK_HIP(hipMemcpy(device.as<void>(), host.data(), host.size(), hipMemcpyHostToDevice));
  const double bytes = static_cast<double>(host.size());
  CHECK(host_seconds() - start == Approx(10e-6 + bytes / 40e9).epsilon(1e-6));
  CHECK(device.as<char>()[host.size() - 1] == 1);
}

TEST_CASE("a copy whose kind names memory of a device where pageable memory lies is refused") {
  std::vector<char> host(64);
  const auto device = Buffer::on_device(0, host.size());
  const auto pinned = Buffer::on_host(0, host.size());
  const auto copied = [](void* to, const void* from, hipMemcpyKind kind) {
    return hipMemcpy(to, from, 64, kind);
  };
  CHECK(copied(device.as<void>(), host.data(), hipMemcpyDeviceToHost) == hipErrorInvalidValue);
  CHECK(copied(host.data(), device.as<void>(), hipMemcpyHostToDevice) == hipErrorInvalidValue);
  CHECK(hipGetLastError() == hipErrorInvalidValue);
  CHECK(copied(host.data(), device.as<void>(), hipMemcpyDeviceToHost) == hipSuccess);
  // Devices reach pinned memory, and ROCm takes it for either.
  CHECK(copied(device.as<void>(), pinned.as<void>(), hipMemcpyDeviceToHost) == hipSuccess);
}

TEST_CASE("an asynchronous copy of pageable memory returns when it is done, of pinned at once") {
  const TimedStream stream(0);
  const Pageable pageable(0, kMany);
  const auto pinned = Buffer::on_host(0, kMany);
  const auto device = Buffer::on_device(0, kMany);
  const auto call = [&](void* to, const void* from) {
    const double start = host_seconds();
    FABRICHECK_HIP(hipMemcpyAsync(to, from, kMany, hipMemcpyDefault, stream.get()));
    return host_seconds() - start;
  };
  CHECK(call(device.as<void>(), pageable.data) == Approx(10e-6 + 0.025).epsilon(1e-6));
  CHECK(call(pageable.data, device.as<void>()) == Approx(10e-6 + 0.025).epsilon(1e-6));
  CHECK(call(device.as<void>(), pinned.as<void>()) == 0);
}

TEST_CASE("copies of pageable memory share the memory of its domain") {
  const TimedStream stream(0);
  const Pageable pageable(0, kMany);
  const auto pinned = Buffer::on_host(0, kMany);
  const auto device = Buffer::on_device(0, 2 * kMany);
  auto* second = device.as<char>() + kMany;
  const double start = host_seconds();
  FABRICHECK_HIP(
      hipMemcpyAsync(second, pinned.as<void>(), kMany, hipMemcpyHostToDevice, stream.get()));
  FABRICHECK_HIP(hipMemcpy(device.as<void>(), pageable.data, kMany, hipMemcpyHostToDevice));
  stream.synchronize();
  CHECK(host_seconds() - start == Approx(0.04).epsilon(1e-3));  // 2 GB at 50 GB/s
}

TEST_CASE("copies both ways at once share the memory of the domain") {
  const TimedStream down(0);
  const TimedStream up(0);
  const auto host = Buffer::on_host(0, 2 * kMany);
  const auto device = Buffer::on_device(0, 2 * kMany);
  const auto copy = [](const TimedStream& stream, void* to, const void* from) {
    return [&stream, to, from] {
      FABRICHECK_HIP(hipMemcpyAsync(to, from, kMany, hipMemcpyDefault, stream.get()));
    };
  };
  const auto to_device = copy(down, device.as<void>(), host.as<void>());
  const auto to_host = copy(up, host.as<char>() + kMany, device.as<char>() + kMany);
  CHECK(seconds_of(down, to_device) == Approx(3e-6 + 0.02).epsilon(1e-6));
  const auto both = seconds_of({task(down, to_device), task(up, to_host)});
  CHECK(both[0] == Approx(3e-6 + 0.04).epsilon(1e-6));
  CHECK(both[1] == Approx(3e-6 + 0.04).epsilon(1e-6));
}

TEST_CASE("pageable memory lies where it was bound, and is given back") {
  const auto free_bytes = [](int domain) {
    fabricheck_sim::bind_host_memory(domain);
    return fabricheck_sim::free_host_memory();
  };
  const auto before = free_bytes(1);
  {
    const Pageable memory(1, 4096);
    CHECK(numa_domain_of(memory.data, 4096) == 1);
    CHECK(free_bytes(1) == before - 4096);
  }
  CHECK(free_bytes(1) == before);
  CHECK(fabricheck_sim::allocate_pageable(before + 1) == nullptr);
  CHECK(hipGetLastError() == hipSuccess);
  fabricheck_sim::bind_host_memory(std::nullopt);
}

TEST_CASE("a copy really moves a slice of what it simulates") {
  const TimedStream stream(0);
  const std::uint64_t bytes = 100ULL << 30;  // more than this machine has, twice
  const auto from = Buffer::on_device(0, bytes);
  const auto to = Buffer::on_device(1, bytes);
  const auto slice = moved_bytes(bytes);
  CHECK(slice < bytes);
  CHECK(moved_bytes(100) == 100);
  from.as<char>()[0] = 1;
  from.as<char>()[slice - 1] = 2;
  from.as<char>()[slice] = 3;
  const auto copied = seconds_of(stream, [&] {
    FABRICHECK_HIP(hipMemcpyPeerAsync(to.as<void>(), 1, from.as<void>(), 0, bytes, stream.get()));
  });
  CHECK(copied == Approx(5e-6 + static_cast<double>(bytes) / 8e9).epsilon(1e-6));
  CHECK(to.as<char>()[0] == 1);
  CHECK(to.as<char>()[slice - 1] == 2);
  CHECK(to.as<char>()[slice] == 0);
}

TEST_CASE("memory is that of the node, and is given back") {
  const auto array = Buffer::on_device(3, 1 << 20);
  try {
    (void)Buffer::on_device(3, 1);
    FAIL("no failure");
  } catch (const Failure& failure) {
    CHECK(failure.status() == Status::unsupported);
    CHECK(std::string(failure.what()).find("device 3 has 0 B") == 0);
  }
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  {
    const auto other = Buffer::on_device(0, 1000);
  }
  FABRICHECK_HIP(hipMemGetInfo(&free_bytes, &total_bytes));
  CHECK(free_bytes == total_bytes);
  CHECK(hipFree(&free_bytes) == hipErrorInvalidValue);
  (void)hipGetLastError();
}

TEST_CASE("freeing waits for the streams that may use the memory") {
  const TimedStream stream(0);
  double end = 0;
  {
    const auto array = Buffer::on_device(0, kMany);
    work(stream, {{array.as<void>(), kMany, true}});
    end = host_seconds() + kLaunch + 1e-3;
  }
  CHECK(host_seconds() == Approx(end));
}

TEST_CASE("host memory lies where it was bound, or near the device that is set") {
  CHECK(Buffer::on_host(1, 4096).numa_domain() == 1);
  CHECK(Buffer::on_host(-1, 4096).numa_domain() == 0);
  CHECK_THROWS_AS((void)Buffer::on_host(2, 4096), Failure);
  FABRICHECK_HIP(hipSetDevice(2));
  void* near = nullptr;
  FABRICHECK_HIP(hipHostMalloc(&near, 4096, hipHostMallocPortable));
  CHECK(numa_domain_of(near, 4096) == 1);
  FABRICHECK_HIP(hipHostFree(near));
}

TEST_CASE("a device without links has no peers") {
  CHECK_THROWS_AS(enable_peer_access(3, 0), Failure);
  const TimedStream stream(3);
  const auto array = Buffer::on_device(0, 64);
  work(stream, {{array.as<void>(), 64, true}});
  CHECK(hipGetLastError() == hipErrorInvalidDevice);
  const auto own = Buffer::on_device(3, 64);
  CHECK(hipMemcpyPeerAsync(own.as<void>(), 3, array.as<void>(), 0, 64, stream.get()) ==
        hipErrorInvalidDevice);
  CHECK(hipMemcpyPeerAsync(own.as<void>(), 9, array.as<void>(), 0, 64, stream.get()) ==
        hipErrorInvalidDevice);
  (void)hipGetLastError();
}

TEST_CASE("a copy between devices names two that exist") {
  const TimedStream stream(0);
  const auto from = Buffer::on_device(0, 64);
  const auto to = Buffer::on_device(1, 64);
  const auto copied = [&](int to_device, int from_device) {
    return hipMemcpyPeerAsync(to.as<void>(), to_device, from.as<void>(), from_device, 64,
                              stream.get());
  };
  CHECK(copied(1, 0) == hipSuccess);
  CHECK(copied(9, 0) == hipErrorInvalidDevice);
  CHECK(copied(1, 9) == hipErrorInvalidDevice);
  (void)hipGetLastError();
}

TEST_CASE("streams behind a gate start at the same moment") {
  const TimedStream first(0);
  const TimedStream second(1);
  StartGate gate;
  gate.close();
  gate.wait_on(first);
  work(second, {});  // so that the second one comes later to the gate
  gate.wait_on(second);
  std::vector<double> moments;
  for (const auto* stream : {&first, &second}) {
    fabricheck_sim::enqueue(stream->get(), {}, [&moments] { moments.push_back(host_seconds()); });
  }
  simgrid::s4u::this_actor::sleep_for(1e-4);
  CHECK(moments.empty());
  gate.open();
  first.synchronize();
  second.synchronize();
  gate.check();
  REQUIRE(moments.size() == 2);
  CHECK(moments[0] == Approx(moments[1]).epsilon(1e-12));
}

TEST_CASE("noise is seeded, and scatters by as much as asked for") {
  auto& machine = fabricheck_sim::machine();
  const TimedStream stream(0);
  const auto array = Buffer::on_device(0, kMany);
  const auto times = [&](unsigned seed) {
    machine.random.seed(seed);
    machine.noise = 0.01;
    std::vector<double> result;
    for (int i = 0; i < 200; ++i) {
      stream.mark_start();
      work(stream, {{array.as<void>(), kMany, true}});
      stream.mark_stop();
      stream.synchronize();
      result.push_back(stream.seconds() / (kLaunch + 1e-3));
    }
    machine.noise = 0;
    return result;
  };
  const auto found = times(1);
  double square = 0;
  for (const auto factor : found) {
    square += (factor - 1) * (factor - 1) / static_cast<double>(found.size());
  }
  CHECK(std::sqrt(square) > 0.008);
  CHECK(std::sqrt(square) < 0.012);
  CHECK(times(1) == found);
  CHECK(times(2) != found);
}

TEST_CASE("dependent loads are refused: no node model tells their latency") {
  const TimedStream stream(0);
  CHECK_THROWS_AS(declare_loads(stream.get(), nullptr, 1), Failure);
}

TEST_CASE("a variable that names no more devices than are seen may hide others") {
  const auto first = [](int visible) {
    const auto found = hiding_settings(visible);
    return found.empty() ? std::string() : found.front().text();
  };
  CHECK(first(0).empty());
  const Variable two("ROCR_VISIBLE_DEVICES", "0,2");
  CHECK(first(2) == "ROCR_VISIBLE_DEVICES is 0,2");
  CHECK(first(1).empty());  // it names more: what is missing is none of its doing
  const auto missing = no_such_device("device 5", 2);
  CHECK(missing.status() == Status::setting);
  CHECK(missing.what() == std::string("device 5 does not exist: the runtime has 2, 0 to 1; "
                                      "ROCR_VISIBLE_DEVICES is 0,2"));
  CHECK(no_such_device("device 5", 1).status() == Status::unsupported);
  const Variable none("HIP_VISIBLE_DEVICES", "-1");
  CHECK(first(0) == "HIP_VISIBLE_DEVICES is -1");
  const Variable ids("ROCR_VISIBLE_DEVICES", "GPU-5ca1ab1e00000000,GPU-5ca1ab1e00000001");
  CHECK(first(1) == "HIP_VISIBLE_DEVICES is -1");
  CHECK(hiding_settings(2).size() == 2);
}
