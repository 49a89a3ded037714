// soak: each device's memory, compute units, peers and host link, all at work at the same time.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "harness/devices.hpp"
#include "harness/host.hpp"
#include "harness/movers.hpp"
#include "harness/numa.hpp"
#include "harness/run.hpp"
#include "harness/simulation.hpp"
#include "harness/state.hpp"
#include "memcpy/plan.hpp"
#include "p2p/peers.hpp"
#include "soak/load.hpp"

namespace {

using namespace fabricheck;
using namespace fabricheck::soak;
using nlohmann::json;

struct Options {
  double seconds = 60;
  double pass_seconds = 2;
  double memory = 0;
  double read_every = 10;
  std::string size;
  std::string pairs = "all";
  bool without_compute = false;
  int fault_pass = 0;
  int fault_device = 0;
};

/// Fewer passes have no interval of their median.
constexpr long kLeastPasses = 7;

/// Counts how long devices are throttled during the load alone.
class Throttling {
 public:
  /// Begins to count; `state` is open, unless the node is simulated.
  explicit Throttling(NodeState& state) : state_(state) {
    if (kSimulated) {
      first_ = simulated_state();
    } else {
      state_.begin_throttling();
    }
  }

  /// The seconds of each device, by kind.
  [[nodiscard]] json seconds() const {
    if (!kSimulated) {
      return state_.throttled();
    }
    json devices = json::array();
    const auto last = simulated_state();
    if (first_.is_null() || last.is_null()) {
      return devices;
    }
    for (std::size_t i = 0; i < last["devices"].size(); ++i) {
      const auto& device = last["devices"][i];
      const auto counted =
          seconds_between(first_["devices"][i]["throttled_s"], device["throttled_s"]);
      devices.push_back({{"index", device["index"]}, {"throttled_s", counted}});
    }
    return devices;
  }

