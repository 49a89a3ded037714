#include "managed/shared_array.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/concurrent.hpp"
#include "harness/copy_rules.hpp"
#include "harness/devices.hpp"
#include "harness/huge_pages.hpp"
#include "harness/pattern.hpp"
#include "harness/simulation.hpp"

namespace fabricheck::managed {
namespace {

constexpr std::uint32_t kSeed = 0x5eed0300;

/// Thrown by a sample that does not count.
struct NothingMeasured {};

Buffer allocate(int device, const SharedArray::Options& options) {
  if (options.memory == SharedMemory::pinned) {
    return Buffer::on_host(options.domain, options.bytes);
  }
  auto buffer = Buffer::managed(device, options.bytes);
  declare_host_access(buffer.as<void>(), options.bytes);
  if (options.domain >= 0 && is_amd(device_arch(device))) {
    // Pages that come back are allocated by a thread of the driver, with a policy of its own.
    prefer_domain(options.domain, buffer.as<void>(), options.bytes);
  }
  touch_pages(buffer.as<void>(), moved_bytes(options.bytes));
  return buffer;
}

/// Reads one byte of every page, so that pages that migrate come to the host with their data.
void read_pages(const void* data, std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const auto* first = static_cast<const volatile char*>(data);
  for (std::uint64_t offset = 0; offset < bytes; offset += page) {
    (void)first[offset];
  }
}

}  // namespace

SharedArray::SharedArray(int device, const Options& options)
    : options_(options),
      core_binding_(options.domain),
      memory_binding_(options.domain),
      stream_(device),
      device_only_(Buffer::on_device(device, options.bytes)),
      shared_(allocate(device, options)),
      host_only_(Buffer::on_host(options.domain, options.bytes, HostMemory::pageable)),
      host_huge_(huge_page_bytes(host_only_.as<void>(), options.bytes)),
      cache_bytes_(std::max(host_last_level_cache(), device_last_level_cache(device))) {
  if (options.memory == SharedMemory::pinned) {
    shared_huge_ = huge_page_bytes(shared(), options.bytes);
  }
  if (options_.movement == Movement::page_migration) {
    const auto error = prefetch(options.bytes, hipCpuDeviceId);
    if (error != hipSuccess) {
      (void)hipGetLastError();
      refusal_ = hipGetErrorString(error);
    }
    stream_.synchronize();
  }
}

hipError_t SharedArray::prefetch(std::uint64_t bytes, int to) const {
  stream_.use();
  return hipMemPrefetchAsync(shared(), bytes, to, stream_.get());
}

/// Prefetching is quicker than faults; reading makes sure.
void SharedArray::pages_to_host(std::uint64_t bytes) const {
  if (options_.movement != Movement::page_migration) {
    return;
  }
  if (!refusal_) {
    FABRICHECK_HIP(prefetch(bytes, hipCpuDeviceId));
  }
  stream_.synchronize();  // the host may not touch what a kernel still uses
  declare_host_access(shared(), bytes);
  read_pages(shared(), moved_bytes(bytes));
}

void SharedArray::prepare(SharedOperation operation, std::uint64_t bytes) {
  const auto words = moved_bytes(bytes) / sizeof(double);
  if (starts_on_device(operation)) {
    // A kernel that writes every page brings it to the device.
    declare_traffic(stream_.get(), {{shared(), bytes, true}});
    if (operation == SharedOperation::host_write) {
      poison(stream_, shared(), words);
    } else {
      fill(stream_, shared(), words, kSeed);
    }
    poison(host_only(), operation == SharedOperation::host_read ? words : 0);
  } else {
    pages_to_host(bytes);
    if (operation == SharedOperation::read) {
      poison(stream_, device_only_.as<double>(), words);
    } else if (operation == SharedOperation::write) {
      poison(shared(), words);
    }
  }
  stream_.synchronize();
}

BatchTimes SharedArray::run(SharedOperation operation, std::uint64_t bytes) {
  const auto moved = moved_bytes(bytes);
  auto* device_only = device_only_.as<double>();
  const bool reads = operation == SharedOperation::read;
  stream_.use();
  const double start = host_seconds();
  if (by_host(operation)) {
    declare_host_access(shared(), bytes);
    if (operation == SharedOperation::host_read) {
      std::memcpy(host_only(), shared(), moved);
    } else {
      std::memcpy(shared(), host_only(), moved);
    }
    const double seconds = host_seconds() - start;
    return {{seconds}, seconds};
  }
  stream_.mark_start();
  if (is_prefetch(operation)) {
    const bool to_device = operation == SharedOperation::prefetch_h2d;
    FABRICHECK_HIP(prefetch(bytes, to_device ? stream_.device() : hipCpuDeviceId));
  } else {
    const auto* from = reads ? shared() : device_only;
    auto* to = reads ? device_only : shared();
    declare_traffic(stream_.get(), {{from, bytes, false}, {to, bytes, true}});
    stream::launch(stream::StreamOperation::copy, {stores_for(bytes)}, stream_,
                   {from, from, to, moved}, options_.block);
  }
  FABRICHECK_HIP(hipGetLastError());
  stream_.mark_stop();
  stream_.synchronize();
  return {{stream_.seconds()}, host_seconds() - start};
}

Verification SharedArray::verify(SharedOperation operation, std::uint64_t bytes,
                                 const std::vector<Fault>& faults) {
  const auto words = moved_bytes(bytes) / sizeof(double);
  const Expected expected{1, kSeed, 0, 0};
  if (operation == SharedOperation::host_read) {
    inject(faults, host_only(), words);
    return compare(host_only(), words, expected);
  }
  auto* destination = operation == SharedOperation::read ? device_only_.as<double>() : shared();
  inject(faults, stream_, destination, words);
  return compare(stream_, destination, words, expected);
}

stream::Stores SharedArray::stores_for(std::uint64_t bytes) const {
  return stream::automatic_stores(device_is_cpu(stream_.device()),
                                  past_caches(2 * bytes, cache_bytes_));
}

Series SharedArray::describe(SharedOperation operation, std::uint64_t bytes, int domain,
                             Movement movement) const {
  const bool managed = options_.memory == SharedMemory::managed;
  const int device = stream_.device();
  const Place on_host{managed ? memory::managed : memory::host_pinned, -1, domain, shared_huge_};
  const Place on_device{memory::managed, device, -1};
  const Place device_only{memory::device, device, -1};
  const Place ordinary{memory::host_pageable, -1, host_only_.numa_domain(), host_huge_};
  Series series;
  series.experiment = experiment::E3;
  series.operation = operation_name(operation);
  series.device = device;
  series.device_set = {device};
  switch (operation) {
    case SharedOperation::read:
      series.source = on_host;
      series.destination = device_only;
      break;
    case SharedOperation::write:
      series.source = device_only;
      series.destination = on_host;
      break;
    case SharedOperation::host_read:
      series.source = on_device;
      series.destination = ordinary;
      break;
    case SharedOperation::host_write:
      series.source = ordinary;
      series.destination = on_device;
      break;
    case SharedOperation::prefetch_h2d:
      series.source = on_host;
      series.destination = on_device;
      break;
    case SharedOperation::prefetch_d2h:
      series.source = on_device;
      series.destination = on_host;
      break;
  }
  series.engine = engine::kernel;
  if (by_host(operation)) {
    series.engine = engine::cpu;
  } else if (is_prefetch(operation)) {
    series.engine = engine::copy_engine;
  } else {
    series.block_size = options_.block;
    series.passes = 1;
    series.stores =
        stores_for(bytes) == stream::Stores::streaming ? stores::streaming : stores::plain;
  }
  series.movement = movement_name(movement);
  series.direction = direction::one_way;
  series.bytes = bytes;
  series.bytes_moved = bytes;
  series.read_and_write = false;
  series.in_memory = past_caches(2 * bytes, cache_bytes_);
  return series;
}

SharedResult SharedArray::measure(SharedOperation operation, std::uint64_t bytes,
                                  const SamplingRules& rules, double warm_up,
                                  const std::vector<Fault>& faults) {
  const auto words = moved_bytes(bytes) / sizeof(double);
  // What no sample changes: the source.
  switch (operation) {
    case SharedOperation::read:
    case SharedOperation::prefetch_h2d:
      fill(stream_, shared(), words, kSeed);
      break;
    case SharedOperation::write:
      fill(stream_, device_only_.as<double>(), words, kSeed);
      break;
    case SharedOperation::host_write:
      fill(host_only(), words, kSeed);
      break;
    case SharedOperation::host_read:
    case SharedOperation::prefetch_d2h:
      break;  // it has to be on the device before each sample: prepare
  }
  stream_.synchronize();

  PagePlaces before;
  PagePlaces after;
  Proved proved;
  const auto sample = [&](int) {
    prepare(operation, bytes);
    before = page_places(shared(), moved_bytes(bytes));
    const auto times = run(operation, bytes);
    after = page_places(shared(), moved_bytes(bytes));
    proved =
        prove_movement(operation, options_.movement, device_arch(stream_.device()), before, after);
    if (!proved.obstacle.empty()) {
      throw NothingMeasured{};  // what moves nothing can take no time, which would be an error
    }
    return times;
  };
  auto one_by_one = rules;
  one_by_one.max_batch = 1;  // a second operation would find the pages where the first left them
  std::vector<BatchTimes> samples;
  try {
    (void)calibrate(sample, one_by_one, warm_up);
    samples = take_samples(sample, 1, one_by_one);
  } catch (const NothingMeasured&) {
    return {std::nullopt, proved.obstacle};
  }
  // Where the pages are on the host, before the operation or after it.
  const auto& on_host = operation == SharedOperation::prefetch_d2h ? after : before;
  const bool one_domain = on_host.domains.size() == 1 && !by_host(operation);
  auto series =
      describe(operation, bytes, one_domain ? on_host.domains.front() : -1, proved.movement);
  series.verification = verify(operation, bytes, faults);
  auto result = with_samples({std::move(series)}, samples).front();
  if (by_host(operation)) {
    result.host_seconds.clear();  // they are the samples themselves
  }
  return {std::move(result), proved.remark};
}

}  // namespace fabricheck::managed
