#include "mpi/coordinator.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "harness/concurrent.hpp"
#include "harness/devices.hpp"
#include "harness/simulation.hpp"

namespace fabricheck::mpi {
namespace {

enum CommandTag { kCommand = 1, kReply };
constexpr int kVerify = 0;   // the command that follows the last batch
constexpr int kSingle = -1;  // the command to time single messages

/// Adds the counts; the first mismatch is that of the first rank with one.
void add_rank(Verification& sum, const Verification& part) {
  const auto first = sum.first_mismatch;
  add(sum, part);
  if (first) {
    sum.first_mismatch = first;
  }
}

}  // namespace

Coordinator::Coordinator(MPI_Comm world, Worker& worker, std::vector<RankPlace> places,
                         int single_messages)
    : mail_(world), worker_(worker), places_(std::move(places)), single_messages_(single_messages) {
  FABRICHECK_MPI(MPI_Comm_rank(world, &rank_));
}

std::vector<Series> Coordinator::measure(const MpiJob& job, const SamplingRules& rules,
                                         const std::vector<Fault>& faults) {
  if (job.has(rank_)) {
    worker_.prepare(job);
  }
  if (rank_ == 0) {
    return coordinate(job, rules, faults);
  }
  if (job.has(rank_)) {
    follow(job, faults);
  }
  return {};
}

void Coordinator::follow(const MpiJob& job, const std::vector<Fault>& faults) {
  for (;;) {
    const int batch = std::stoi(mail_.receive(0, kCommand));
    mail_.send(0, kReply, nlohmann::json(execute(job, batch, faults)).dump());
    if (batch == kVerify) {
      return;
    }
  }
}

Coordinator::Reply Coordinator::execute(const MpiJob& job, int batch,
                                        const std::vector<Fault>& faults) {
  Reply reply;
  if (batch == kSingle) {
    reply.seconds = worker_.single_messages(job, single_messages_);
    return reply;
  }
  if (batch != kVerify) {
    reply.seconds = worker_.run(job, batch);
    reply.end = host_seconds();
    reply.start = reply.end - reply.seconds;
    return reply;
  }
  const auto verification = worker_.verify(job, faults);
  reply.bytes_checked = verification.bytes_checked;
  reply.errors = verification.errors;
  if (verification.first_mismatch) {
    reply.offset = verification.first_mismatch->offset_bytes;
    reply.expected = verification.first_mismatch->expected;
    reply.found = verification.first_mismatch->found;
  }
  return reply;
}

Verification Coordinator::verification_of(const MpiJob& job, int rank, const Reply& reply) const {
  Verification verification{reply.bytes_checked, reply.errors, std::nullopt};
  if (reply.errors > 0) {
    Verification::Mismatch first;
    const auto& place = places_.at(static_cast<std::size_t>(rank));
    first.device = place.memory == memory::device ? place.device : -1;
    first.rank = rank;
    first.offset_bytes = reply.offset;
    first.expected_text = element_text(job.type, reply.expected);
    first.found_text = element_text(job.type, reply.found);
    verification.first_mismatch = first;
  }
  return verification;
}

void Coordinator::send_command(const MpiJob& job, int batch) {
  for (const int member : job.members()) {
    if (member != 0) {
      mail_.send(member, kCommand, std::to_string(batch));
    }
  }
}

std::vector<Coordinator::Reply> Coordinator::gather_replies(const MpiJob& job,
                                                            const Reply& of_root) {
  std::vector<Reply> result;
  for (const int member : job.members()) {
    const bool is_remote = member != 0;
    result.push_back(is_remote ? nlohmann::json::parse(mail_.receive(member, kReply)).get<Reply>()
                               : of_root);
  }
  return result;
}

BatchTimes Coordinator::times(const MpiJob& job, int batch) {
  send_command(job, batch);
  const auto all = gather_replies(job, job.has(0) ? execute(job, batch, {}) : Reply{});
  BatchTimes result;
  if (job.ranks > 0) {
    const auto sum = std::accumulate(all.begin(), all.end(), 0.0,
                                     [](double s, const Reply& r) { return s + r.seconds; });
    result.device = {sum / static_cast<double>(all.size())};
    return result;
  }
  // Members alternate between source and destination, and the source has the clock.
  bool one_node = true;
  double start = all.front().start;
  double end = all.front().end;
  const auto members = job.members();
  const auto& node = places_.at(static_cast<std::size_t>(members.front())).node;
  for (std::size_t i = 0; i < all.size(); i += 2) {
    result.device.push_back(all[i].seconds);
    start = std::min(start, all[i].start);
    end = std::max(end, all[i].end);
    one_node = one_node && places_.at(static_cast<std::size_t>(members[i])).node == node;
  }
  if (one_node) {  // one clock: pairs that did not work all at once show
    result.host = end - start;
  }
  return result;
}

double Coordinator::warm_up_for(const MpiJob& job, const SamplingRules& rules) {
  double warm_up = 0;
  for (const int rank : job.members()) {
    if (warmed_.insert(rank).second) {
      warm_up = rules.warm_up_seconds;
    }
  }
  return warm_up;
}

std::vector<Series> Coordinator::coordinate(const MpiJob& job, const SamplingRules& rules,
                                            const std::vector<Fault>& faults) {
  const auto run = [&](int batch) { return times(job, batch); };
  int batch = 1;
  std::vector<BatchTimes> samples;
  std::shared_ptr<const EnergyHold> energy;
  if (job.timed) {
    if (!kSimulated) {
      (void)run(1);  // connections and mappings are made by the first message
    }
    batch = calibrate(run, rules, warm_up_for(job, rules));
    samples = take_samples(run, batch, rules);
    if (job.operation != MpiOperation::latency) {
      energy = hold(run, samples, batch, rules);
    }
  } else {
    samples = {run(1)};
  }
  std::optional<double> p99;
  if (job.timed && job.operation == MpiOperation::latency && single_messages_ > 0) {
    send_command(job, kSingle);
    const auto of_root = job.has(0) ? execute(job, kSingle, {}) : Reply{};
    p99 = gather_replies(job, of_root).front().seconds;  // the source has the clock
  }
  send_command(job, kVerify);
  const auto all = gather_replies(job, job.has(0) ? execute(job, kVerify, faults) : Reply{});

  auto parts = describe_parts(job);
  for (auto& part : parts) {
    part.messages = worker_.messages_of(job);
    part.batch = batch * part.messages;
    part.p99_seconds = p99;
  }
  const auto members = job.members();
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto of_member = verification_of(job, members[i], all[i]);
    add_rank(parts[job.ranks > 0 ? 0 : i / 2].verification, of_member);
  }
  auto series = with_samples(std::move(parts), samples, std::move(energy));
  for (auto& measured : series) {
    measured.host_seconds.clear();  // the samples are by that clock
    if (measured.role == role::sum) {
      measured.ranks = members;
    }
  }
  return series;
}

