#include "p2p/peers.hpp"

#include <algorithm>
#include <utility>

#include "harness/concurrent.hpp"
#include "harness/devices.hpp"
#include "harness/pattern.hpp"
#include "harness/simulation.hpp"

namespace fabricheck::p2p {
namespace {

/// Every device's source differs, so that data of the wrong device is found.
std::uint32_t seed_of(int device) { return 0x5eed0100U + static_cast<std::uint32_t>(device); }

Place place_of(int executor, int owner) {
  return {executor == owner ? memory::device : memory::peer, owner, -1};
}

/// What a series says of its pair, before anything is measured.
Series describe(const Measurement& what, const Pair& pair) {
  const int executor = what.executor(pair);
  const bool remote_source = what.operation == PeerOperation::copy;
  Series series;
  series.experiment = what.by_kernel() ? experiment::E8 : experiment::E7;
  series.operation = what.name();
  series.device = executor;
  series.source = place_of(executor, remote_source ? pair.to : pair.from);
  series.destination = place_of(executor, pair.to);
  series.direction = pair.from == pair.to                                 ? direction::local
                     : what.both || what.operation == PeerOperation::copy ? direction::both_ways
                                                                          : direction::one_way;
  series.latency = what.is_latency();
  series.read_and_write = remote_source;
  return series;
}

std::vector<int> devices_of(const std::vector<Pair>& pairs) {
  std::vector<int> devices;
  for (const auto& pair : pairs) {
    for (const int device : {pair.from, pair.to}) {
      if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
        devices.push_back(device);
      }
    }
  }
  return devices;
}

}  // namespace

PeerAccess::PeerAccess(const std::set<int>& devices) {
  for (const int device : devices) {
    for (const int owner : devices) {
      if (device == owner) {
        continue;
      }
      try {
        enable_peer_access(device, owner);
      } catch (const Failure& failure) {
        if (failure.status() != Status::unsupported) {
          throw;
        }
        obstacles_[{device, owner}] = failure.what();
      }
    }
  }
}

std::optional<std::string> PeerAccess::obstacle(int device, int owner) const {
  const auto obstacle = obstacles_.find({device, owner});
  return obstacle == obstacles_.end() ? std::nullopt : std::optional<std::string>(obstacle->second);
}

std::map<int, Lane> lanes_needed(const std::vector<Job>& jobs) {
  std::map<int, Lane> needed;
  for (const auto& job : jobs) {
    const auto lanes = lanes_of(job);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      auto& streams = needed[job.what.executor(job.pairs[i])].stream;
      streams = std::max(streams, lanes[i].stream + 1);
      auto& destinations = needed[job.pairs[i].to].destination;
      destinations = std::max(destinations, lanes[i].destination + 1);
    }
  }
  return needed;
}

Peers::Peers(const std::set<int>& devices, const Sizes& sizes) : sizes_(sizes) {
  const auto words = moved_bytes(sizes.array) / sizeof(double);
  for (const int device : devices) {
    const auto entry = sizes.lanes.find(device);
    const Lane lanes = entry == sizes.lanes.end() ? Lane{} : entry->second;
    TimedStream stream(device);
    // Each array is written before the next is asked for: only then does a runtime that
    // overcommits know what is left.
    auto source = Buffer::on_device(device, sizes.array);
    fill(stream, source.as<double>(), words, seed_of(device));
    stream.synchronize();
    std::vector<Buffer> destinations;
    for (int i = 0; i < std::max(1, lanes.destination); ++i) {
      destinations.push_back(Buffer::on_device(device, sizes.array));
      poison(stream, destinations.back().as<double>(), words);
      stream.synchronize();
    }
    std::optional<ChaseArray> chase;
    if (sizes.chase > 0) {
      chase.emplace(stream, sizes.chase);
    }
    cache_bytes_ = std::max(cache_bytes_, device_last_level_cache(device));
    cpu_ = cpu_ || device_is_cpu(device);
    std::vector<TimedStream> streams;
    streams.push_back(std::move(stream));
    while (static_cast<int>(streams.size()) < lanes.stream) {
      streams.emplace_back(device);
    }
    members_.emplace(device, Member{std::move(source), std::move(streams), std::move(destinations),
                                    std::move(chase)});
  }
}

const Buffer& Peers::source_of(const Measurement& what, const Pair& pair) const {
  return members_.at(what.operation == PeerOperation::copy ? pair.to : pair.from).source;
}

stream::Variant Peers::variant_of(const Job& job, std::uint64_t bytes) const {
  auto variant = job.variant;
  variant.stores = stream::automatic_stores(cpu_, past_caches(2 * bytes, cache_bytes_));
  return variant;
}

int Peers::passes_of(const Job& job, std::uint64_t bytes, int batch) const {
  return stream::passes_of_launch(stream::StreamOperation::copy, job.variant, batch, cpu_,
                                  past_caches(2 * bytes, cache_bytes_));
}

