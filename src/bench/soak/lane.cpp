#include "soak/lane.hpp"

#include <algorithm>
#include <utility>

#include "harness/devices.hpp"
#include "harness/host.hpp"
#include "harness/pattern.hpp"
#include "harness/sampling.hpp"
#include "harness/simulation.hpp"
#include "memcpy/plan.hpp"
#include "overlap/compute.hpp"
#include "stream/kernels.hpp"

namespace fabricheck::soak {
namespace {

/// The data of each lane differs, so that another one's is found.
constexpr std::uint32_t kMemorySeed = 0x5eed0500;
constexpr std::uint32_t kPeerSeed = 0x5eed0600;
constexpr std::uint32_t kHostSeed = 0x5eed0700;

/// Threads of a dimension of a launch are fewer than 2^32 with HIP: words of a slot.
constexpr std::uint64_t kMostSlot = 8ULL << 30;

/// Threads of a compute unit that compute, of 2048; a block of a copying kernel has half of them.
constexpr unsigned kComputingThreads = 1024;
constexpr int kBlock = 1024;

std::uint64_t words_of(std::uint64_t bytes) { return moved_bytes(bytes) / sizeof(double); }

/// Queues copies of `bytes` each. On a simulated node one operation stands for all of them: a long
/// load is counted, not moved.
template <typename Copy>
void queue_copies(int operations, std::uint64_t bytes, const Copy& copy) {
  if (kSimulated) {
    copy(bytes * static_cast<std::uint64_t>(operations));
    return;
  }
  for (int i = 0; i < operations; ++i) {
    copy(bytes);
  }
}

/// An array that copies write, on the device that holds it or on the host.
class Destination {
 public:
  Destination(Buffer buffer, std::uint64_t words, std::uint32_t seed)
      : buffer_(std::move(buffer)), words_(words), seed_(seed) {}

  void poison_on(const TimedStream& stream) const {
    poison(stream, data(), words_);
    stream.synchronize();
  }
  [[nodiscard]] Verification compare_on(const TimedStream& stream,
                                        const std::vector<Fault>& faults) const {
    inject(faults, stream, data(), words_);
    return compare(stream, data(), words_, {1, seed_, 0, 0});
  }
  [[nodiscard]] double* data() const { return buffer_.as<double>(); }
  [[nodiscard]] int numa_domain() const { return buffer_.numa_domain(); }

 private:
  Buffer buffer_;
  std::uint64_t words_;
  std::uint32_t seed_;
};

class MemoryLane : public Lane {
 public:
  MemoryLane(int device, std::uint64_t bytes, double part)
      : Lane(device, device), cpu_(device_is_cpu(device)), slot_bytes_(bytes) {
    is_memory = true;
    if (part > 0) {
      std::size_t free_bytes = 0;
      std::size_t total_bytes = 0;
      FABRICHECK_HIP(hipSetDevice(device));
      FABRICHECK_HIP(hipMemGetInfo(&free_bytes, &total_bytes));
      const auto wanted = static_cast<std::uint64_t>(part * static_cast<double>(free_bytes));
      slots_ = std::max<std::uint64_t>(2, (wanted + kMostSlot - 1) / kMostSlot);
      slot_bytes_ = std::max(bytes, wanted / slots_ / kAlignment * kAlignment);
    }
    words_ = words_of(slot_bytes_);
    seed_ = kMemorySeed + static_cast<std::uint32_t>(device);
    memory_ = Buffer::on_device(device, slots_ * slot_bytes_);
    for (std::uint64_t slot = 0; slot < slots_; ++slot) {
      fill(stream(), at(slot), words_, seed_);
    }
    stream().synchronize();
    if (!kSimulated && !cpu_) {
      // Beside it as many threads compute; two elements a thread keep the memory busy all the same.
      variant_.grid = compute_units(device);
      variant_.elements = 2;
    }
    in_memory_ = past_caches(2 * slot_bytes_, device_last_level_cache(device));
    variant_.stores = stream::automatic_stores(cpu_, in_memory_);
  }

  Verification prepare() override {
    source_ = destination_;
    destination_ = (destination_ + 1) % slots_;
    auto at_rest = checked(destination_, {});
    poison(holder(), at(destination_), words_);
    holder().synchronize();
    return at_rest;
  }

