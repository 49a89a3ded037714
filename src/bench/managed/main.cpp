// managed: memory that host and device share, by zero-copy and by page migration (E3).
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "harness/devices.hpp"
#include "harness/host.hpp"
#include "harness/numa.hpp"
#include "harness/run.hpp"
#include "harness/sizes.hpp"
#include "managed/plan.hpp"
#include "managed/shared_array.hpp"

namespace {

using namespace fabricheck;
using namespace fabricheck::managed;

struct Options {
  std::string devices = "each";
  std::string memory = memory::managed;
  std::string expected;
  std::string operations = "read,write,host-read,host-write,prefetch-h2d,prefetch-d2h";
  std::string sizes;
  int block = 256;
};

/// The measurements on one kind of memory of one device.
struct Part {
  int device = 0;
  SharedMemory memory = SharedMemory::managed;
  Movement movement = Movement::zero_copy;
  std::vector<SharedOperation> operations;
};

/// Checks every device first: nothing is measured if one of them lacks support, or moves pages in
/// another way than required. Operations without a meaning are left out with a note.
std::vector<Part> plan(const Options& options, const std::vector<int>& devices, Run& run) {
  const auto memories = parse_memories(options.memory);
  const auto operations = parse_shared_operations(options.operations);
  std::vector<Part> parts;
  std::set<std::string> left_out;
  for (const int device : devices) {
    const auto arch = device_arch(device);
    const auto known = managed_memory(device);
    for (const auto memory : memories) {
      Part part{device, memory, movement_of(memory, device, arch, known), {}};
      if (!options.expected.empty()) {
        const auto expected = options.expected == movement::zero_copy ? Movement::zero_copy
                                                                      : Movement::page_migration;
        if (const auto reason = unexpected(expected, part.movement, memory, device, arch)) {
          throw Failure(Status::unsupported, *reason);
        }
      }
      std::string impossible;
      for (const auto operation : operations) {
        if (is_possible(operation, part.movement)) {
          part.operations.push_back(operation);
        } else {
          impossible += (impossible.empty() ? "" : ", ") + std::string(operation_name(operation));
        }
      }
      if (!impossible.empty()) {
        left_out.insert("not measured of " + std::string(memory_name(memory)) +
                        " memory, whose pages stay on the host: " + impossible);
      }
      if (!part.operations.empty()) {
        parts.push_back(part);
      }
    }
  }
  if (parts.empty()) {
    throw Failure(Status::unsupported, *left_out.begin());
  }
  for (const auto& sentence : left_out) {
    run.note(sentence);
  }
  return parts;
}

/// The host's NUMA domain for the measurements of a device: its own, or any, with a note, if this
/// process cannot use that.
int host_domain(int device, Run& run) {
  const int near = device_numa_domain(device);
  for (const auto& domain : host_domains()) {
    if (domain.index == near && !domain.obstacle.empty()) {
      run.note(domain.obstacle + ", and device " + std::to_string(device) +
               " is attached to it: host memory is wherever the system puts it");
      return -1;
    }
  }
  return near;
}

/// Obstacles to measurements, in the document and as notes, each once.
class LeftOut {
 public:
  explicit LeftOut(Run& run) : run_(run) {}
  void add(SharedOperation operation, const std::string& where, const std::string& reason) {
    const std::string name = operation_name(operation);
    const auto sentence = name + where + " is not measured: " + reason;
    if (said_.insert(sentence).second) {
      run_.note(sentence);
      list_.push_back({{"operation", name}, {"reason", sentence}});
      run_.document().set("skipped", list_);
    }
  }
  /// Throws Failure(unsupported) with the first obstacle.
  [[noreturn]] void throw_first() const { throw Failure(Status::unsupported, list_[0]["reason"]); }

