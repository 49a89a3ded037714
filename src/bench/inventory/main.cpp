// inventory: what the drivers, the system and the runtime tell of a node, without measuring.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "harness/devices.hpp"
#include "harness/document.hpp"
#include "harness/hip.hpp"
#include "harness/host.hpp"
#include "harness/run.hpp"
#include "harness/settings.hpp"
#include "harness/simulation.hpp"
#include "harness/watchdog.hpp"
#include "inventory/document.hpp"

namespace {

using namespace fabricheck;
using nlohmann::json;

struct Options {
  std::string output = "-";
  int time_limit = 60;  ///< seconds
  StateRoots roots;
};

/// A driver that hangs cannot be interrupted.
void end_at_time_limit(int) {
  const char* sentence = "inventory: the runtime or a driver does not answer within --time-limit\n";
  (void)!write(STDERR_FILENO, sentence, std::strlen(sentence));
  _exit(static_cast<int>(Status::time_limit));
}

/// Writes the description, also where the runtime has no device: then it shows what PCI has.
void describe_to(const Options& options) {
  json document{{"schema", "fabricheck-inventory"},
                {"schema_version", 1},
                {"at", timestamp()},
                {"program", describe_program("inventory")},
                {"node", describe_node()},
                {"versions", nullptr},
                {"settings", json::array()}};
  RuntimeFacts facts;
  Status status = Status::good;
  facts.host = describe_host();
  facts.peer_access = can_access_peer;
  try {
    require_node();
    facts.devices = describe_devices();
    document["versions"] = describe_versions();
    document["settings"] = describe_settings(device_count());
  } catch (const Failure& failure) {
    facts.problem = failure.what();
    status = failure.status();
    facts.devices = json::array();
  }
  document.update(describe_machine(facts, options.roots));
  if (facts.devices.empty()) {
    document["settings"] = describe_settings(0);
    document["absent"].push_back({{"item", "versions"}, {"why", facts.problem}});
  } else {
    document["sources"]["versions"] = "runtime";
  }
  facts.host["scheduler_node"] = scheduler_node();
  for (const auto* item : {"numa_domains", "numa_balancing"}) {
    facts.host.erase(item);
  }
  document["host"] = facts.host;
  write_whole(options.output, dumped(document, 1) + "\n");
  if (status != Status::good) {
    throw Failure(status, facts.problem);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine line("inventory",
                   "Describes the node as JSON: devices, the links of each pair, NUMA domains,\n"
                   "accelerators of PCI; each value with its source, or why it is unknown.\n"
                   "Nothing is measured. Example: inventory --output node.json",
                   version_text());
  line.add({"--output", "file for the description; - is standard output"}, options.output);
  line.add({"--time-limit", "seconds after which it ends with 6", "s"}, options.time_limit, 1,
           3600);
  line.heading("Testing");
  line.add({"--sys", "the folder that takes the place of /sys"}, options.roots.sys);
  if (const auto code =
          line.parse(argc, argv,
                     "Exit codes: 0 good, 2 bad usage, 3 no device, 4 another error, 6 time limit, "
                     "8 a setting\n"
                     "may hide the devices. With 3 and 8 the description is written, too.")) {
    return *code;
  }
  (void)std::signal(SIGALRM, end_at_time_limit);
  (void)alarm(static_cast<unsigned>(options.time_limit));
  int code = 0;
  const auto work = [&] {
    try {
      describe_to(options);
    } catch (const Failure& failure) {
      say("inventory", failure.what());
      code = static_cast<int>(failure.status());
    } catch (const std::invalid_argument& error) {
      say("inventory", error.what());  // a setting of a runtime, in the environment
      code = static_cast<int>(Status::usage);
    } catch (const std::exception& error) {
      say("inventory", error.what());
      code = static_cast<int>(Status::software);
    }
  };
  run_simulated(work);
  std::fflush(nullptr);
  _exit(code);  // a runtime may hang as it ends
}
