#include "stream/device_set.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "harness/devices.hpp"
#include "harness/host.hpp"
#include "harness/simulation.hpp"
#include "harness/sizes.hpp"

namespace fabricheck::stream {
namespace {

constexpr std::uint32_t kSeedA = 0x5eed000a;
constexpr std::uint32_t kSeedB = 0x5eed000b;

/// Memory where the placement says, as seen by `device`, and its place for the document.
std::pair<Buffer, Place> allocate(const Placement& placement, int device, std::uint64_t bytes) {
  switch (placement.kind) {
    case Placement::Kind::host: {
      FABRICHECK_HIP(hipSetDevice(device));  // where a runtime may put it, whatever is asked for
      auto buffer = Buffer::on_host(device_numa_domain(device), bytes);
      const int domain = buffer.numa_domain();
      return {std::move(buffer), Place{memory::host_pinned, -1, domain}};
    }
    case Placement::Kind::peer:
      enable_peer_access(device, placement.peer);
      return {Buffer::on_device(placement.peer, bytes), Place{memory::peer, placement.peer, -1}};
    case Placement::Kind::device:
      break;
  }
  return {Buffer::on_device(device, bytes), Place{memory::device, device, -1}};
}

/// The experiment a pair of places belongs to, and the direction over the link.
std::pair<std::string, std::string> classify(const Place& source, const Place& destination) {
  const bool host =
      source.memory == memory::host_pinned || destination.memory == memory::host_pinned;
  const bool remote_source = source.memory != memory::device;
  const bool remote_destination = destination.memory != memory::device;
  if (!remote_source && !remote_destination) {
    return {experiment::E1, direction::local};
  }
  return {host ? experiment::E5 : experiment::E8,
          remote_source && remote_destination ? direction::both_ways : direction::one_way};
}

}  // namespace

Placement parse_placement(const std::string& text) {
  if (text == "device") {
    return {Placement::Kind::device, -1};
  }
  if (text == "host") {
    return {Placement::Kind::host, -1};
  }
  if (text.rfind("peer:", 0) == 0) {
    return {Placement::Kind::peer, parse_index(text.substr(5), "the peer device")};
  }
  throw Failure(Status::usage, "'" + text + "' is not a placement: write device, host or peer:N");
}

DeviceSet::DeviceSet(std::vector<int> devices, Placement source, Placement destination,
                     std::uint64_t bytes, bool two_sources, std::unique_ptr<DeviceSet> before)
    : devices_(std::move(devices)), bytes_(bytes), two_sources_(two_sources) {
  if (before && (before->bytes_ != bytes || before->two_sources_ != two_sources)) {
    throw std::invalid_argument("the set before has other arrays");
  }
  std::map<int, std::unique_ptr<Member>> of_before;
  if (before) {
    tried_ = std::move(before->tried_);
  }
  for (auto& member : before ? std::move(before->members_) : decltype(members_){}) {
    const int device = member->stream.device();
    if (std::find(devices_.begin(), devices_.end(), device) != devices_.end()) {
      of_before[device] = std::move(member);
    }
  }
  before.reset();
  const auto words = moved_bytes(bytes) / sizeof(double);
  for (const int device : devices_) {
    for (const auto& placement : {source, destination}) {
      if (placement.kind == Placement::Kind::peer && placement.peer == device) {
        throw Failure(Status::usage,
                      "device " + std::to_string(device) + " is not a peer of itself");
      }
    }
    if (source.kind == Placement::Kind::host || destination.kind == Placement::Kind::host) {
      cache_bytes_ = std::max(cache_bytes_, host_last_level_cache());
    }
    cache_bytes_ = std::max(cache_bytes_, device_last_level_cache(device));
    cpu_ = cpu_ || device_is_cpu(device);
    if (auto& member = of_before[device]) {
      members_.push_back(std::move(member));
      continue;
    }
    TimedStream stream(device);
    // Each array is written before the next is asked for: only then does a runtime that
    // overcommits know what is left, and pages lie where this device's first touch puts them.
    auto [a, source_place] = allocate(source, device, bytes);
    fill(stream, a.as<double>(), words, kSeedA);
    stream.synchronize();
    Buffer b;
    if (two_sources) {
      b = allocate(source, device, bytes).first;
      fill(stream, b.as<double>(), words, kSeedB);
      stream.synchronize();
    }
    auto [c, destination_place] = allocate(destination, device, bytes);
    poison(stream, c.as<double>(), words);
    stream.synchronize();
    members_.push_back(
        std::make_unique<Member>(Member{std::move(stream), std::move(a), std::move(b), std::move(c),
                                        std::move(source_place), std::move(destination_place)}));
  }
}

bool DeviceSet::past_caches(const StreamCase& measured) const {
  return fabricheck::past_caches(
      static_cast<std::uint64_t>(arrays_moved(measured.operation)) * measured.bytes, cache_bytes_);
}

int DeviceSet::passes_of(const StreamCase& measured, int batch) const {
  return passes_of_launch(measured.operation, measured.variant, batch, cpu_, past_caches(measured));
}

ConcurrentBatch DeviceSet::batch_of(const StreamCase& measured, Stores stores) {
  const auto moved = moved_bytes(measured.bytes);
  const bool two_sources = arrays_moved(measured.operation) == 3;
  const bool reads = measured.operation != StreamOperation::write_only;
  const bool writes = measured.operation != StreamOperation::read_only;
  auto variant = measured.variant;
  variant.stores = stores;
  std::vector<Task> tasks;
  for (const auto& owned : members_) {
    const auto& member = *owned;
    tasks.push_back({&member.stream, [=, &measured, &member](int operations) {
                       const auto* a = member.a.as<double>();
                       const auto* b = member.b.as<double>();
                       auto* c = member.c.as<double>();
                       const int passes = passes_of(measured, operations);
                       for (int done = 0; done < operations; done += passes) {
                         declare_traffic(member.stream.get(),
                                         {{a, reads ? measured.bytes : 0, false},
                                          {b, two_sources ? measured.bytes : 0, false},
                                          {c, writes ? measured.bytes : 0, true}});
                         launch(measured.operation, variant, member.stream,
                                {a, b, c, moved, kSeedA}, measured.block_size, passes);
                       }
                     }});
  }
  const bool gated = members_.size() > 1 || queued_ahead(cpu_, past_caches(measured));
  return {std::move(tasks), gated ? &gate_ : nullptr};
}

Stores DeviceSet::stores_for(const StreamCase& measured) {
  if (measured.stores) {
    return *measured.stores;
  }
  if (!cpu_ || !past_caches(measured)) {
    return Stores::plain;  // a GPU writes whole sectors anyway
  }
  const auto& variant = measured.variant;
  const std::tuple alike(measured.operation, measured.bytes, measured.block_size, variant.elements,
                         variant.streaming_loads, variant.grid, devices_.size());
  const auto known = tried_.find(alike);
  if (known != tried_.end()) {
    return known->second;
  }
  const auto faster = faster_stores(measured);
  tried_.emplace(alike, faster);
  return faster;
}

Stores DeviceSet::faster_stores(const StreamCase& measured) {
  // Whether a CPU gains by not reading the lines it overwrites depends on the CPU, so it is tried.
  const auto shortest = [&](Stores stores) {
    auto trial = batch_of(measured, stores);
    double seconds = trial.run(1).together();
    for (int i = 0; i < 3; ++i) {
      seconds = std::min(seconds, trial.run(1).together());
    }
    return seconds;
  };
  const double streaming = shortest(Stores::streaming);
  return shortest(Stores::plain) < streaming ? Stores::plain : Stores::streaming;
}

Series DeviceSet::describe(const StreamCase& measured, Stores stores, int batch, int device) const {
  const auto arrays = static_cast<std::uint64_t>(arrays_moved(measured.operation));
  Series series;
  series.operation = operation_name(measured.operation);
  series.device_set = devices_;
  series.bytes = measured.bytes;
  series.bytes_moved = arrays * measured.bytes;
  series.in_memory = past_caches(measured);
  auto variant = measured.variant;
  variant.stores = stores;
  stream::describe(series, measured.operation, variant, device, moved_bytes(measured.bytes),
                   measured.block_size);
  series.batch = batch;
  series.passes = passes_of(measured, batch);
  return series;
}

std::vector<Series> DeviceSet::measure(const StreamCase& measured, const SamplingRules& rules,
                                       double warm_up, const std::vector<Fault>& faults) {
  const auto words = moved_bytes(measured.bytes) / sizeof(double);
  const auto stores = stores_for(measured);
  auto together = batch_of(measured, stores);
  const auto run = [&](int batch) {
    for (const auto& member : members_) {
      poison(member->stream, member->c.as<double>(), words);
    }
    for (const auto& member : members_) {
      member->stream.synchronize();
    }
    return together.run(batch);
  };
  const auto bounded = together.bounded(rules);
  const int batch = calibrate(run, bounded, warm_up);
  const auto samples = take_samples(run, batch, bounded);
  auto energy = hold(run, samples, batch, bounded);

  // What is compared is what the last sample left, in a destination poisoned just before it.
  std::vector<Series> parts;
  for (const auto& owned : members_) {
    const auto& member = *owned;
    auto series = describe(measured, stores, batch, member.stream.device());
    series.device = member.stream.device();
    series.source = measured.operation == StreamOperation::write_only
                        ? Place{memory::device, series.device, -1}  // made in registers
                        : member.source;
    series.destination = member.destination;
    std::tie(series.experiment, series.direction) = classify(series.source, series.destination);
    if (measured.operation == StreamOperation::read_only) {
      const auto sums = expected_sums(measured.variant, series.device, moved_bytes(measured.bytes),
                                      measured.block_size, kSeedA);
      inject(faults, member.stream, member.c.as<double>(), sums.words());
      series.verification = compare(member.stream, member.c.as<double>(), sums);
    } else {
      inject(faults, member.stream, member.c.as<double>(), words);
      series.verification = compare(member.stream, member.c.as<double>(), words,
                                    expected_result(measured.operation, kSeedA, kSeedB));
    }
    parts.push_back(std::move(series));
  }
  return with_samples(std::move(parts), samples, std::move(energy));
}

}  // namespace fabricheck::stream