 private:
  Run& run_;
  std::set<std::string> said_;
  nlohmann::json list_ = nlohmann::json::array();
};

void measure(const Options& options, Run& run) {
  const int count = device_count();
  std::vector<int> devices;
  for (const auto& set : parse_device_sets({options.devices}, count)) {
    devices.insert(devices.end(), set.begin(), set.end());
  }
  const auto parts = plan(options, devices, run);
  // At least 256 MiB, however small the caches, so that the start-up time does not matter.
  const auto cache = std::max(host_last_level_cache(), largest_device_cache(count));
  const auto sizes = array_sizes(options.sizes, std::max<std::uint64_t>(64 << 20, cache));
  const auto largest = *std::max_element(sizes.begin(), sizes.end());
  const auto faults = run.faults();
  const auto& rules = run.options().rules;
  std::size_t series = 0;
  for (const auto& part : parts) {
    series += part.operations.size() * sizes.size();
  }
  run.plan(series);

  LeftOut left_out(run);
  bool measured = false;
  for (const auto& part : parts) {
    const auto on_device = " on device " + std::to_string(part.device);
    SharedArray array(part.device, {part.memory, part.movement, largest,
                                    host_domain(part.device, run), options.block});
    double warm_up = rules.warm_up_seconds;
    for (const auto operation : part.operations) {
      if (is_prefetch(operation) && array.prefetch_refusal()) {
        left_out.add(operation, on_device,
                     "hipMemPrefetchAsync gave '" + *array.prefetch_refusal() + "'");
        continue;
      }
      for (const auto size : sizes) {
        const auto what = std::string(operation_name(operation)) + " of " + format_size(size) +
                          " of " + memory_name(part.memory) + " memory" + on_device;
        run.measure(what, [&] {
          const auto result = array.measure(operation, size, rules, warm_up, faults);
          if (!result.series) {
            left_out.add(operation, " of " + format_size(size) + on_device, result.remark);
          } else {
            run.add(*result.series);
            measured = true;
            if (!result.remark.empty()) {
              run.note(operation_name(operation) + on_device + ": " + result.remark);
            }
          }
        });
        warm_up = 0;
      }
    }
  }
  if (!measured) {
    left_out.throw_first();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  Program program;
  program.name = "managed";
  program.description =
      "Memory that host and device share, one device after the other, in GB/s, bytes counted "
      "once:\n"
      "  read          a kernel copies the shared array, on the host before, to device memory\n"
      "  write         a kernel copies device memory to the shared array, on the host before\n"
      "  host-read     the CPU copies the shared array, on the device before, to its own memory\n"
      "  host-write    the CPU writes the shared array, on the device before\n"
      "  prefetch-h2d, prefetch-d2h\n"
      "                hipMemPrefetchAsync, of pages on the host, or on the device\n"
      "Whether an access goes over the link (zero-copy) or brings the page (page-migration) is "
      "the\n"
      "device's way; on AMD HSA_XNACK chooses it, for a whole process. The last four need\n"
      "pages that migrate. Before each sample the pages are put back and the destination is\n"
      "poisoned; it is compared after the last.\n"
      "Example: HSA_XNACK=1 managed --expect page-migration --devices 0 --output r.json";
  program.define_options = [&options](CommandLine& line) {
    line.add({"--devices", "devices, one after the other: each, or numbers as in 0,2"},
             options.devices);
    line.add(
        {"--memory", "managed (hipMallocManaged), pinned (hipHostMalloc, by zero-copy), or both"},
        options.memory);
    line.add({"--expect", "the required movement; exit with 3 when a device uses the other"},
             options.expected, {movement::zero_copy, movement::page_migration});
    line.add({"--operations", "what to measure, in order"}, options.operations);
    line.add({"--sizes",
              "bytes of the array: 1GiB, a list 1MiB,1GiB, or a doubling range 4KiB:1GiB; "
              "default: at least 256 MiB and four times the largest cache"},
             options.sizes);
    line.add({"--block-size", "threads per block of the kernels"}, options.block, 1, 1024);
  };
  program.body = [&options](Run& run) { measure(options, run); };
  return run_program(program, argc, argv);
}
