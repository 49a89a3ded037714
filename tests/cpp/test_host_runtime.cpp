#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "faults.hpp"
#include "harness/devices.hpp"
#include "harness/gate.hpp"
#include "harness/hip.hpp"
#include "harness/host.hpp"
#include "harness/pattern.hpp"
#include "managed/shared_array.hpp"
#include "memcpy/copies.hpp"
#include "mpi/values.hpp"
#include "overlap/beside.hpp"
#include "p2p/peers.hpp"
#include "pingpong/arrays.hpp"
#include "stream/device_set.hpp"

using namespace fabricheck;

namespace {

__global__ void number_kernel(unsigned* out, unsigned base) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned i = block * blockDim.x * blockDim.y * blockDim.z + thread;
  out[i] = base + i;
}

constexpr std::uint64_t kBytes = 16 * 1021;

/// So many samples of one operation each, however fast it is: the same launches and copies each
/// time.
SamplingRules one_by_one(int samples) {
  SamplingRules rules;
  rules.min_samples = samples;
  rules.max_samples = samples;
  rules.batch_seconds = 1e-9;
  rules.max_batch = 1;
  rules.warm_up_seconds = 0;
  return rules;
}

using Measure = std::function<std::vector<Series>()>;

/// The launches and copies that `measure` makes.
std::uint64_t operations_of(const Measure& measure) {
  const auto before = fabricheck_host::operations();
  for (const auto& series : measure()) {
    CHECK(series.verification.errors == 0);
  }
  return fabricheck_host::operations() - before;
}

/// What the comparison of an array in memory that a device reaches begins and ends with: a copy, a
/// kernel, and a copy.
constexpr std::uint64_t kComparison = 3;