 private:
  NodeState& state_;
  json first_;
};

/// Reads clocks, temperatures and power while the devices are at work.
class Reader {
 public:
  Reader(double every, const NodeState& state) : every_(every), state_(state) {
    if (kSimulated || every <= 0) {
      return;
    }
    began_ = wall_seconds();
    thread_ = std::thread([this] { work(); });
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { (void)readings(); }

  /// Ends, and returns what was read.
  json readings() {
    ended_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
    return readings_;
  }

 private:
  void work() {
    double next = began_ + std::min(every_, 1.0);
    while (!ended_) {
      if (wall_seconds() >= next) {
        readings_.push_back({{"at_s", wall_seconds() - began_}, {"devices", state_.under_load()}});
        next += every_;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  double every_;
  double began_ = 0;
  const NodeState& state_;
  json readings_ = json::array();
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

std::vector<std::unique_ptr<Lane>> lanes_of(const Options& options, Run& run,
                                            const Movers& movers) {
  const int count = device_count();
  const auto cache = std::max<std::uint64_t>(64 << 20, largest_device_cache(count));
  const auto sizes = array_sizes(options.size, cache);
  if (sizes.size() > 1) {
    throw Failure(Status::usage, "--size is one size, and '" + options.size + "' are several");
  }
  const auto bytes = sizes.front();
  std::vector<p2p::Pair> pairs;
  if (options.pairs != "none" && count > 1) {
    pairs = p2p::parse_pairs(options.pairs, count);
  }
  std::set<int> devices;
  std::vector<int> nearest;
  for (int device = 0; device < count; ++device) {
    devices.insert(device);
    nearest.push_back(device_numa_domain(device));
  }
  const p2p::PeerAccess access(devices);
  for (const auto& pair : pairs) {
    if (const auto obstacle = access.obstacle(pair.from, pair.to)) {
      run.note(*obstacle + ": copies from device " + std::to_string(pair.from) + " to device " +
               std::to_string(pair.to) + " are staged through the host");
    }
  }
  const auto plan =
      copies::plan_positions("near", {devices.begin(), devices.end()}, nearest, host_domains());
  for (const auto& note : plan.notes) {
    run.note(note);
  }
  std::vector<std::unique_ptr<Lane>> others;
  for (const auto& position : plan.positions) {
    for (const bool to_device : {true, false}) {
      others.push_back(host_lane(position.device, position.domain, to_device, bytes, movers));
    }
  }
  for (const auto& pair : pairs) {
    others.push_back(peer_lane(pair, bytes, movers));
  }
  // Last of a device's arrays, because it may take all that is left of its memory.
  std::vector<std::unique_ptr<Lane>> lanes;
  for (int device = 0; device < count; ++device) {
    std::unique_ptr<Lane> compute;
    if (!kSimulated && !options.without_compute) {
      compute = compute_lane(device, options.pass_seconds / 100);
    }
    lanes.push_back(memory_lane(device, bytes, options.memory));
    if (compute != nullptr) {
      lanes.push_back(std::move(compute));
    }
  }
  for (auto& lane : others) {
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

void measure(const Options& options, Run& run) {
  const Movers movers;
  for (const auto& note : movers.notes(true)) {
    run.note(note);
  }
  const auto injected = run.faults();
  auto flips = simulated_flips();
  const auto faults = [&](long pass, const Lane& lane) {
    const int device = lane.stream().device();
    std::vector<Fault> here;
    if (pass == options.fault_pass && device == options.fault_device) {
      here = injected;
    }
    const auto begin = lane.destination_begin();
    const auto end = begin + lane.destination_bytes();
    for (auto& flip : flips) {
      // Those before the load began were found by an earlier round.
      const bool is_due = flip.device == device && flip.at >= 0 && flip.at <= host_seconds();
      // A place in memory shows its fault when the copies come to it.
      if (is_due && flip.offset_bytes >= begin && flip.offset_bytes < end) {
        here.push_back({Fault::Kind::flip_bit, flip.offset_bytes - begin, flip.bit});
        flip.at = -1;
      }
    }
    return here;
  };
  run.measure("what each device holds", [&] {
    Load load(lanes_of(options, run, movers));
    run.begin("how much a pass has of everything");
    load.calibrate(options.pass_seconds);
    NodeState state;
    if (!kSimulated) {
      state.open(state_scope(run.document().content(), {getpid()}));
    }
    Reader reader(options.read_every, state);
    const Throttling throttling(state);
    const auto keep = [&] {
      auto member = load.member();
      member["throttled"] = throttling.seconds();
      member["readings"] = reader.readings();
      for (const auto& series : load.series()) {
        run.add(series);
      }
      run.document().set("soak", std::move(member));
    };
    try {
      load.run(options.seconds, kLeastPasses, faults,
               [&](long pass) { run.begin("pass " + std::to_string(pass + 1)); });
    } catch (const Failure&) {
      keep();
      throw;
    }
    keep();
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  Program program;
  program.name = "soak";
  program.description =
      "Everything at once, for a stated time: each device copies within its own memory and\n"
      "computes on half of its threads, copies to its peers by engine, and to and from pinned "
      "host\n"
      "memory next to it. The work is done in passes. After each one every destination is "
      "compared\n"
      "on the device that holds it; wrong data is listed with device, address, bits and time, and\n"
      "the load goes on. Each kind of work on each device is a series with a sample a pass. On a\n"
      "simulated node nothing is computed, and the load of a pass is counted, not moved.\n"
      "Example: soak --load-time 300 --memory 0.8 --output result.json";
  program.define_options = [&options](CommandLine& line) {
    line.add({"--load-time", "seconds of load", "s"}, options.seconds, 0, 1e6);
    line.add({"--pass-time", "seconds of a pass, at most", "s"}, options.pass_seconds, 1e-3, 1e5);
    line.add({"--memory",
              "part of each device's free memory that its copies walk through; 0: two arrays of "
              "--size"},
             options.memory, 0, 0.95);
    line.add({"--size",
              "bytes of each other copy; default: at least 256 MiB and four times the devices' "
              "largest cache"},
             options.size);
    line.add({"--pairs", "ordered pairs FROM-TO that copy: all, none, or as in 0-1,1-0"},
             options.pairs);
    line.add({"--without-compute", "leave the compute units to the copies"},
             options.without_compute);
    line.add({"--read-every", "seconds between readings of clocks, temperatures and power; 0: none",
              "s"},
             options.read_every, 0, 1e5);
    line.add({"--fault-pass", "the pass, from 0, after which faults are injected"},
             options.fault_pass, 0, 1 << 30);
    line.add({"--fault-device", "the device into whose memory they are"}, options.fault_device, 0,
             1 << 10);
  };
  program.resolve = [] {
    // ROCm puts the fifth stream of a device into a queue that another one uses.
    setenv("GPU_MAX_HW_QUEUES", "24", 0);
  };
  program.body = [&options](Run& run) { measure(options, run); };
  return run_program(program, argc, argv);
}