Series Coordinator::describe(const MpiJob& job, const std::vector<int>& ranks) const {
  Series series;
  series.experiment = job.experiment();
  series.operation = operation_name(job.operation);
  series.engine = engine::mpi;
  series.ranks = ranks;
  series.datatype = type_name(job.type);
  series.bytes = job.bytes();
  series.bytes_moved = job.bytes();
  series.read_and_write = false;
  series.latency = job.operation == MpiOperation::latency || job.ranks > 0;
  std::uint64_t cache = 0;
  for (const int rank : job.members()) {
    const auto& place = places_.at(static_cast<std::size_t>(rank));
    cache = std::max(cache, place.cache_bytes);
    auto& set = series.device_set;
    if (place.device >= 0 && std::find(set.begin(), set.end(), place.device) == set.end()) {
      set.push_back(place.device);
    }
  }
  series.in_memory = past_caches(2 * job.bytes(), cache);
  const auto& from = places_.at(static_cast<std::size_t>(ranks.front()));
  const auto& to = places_.at(static_cast<std::size_t>(ranks.back()));
  if (job.ranks > 0) {
    series.direction = direction::collective;
    series.source = series.destination = {from.memory, -1, -1};
    return series;
  }
  const auto end_of = [](const RankPlace& place) {
    return place.memory == memory::device ? Place{place.memory, place.device, -1}
                                          : Place{place.memory, -1, place.numa_domain};
  };
  if (from.node != to.node) {
    series.experiment = experiment::E17;
    series.distance = distance_of(from.network, to.network);
  }
  const bool both = job.operation == MpiOperation::bandwidth_both;
  series.direction = both ? direction::both_ways : direction::one_way;
  series.bytes_moved = (both ? 2 : 1) * job.bytes();
  series.source = end_of(from);
  series.destination = end_of(to);
  return series;
}

std::vector<Series> Coordinator::describe_parts(const MpiJob& job) const {
  if (job.ranks > 0) {
    return {describe(job, job.members())};
  }
  std::vector<Series> parts;
  for (const auto& pair : job.pairs) {
    parts.push_back(describe(job, {pair.from, pair.to}));
  }
  return parts;
}

}  // namespace fabricheck::mpi