/// Measures without the last launch or copy of the last sample, after which there are `later`. All
/// of its destination has to be wrong: the results of samples before must not be there any more.
void check_that_loss_is_found(const std::string& what, const Measure& measure,
                              std::uint64_t later = kComparison) {
  CAPTURE(what);
  const auto count = operations_of(measure);
  fabricheck_host::drop(fabricheck_host::operations() + count - later - 1);
  const auto series = measure();
  const auto& found = series[series.size() > 1 ? series.size() - 2 : 0].verification;
  CHECK(found.errors > 0);
  CHECK(found.errors == found.bytes_checked / sizeof(double));
  CHECK_FALSE(fabricheck_host::awaits_fault());
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

TEST_CASE("one launch or copy is dropped, or comes late") {
  const TimedStream stream(0);
  const auto buffer = Buffer::on_device(0, 360 * sizeof(unsigned));
  auto* out = buffer.as<unsigned>();
  const auto launch = [&](unsigned base) {
    hipLaunchKernelGGL(number_kernel, dim3(360), dim3(1), 0, stream.get(), out, base);
    stream.synchronize();
    return out[359];
  };
  CHECK(launch(1) == 360);
  fabricheck_host::drop(fabricheck_host::operations() + 1);
  CHECK(launch(2) == 361);
  CHECK(fabricheck_host::awaits_fault());
  CHECK(launch(3) == 361);
  CHECK_FALSE(fabricheck_host::awaits_fault());
  CHECK(launch(4) == 363);

  unsigned seen = 0;
  fabricheck_host::delay(fabricheck_host::operations());
  const double start = host_seconds();
  FABRICHECK_HIP(hipMemcpy(&seen, out, sizeof seen, hipMemcpyDeviceToHost));
  FABRICHECK_HIP(hipDeviceSynchronize());
  CHECK(host_seconds() - start >= fabricheck_host::kDelaySeconds);
  CHECK(seen == 4);
}

TEST_CASE("a kernel of stream that did not run is found, whatever those before it wrote") {
  using namespace stream;
  DeviceSet one({0}, {}, {}, kBytes);
  DeviceSet two({0, 1}, {}, {}, kBytes);
  for (const auto operation : parse_operations("copy,triad,read-only,write-only")) {
    const StreamCase measured{operation, kBytes, 256, Stores::plain};
    check_that_loss_is_found(operation_name(operation),
                             [&] { return one.measure(measured, one_by_one(2), 0, {}); });
  }
  const StreamCase measured{StreamOperation::copy, kBytes, 256, Stores::plain};
  check_that_loss_is_found(
      "two devices", [&] { return two.measure(measured, one_by_one(2), 0, {}); }, 2 * kComparison);
}

TEST_CASE("a trial of stores serves the devices that follow") {
  using namespace stream;
  const std::uint64_t large = 64 << 20;  // two arrays are 128 MiB
  const StreamCase measured{StreamOperation::copy, large, 256, {}};
  auto first =
      std::make_unique<DeviceSet>(std::vector<int>{0}, Placement{}, Placement{}, large, false);
  std::string stores;
  const auto measure = [&](DeviceSet& set) {
    auto series = set.measure(measured, one_by_one(2), 0, {});
    stores = series.front().stores;
    return series;
  };
  const auto of_first = operations_of([&] { return measure(*first); });
  const auto chosen = stores;
  DeviceSet second({1}, {}, {}, large, false, std::move(first));
  const auto of_second = operations_of([&] { return measure(second); });
  CHECK(stores == chosen);
  constexpr int trial = 8;
  CHECK(of_first == of_second + (past_caches(2 * large, host_last_level_cache()) ? trial : 0));
}

TEST_CASE("a copy between peers that was not made is found, whatever those before it brought") {
  using namespace p2p;
  Peers peers({0, 1}, {kBytes, 0, 100});
  const auto check = [&peers](const std::string& name, std::vector<Pair> pairs) {
    const auto what = parse_measurements(name).front();
    const Job job{what, std::move(pairs), what.is_latency() ? 0 : kBytes};
    const auto comparisons = job.pairs.size() * kComparison;
    check_that_loss_is_found(
        name, [&] { return peers.measure(job, one_by_one(2), {}); }, comparisons);
  };
  for (const auto* name : {"engine", "read", "write", "copy", "latency", "latency-host"}) {
    check(name, {{0, 1}});
  }
  check("engine-both", {{0, 1}, {1, 0}});
  check("write-both", {{0, 1}, {1, 0}});
}

TEST_CASE("a copy between host and device that was not made is found") {
  using namespace copies;
  for (const auto memory : {HostMemory::pinned, HostMemory::pageable}) {
    const HostSide host(-1, memory, {kBytes, true, true}, std::nullopt);
    Copies both_ways(0, host, {kBytes, true, true});
    const auto check = [&](const std::string& name, std::uint64_t later) {
      const CopyJob job{{0, -1}, memory, parse_copy_operations(name).front(), kBytes};
      check_that_loss_is_found(
          memory_word(memory) + std::string(" ") + name,
          [&] { return both_ways.measure(job, "E2", one_by_one(2), 0, {}); }, later);
    };
    const bool pinned = memory == HostMemory::pinned;
    const auto later = pinned ? kComparison : 0;  // the processor compares pageable memory
    check("h2d", kComparison);
    check("d2h", later);
    check("h2d-sync", kComparison);
    check("d2h-sync", later);
    if (pinned) {  // two threads copy pageable memory, in any order
      check("both", 2 * kComparison);
    }
  }
}

TEST_CASE("a kernel on memory of the host that did not run is found") {
  using namespace managed;
  SharedArray array(0, {SharedMemory::pinned, Movement::zero_copy, kBytes, -1, 256});
  for (const auto operation : parse_shared_operations("read,write")) {
    check_that_loss_is_found(operation_name(operation), [&] {
      return std::vector<Series>{
          array.measure(operation, kBytes, one_by_one(2), 0, {}).series.value()};
    });
  }
}

TEST_CASE("a copy of overlap that was not made is found, however good the samples after it are") {
  constexpr double any_skew = 1e9;
  const auto measure = [](int samples) {
    overlap::Overlap overlap({0, 1, false}, kBytes, 128, nullptr);
    return overlap.measure(one_by_one(samples), {}, any_skew);
  };
  const auto two = operations_of([&] { return measure(2); });
  const auto three = operations_of([&] { return measure(3); });
  // A sample begins with the kernel alone (two arrays poisoned, a gate, six launches), after which
  // the copy alone is prepared alike.
  const auto copy = 3 + 6 + kComparison + 3;
  for (const auto sample : {std::uint64_t{1}, std::uint64_t{2}}) {
    CAPTURE(sample);
    const auto begin = three - (3 - sample) * (three - two);
    fabricheck_host::drop(fabricheck_host::operations() + begin + copy);
    const auto series = measure(3);
    CHECK(series[1].verification.errors == kBytes / sizeof(double));
    for (const auto other : {0, 2, 3}) {
      CHECK(series[other].verification.errors == 0);
    }
  }
}

TEST_CASE("a comparison that a copy or the kernel is missing from is an error, and no result") {
  const TimedStream stream(0);
  const auto buffer = Buffer::on_device(0, kBytes);
  const auto check = [](std::uint64_t elements, const std::function<Verification()>& comparison) {
    for (std::uint64_t missing = 0; missing < kComparison; ++missing) {
      CAPTURE(missing);
      CHECK(comparison().errors == 0);
      fabricheck_host::drop(fabricheck_host::operations() + missing);
      const auto sentence =
          "the comparison on device 0 compared 0 of " + std::to_string(elements) + " elements";
      CHECK_THROWS_WITH_AS((void)comparison(), sentence.c_str(), Failure);
      CHECK_FALSE(fabricheck_host::awaits_fault());
    }
    // A copy of pageable memory may return before its data have come.
    fabricheck_host::delay(fabricheck_host::operations());
    CHECK(comparison().bytes_checked == kBytes);
  };
  const auto words = kBytes / sizeof(double);
  fill(stream, buffer.as<double>(), words, 3);
  check(words, [&] { return compare(stream, buffer.as<double>(), words, {1, 3, 0, 0}); });
  for (const auto type : parse_types("byte,int32,float,double")) {
    CAPTURE(type_name(type));
    const Region region{0, kBytes / type_bytes(type), {type, 1, 1, 0, 0}};
    fill(&stream, buffer.as<void>(), region);
    check(region.count, [&] { return compare(&stream, buffer.as<void>(), region); });
  }
}

TEST_CASE("the time of copies ends with the last of them, also where their call returns early") {
  for (const auto memory : {HostMemory::pageable, HostMemory::pinned}) {
    for (const auto exchange : {pingpong::Exchange::h2d, pingpong::Exchange::d2h}) {
      const pingpong::ExchangeJob job{memory, exchange, kBytes};
      const pingpong::ExchangeArrays arrays({0, 0, -1}, {memory, kBytes, true, true}, std::nullopt);
      arrays.prepare(job);
      fabricheck_host::delay(fabricheck_host::operations());
      CHECK(arrays.run(job) >= fabricheck_host::kDelaySeconds);
      CHECK(arrays.check(job, {}).errors == 0);
    }
    const copies::HostSide host(-1, memory, {kBytes, true, true}, std::nullopt);
    copies::Copies both_ways(0, host, {kBytes, true, true});
    for (const std::string name : {"h2d-sync", "d2h-sync"}) {
      const copies::CopyJob job{
          {0, -1}, memory, copies::parse_copy_operations(name).front(), kBytes};
      const auto measure = [&] { return both_ways.measure(job, "E2", one_by_one(2), 0, {}); };
      const auto compared = name[0] == 'd' && memory == HostMemory::pageable ? 0 : kComparison;
      const auto last = operations_of(measure) - compared - 1;
      fabricheck_host::delay(fabricheck_host::operations() + last);
      const auto series = measure().front();
      CHECK(series.seconds.back() >= fabricheck_host::kDelaySeconds);
      CHECK(series.verification.errors == 0);
    }
  }
}
