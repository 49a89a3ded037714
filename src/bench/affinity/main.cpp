// affinity: the place of each rank of a launch, and the devices that it sees (experiment E15).
#include <cstdio>
#include <string>

#include "harness/run.hpp"
#include "harness/table.hpp"
#include "ranks/rank_group.hpp"

namespace {

using namespace fabricheck;
using nlohmann::json;

void print_map(const json& document, std::FILE* out) {
  if (!document.contains("ranks")) {
    return;
  }
  Table table{{right("rank"), left("host"), left("cores"), right("NUMA"), right("memory"),
               left("sees"), left("device"), left("PCI address")}};
  for (const auto& rank : document["ranks"]) {
    std::string address = "-";
    for (const auto& device : document["devices"]) {
      if (device["index"] == rank["device"] && device["pci_address"].is_string()) {
        address = device["pci_address"].get<std::string>();
      }
    }
    table.rows.push_back({number_or_dash(rank["rank"]), rank["host"], spans_of(rank["cores"]),
                          number_or_dash(rank["numa_domain"]),
                          number_or_dash(rank["memory_domain"]), spans_of(rank["visible_devices"]),
                          number_or_dash(rank["device"]), address});
  }
  print_table(table, out);
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
