#include "memcpy/copies.hpp"

#include <algorithm>
#include <utility>

#include "harness/concurrent.hpp"
#include "harness/devices.hpp"
#include "harness/host.hpp"
#include "harness/huge_pages.hpp"
#include "harness/pattern.hpp"
#include "harness/simulation.hpp"

namespace fabricheck::copies {
namespace {

/// The source of the host and that of each device all differ, so that another one's data is found.
constexpr std::uint32_t kHostSeed = 0x5eed0200;
std::uint32_t seed_of(int device) { return 0x5eed0300U + static_cast<std::uint32_t>(device); }

std::uint64_t words_of(std::uint64_t bytes) { return moved_bytes(bytes) / sizeof(double); }

}  // namespace

HostSide::HostSide(int domain, HostMemory memory, const CopyArrays& arrays,
                   std::optional<int> pages_on)
    : binding_(domain), memory_(memory) {
  // Each array is touched before the next is requested, because only then the free memory is known.
  if (arrays.to_device) {
    source_ = Buffer::on_host(domain, arrays.bytes, memory, pages_on);
    source_huge_ = huge_page_bytes(source_.as<void>(), arrays.bytes);
    fill(source_.as<double>(), words_of(arrays.bytes), kHostSeed);
  }
  if (arrays.to_host) {
    destination_ = Buffer::on_host(domain, arrays.bytes, memory, pages_on);
    destination_huge_ = huge_page_bytes(destination_.as<void>(), arrays.bytes);
  }
}

Place HostSide::place_of(const Buffer& buffer, std::optional<std::uint64_t> huge) const {
  return {memory_word(memory_), -1, buffer.numa_domain(), huge};
}

void HostSide::prove_pages() {
  for (auto* buffer : {&source_, &destination_}) {
    if (buffer->as<void>() != nullptr) {
      buffer->prove_pages();
    }
  }
}

Copies::Copies(int device, const HostSide& host, const CopyArrays& arrays)
    : host_(host),
      inward_(device),
      outward_(device),
      cache_bytes_(std::max(host_last_level_cache(), device_last_level_cache(device))) {
  if (arrays.to_device) {
    destination_ = Buffer::on_device(device, arrays.bytes);
    poison(inward_, destination_.as<double>(), words_of(arrays.bytes));
    inward_.synchronize();
  }
  if (arrays.to_host) {
    source_ = Buffer::on_device(device, arrays.bytes);
    fill(outward_, source_.as<double>(), words_of(arrays.bytes), seed_of(device));
    outward_.synchronize();
  }
}

Copies::Way Copies::way(bool to_device) const {
  if (to_device) {
    return {true, inward_, host_.source(), destination_, kHostSeed, false};
  }
  return {false,
          outward_,
          source_,
          host_.destination(),
          seed_of(outward_.device()),
          host_.memory() != HostMemory::pinned};
}

void Copies::poison_destination(const Way& way, std::uint64_t words) const {
  if (way.by_cpu) {
    poison(way.destination.as<double>(), words);
  } else {
    poison(way.stream, way.destination.as<double>(), words);
    way.stream.synchronize();
  }
}

Verification Copies::check_destination(const Way& way, std::uint64_t words,
                                       const std::vector<Fault>& faults) const {
  auto* data = way.destination.as<double>();
  const Expected expected{1, way.seed, 0, 0};
  if (way.by_cpu) {
    inject(faults, data, words);
    return compare(data, words, expected);
  }
  inject(faults, way.stream, data, words);
  auto result = compare(way.stream, data, words, expected);
  if (!way.to_device && result.first_mismatch) {
    result.first_mismatch->device = -1;
  }
  return result;
}

Series Copies::describe(const Way& way, const CopyJob& job) const {
  Series series;
  series.operation = operation_name(job.operation);
  series.device = way.stream.device();
  series.device_set = {series.device};
  const Place on_device{memory::device, series.device, -1};
  series.source = way.to_device ? host_.source_place() : on_device;
  series.destination = way.to_device ? on_device : host_.destination_place();
  movers_.of_host(series, job.bytes);
  series.direction =
      job.operation == CopyOperation::both ? direction::both_ways : direction::one_way;
  series.bytes = job.bytes;
  series.bytes_moved = job.bytes;
  series.latency = is_latency(job.operation);
  series.read_and_write = false;
  series.in_memory = past_caches(2 * job.bytes, cache_bytes_);
  return series;
}

std::vector<Series> Copies::measure(const CopyJob& job, const std::string& experiment,
                                    const SamplingRules& rules, double warm_up,
                                    const std::vector<Fault>& faults) {
  std::vector<Way> ways;
  for (const bool to_device : {true, false}) {
    if (to_device ? goes_to_device(job.operation) : goes_to_host(job.operation)) {
      ways.push_back(way(to_device));
    }
  }
  const bool synchronous = is_synchronous(job.operation);
  std::vector<Task> tasks;
  for (const auto& path : ways) {
    tasks.push_back({&path.stream, one_by_one([&path, &job, synchronous] {
                       auto* to = path.destination.as<void>();
                       const auto* from = path.source.as<void>();
                       const auto kind =
                           path.to_device ? hipMemcpyHostToDevice : hipMemcpyDeviceToHost;
                       FABRICHECK_HIP(synchronous ? hipMemcpy(to, from, job.bytes, kind)
                                                  : hipMemcpyAsync(to, from, job.bytes, kind,
                                                                   path.stream.get()));
                     })});
  }
  const bool by_host = synchronous || host_.memory() == HostMemory::pageable;
  const bool ahead =
      queued_ahead(device_is_cpu(inward_.device()), past_caches(2 * job.bytes, cache_bytes_));
  ConcurrentBatch together(tasks, job.needs_gate() || (ahead && !by_host) ? &gate_ : nullptr);
  const auto words = words_of(job.bytes);
  const auto run = [&](int batch) {
    for (const auto& path : ways) {
      poison_destination(path, words);
    }
    return by_host ? run_by_host(tasks, batch) : together.run(batch);
  };
  const auto bounded = together.bounded(rules);
  const int batch = calibrate(run, bounded, warm_up);
  const auto samples = take_samples(run, batch, bounded);
  auto energy = hold(run, samples, batch, bounded);

  // The comparison covers the last sample, in a destination poisoned just before it.
  std::vector<Series> parts;
  for (const auto& path : ways) {
    auto series = describe(path, job);
    series.experiment = experiment;
    series.batch = batch;
    series.verification = check_destination(path, words, faults);
    parts.push_back(std::move(series));
  }
  auto result = with_samples(std::move(parts), samples, std::move(energy));
  for (auto& series : result) {
    if (by_host) {
      series.host_seconds.clear();  // they are the samples themselves
    }
    if (series.role == role::sum) {
      series.source.numa_domain = host_.source().numa_domain();
    }
  }
  return result;
}

}  // namespace fabricheck::copies
