// memcpy: bandwidth of hipMemcpy between host memory and device memory (E2, E4).
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/devices.hpp"
#include "harness/host.hpp"
#include "harness/movers.hpp"
#include "harness/numa.hpp"
#include "harness/run.hpp"
#include "harness/settings.hpp"
#include "harness/sizes.hpp"
#include "memcpy/copies.hpp"
#include "memcpy/plan.hpp"

namespace {

using namespace fabricheck;
using namespace fabricheck::copies;

struct Options {
  std::string devices = "each";
  std::string domains = "near";
  std::string memory = "pinned,pageable";
  std::string operations = "h2d,d2h,both";
  std::string sizes;
};

/// Throws Failure(setting) if domains are requested and the system does not report which memory is
/// on them.
void check_proof(const std::string& domains) {
  if (const auto obstacle = pages_obstacle(); domains != "near" && !obstacle.empty()) {
    throw Failure(Status::setting, "--domains " + domains + " cannot be measured: " + obstacle);
  }
}

/// A device that is attached to the domain, that of the position where it is one of them: some
/// runtimes put page-locked memory near the current device, whatever they are asked for.
int device_near(const Position& position, const std::vector<int>& nearest) {
  if (nearest[static_cast<std::size_t>(position.device)] == position.domain) {
    return position.device;
  }
  const auto first = std::find(nearest.begin(), nearest.end(), position.domain);
  if (first == nearest.end()) {
    return position.device;
  }
  return static_cast<int>(first - nearest.begin());
}

/// The location of memory without a requested domain, as a sentence.
std::string where_put(const CopyJob& job, const HostSide& host, const std::vector<int>& nearest) {
  const auto& buffer = host.source().as<void>() != nullptr ? host.source() : host.destination();
  const auto near = nearest[static_cast<std::size_t>(job.position.device)];
  const auto name = [](int domain) { return "NUMA domain " + std::to_string(domain); };
  return std::string(memory_word(job.memory)) + " memory without a policy, with device " +
         std::to_string(job.position.device) + " as the current one, has its pages on " +
         (buffer.numa_domain() < 0 ? "several NUMA domains" : name(buffer.numa_domain())) +
         (near < 0 ? std::string(", and the system does not tell where the device is attached")
                   : ", and the device is attached to " + name(near));
}

/// Throws Failure(usage) for a fault that no requested domain could show.
void check_fault(const std::optional<int>& pages_on, const std::vector<Position>& positions) {
  if (pages_on && std::all_of(positions.begin(), positions.end(), [&](const Position& position) {
        return position.domain == *pages_on || position.domain < 0;
      })) {
    throw Failure(Status::usage, "the fault pages-on:" + std::to_string(*pages_on) +
                                     " needs another NUMA domain to be asked for");
  }
}

/// Notes what is known of what moves the copies.
void note_movers(const std::vector<HostMemory>& memory, Run& run) {
  const Movers movers;
  for (const auto& note : movers.notes(false)) {
    run.note(note);
  }
  const bool pageable = std::count(memory.begin(), memory.end(), HostMemory::pageable) > 0;
  if (const auto note = movers.pageable_note(); pageable && !note.empty()) {
    run.note(note);
  }
}

/// The arrays that hold the largest copy of each direction.
CopyArrays arrays_for(const std::vector<CopyOperation>& operations,
                      const std::vector<std::uint64_t>& sizes) {
  CopyArrays arrays;
  arrays.bytes = std::max(kLatencyBytes, *std::max_element(sizes.begin(), sizes.end()));
  arrays.to_device = std::any_of(operations.begin(), operations.end(), goes_to_device);
  arrays.to_host = std::any_of(operations.begin(), operations.end(), goes_to_host);
  return arrays;
}

void measure(const Options& options, Run& run) {
  const int count = device_count();
  const auto devices = parse_devices(options.devices, count);
  const auto memory = parse_host_memory(options.memory);
  const auto operations = parse_copy_operations(options.operations);
  const auto cache = std::max(host_last_level_cache(), largest_device_cache(count));
  // Source and destination together exceed the caches and 256 MiB, so that the start-up time of a
  // copy does not matter.
  const auto sizes = array_sizes(options.sizes, std::max<std::uint64_t>(64 << 20, cache / 2));
  const auto faults = run.faults(true);
  std::vector<int> nearest;
  for (int device = 0; device < count; ++device) {
    nearest.push_back(device_numa_domain(device));
  }
  check_proof(options.domains);
  const auto plan = plan_positions(options.domains, devices, nearest, host_domains());
  check_fault(pages_on(faults), plan.positions);
  for (const auto& note : plan.notes) {
    run.note(note);
  }
  note_movers(memory, run);
  const auto arrays = arrays_for(operations, sizes);
  const std::string experiment =
      options.domains == "near" || options.domains == "any" ? experiment::E2 : experiment::E4;
  const auto jobs = plan_copies(plan.positions, memory, operations, sizes);
  if (std::any_of(jobs.begin(), jobs.end(), [](const CopyJob& job) { return job.needs_gate(); })) {
    require_free_launches();
  }
  run.plan(jobs.size());

  std::unique_ptr<HostSide> host;
  std::unique_ptr<Copies> copies;
  std::set<int> warmed;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto& job = jobs[i];
    run.measure(job.text(), [&] {
      const bool other_device = i == 0 || job.position.device != jobs[i - 1].position.device;
      // If the runtime chooses the domain, it may do so by the current device.
      const bool other_host = i == 0 || job.memory != jobs[i - 1].memory ||
                              job.position.domain != jobs[i - 1].position.domain ||
                              (other_device && options.domains == "any");
      if (other_host || other_device) {
        copies.reset();
        if (other_host) {
          host.reset();
          FABRICHECK_HIP(hipSetDevice(device_near(job.position, nearest)));
          host =
              std::make_unique<HostSide>(job.position.domain, job.memory, arrays, pages_on(faults));
          if (options.domains == "any") {
            run.note(where_put(job, *host, nearest));
          }
        }
        copies = std::make_unique<Copies>(job.position.device, *host, arrays);
      }
      const double warm_up =
          warmed.insert(job.position.device).second ? run.options().rules.warm_up_seconds : 0;
      const auto measured = copies->measure(job, experiment, run.options().rules, warm_up, faults);
      host->prove_pages();
      for (const auto& series : measured) {
        run.add(series);
      }
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  Program program;
  program.name = "memcpy";
  program.description =
      "Bandwidth and latency of copies between host memory and the memory of each device, alone:\n"
      "  h2d       hipMemcpyAsync from the host to the device, a batch of them on one stream\n"
      "  d2h       the same from the device to the host\n"
      "  both      both at the same time: each direction's share, and their sum\n"
      "  h2d-sync, d2h-sync\n"
      "            hipMemcpy, each copy waited for\n"
      "  h2d-latency, d2h-latency\n"
      "            the time of a copy of 16 B, queued ahead, in us\n"
      "Host memory is pinned (page-locked by hipHostMalloc, coherent), noncoherent (the same with\n"
      "hipHostMallocNonCoherent, of ROCm alone) or pageable (as malloc gives it). Its pages are\n"
      "touched, then asked on which NUMA domain they are, before and after measuring:\n"
      "other pages than asked for end the run with 4, or with 8 where that domain has too little\n"
      "memory free. The thread that copies is bound to the cores of that domain. Bytes are\n"
      "counted once, in GB/s. Pinned asynchronous copies are timed by device events, all others\n"
      "by the host's clock. Each destination is poisoned before each sample and compared after\n"
      "the last, where it lies.\n"
      "Example: memcpy --domains each --memory pinned --sizes 1GiB --output result.json";
  program.define_options = [&options](CommandLine& line) {
    line.add({"--devices", "devices to measure, one after the other: each, or numbers as in 0,2"},
             options.devices);
    line.add(
        {"--domains",
         "NUMA domains of the host memory: near (the one the device is attached to), "
         "each (all usable ones), numbers as in 0,3, or any "
         "(none is asked for: wherever plain hipHostMalloc and malloc put it, which is noted)"},
        options.domains);
    line.add({"--memory", "kinds of host memory, in order"}, options.memory);
    line.add({"--operations", "what to measure, in order"}, options.operations);
    line.add({"--sizes",
              "bytes of each copy: 1GiB, a list 1MiB,1GiB, or a doubling range 256:8GiB; "
              "default: at least 256 MiB and twice the largest cache"},
             options.sizes);
  };
  program.energy = true;
  program.body = [&options](Run& run) { measure(options, run); };
  return run_program(program, argc, argv);
}
