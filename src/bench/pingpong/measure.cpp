#include "pingpong/measure.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/devices.hpp"
#include "harness/host.hpp"
#include "harness/movers.hpp"
#include "harness/sampling.hpp"
#include "memcpy/plan.hpp"
#include "pingpong/arrays.hpp"
#include "pingpong/plan.hpp"
#include "pingpong/report.hpp"

namespace fabricheck::pingpong {
namespace {

using nlohmann::json;

/// The caches of this rank alone: the host's caches are shared by its ranks.
std::uint64_t caches_of(const RankGroup& group, const json& ranks) {
  const auto& host = ranks[static_cast<std::size_t>(group.rank())]["host"];
  const auto neighbours = std::count_if(
      ranks.begin(), ranks.end(), [&host](const json& other) { return other["host"] == host; });
  return std::max(host_last_level_cache() / static_cast<std::uint64_t>(neighbours),
                  device_last_level_cache(group.device()));
}

/// Sentences on ranks that share a device.
std::vector<std::string> sharing_notes(const RankGroup& group) {
  std::vector<std::string> notes;
  for (const int device : group.devices_of(group.everyone())) {
    std::string ranks;
    int count = 0;
    for (const int rank : group.everyone()) {
      if (group.device_of(rank) == device) {
        ranks += (count++ == 0 ? "" : ", ") + std::to_string(rank);
      }
    }
    if (count > 1) {
      notes.push_back("ranks " + ranks + " share device " + std::to_string(device));
    }
  }
  return notes;
}

bool all_agree(const RankGroup& group, bool mine) {
  const auto answers = group.gather(mine);
  return std::all_of(answers.begin(), answers.end(),
                     [](const json& reply) { return reply.get<bool>(); });
}

/// Seconds of single copies, the same number on every rank: those of the slowest rank.
std::vector<double> take_samples_together(const RankGroup& group, const ExchangeArrays& arrays,
                                          const ExchangeJob& job, const SamplingRules& rules,
                                          double warm_up) {
  const double begun = host_seconds();
  do {
    arrays.prepare(job);
    (void)arrays.run(job);
  } while (host_seconds() - begun < warm_up);
  const double start = host_seconds();
  std::vector<double> seconds;
  std::vector<double> rates;
  SeriesEnd end(rules);
  for (;;) {
    arrays.prepare(job);
    group.barrier();
    seconds.push_back(arrays.run(job));
    if (!(seconds.back() > 0)) {
      throw Failure(Status::software, "the clock gave a time that is not positive");
    }
    rates.push_back(1 / seconds.back());
    if (all_agree(group, end.has_enough(rates, host_seconds() - start))) {
      return seconds;
    }
  }
}

/// The work of a rank, and its objects.
struct Work {
  ExchangeArrays::Owner owner;
  std::uint64_t caches = 0;
  std::vector<ExchangeJob> jobs;
  ExchangeNeeds needs;
  std::optional<int> pages_on;
  std::vector<std::string> notes;
};

/// Creates the objects of a rank. Throws Failure.
Work prepare_rank(const RankGroup& group, const json& ranks) {
  Work work;
  if (group.device() < 0) {
    throw Failure(Status::usage, "there is no device for it: name one by --map");
  }
  work.owner = {group.rank(), group.device(), group.memory_domain_of(group.rank())};
  work.caches = caches_of(group, ranks);
  work.pages_on = pages_on(group.data_faults());
  if (work.pages_on == work.owner.numa_domain) {
    throw Failure(Status::usage, "the fault pages-on:" + std::to_string(*work.pages_on) +
                                     " needs a rank on another NUMA domain");
  }
  work.notes = sharing_notes(group);
  for (const auto& note : Movers().notes(false)) {
    work.notes.push_back(note);
  }
  return work;
}

/// The same jobs on all ranks, whose caches may differ: `caches` are the largest. Throws Failure.
void plan_jobs(const PingpongOptions& options, std::uint64_t caches, Work& work) {
  work.jobs =
      plan_exchanges(copies::parse_host_memory(options.memory), parse_exchanges(options.operations),
                     exchange_sizes(options.sizes, caches));
  for (const auto& job : work.jobs) {
    work.needs.bytes = std::max(work.needs.bytes, job.bytes);
    work.needs.to_device = work.needs.to_device || job.to_device();
    work.needs.to_host = work.needs.to_host || job.to_host();
  }
}

RankPart measure_job(const RankGroup& group, ExchangeArrays& arrays, const ExchangeJob& job,
                     const SamplingRules& rules, double warm_up) {
  RankPart part;
  part.seconds = take_samples_together(group, arrays, job, rules, warm_up);
  part.verification = arrays.check(job, group.data_faults());
  arrays.prove_pages();
  part.source = arrays.source_place(job);
  part.destination = arrays.destination_place(job);
  return part;
}

}  // namespace

void measure_ranks(const PingpongOptions& options, RankGroup& group, Run& run) {
  Work work;
  group.step("what each rank has to work with",
             [&] { work = prepare_rank(group, run.document().content()["ranks"]); });
  std::uint64_t caches = 0;
  for (const auto& bytes : group.gather(work.caches)) {
    caches = std::max(caches, bytes.get<std::uint64_t>());
  }
  group.step("the plan of what is measured", [&] { plan_jobs(options, caches, work); });
  for (const auto& note : work.notes) {
    run.note(note);
  }
  run.plan(work.jobs.size());

  std::unique_ptr<ExchangeArrays> arrays;
  const auto devices = group.devices_of(group.everyone());
  const Movers movers;  // all ranks are on devices of one kind, in one environment
  const auto& rules = run.options().rules;
  for (std::size_t i = 0; i < work.jobs.size(); ++i) {
    const auto& job = work.jobs[i];
    run.begin(job.text());
    RankPart part;
    group.step(job.text(), [&] {
      if (i == 0 || job.memory != work.jobs[i - 1].memory) {
        arrays.reset();
        work.needs.memory = job.memory;
        arrays = std::make_unique<ExchangeArrays>(work.owner, work.needs, work.pages_on);
      }
      part = measure_job(group, *arrays, job, rules, i == 0 ? rules.warm_up_seconds : 0);
      part.in_memory = past_caches(2 * job.bytes, work.caches);
    });
    const auto parts = group.gather(to_json(part));
    for (int rank = 0; rank < group.size(); ++rank) {
      auto series = exchange_series(job, rank_part(parts[static_cast<std::size_t>(rank)]),
                                    group.device_of(rank), devices, group.size() == 1);
      movers.of_host(series, job.bytes);
      series.ranks = {rank};
      series.placement = options.placement;
      if (series.verification.first_mismatch) {
        series.verification.first_mismatch->rank = rank;
      }
      run.add(series);
    }
  }
}

}  // namespace fabricheck::pingpong
