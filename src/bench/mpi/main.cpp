// mpi: point to point and collectives between the ranks of one launch (E9, E10, E12).
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/devices.hpp"
#include "harness/host.hpp"
#include "harness/movers.hpp"
#include "harness/run.hpp"
#include "harness/simulation.hpp"
#include "mpi/coordinator.hpp"
#include "mpi/crossing.hpp"
#include "mpi/guard.hpp"
#include "mpi/options.hpp"
#include "mpi/probe.hpp"
#include "ranks/rank_group.hpp"

namespace {

using namespace fabricheck;
using namespace fabricheck::mpi;
using nlohmann::json;

/// The location of this rank's messages: on its device, or with null on the host.
std::unique_ptr<TimedStream> stream_of(const MpiOptions& options, const RankGroup& group) {
  const bool on_host = options.buffers.empty() ? group.device() < 0 : options.buffers == "host";
  if (on_host) {
    return nullptr;
  }
  if (group.device() < 0) {
    throw Failure(Status::unsupported, "there is no device for buffers of devices");
  }
  return std::make_unique<TimedStream>(group.device());
}

std::vector<RankPlace> places_of(const TimedStream* stream, const RankGroup& group) {
  const auto cache = stream ? device_last_level_cache(stream->device()) : host_last_level_cache();
  std::vector<RankPlace> places;
  const auto reports = group.gather({{"on_device", stream != nullptr}, {"cache", cache}});
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto& report = reports[static_cast<std::size_t>(rank)];
    RankPlace place;
    place.node = group.nodes()[static_cast<std::size_t>(rank)];
    place.memory = report["on_device"].get<bool>() ? memory::device : memory::host_pageable;
    place.device = group.device_of(rank);
    place.numa_domain = group.memory_domain_of(rank);
    place.cache_bytes = report["cache"];
    places.push_back(place);
  }
  return places;
}

/// Whether the first two ranks, on one node, have buffers on real devices.
bool crosses_devices(const std::vector<RankPlace>& places, const json& devices) {
  const auto real = [&devices](const RankPlace& place) {
    return place.memory == memory::device && place.device >= 0 &&
           devices[static_cast<std::size_t>(place.device)]["arch"] != "host";
  };
  return real(places[0]) && real(places[1]) && places[0].node == places[1].node;
}

/// The operations of jobs that were not measured, for the document.
class Skipped {
 public:
  Skipped(const MpiRequest& request, Document& document) : document_(document) {
    for (const auto operation : request.without) {
      put(operation, "left out by --without");
    }
  }
  void put(MpiOperation operation, const std::string& reason) {
    reasons_[operation_name(operation)] = reason;
    write();
  }
  void remove(MpiOperation operation) {
    reasons_.erase(operation_name(operation));
    write();
  }

 private:
  void write() {
    json list = json::array();
    for (const auto& [operation, reason] : reasons_) {
      list.push_back({{"operation", operation}, {"reason", reason}});
    }
    document_.set("skipped", list);
  }
  Document& document_;
  std::map<std::string, std::string> reasons_;
};

/// Reads back what the messages of each rank with a pair on another node leave its own by: the
/// member `network` of its entry in the document, from here on, and where its NIC is.
void first_messages(const std::vector<RankPair>& pairs, const Places& list,
                    const TimedStream* stream, bool armed, RankGroup& group, Document& document,
                    std::vector<RankPlace>& places) {
  json mine;
  const auto content = document.content();
  group.step("first messages between nodes", [&] {
    const auto work = [&] { mine = read_back(pairs, list, stream, group); };
    if (armed) {
      with_advice(armed, content["versions"]["mpi"], work);
    } else {
      work();
    }
  });
  const auto networks = group.gather(mine);
  auto ranks = content["ranks"];
  for (std::size_t rank = 0; rank < networks.size(); ++rank) {
    if (!networks[rank].is_null()) {
      ranks[rank]["network"] = networks[rank];
      places[rank].network = network_place(networks[rank]);
    }
  }
  document.set("ranks", ranks);
}

void note_surroundings(const TimedStream* stream, bool armed, const RankGroup& group, Run& run) {
  const auto content = run.document().content();
  if (armed) {
    const auto about = mpi_about_devices();
    if (!about.empty()) {
      run.note(about);
    }
  }
  if (stream) {
    for (const auto& note : Movers().notes(true)) {
      run.note(note);
    }
  }
  std::set<int> cores;
  std::set<std::string> hosts;
  for (const auto& rank : content["ranks"]) {
    hosts.insert(rank["host"].get<std::string>());
    for (const auto& core : rank["cores"]) {
      cores.insert(core.get<int>());
    }
  }
  if (!kSimulated && hosts.size() == 1 && cores.size() < static_cast<std::size_t>(group.size())) {
    run.note(std::to_string(group.size()) + " ranks share " + std::to_string(cores.size()) +
             " core(s): ranks that wait take time from those that work");
  }
}