  void queue(int operations) const override {
    const auto* from = at(source_);
    auto* to = at(destination_);
    queue_copies(operations, slot_bytes_, [&](std::uint64_t bytes) {
      declare_traffic(stream().get(), {{from, bytes, false}, {to, bytes, true}});
      stream::launch(stream::StreamOperation::copy, variant_, stream(),
                     {from, from, to, moved_bytes(slot_bytes_)}, kBlock);
    });
  }

  [[nodiscard]] std::uint64_t destination_begin() const override {
    return destination_ * slot_bytes_;
  }
  [[nodiscard]] std::uint64_t destination_bytes() const override { return slot_bytes_; }

  Verification verify(const std::vector<Fault>& faults) override {
    return checked(destination_, faults);
  }

  [[nodiscard]] Series describe() const override {
    Series series;
    series.experiment = experiment::E1;
    series.operation = operation::copy;
    series.source = series.destination = {memory::device, stream().device(), -1};
    series.bytes = slot_bytes_;
    series.bytes_moved = 2 * slot_bytes_;
    series.in_memory = in_memory_;
    series.passes = 1;
    stream::describe(series, stream::StreamOperation::copy, variant_, stream().device(),
                     moved_bytes(slot_bytes_), kBlock);
    return series;
  }

 private:
  static constexpr std::uint64_t kAlignment = 1 << 20;

  [[nodiscard]] double* at(std::uint64_t slot) const {
    return memory_.as<double>() + slot * (slot_bytes_ / sizeof(double));
  }

  /// Compares a slot; one that is wrong is filled again, because it is the next pass's source.
  Verification checked(std::uint64_t slot, const std::vector<Fault>& faults) {
    inject(faults, holder(), at(slot), words_);
    auto result = compare(holder(), at(slot), words_, {1, seed_, 0, 0});
    if (result.first_mismatch) {
      result.first_mismatch->offset_bytes += slot * slot_bytes_;
      fill(holder(), at(slot), words_, seed_);
      holder().synchronize();
    }
    return result;
  }

  bool cpu_;
  bool in_memory_ = true;
  std::uint64_t slot_bytes_, slots_ = 2, words_ = 0;
  std::uint64_t source_ = 0, destination_ = 0;
  std::uint32_t seed_ = 0;
  Buffer memory_;
  stream::Variant variant_;
};

class ComputeLane : public Lane {
 public:
  ComputeLane(int device, double least)
      : Lane(device, device), compute_(stream(), kComputingThreads) {
    compute_.set_iterations(iterations_);
    do {
      iterations_ *= 2;
      compute_.set_iterations(iterations_);
      stream().use();
      stream().mark_start();
      compute_.queue(stream(), 1);
      stream().mark_stop();
      stream().synchronize();
    } while (stream().seconds() < least && iterations_ < overlap::Compute::kMost);
  }

  Verification prepare() override {
    compute_.poison_result(holder());
    return {};
  }
  void queue(int operations) const override { compute_.queue(stream(), operations); }
  Verification verify(const std::vector<Fault>&) override { return compute_.check(holder(), {}); }

  [[nodiscard]] Series describe() const override {
    Series series;
    series.experiment = experiment::E1;
    series.operation = operation::compute;
    series.source = series.destination = {memory::device, stream().device(), -1};
    series.bytes = series.bytes_moved = compute_.bytes();
    series.read_and_write = false;
    series.latency = true;
    series.block_size = overlap::Compute::kBlock;
    series.passes = 1;
    series.stores = stores::plain;
    series.in_memory = false;
    return series;
  }

 private:
  overlap::Compute compute_;
  int iterations_ = 32;
};

class PeerLane : public Lane {
 public:
  PeerLane(const p2p::Pair& pair, std::uint64_t bytes, const Movers& movers)
      : Lane(pair.from, pair.to),
        pair_(pair),
        bytes_(bytes),
        movers_(movers),
        seed_(kPeerSeed + static_cast<std::uint32_t>(256 * pair.from + pair.to)),
        source_(Buffer::on_device(pair.from, bytes)),
        destination_(Buffer::on_device(pair.to, bytes), words_of(bytes), seed_) {
    fill(stream(), source_.as<double>(), words_of(bytes), seed_);
    stream().synchronize();
  }

  Verification prepare() override {
    destination_.poison_on(holder());
    return {};
  }
  void queue(int operations) const override {
    queue_copies(operations, bytes_, [&](std::uint64_t bytes) {
      FABRICHECK_HIP(hipMemcpyPeerAsync(destination_.data(), pair_.to, source_.as<double>(),
                                        pair_.from, bytes, stream().get()));
    });
  }
  Verification verify(const std::vector<Fault>& faults) override {
    return destination_.compare_on(holder(), faults);
  }

