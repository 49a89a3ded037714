// affinity: where each rank of a launch runs, and what it sees (experiment E15).
#include <cstdio>
#include <string>

#include "harness/run.hpp"
#include "harness/table.hpp"
#include "ranks/rank_group.hpp"

namespace {

using namespace fabricheck;
using nlohmann::json;

std::string word(const json& value) { return value.is_null() ? "-" : value.dump(); }

void print_map(const json& document, std::FILE* out) {
  if (!document.contains("ranks")) {
    return;
  }
  std::fprintf(out, "%4s %-20s %-20s %5s %7s %-9s %-7s %s\n", "rank", "host", "cores", "NUMA",
               "memory", "sees", "device", "PCI address");
  for (const auto& rank : document["ranks"]) {
    std::string address = "-";
    for (const auto& device : document["devices"]) {
      if (device["index"] == rank["device"] && device["pci_address"].is_string()) {
        address = device["pci_address"].get<std::string>();
      }
    }
    std::fprintf(out, "%4s %-20s %-20s %5s %7s %-9s %-7s %s\n", word(rank["rank"]).c_str(),
                 rank["host"].get<std::string>().c_str(), spans_of(rank["cores"]).c_str(),
                 word(rank["numa_domain"]).c_str(), word(rank["memory_domain"]).c_str(),
                 spans_of(rank["visible_devices"]).c_str(), word(rank["device"]).c_str(),
                 address.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  RankGroup group(argc, argv);
  Program program;
  program.name = "affinity";
  program.description =
      "Where the ranks of a launch are: the cores each may use, the NUMA domain of them and of\n"
      "the memory it allocates, the devices it sees, and the one it uses.\n"
      "Example: mpiexec -n 8 affinity --output result.json";
  program.define_options = [](CommandLine&) {};
  program.body = [&group](Run&) { group.step("tell where each rank is", [] {}); };
  program.table = print_map;
  program.launch = &group;
  return run_program(program, argc, argv);
}