void measure(const MpiOptions& options, RankGroup& group, Run& run) {
  if (group.size() < 2) {
    throw Failure(Status::unsupported,
                  "mpi needs two ranks, and the launch has one: start it by mpiexec -n 2");
  }
  std::unique_ptr<TimedStream> stream;
  std::vector<MpiJob> jobs;
  MpiRequest request;
  std::unique_ptr<Worker> worker;
  bool armed = false;
  std::unique_ptr<Places> list;
  group.step("options and buffers", [&] {
    list = std::make_unique<Places>(options.places);
    stream = stream_of(options, group);
    const bool of_gpus = stream && !device_is_cpu(stream->device());
    request = options.request(group.nodes(), kSimulated || of_gpus ? "256MiB" : "1MiB");
    jobs = plan_mpi(request);
    if (jobs.empty()) {
      throw Failure(Status::usage, "nothing is asked for that could be measured");
    }
    armed = of_gpus && !kSimulated;
    worker = std::make_unique<Worker>(MPI_COMM_WORLD, stream.get(), options.window, armed);
    worker->provide(jobs);
  });
  const NicErrors errors(group);
  auto places = places_of(stream.get(), group);
  note_surroundings(stream.get(), armed, group, run);
  Skipped skipped(request, run.document());
  if (options.trial) {
    for (const auto& job : jobs) {
      skipped.put(job.operation, "the trial did not come to it");
    }
  }
  const auto content = run.document().content();
  if (crosses_devices(places, content["devices"])) {
    group.step("first messages between devices", [&] {
      require_device_messages(MPI_COMM_WORLD, stream.get(), armed, content["versions"]["mpi"]);
    });
  }
  if (group.several_nodes()) {
    first_messages(request.pairs, *list, stream.get(), armed, group, run.document(), places);
  }
  Coordinator coordinator(MPI_COMM_WORLD, *worker, places, options.single_messages);
  run.plan(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto& job = jobs[i];
    run.begin(job.text());
    if (options.trial) {
      skipped.put(job.operation, "the trial ended in it");
    }
    std::vector<Series> measured;
    group.step(job.text(), [&] {
      try {
        measured = coordinator.measure(job, run.options().rules, group.data_faults());
      } catch (const Failure& failure) {
        throw Failure(failure.status(), job.text() + ": " + failure.what());
      }
    });
    for (const auto& series : measured) {
      run.add(series);
    }
    if (options.trial && (i + 1 == jobs.size() || jobs[i + 1].operation != job.operation)) {
      skipped.remove(job.operation);
    }
  }
  if (group.several_nodes()) {
    errors.write(group, run.document());
  }
  group.step("faults", [&] {
    if (!group.data_faults().empty() && !worker->made_fault()) {
      throw Failure(Status::usage, "the fault lies outside of everything that the rank receives");
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  RankGroup group(argc, argv);
  MpiOptions options;
  Program program;
  program.name = "mpi";
  program.description =
      "Messages and collectives between the ranks of one launch, on buffers of devices or of the\n"
      "host, each result verified:\n"
      "  latency         half a round trip of a small message, us\n"
      "  bandwidth       windows of messages from one rank to another, GB/s\n"
      "  bandwidth-both  the same both ways at once\n"
      "for ordered pairs of ranks alone, and for disjoint pairs at once: each one's share, and\n"
      "their sum; and\n"
      "  bcast, allgather, reduce, allreduce, reduce_scatter\n"
      "on 2 ranks to all, us, the mean over the ranks. Then messages between every two ranks and\n"
      "the collectives are verified for several types and numbers of elements. Destinations are\n"
      "poisoned before each sample and compared after the last, where they lie.\n"
      "An MPI that does not take buffers of devices may crash: --trial finds out what it does.\n"
      "Example: mpiexec -n 8 mpi --buffers device --sizes 64MiB --output result.json";
  program.rules.batch_seconds = 0.003;  // all pairs of eight ranks in well under 20 s
  program.rules.max_samples = 21;
  program.rules.series_seconds = 0.03;
  program.define_options = [&options](CommandLine& line) { options.define(line); };
  program.energy = true;
  program.body = [&options, &group](Run& run) { measure(options, group, run); };
  program.launch = &group;
  return run_program(program, argc, argv);
}