  [[nodiscard]] Series describe() const override {
    Series series;
    series.experiment = experiment::E7;
    series.operation = operation::engine;
    series.source = {memory::device, pair_.from, -1};
    series.destination = {memory::peer, pair_.to, -1};
    series.device_set = {pair_.from, pair_.to};
    series.direction = direction::both_ways;
    series.bytes = series.bytes_moved = bytes_;
    series.read_and_write = false;
    const auto cache =
        std::max(device_last_level_cache(pair_.from), device_last_level_cache(pair_.to));
    series.in_memory = past_caches(2 * bytes_, cache);
    movers_.of_peers(series, pair_.from, pair_.to, bytes_);
    return series;
  }

 private:
  p2p::Pair pair_;
  std::uint64_t bytes_;
  const Movers& movers_;
  std::uint32_t seed_;
  Buffer source_;
  Destination destination_;
};

class HostLane : public Lane {
 public:
  HostLane(int device, int domain, bool to_device, std::uint64_t bytes, const Movers& movers)
      : Lane(device, device),
        to_device_(to_device),
        bytes_(bytes),
        movers_(movers),
        seed_(kHostSeed + static_cast<std::uint32_t>(2 * device + (to_device ? 1 : 0))),
        source_(buffer(to_device, domain)),
        destination_(buffer(!to_device, domain), words_of(bytes), seed_) {
    fill(stream(), source_.as<double>(), words_of(bytes), seed_);
    stream().synchronize();
  }

  Verification prepare() override {
    destination_.poison_on(holder());
    return {};
  }
  void queue(int operations) const override {
    const auto kind = to_device_ ? hipMemcpyHostToDevice : hipMemcpyDeviceToHost;
    queue_copies(operations, bytes_, [&](std::uint64_t bytes) {
      FABRICHECK_HIP(
          hipMemcpyAsync(destination_.data(), source_.as<double>(), bytes, kind, stream().get()));
    });
  }
  Verification verify(const std::vector<Fault>& faults) override {
    auto result = destination_.compare_on(holder(), faults);
    if (!to_device_ && result.first_mismatch) {
      result.first_mismatch->device = -1;
    }
    return result;
  }

  [[nodiscard]] Series describe() const override {
    const int device = stream().device();
    Series series;
    series.experiment = experiment::E2;
    series.operation = to_device_ ? operation::h2d : operation::d2h;
    const Place on_device{memory::device, device, -1};
    const auto domain = to_device_ ? source_.numa_domain() : destination_.numa_domain();
    const Place on_host{copies::memory_word(HostMemory::pinned), -1, domain};
    series.source = to_device_ ? on_host : on_device;
    series.destination = to_device_ ? on_device : on_host;
    series.direction = direction::both_ways;
    series.bytes = series.bytes_moved = bytes_;
    series.read_and_write = false;
    const auto cache = std::max(device_last_level_cache(device), host_last_level_cache());
    series.in_memory = past_caches(2 * bytes_, cache);
    movers_.of_host(series, bytes_);
    return series;
  }

 private:
  [[nodiscard]] Buffer buffer(bool on_host, int domain) const {
    FABRICHECK_HIP(hipSetDevice(stream().device()));
    return on_host ? Buffer::on_host(domain, bytes_) : Buffer::on_device(stream().device(), bytes_);
  }

  bool to_device_;
  std::uint64_t bytes_;
  const Movers& movers_;
  std::uint32_t seed_;
  Buffer source_;
  Destination destination_;
};

}  // namespace

std::unique_ptr<Lane> memory_lane(int device, std::uint64_t bytes, double part) {
  return std::make_unique<MemoryLane>(device, bytes, part);
}

std::unique_ptr<Lane> compute_lane(int device, double seconds) {
  return std::make_unique<ComputeLane>(device, seconds);
}

std::unique_ptr<Lane> peer_lane(const p2p::Pair& pair, std::uint64_t bytes, const Movers& movers) {
  return std::make_unique<PeerLane>(pair, bytes, movers);
}

std::unique_ptr<Lane> host_lane(int device, int domain, bool to_device, std::uint64_t bytes,
                                const Movers& movers) {
  return std::make_unique<HostLane>(device, domain, to_device, bytes, movers);
}

}  // namespace fabricheck::soak
