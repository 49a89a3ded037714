// stream: bandwidth of the STREAM kernels on one or several devices (experiments E1, E5, E8).
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/devices.hpp"
#include "harness/host.hpp"
#include "harness/run.hpp"
#include "harness/settings.hpp"
#include "harness/sizes.hpp"
#include "stream/device_set.hpp"

namespace {

using namespace fabricheck;
using namespace fabricheck::stream;

struct Options {
  std::vector<std::string> devices{"each"};
  std::string kernels = "copy,scale,add,triad";
  std::string sizes;
  std::string blocks = "256";
  std::string source = "device";
  std::string destination = "device";
  std::string stores = "auto";
  VariantOptions variants;
};

std::vector<int> parse_blocks(const std::string& text) {
  std::vector<int> blocks;
  for (const auto& item : split_list(text, "the list of block sizes")) {
    const int block = parse_index(item, "the block size");
    if (block < 1 || block > 1024) {
      throw Failure(Status::usage, "the block size " + item + " is not in 1 to 1024");
    }
    blocks.push_back(block);
  }
  return blocks;
}

void measure(const Options& options, Run& run) {
  const int count = device_count();
  const auto sets = parse_device_sets(options.devices, count);
  const auto operations = parse_operations(options.kernels);
  const auto sizes =
      array_sizes(options.sizes, std::max(host_last_level_cache(), largest_device_cache(count)));
  const auto blocks = parse_blocks(options.blocks);
  const auto variants = options.variants.parse();
  const auto source = parse_placement(options.source);
  const auto destination = parse_placement(options.destination);
  for (const auto& placement : {source, destination}) {
    if (placement.kind == Placement::Kind::peer && placement.peer >= count) {
      throw no_such_device("peer device " + std::to_string(placement.peer), count);
    }
  }
  std::optional<Stores> stores;
  if (options.stores != "auto") {
    stores = options.stores == stores::plain ? Stores::plain : Stores::streaming;
  }
  const auto faults = run.faults();
  const auto& rules = run.options().rules;
  const auto largest = *std::max_element(sizes.begin(), sizes.end());
  if (std::any_of(sets.begin(), sets.end(), [](const auto& set) { return set.size() > 1; })) {
    require_free_launches();
  }
  std::size_t kernels = 0;
  for (const auto operation : operations) {
    kernels += variants_of(operation, variants).size();
  }
  run.plan(sets.size() * sizes.size() * blocks.size() * kernels);

  const bool two_sources =
      std::any_of(operations.begin(), operations.end(),
                  [](StreamOperation operation) { return arrays_moved(operation) == 3; });
  std::unique_ptr<DeviceSet> set;
  for (const auto& devices : sets) {
    set = std::make_unique<DeviceSet>(devices, source, destination, largest, two_sources,
                                      std::move(set));
    const auto first = std::to_string(devices.front());
    const auto on = devices.size() == 1
                        ? " on device " + first
                        : " on " + std::to_string(devices.size()) + " devices from " + first;
    double warm_up = rules.warm_up_seconds;
    for (const auto size : sizes) {
      for (const int block : blocks) {
        for (const auto operation : operations) {
          for (const auto& variant : variants_of(operation, variants)) {
            run.begin(std::string(operation_name(operation)) + " of " + format_size(size) + on);
            for (const auto& series :
                 set->measure({operation, size, block, stores, variant}, rules, warm_up, faults)) {
              run.add(series);
            }
            warm_up = 0;
          }
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  Program program;
  program.name = "stream";
  program.description =
      "Bandwidth of the STREAM kernels: copy c = a, scale c = k a, add c = a + b, triad c = a + k "
      "b.\n"
      "read-only sums a and writes a sum a thread to c, write-only makes c of its index.\n"
      "a and b are sources, c is the destination; each may lie on the device that runs the "
      "kernel,\n"
      "in page-locked host memory, or on a peer. Bytes are counted as read plus written. Every\n"
      "destination is poisoned before each sample and compared on the device after the last.\n"
      "Example: stream --devices each --devices all --sizes 1KiB:1GiB --output result.json";
  program.define_options = [&options](CommandLine& line) {
    line.add({"--devices",
              "devices at work at the same time: each (every one alone, in turn), all, or "
              "numbers as in 0,2; may be given several times"},
             options.devices);
    line.add({"--kernels", "kernels, in order"}, options.kernels);
    line.add({"--sizes",
              "bytes of each array: 1GiB, a list 1MiB,1GiB, or a doubling range 1KiB:8GiB; "
              "default: at least four times the largest cache"},
             options.sizes);
    line.add({"--block-sizes", "threads per block, 1 to 1024: 64,256,1024"}, options.blocks);
    line.add({"--source", "memory of a and b: device, host or peer:N"}, options.source);
    line.add({"--destination", "memory of c: device, host or peer:N"}, options.destination);
    line.add({"--stores",
              "plain or streaming (which caches should not keep); auto tries both on a CPU "
              "with arrays past its caches, else it is plain"},
             options.stores, {"auto", stores::plain, stores::streaming});
    options.variants.add_to(line);
  };
  program.energy = true;
  program.body = [&options](Run& run) { measure(options, run); };
  return run_program(program, argc, argv);
}
