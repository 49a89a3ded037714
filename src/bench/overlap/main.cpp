// overlap: a computing kernel and simultaneous copies, by engine (E2, E7) and by kernel (E3, E8).
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/devices.hpp"
#include "harness/movers.hpp"
#include "harness/run.hpp"
#include "harness/settings.hpp"
#include "harness/simulation.hpp"
#include "harness/sizes.hpp"
#include "memcpy/plan.hpp"
#include "overlap/beside.hpp"
#include "p2p/peers.hpp"
#include "p2p/plan.hpp"

namespace {

using namespace fabricheck;
using namespace fabricheck::overlap;

struct Options {
  std::string pairs = "next";
  std::string devices = "each";
  std::string by = "engine,kernel";
  std::string size;
  int block = 1024;
};

/// Whether kernel copies are among the requested ones, for each way in turn.
std::vector<bool> parse_ways(const std::string& text) {
  std::vector<bool> ways;
  for (const auto& item : split_list(text, "the list of what copies")) {
    const bool by_kernel = item == "kernel";
    if (!by_kernel && item != "engine") {
      throw Failure(Status::usage, "'" + item + "' copies nothing: choose from engine, kernel");
    }
    if (std::find(ways.begin(), ways.end(), by_kernel) != ways.end()) {
      throw Failure(Status::usage, "'" + text + "' names " + item + " twice");
    }
    ways.push_back(by_kernel);
  }
  return ways;
}

/// "next" is each device with the one after it, the last with the first.
std::vector<p2p::Pair> parse_next(const std::string& text, int count) {
  std::vector<p2p::Pair> pairs;
  if (text == "none" || (text == "next" && count < 2)) {
    return pairs;
  }
  if (text != "next") {
    return p2p::parse_pairs(text, count);
  }
  for (int device = 0; device < count; ++device) {
    pairs.push_back({device, (device + 1) % count});
  }
  return pairs;
}

/// Measures, and describes what the result proves.
void add(Run& run, const Copy& copy, std::uint64_t bytes, int block, copies::HostSide* host) {
  run.measure(copy.text(), [&] {
    Overlap overlap(copy, bytes, block, host);
    const auto measured = overlap.measure(run.options().rules, run.faults());
    if (host != nullptr) {
      host->prove_pages();
    }
    for (const auto& series : measured) {
      run.add(series);
    }
    char rate[32];
    std::snprintf(rate, sizeof rate, "%.3g", overlap.tflops());
    const auto& proof = overlap.proof();
    run.note(copy.text() + ": the kernel alone makes " + rate +
             " TFLOP/s of 64 bits; both started at most " + percent(proof.skew) +
             " of their time apart");
    if (proof.alone > 0) {
      run.note(copy.text() + ": what was measured went on alone for up to " + percent(proof.alone) +
               " of its time, when the other had ended, though that takes " +
               "twice as long alone: beside it, it is slower than its series says");
    }
  });
}

void measure(const Options& options, Run& run) {
  if (kSimulated) {
    throw Failure(Status::unsupported,
                  "the node model does not tell what a device computes: a kernel beside copies is "
                  "not simulated");
  }
  const int count = device_count();
  const auto ways = parse_ways(options.by);
  const auto pairs = parse_next(options.pairs, count);
  const auto devices = options.devices == "none" ? std::vector<int>{}
                                                 : copies::parse_devices(options.devices, count);
  if (pairs.empty() && devices.empty()) {
    throw Failure(Status::usage, "nothing is asked for: neither --pairs nor --devices names any");
  }
  const auto cache = std::max<std::uint64_t>(64 << 20, largest_device_cache(count));
  const auto sizes = array_sizes(options.size, cache);
  if (sizes.size() > 1) {
    throw Failure(Status::usage, "--size is one size, and '" + options.size + "' are several");
  }
  const auto bytes = sizes.front();
  (void)run.faults();
  require_free_launches();
  const Movers movers;
  for (const auto& note : movers.notes(!pairs.empty())) {
    run.note(note);
  }
  std::set<int> reached;
  for (const auto& pair : pairs) {
    reached.insert({pair.from, pair.to});
  }
  const p2p::PeerAccess access(reached);
  run.plan(ways.size() * (pairs.size() + devices.size()));
  for (const bool by_kernel : ways) {
    for (const auto& pair : pairs) {
      const Copy copy{pair.from, pair.to, by_kernel};
      if (const auto obstacle = access.obstacle(pair.from, pair.to)) {
        if (by_kernel) {
          throw Failure(Status::unsupported, *obstacle + ", which " + copy.text() + " needs");
        }
        run.note(*obstacle + ": copy-engine transfers from device " + std::to_string(pair.from) +
                 " to device " + std::to_string(pair.to) + " are staged through the host");
      }
      add(run, copy, bytes, options.block, nullptr);
    }
  }
  if (devices.empty()) {
    return;
  }
  std::vector<int> nearest;
  for (int device = 0; device < count; ++device) {
    nearest.push_back(device_numa_domain(device));
  }
  const auto plan = copies::plan_positions("near", devices, nearest, host_domains());
  for (const auto& note : plan.notes) {
    run.note(note);
  }
  for (const auto& position : plan.positions) {
    FABRICHECK_HIP(hipSetDevice(position.device));
    copies::CopyArrays arrays;
    arrays.bytes = bytes;
    arrays.to_host = true;
    copies::HostSide host(position.domain, HostMemory::pinned, arrays, std::nullopt);
    for (const bool by_kernel : ways) {
      add(run, {position.device, -1, by_kernel}, bytes, options.block, &host);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  Program program;
  program.name = "overlap";
  program.description =
      "A kernel that computes in registers, on all compute units of a device, beside copies from\n"
      "that device to a peer or to pinned host memory:\n"
      "  engine        by the device's copy engine (hipMemcpyPeerAsync, hipMemcpyAsync)\n"
      "  kernel        by a kernel that stores to the peer's or the host's memory\n"
      "Four series of each: the kernel alone and the copies alone (single), then each of them\n"
      "while the other one is at work for longer (beside), in two streams that a gate starts\n"
      "together. Both take at least --batch-time alone; starts more than 5 % of it apart are\n"
      "measured again, and end the run with 4 if they stay so. The kernel's unit is us of a\n"
      "launch, that of copies GB/s. Results of both are poisoned before each sample and compared\n"
      "after it. Not on a simulated node.\n"
      "Example: overlap --pairs 0-1 --devices none --output result.json";
  program.rules.batch_seconds = 0.02;
  program.define_options = [&options](CommandLine& line) {
    line.add({"--pairs",
              "pairs FROM-TO whose copies go to a peer: next (each device and the one after it), "
              "all, none, or ordered pairs as in 0-1,0-6"},
             options.pairs);
    line.add({"--devices",
              "devices whose copies go to pinned host memory next to them: each, none, or numbers "
              "as in 0,2"},
             options.devices);
    line.add({"--by", "what copies, in order"}, options.by);
    line.add({"--size",
              "bytes of each copy; default: at least 256 MiB and four times the devices' largest "
              "cache"},
             options.size);
    line.add({"--block-size", "threads per block of the kernel that copies"}, options.block, 1,
             1024);
  };
  program.body = [&options](Run& run) { measure(options, run); };
  return run_program(program, argc, argv);
}