void Peers::queue(const Job& job, const Pair& pair, const Lane& lane, std::uint64_t bytes,
                  int operations) const {
  const auto& what = job.what;
  const auto& stream = members_.at(what.executor(pair)).streams.at(lane.stream);
  const auto* from = source_of(what, pair).as<double>();
  auto* to = members_.at(pair.to).destinations.at(lane.destination).as<double>();
  if (!what.by_kernel()) {
    for (int i = 0; i < operations; ++i) {
      FABRICHECK_HIP(hipMemcpyPeerAsync(to, pair.to, from, pair.from, bytes, stream.get()));
    }
    return;
  }
  const int passes = passes_of(job, bytes, operations);
  for (int done = 0; done < operations; done += passes) {
    declare_traffic(stream.get(), {{from, bytes, false}, {to, bytes, true}});
    stream::launch(stream::StreamOperation::copy, variant_of(job, bytes), stream,
                   {from, from, to, moved_bytes(bytes)}, sizes_.block, passes);
  }
}

double Peers::warm_up_for(const Job& job, const SamplingRules& rules) {
  double warm_up = 0;
  for (const int device : devices_of(job.pairs)) {
    if (warmed_.insert(device).second) {
      warm_up = rules.warm_up_seconds;
    }
  }
  return warm_up;
}

std::vector<Series> Peers::measure(const Job& job, const SamplingRules& rules,
                                   const std::vector<Fault>& faults) {
  const auto& what = job.what;
  const double warm_up = warm_up_for(job, rules);
  if (what.operation == PeerOperation::chase) {
    return {measure_chase(job.pairs.front(), what, rules, warm_up, faults)};
  }
  const auto bytes = what.is_latency() ? kLatencyBytes : job.bytes;
  const auto words = moved_bytes(bytes) / sizeof(double);
  const bool by_host = what.operation == PeerOperation::latency_host;

  const auto lanes = lanes_of(job);
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const auto& pair = job.pairs[i];
    tasks.push_back({&members_.at(what.executor(pair)).streams.at(lanes[i].stream),
                     [this, &job, &pair, lane = lanes[i], bytes](int operations) {
                       queue(job, pair, lane, bytes, operations);
                     }});
  }
  // Events round small copies would otherwise time how fast the host queues them.
  const bool ahead = !what.is_latency() && queued_ahead(cpu_, past_caches(2 * bytes, cache_bytes_));
  ConcurrentBatch together(tasks, ahead || job.needs_gate() ? &gate_ : nullptr);
  const auto run = [&](int batch) {
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const auto& owner = members_.at(job.pairs[i].to);
      poison(owner.stream(), owner.destinations[lanes[i].destination].as<double>(), words);
    }
    for (const auto& pair : job.pairs) {
      members_.at(pair.to).stream().synchronize();
    }
    if (!by_host) {
      return together.run(batch);
    }
    tasks.front().stream->use();
    const double start = host_seconds();
    for (int i = 0; i < batch; ++i) {
      tasks.front().queue(1);
      tasks.front().stream->synchronize();
    }
    const double seconds = host_seconds() - start;
    return BatchTimes{{seconds}, seconds};
  };
  auto bounded = together.bounded(rules);
  if (by_host) {
    bounded.max_batch = std::min(bounded.max_batch, StartGate::max_queued());  // enough of them
  }
  const int batch = calibrate(run, bounded, warm_up);
  const auto samples = take_samples(run, batch, bounded);
  auto energy = hold(run, samples, batch, bounded);

  // What is compared is what the last sample left, in a destination poisoned just before it.
  std::vector<Series> parts;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const auto& pair = job.pairs[i];
    const auto& owner = members_.at(pair.to);
    auto* destination = owner.destinations[lanes[i].destination].as<double>();
    auto series = describe(what, pair);
    series.device_set = devices_of(job.pairs);
    series.bytes = bytes;
    series.bytes_moved = series.read_and_write ? 2 * bytes : bytes;
    series.in_memory = past_caches(2 * bytes, cache_bytes_);
    series.batch = batch;
    if (!what.by_kernel()) {
      movers_.of_peers(series, pair.from, pair.to, bytes);
    } else {
      series.passes = passes_of(job, bytes, batch);
      stream::describe(series, stream::StreamOperation::copy, variant_of(job, bytes), series.device,
                       moved_bytes(bytes), sizes_.block);
    }
    inject(faults, owner.stream(), destination, words);
    const int seed_device = what.operation == PeerOperation::copy ? pair.to : pair.from;
    series.verification =
        compare(owner.stream(), destination, words, {1, seed_of(seed_device), 0, 0});
    parts.push_back(std::move(series));
  }
  auto result = with_samples(std::move(parts), samples, std::move(energy));
  if (by_host) {
    result.front().host_seconds.clear();  // they are the samples themselves
  }
  return result;
}

Series Peers::measure_chase(const Pair& pair, const Measurement& what, const SamplingRules& rules,
                            double warm_up, const std::vector<Fault>& faults) {
  auto& chase = members_.at(pair.from).chase.value();
  auto series = describe(what, pair);
  series.device_set = devices_of({pair});
  series.in_memory = past_caches(chase.bytes(), cache_bytes_);
  return chase.measure(std::move(series), members_.at(pair.to).stream(), rules, warm_up, faults);
}

}  // namespace fabricheck::p2p
