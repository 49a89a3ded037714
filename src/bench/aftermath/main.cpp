// aftermath: what another process sees of the node after a program ended badly. A runtime may abort
// the program at an error of a device, so the program itself cannot tell it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "aftermath/log.hpp"
#include "harness/document.hpp"
#include "harness/pci.hpp"
#include "harness/run.hpp"
#include "harness/state.hpp"
#include "harness/watchdog.hpp"

namespace {

using namespace fabricheck;
using nlohmann::json;

struct Options {
  int exit_code = 0;
  std::string document;
  std::string errors;
  std::string sys = "/sys";
  std::string kernel_log = "/dev/kmsg";
  double patience = 10;  ///< seconds
};

/// Ends by which nothing happened to a device: the program came to its end, or did not begin.
constexpr std::array kOrderly{status::good, status::wrong_data, status::too_noisy, status::usage,
                              status::setting};

/// Whether the document says so, and the exit code too; that of smpirun is always 0.
bool ended_orderly(const json& document, int exit_code) {
  const auto& outcome = document["outcome"];
  const bool orderly = std::find(kOrderly.begin(), kOrderly.end(),
                                 outcome["status"].get<std::string>()) != kOrderly.end();
  return orderly && (outcome["exit_code"] == exit_code || document["clock"] == clock::simulated);
}

/// A time of the document in microseconds by the clock of the kernel's log, which NTP does not
/// adjust; a second earlier, for what both clocks differ by. Of an unknown time the beginning.
std::int64_t log_time(const std::string& text) {
  std::tm utc{};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc) == nullptr) {
    return 0;
  }
  timespec since_boot{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &since_boot);
  const auto ago = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now() - std::chrono::system_clock::from_time_t(timegm(&utc)));
  constexpr std::int64_t second = 1000000;
  return since_boot.tv_sec * second + since_boot.tv_nsec / 1000 - ago.count() - second;
}

/// Whether functions that PCI showed before are not among those that it shows now.
bool lacks(const json& functions, const json& former) {
  return !functions.is_null() &&
         std::any_of(former.begin(), former.end(), [&functions](const json& gone) {
           return std::none_of(functions.begin(), functions.end(), [&gone](const json& function) {
             return function["address"] == gone["address"];
           });
         });
}

/// What is seen without the devices' drivers, and cannot hang.
json seen(const json& document, const Options& options) {
  json absent = json::array();
  const auto lack = [&absent](const char* item, const std::string& why) {
    absent.push_back({{"item", item}, {"why", why}});
    return json(nullptr);
  };
  json result{{"exit_code", options.exit_code}};
  const auto errors = file_bytes(options.errors);
  result["runtime_log"] = errors
                              ? runtime_log(*errors, options.sys)
                              : lack("runtime_log", "the program's standard error cannot be read");
  if (document["clock"] == clock::simulated) {
    result["pci_functions"] = lack("pci_functions", "the node is simulated");
    result["kernel_log"] = lack("kernel_log", "the node is simulated");
  } else {
    const auto former =
        document.value("/state/before/host/pci_functions"_json_pointer, json::array());
    auto functions = pci_functions(options.sys);
    // A device that its driver resets does not answer for some seconds.
    for (double waited = 0; waited < options.patience && lacks(functions, former); waited += 0.5) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      functions = pci_functions(options.sys);
    }
    result["pci_functions"] = functions.is_null()
                                  ? lack("pci_functions", options.sys + " has no PCI devices")
                                  : functions;
    // One that fell off the bus is in the former list only.
    std::vector<std::string> addresses;
    for (const auto& list : {functions, former}) {
      for (const auto& function : list) {
        addresses.push_back(function["address"]);
      }
    }
    const auto records = kernel_records(options.kernel_log);
    result["kernel_log"] =
        records ? kernel_log(*records, log_time(document["started"]), addresses)
                : lack("kernel_log", options.kernel_log + ": " + std::strerror(errno));
  }
  result["absent"] = absent;
  return result;
}

/// The state after the run, where the run could not take it.
void add_state(json& document, const Options& options) {
  auto& state = document["state"];
  StateRoots roots;
  roots.sys = options.sys;
  auto before = state["before"];
  before["absent"] = state["absent"];
  before["sources"] = state["sources"];
  state = both_states(before, NodeState(roots).afterwards(state_scope(document, {getpid()})));
}

void complete(const Options& options) {
  auto path = options.document;
  if (!std::filesystem::exists(path)) {
    path += ".partial";
  }
  const auto text = file_bytes(path);
  if (!text) {
    return;  // the program wrote nothing: there is nothing to complete
  }
  auto document = json::parse(*text);
  if (ended_orderly(document, options.exit_code)) {
    return;
  }
  const auto write = [&] { write_whole(path, dumped(document, 1) + "\n"); };
  document["aftermath"] = seen(document, options);
  write();  // the driver of a broken device may never answer
  if (document.contains("state") && document["state"]["after"].is_null()) {
    add_state(document, options);
    write();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine line("aftermath",
                   "Adds to the result document of a program that ended badly what the node shows\n"
                   "afterwards: PCI functions, the kernel's log, the state of the devices.\n"
                   "Example: aftermath --exit-code 134 --document result.json --errors stderr.txt",
                   version_text());
  line.add({"--exit-code", "how the program ended"}, options.exit_code, 0, 255);
  line.add({"--document", "the program's result document; its partial one if it left no other"},
           options.document);
  line.add({"--errors", "the file of the program's standard error"}, options.errors);
  line.heading("Testing");
  line.add({"--sys", "the folder that takes the place of /sys"}, options.sys);
  line.add({"--patience", "seconds for a device that does not answer to come back", "s"},
           options.patience, 0, 60);
  line.add({"--kernel-log", "the file that takes the place of /dev/kmsg"}, options.kernel_log);
  if (const auto code = line.parse(argc, argv, "It never calls the runtime of the devices.")) {
    return *code;
  }
  try {
    complete(options);
  } catch (const std::exception& error) {
    say("aftermath", error.what());
    return static_cast<int>(Status::software);
  }
  return 0;
}
