// p2p: bandwidth and latency between devices, by copy engine and by kernel (E7, E8).
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/devices.hpp"
#include "harness/movers.hpp"
#include "harness/run.hpp"
#include "harness/settings.hpp"
#include "harness/simulation.hpp"
#include "harness/sizes.hpp"
#include "p2p/peers.hpp"
#include "p2p/plan.hpp"

namespace {

using namespace fabricheck;
using namespace fabricheck::p2p;

struct Options {
  std::string pairs;
  std::vector<std::string> together;
  // A simulated node knows no latency of a single load.
  std::string operations = std::string("engine,engine-both,read,write,copy,latency,latency-host") +
                           (kSimulated ? "" : ",chase");
  std::string sizes;
  std::string chase_size;
  // Larger blocks than of local kernels: on an H200 peer reads were 0.1 % faster
  // (docs/evidence/method.md).
  int block = 1024;
  stream::VariantOptions variants;

  /// With sets and no pairs, only the sets are measured.
  [[nodiscard]] std::string resolved_pairs() const {
    return pairs.empty() && together.empty() ? "all" : pairs;
  }
};

/// The array of a pointer chase; by default past caches of `cache` bytes.
std::uint64_t chase_bytes(const std::string& text, std::uint64_t cache) {
  if (text.empty()) {
    return array_sizes("", cache).front();
  }
  const auto size = parse_size(text);
  if (size < 256 || (size & (size - 1)) != 0) {
    throw Failure(Status::usage,
                  "the chase size " + text + " is not a power of two of 256 B or more");
  }
  return size;
}

/// Leaves out what a device cannot reach, with a note; throws Failure(unsupported) instead where
/// the pair was asked for by name.
std::vector<Job> possible_jobs(std::vector<Job> jobs, const PeerAccess& access, bool by_name,
                               Run& run) {
  std::vector<Job> possible;
  for (auto& job : jobs) {
    bool reached = true;
    for (const auto& pair : job.pairs) {
      const int device = job.what.executor(pair);
      const auto obstacle = access.obstacle(device, job.what.owner(pair));
      if (!obstacle) {
        continue;
      }
      if (!job.what.by_kernel()) {
        run.note(*obstacle + ": copy-engine transfers from device " + std::to_string(pair.from) +
                 " to device " + std::to_string(pair.to) + " are staged through the host");
      } else if (by_name) {
        throw Failure(Status::unsupported, *obstacle + ", which " + job.text() + " needs");
      } else {
        run.note(*obstacle + ": " + job.text() + " is not measured");
        reached = false;
        break;
      }
    }
    if (reached) {
      possible.push_back(std::move(job));
    }
  }
  return possible;
}

void measure(const Options& options, Run& run) {
  const int count = device_count();
  if (count < 2 && options.pairs != "self") {
    throw lacks_devices("p2p needs two devices, and the runtime has one", 1);
  }
  const std::uint64_t cache = largest_device_cache(count);
  const auto measurements = parse_measurements(options.operations);
  std::vector<Pair> pairs;
  if (!options.resolved_pairs().empty()) {
    pairs = parse_pairs(options.resolved_pairs(), count, true);
  }
  std::vector<std::vector<Pair>> sets;
  for (const auto& text : options.together) {
    sets.push_back(parse_pairs(text, count));
  }
  // Sizes from 256 MiB on, however small the caches: what a copy costs to start no longer shows.
  const auto sizes = array_sizes(options.sizes, std::max<std::uint64_t>(64 << 20, cache));
  const auto faults = run.faults();

  auto jobs = with_variants(plan_jobs(measurements, pairs, sets, sizes), options.variants.parse());
  std::set<int> devices;
  bool chase = false;
  for (const auto& job : jobs) {
    chase = chase || job.what.operation == PeerOperation::chase;
    for (const auto& pair : job.pairs) {
      devices.insert({pair.from, pair.to});
    }
  }
  const PeerAccess access(devices);
  jobs = possible_jobs(std::move(jobs), access, options.resolved_pairs() != "all", run);
  if (jobs.empty()) {
    throw Failure(devices.empty() ? Status::usage : Status::unsupported,
                  "nothing can be measured: " +
                      std::string(devices.empty() ? "latencies are of --pairs, not of --together"
                                                  : "no device reaches the memory of another"));
  }
  const Movers movers;
  for (const auto& note : movers.notes(true)) {
    run.note(note);
  }
  for (const auto& job : jobs) {
    std::map<int, int> sent;
    for (const auto& pair : job.pairs) {
      const int copies = job.what.by_kernel() ? 0 : ++sent[pair.from];
      if (const auto note = movers.sharing_note(copies); !note.empty()) {
        run.note(note);
      }
    }
  }
  if (std::any_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.needs_gate(); })) {
    require_free_launches();
  }
  run.plan(jobs.size());

  Peers::Sizes allocated;
  allocated.lanes = lanes_needed(jobs);
  allocated.array = std::max(kLatencyBytes, *std::max_element(sizes.begin(), sizes.end()));
  allocated.chase = chase ? chase_bytes(options.chase_size, cache) : 0;
  allocated.block = options.block;
  Peers peers(devices, allocated);
  for (const auto& job : jobs) {
    run.measure(job.text(), [&] {
      for (const auto& series : peers.measure(job, run.options().rules, faults)) {
        run.add(series);
      }
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  Program program;
  program.name = "p2p";
  program.description =
      "Bandwidth and latency between the devices of a node, for ordered pairs FROM-TO:\n"
      "  engine        hipMemcpyPeerAsync, executed by FROM\n"
      "  read          kernel of TO: source remote, destination local\n"
      "  write         kernel of FROM: source local, destination remote\n"
      "  copy          kernel of FROM with both arrays on TO\n"
      "  engine-both, read-both, write-both\n"
      "                both directions at once: each one's share, and their sum\n"
      "  latency       a copy of 16 B by engine, queued ahead, by device events\n"
      "  latency-host  the same with a synchronization after each, by the host's clock\n"
      "  chase         dependent loads of one thread of TO from memory of FROM, us per load;\n"
      "                also of each device from its own memory\n"
      "Bytes are counted once, but for copy, which reads and writes over the link: read plus\n"
      "written. Each destination is poisoned before each sample and compared after the last, by\n"
      "the device that holds it. The first five are GB/s, latencies are us.\n"
      "Example: p2p --pairs 0-1,0-6 --operations engine,read --sizes 256:8GiB --output r.json";
  program.rules.batch_seconds = 0.003;  // all pairs of eight devices in well under 20 s
  program.define_options = [&options](CommandLine& line) {
    line.add(
        {"--pairs",
         "all, or ordered pairs as in 0-1,0-6; self, or 0-0, for copy-engine transfers within the "
         "memory of a device; default: all, and none with --together"},
        options.pairs);
    line.add({"--together",
              "pairs at work at the same time, as in 0-1,2-3 or, to one device, 1-0,2-0,3-0: "
              "each one's share, and their sum; may be given several times"},
             options.together);
    line.add({"--operations", "what to measure, in order"}, options.operations);
    line.add({"--sizes",
              "bytes of each array: 1GiB, a list 1MiB,1GiB, or a doubling range 256:8GiB; "
              "default: at least 256 MiB and four times the devices' largest cache"},
             options.sizes);
    line.add({"--chase-size",
              "bytes of the array of a chase, a power of two; default: at least 64 MiB and "
              "four times the devices' largest cache"},
             options.chase_size);
    line.add({"--block-size", "threads per block of the kernels"}, options.block, 1, 1024);
    options.variants.add_to(line);
  };
  program.resolve = [&options] {
    options.pairs = options.resolved_pairs();
    // ROCm puts the fifth stream of a device into a queue that another one uses.
    constexpr int standard = 4;
    if (const int queues = queues_needed(options.together); queues > standard) {
      setenv("GPU_MAX_HW_QUEUES", std::to_string(queues).c_str(), 0);
    }
  };
  program.energy = true;
  program.body = [&options](Run& run) { measure(options, run); };
  return run_program(program, argc, argv);
}
