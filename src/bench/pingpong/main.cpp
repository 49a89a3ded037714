// pingpong: simultaneous copies between host and device by all ranks, in any placement (E6).
#include <string>
#include <vector>

#include "harness/run.hpp"
#include "pingpong/measure.hpp"
#include "pingpong/plan.hpp"
#include "pingpong/report.hpp"
#include "ranks/rank_group.hpp"

int main(int argc, char** argv) {
  using namespace fabricheck;
  using namespace fabricheck::pingpong;
  RankGroup group(argc, argv);
  group.allow_page_faults();
  PingpongOptions options;
  Program program;
  program.name = "pingpong";
  program.description =
      "Copies between host memory and devices by several ranks, one for each device, all at the\n"
      "same time:\n"
      "  h2d             hipMemcpy from the rank's host memory to its device\n"
      "  d2h             the same from the device to the host\n"
      "  there-and-back  the one, then the other: twice the bytes over the time of both\n"
      "A sample is one copy, waited for and timed by the rank's own clock; before each all ranks\n"
      "wait for each other. Where ranks sit decides what they share: host memory is that of the\n"
      "rank's core, and where its pages are is asked before and after measuring. Bytes are "
      "counted\n"
      "once, in GB/s. Each destination is poisoned before each sample and compared after the "
      "last,\n"
      "where it lies.\n"
      "Example: mpiexec -n 2 pingpong --map 0,1 --sizes 4:128MiB --output result.json";
  program.launch = &group;
  program.define_options = [&options](CommandLine& line) {
    line.add({"--memory", "kinds of host memory, in order"}, options.memory);
    line.add({"--operations", "what to measure, in order"}, options.operations);
    line.add({"--sizes",
              "bytes of each copy: 128MiB, a list 4,1MiB, or a doubling range 4:128MiB; default: "
              "at least 128 MiB, past the caches"},
             options.sizes);
    line.add({"--placement", "name of the ranks' placement in the node model"}, options.placement,
             placement_names());
  };
  program.body = [&options, &group](Run& run) { measure_ranks(options, group, run); };
  return run_program(program, argc, argv);
}
