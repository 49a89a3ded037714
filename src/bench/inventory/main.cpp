// inventory: what the drivers, the system and the runtime tell of a node, without measuring.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "aftermath/log.hpp"
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
  bool passive = false;
  std::string kernel_log = "/dev/kmsg";
  double since_us = 0;  ///< by the clock of the kernel's log
  StateRoots roots;
};

/// A driver that hangs cannot be interrupted.
void end_at_time_limit(int) {
  const char* sentence = "inventory: the runtime or a driver does not answer within --time-limit\n";
  (void)!write(STDERR_FILENO, sentence, std::strlen(sentence));
  _exit(static_cast<int>(Status::time_limit));
}

/// What the runtime tells of the node; in `status` and `facts.problem` why it shows no device.
Status ask_runtime(RuntimeFacts& facts, json& document) {
  facts.peer_access = can_access_peer;
  try {
    require_node();
    facts.devices = describe_devices();
    document["versions"] = describe_versions();
    document["settings"] = describe_settings(device_count());
  } catch (const Failure& failure) {
    facts.problem = failure.what();
    facts.devices = json::array();
    return failure.status();
  }
  return Status::good;
}

/// The same by the drivers alone: a runtime would open the devices beside the job that uses them.
Status ask_drivers(const Options& options, RuntimeFacts& facts) {
  facts.peer_access = [](int, int) -> bool {
    throw Failure(Status::unsupported, "no runtime was called");
  };
  facts.devices = driver_devices(options.roots);
  if (facts.devices.empty()) {
    facts.problem = "no driver lists a device";
    return Status::unsupported;
  }
  return Status::good;
}

/// Adds the state of host and devices, and what the kernel's log has of devices since a time.
void add_state(const Options& options, json& document) {
  StateScope scope;
  scope.pids = {getpid()};
  std::vector<std::string> addresses;
  for (const auto& device : document["devices"]) {
    scope.devices.push_back({device["index"], device["pci_address"]});
  }
  for (const auto& function : document["pci_functions"]) {
    addresses.push_back(function["address"]);
  }
  document["state"] = both_states(NodeState(options.roots).before(scope), nullptr);
  document["boot_id"] = nullptr;
  if (const auto boot = file_text("/proc/sys/kernel/random/boot_id")) {
    document["boot_id"] = *boot;
  }
  document["kernel_log"] = nullptr;
  document["kernel_log_until_us"] = nullptr;
  const auto records = kernel_records(options.kernel_log);
  if (!records) {
    document["absent"].push_back(
        {{"item", "kernel_log"}, {"why", options.kernel_log + ": " + std::strerror(errno)}});
    return;
  }
  const auto since = static_cast<std::int64_t>(options.since_us);
  document["kernel_log"] = kernel_log(*records, since, addresses);
  document["kernel_log_until_us"] = last_record_us(*records);
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
  facts.host = describe_host();
  const bool passive = options.passive && !kSimulated;
  const Status status = passive ? ask_drivers(options, facts) : ask_runtime(facts, document);
  document.update(describe_machine(facts, options.roots));
  if (passive) {
    add_state(options, document);
    document["absent"].push_back({{"item", "versions"}, {"why", "no runtime was called"}});
  } else if (facts.devices.empty()) {
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
  line.add({"--passive",
            "call no runtime, so that nothing opens a device: those that the drivers list,\n"
            "their state, and lines of the kernel's log"},
           options.passive);
  line.add({"--since", "microseconds of the kernel's log from which on its lines are read", "us"},
           options.since_us, 0, 1e18);
  line.heading("Testing");
  line.add({"--kernel-log", "the file that takes the place of /dev/kmsg"}, options.kernel_log);
  line.add({"--proc", "the folder that takes the place of /proc"}, options.roots.proc);
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
