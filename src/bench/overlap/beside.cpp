#include "overlap/beside.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "harness/devices.hpp"
#include "harness/host.hpp"
#include "harness/pattern.hpp"
#include "harness/sizes.hpp"
#include "harness/statistics.hpp"
#include "stream/kernels.hpp"

namespace fabricheck::overlap {
namespace {

constexpr std::uint32_t kSeed = 0x5eed0402;
/// Launches of a batch; the iterations of one are calibrated.
constexpr int kLaunches = 6;
/// How much longer the other one lasts alone than the measured one, so that it ends later.
constexpr int kLonger = 2;
/// The number of tries of a sample in which both start too far apart, for example when a device of
/// the host runtime loses a core.
constexpr int kTries = 20;

/// Like calibrate, but repeats until the fastest of some batches is long enough: on a shared
/// processor the batch that ended calibration may have waited for a core.
int calibrate_quickest(const RunBatch& run, const SamplingRules& rules) {
  int batch = calibrate(run, rules, rules.warm_up_seconds);
  for (;;) {
    double quickest = run(batch).device.front();
    for (int i = 0; i < 2; ++i) {
      quickest = std::min(quickest, run(batch).device.front());
    }
    if (quickest >= rules.batch_seconds || batch >= rules.max_batch) {
      return batch;
    }
    const double wanted =
        std::ceil(std::max(batch + 1.0, 1.1 * batch * rules.batch_seconds / quickest));
    batch = static_cast<int>(std::min<double>(wanted, rules.max_batch));
  }
}

}  // namespace

std::string percent(double part) {
  char text[16];
  std::snprintf(text, sizeof text, "%.3g %%", 100 * part);
  return text;
}

std::string Copy::text() const {
  return std::string("a kernel beside ") + (by_kernel ? "kernel copies" : "copy-engine transfers") +
         " from device " + std::to_string(device) + " to " +
         (peer < 0 ? std::string("the host") : "device " + std::to_string(peer));
}

void require_together(double skew, double most) {
  if (skew > most) {
    throw Failure(Status::software, "the kernel and the copies started " + percent(skew) +
                                        " of their time apart, and at the same time is at most " +
                                        percent(most) + ": a longer --batch-time makes it less");
  }
}

Overlap::Overlap(const Copy& copy, std::uint64_t bytes, int block, const copies::HostSide* host)
    : copy_(copy),
      bytes_(bytes),
      words_(bytes / sizeof(double)),
      block_(block),
      host_(host),
      compute_stream_(copy.device),
      copy_stream_(copy.device),
      compute_(compute_stream_),
      source_(Buffer::on_device(copy.device, bytes)) {
  fill(copy_stream_, source_.as<double>(), words_, kSeed);
  copy_stream_.synchronize();
  cache_bytes_ = device_last_level_cache(copy.device);
  if (host_ == nullptr) {
    peer_stream_ = std::make_unique<TimedStream>(copy.peer);
    at_peer_ = Buffer::on_device(copy.peer, bytes);
    poison(*peer_stream_, at_peer_.as<double>(), words_);
    peer_stream_->synchronize();
    cache_bytes_ = std::max(cache_bytes_, device_last_level_cache(copy.peer));
  } else {
    cache_bytes_ = std::max(cache_bytes_, host_last_level_cache());
  }
  const Task compute{&compute_stream_, [this](int) { compute_.queue(compute_stream_, launches_); }};
  const Task copies{&copy_stream_, [this](int) { queue_copies(copies_); }};
  for (const auto& tasks :
       {std::vector<Task>{compute}, {copies}, {compute, copies}, {copies, compute}}) {
    batches_.emplace_back(tasks, &gate_);
  }
}

void Overlap::queue_copies(int count) const {
  auto* to = host_ == nullptr ? at_peer_.as<double>() : host_->destination().as<double>();
  const auto* from = source_.as<double>();
  for (int i = 0; i < count; ++i) {
    if (copy_.by_kernel) {
      const auto stores = stream::automatic_stores(device_is_cpu(copy_.device),
                                                   past_caches(2 * bytes_, cache_bytes_));
      stream::launch(stream::StreamOperation::copy, {stores}, copy_stream_,
                     {from, from, to, bytes_}, block_);
    } else if (host_ == nullptr) {
      FABRICHECK_HIP(
          hipMemcpyPeerAsync(to, copy_.peer, from, copy_.device, bytes_, copy_stream_.get()));
    } else {
      FABRICHECK_HIP(hipMemcpyAsync(to, from, bytes_, hipMemcpyDeviceToHost, copy_stream_.get()));
    }
  }
}

void Overlap::prepare() const {
  compute_.poison_result(compute_stream_);
  const auto& owner = peer_stream_ ? *peer_stream_ : copy_stream_;
  auto* to = host_ == nullptr ? at_peer_.as<double>() : host_->destination().as<double>();
  poison(owner, to, words_);
  owner.synchronize();
}

void Overlap::verify(Part part, const std::vector<Fault>& faults) {
  const auto keep = [this](Part which, Verification verification) {
    auto& verified = verified_[which];
    if (verified.errors == 0) {
      verified = std::move(verification);
    }
  };
  const bool both = part == compute_beside || part == copy_beside;
  if (both || part == compute_alone) {
    keep(both ? compute_beside : compute_alone, compute_.check(compute_stream_, faults));
  }
  if (both || part == copy_alone) {
    const auto& owner = peer_stream_ ? *peer_stream_ : copy_stream_;
    auto* to = host_ == nullptr ? at_peer_.as<double>() : host_->destination().as<double>();
    inject(faults, owner, to, words_);
    auto compared = compare(owner, to, words_, {1, kSeed, 0, 0});
    if (host_ != nullptr && compared.first_mismatch) {
      compared.first_mismatch->device = -1;
    }
    keep(both ? copy_beside : copy_alone, std::move(compared));
  }
}

BatchTimes Overlap::run(Part part, const std::vector<Fault>& faults) {
  launches_ = batch_launches_ * (part == copy_beside ? kLonger : 1);
  copies_ = batch_copies_ * (part == compute_beside ? kLonger : 1);
  const bool both = part == compute_beside || part == copy_beside;
  for (int tries = 1;; ++tries) {
    prepare();
    const auto times = batches_[part].run(1);
    if (both) {
      const auto& stream = part == compute_beside ? compute_stream_ : copy_stream_;
      const auto& other = part == compute_beside ? copy_stream_ : compute_stream_;
      const double shorter = std::min(times.device[0], times.device[1]);
      const double skew = std::abs(stream.starts_after(other)) / shorter;
      if (skew > most_skew_ && tries < kTries) {
        continue;
      }
      require_together(skew, most_skew_);
      proof_.skew = std::max(proof_.skew, skew);
      proof_.alone = std::max(proof_.alone, stream.stops_after(other) / times.device[0]);
    }
    verify(part, faults);
    return times;
  }
}

void Overlap::calibrate_both(const SamplingRules& rules) {
  auto bounded = rules;
  bounded.max_batch = Compute::kMost;
  batch_launches_ = kLaunches;
  const auto iterations = [this](int count) {
    compute_.set_iterations(count);
    return run(compute_alone, {});
  };
  compute_.set_iterations(calibrate_quickest(iterations, bounded));
  bounded.max_batch = StartGate::max_queued() / kLonger;
  const auto copied = [this](int count) {
    batch_copies_ = count;
    return run(copy_alone, {});
  };
  batch_copies_ = calibrate_quickest(copied, bounded);
  const double seconds = copied(batch_copies_).device.front();
  if (batch_copies_ == bounded.max_batch && seconds < 0.9 * rules.batch_seconds) {
    throw Failure(Status::usage, std::to_string(batch_copies_) + " copies of " +
                                     format_size(bytes_) + ", as many as can be queued, take " +
                                     std::to_string(std::lround(1e3 * seconds)) +
                                     " ms: give a larger --size or a smaller --batch-time");
  }
}

Series Overlap::describe(Part part) const {
  const bool computes = part == compute_alone || part == compute_beside;
  const bool alone = part == compute_alone || part == copy_alone;
  Series series;
  if (host_ == nullptr) {
    series.experiment = copy_.by_kernel ? experiment::E8 : experiment::E7;
  } else {
    series.experiment = copy_.by_kernel ? experiment::E3 : experiment::E2;
  }
  series.role = alone ? role::single : role::beside;
  series.device = copy_.device;
  series.device_set = {copy_.device};
  series.source = {memory::device, copy_.device, -1};
  if (host_ == nullptr && !(computes && alone)) {
    series.device_set.push_back(copy_.peer);
  }
  series.read_and_write = false;
  if (computes) {
    series.operation = operation::compute;
    series.destination = series.source;
    series.direction = direction::local;
    series.bytes = compute_.bytes();
    series.latency = true;
    series.block_size = Compute::kBlock;
    series.passes = 1;
    series.stores = stores::plain;
    series.in_memory = false;
    series.batch = batch_launches_;
  } else {
    series.direction = direction::one_way;
    series.bytes = bytes_;
    series.in_memory = past_caches(2 * bytes_, cache_bytes_);
    series.batch = batch_copies_;
    series.destination =
        host_ == nullptr ? Place{memory::peer, copy_.peer, -1} : host_->destination_place();
    if (copy_.by_kernel) {
      series.operation = operation::write;
      series.block_size = block_;
      series.passes = 1;
      const auto used = stream::automatic_stores(device_is_cpu(copy_.device), series.in_memory);
      series.stores = used == stream::Stores::streaming ? stores::streaming : stores::plain;
      series.movement = host_ == nullptr ? "" : movement::zero_copy;
    } else if (host_ == nullptr) {
      series.operation = operation::engine;
      movers_.of_peers(series, copy_.device, copy_.peer, bytes_);
    } else {
      series.operation = operation::d2h;
      movers_.of_host(series, bytes_);
    }
  }
  series.bytes_moved = series.bytes;
  return series;
}

std::vector<Series> Overlap::measure(const SamplingRules& rules, const std::vector<Fault>& faults,
                                     double most_skew) {
  most_skew_ = most_skew;
  constexpr std::array<Part, 4> parts{compute_alone, copy_alone, compute_beside, copy_beside};
  calibrate_both(rules);
  verified_ = {};
  proof_ = {};
  std::array<std::vector<double>, 4> seconds;
  std::array<std::vector<double>, 4> host_seconds;
  const auto round = [&](int) {
    BatchTimes all;
    for (const auto part : parts) {
      const auto times = run(part, faults);
      seconds[part].push_back(times.device.front());
      host_seconds[part].push_back(times.host);
      all.device.push_back(times.device.front());
      all.host += times.host;
    }
    return all;
  };
  take_samples(round, 1, rules);
  tflops_ = compute_.operations() * batch_launches_ / median(seconds[compute_alone]) / 1e12;
  std::vector<Series> result;
  for (const auto part : parts) {
    auto series = describe(part);
    series.seconds = seconds[part];
    if (series.role == role::single) {
      series.host_seconds = host_seconds[part];  // of two at once it is the time of both
    }
    series.verification = verified_[part];
    result.push_back(std::move(series));
  }
  return result;
}

}  // namespace fabricheck::overlap
