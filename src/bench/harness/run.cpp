#include "harness/run.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "harness/build.hpp"
#include "harness/devices.hpp"
#include "harness/energy.hpp"
#include "harness/host.hpp"
#include "harness/settings.hpp"
#include "harness/simulation.hpp"
#include "harness/sizes.hpp"
#include "harness/state.hpp"
#include "harness/watchdog.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

constexpr double kSilentSeconds = 3;    // no progress lines in short runs
constexpr double kProgressSeconds = 2;  // between two progress lines

void add_common_options(CommandLine& line, CommonOptions& options, bool energy) {
  auto& rules = options.rules;
  line.add({"--output", "file for the result document (JSON); - is standard output", "", false},
           options.output);
  line.add({"--time-limit", "seconds after which the run ends with 6", "s"}, options.time_limit,
           0.001, 1e6);
  line.heading("Sampling");
  line.add({"--samples", "samples of each series, at least; below six a median has no interval"},
           rules.min_samples, 6, 100000);
  line.add({"--max-samples", "samples of each series, at most"}, rules.max_samples, 6, 100000);
  line.add(
      {"--precision", "stop sampling when half the 95 % interval is below this part of the median"},
      rules.precision, 0, 1);
  line.add({"--noise-limit",
            "exit with 7 when that part stays above this (arrays beyond the caches only; of "
            "pairs of devices at once that of the sum)"},
           rules.noise_limit, 0, 10);
  line.add({"--batch-time", "seconds a sample should last, at least", "s"}, rules.batch_seconds,
           1e-6, 60);
  line.add({"--warm-up", "seconds before a device set's first series", "s"}, rules.warm_up_seconds,
           0, 600);
  line.add(
      {"--series-time", "seconds after which a series takes no more samples than --samples", "s"},
      rules.series_seconds, 0, 3600);
  if (energy) {
    line.add({"--energy-time",
              "seconds for which each series is repeated after its samples, at least, while "
              "counters of energy are read; 0: no energy",
              "s"},
             rules.energy_seconds, 0, 600);
  }
  line.heading("Testing");
  line.add({"--inject-fault",
            "inject a fault, to see that it is detected: flip-bit:OFFSET:BIT (byte offset into the "
            "destination), unwritten, device-error, refused or abort; of memcpy and pingpong also "
            "pages-on:DOMAIN; of the host runtime drop:N and delay:N (launch or copy N of the "
            "process, from 0); of a rank rank:R:FAULT, where FAULT may be hang, die or throw too",
            "", false},
           options.faults);
}

/// "host-pinned memory of NUMA domain 2"
std::string host_text(const Place& place) {
  return place.memory + " memory" +
         (place.numa_domain >= 0 ? " of NUMA domain " + std::to_string(place.numa_domain) : "");
}

/// Bytes of an element; without a type data is compared by words of 64 bits.
std::uint64_t element_bytes(const std::string& datatype) {
  return datatype == datatype::byte                                     ? 1
         : datatype == datatype::int32 || datatype == datatype::float32 ? 4
                                                                        : 8;
}

/// " on rank 3", " from rank 0 to rank 3", " among ranks 0 to 7"
std::string ranks_text(const Series& series) {
  const auto first = std::to_string(series.ranks.front());
  const auto last = std::to_string(series.ranks.back());
  if (series.ranks.size() == 1) {
    return " on rank " + first;
  }
  return series.direction == direction::collective || series.ranks.size() > 2
             ? " among ranks " + first + " to " + last
             : " from rank " + first + " to rank " + last;
}

/// " on device 1", and for what reaches other memory " from device 0 to device 1" too, or
/// " from host-pinned memory of NUMA domain 2"; of a sum " on devices 0, 1 at once".
std::string place_text(const Series& series) {
  if (!series.ranks.empty()) {
    return (series.datatype.empty() ? "" : " of " + series.datatype) + ranks_text(series);
  }
  if (series.device < 0) {
    std::string set;
    for (const int device : series.device_set) {
      set += (set.empty() ? " on devices " : ", ") + std::to_string(device);
    }
    return set + " at once";
  }
  const int from = series.source.device;
  const int to = series.destination.device;
  const bool remote = from >= 0 && to >= 0 && (from != series.device || to != series.device);
  const auto on_host = [](const Place& place) { return place.memory.rfind("host-", 0) == 0; };
  auto text = " on device " + std::to_string(series.device);
  if (remote) {
    text += " from device " + std::to_string(from) + " to device " + std::to_string(to);
  }
  if (on_host(series.source)) {
    text += " from " + host_text(series.source);
  }
  if (on_host(series.destination)) {
    text += " to " + host_text(series.destination);
  }
  return text;
}

json head(const Program& program, int argc, char** argv, const CommandLine& line,
          const CommonOptions& options) {
  json arguments = json::array();
  for (int i = 0; i < argc; ++i) {
    arguments.push_back(argv[i]);
  }
  arguments[0] = program.name;  // the path says nothing about the measurement
  auto host = describe_host();
  host["scheduler_node"] = scheduler_node();
  return {{"program", describe_program(program.name)},
          {"clock", kSimulated ? clock::simulated : clock::measured},
          {"node", describe_node()},
          {"host", host},
          {"devices", json::array()},
          {"versions", {{"runtime", "unknown"}, {"driver", "unknown"}}},
          {"environment", describe_environment()},
          {"arguments", arguments},
          {"options", line.values()},
          {"faults_injected", options.faults}};
}

/// The outcome of the body, or of the preparation before it.
Outcome outcome_of(const std::function<Outcome()>& work) {
  try {
    return work();
  } catch (const Failure& failure) {
    return {failure.status(), failure.what(), false};
  } catch (const std::invalid_argument& error) {
    return {Status::usage, error.what(), false};  // a setting of a runtime, in the environment
  } catch (const std::exception& error) {
    return {Status::software, error.what(), false};
  }
}

/// Takes the snapshots of the document's member `state`, before and after the body of a program.
/// One process does so, and the other ranks wait for it: a snapshot is never taken during a
/// measurement.
class StateKeeper {
 public:
  StateKeeper(Launch* launch, Document& document) : launch_(launch), document_(document) {
    if (!kSimulated && (launch == nullptr || launch->rank() == 0)) {
      state_.emplace();
    }
  }

  void before() {
    if (kSimulated && launch_ == nullptr) {
      before_ = simulated_state();
    }
    if (state_) {
      keep([&] {
        const auto pids = launch_ == nullptr ? std::vector<int>{getpid()} : launch_->processes();
        before_ = state_->before(state_scope(document_.content(), pids));
        document_.set("state", both_states(before_, nullptr));
      });
    }
    if (!kSimulated && launch_ != nullptr) {
      launch_->barrier();
    }
  }

  void after() {
    if (!before_.is_null()) {
      keep([&] {
        document_.set("state", both_states(before_, state_ ? state_->after() : simulated_state()));
      });
    }
  }

 private:
  /// What a system shows in an unknown form must not end a run.
  void keep(const std::function<void()>& work) {
    try {
      work();
    } catch (const std::exception& error) {
      document_.add_note(std::string("the state of the node cannot be recorded: ") + error.what());
    }
  }

  Launch* launch_;
  Document& document_;
  std::optional<NodeState> state_;
  json before_;
};

/// Finds the counters of energy for the rules of a run; a note where there is none.
void open_meter(SamplingRules& rules, Launch* launch, Run& run) {
  if (rules.energy_seconds <= 0 || (launch != nullptr && launch->rank() != 0)) {
    return;
  }
  if (kSimulated) {
    run.note("energy is not measured: a simulated node has no counter of it");
    return;
  }
  const auto pids = launch == nullptr ? std::vector<int>{getpid()} : launch->processes();
  const auto scope = state_scope(run.document().content(), pids);
  auto available = energy_counters({}, scope);
  if (available.counters.empty()) {
    run.note("energy is not measured: " + (available.problems.empty()
                                               ? "no device has a counter of it"
                                               : available.problems.front()));
    return;
  }
  for (const auto& problem : available.problems) {
    run.note("a counter of energy is missing: " + problem);
  }
  const auto state = std::make_shared<NodeState>();
  state->open(scope);
  rules.meter = std::make_shared<EnergyMeter>(std::move(available.counters),
                                              [state] { return state->under_load(); });
}

Outcome measure(const Program& program, CommonOptions& options, Document& document,
                StateKeeper& state, bool speaks) {
  return outcome_of([&]() -> Outcome {
    require_node();
    if (program.launch != nullptr) {
      program.launch->describe(document, options.faults);
    } else {
      document.set("devices", describe_devices());
      document.set("versions", describe_versions());
    }
    state.before();
    document.set("settings", describe_settings(device_count()));
    Run run(program.name, options, document, speaks);
    if (const auto obstacle = pages_obstacle(); !obstacle.empty()) {
      run.note(obstacle);
    }
    if (const auto blocking = blocking_setting()) {
      run.note(blocking->text() +
               ": launches or copies wait for the device, and no batch is queued " +
               "before it starts");
    }
    for (const auto& note : environment_notes()) {
      run.note(note);
    }
    open_meter(options.rules, program.launch, run);
    program.body(run);
    require_made();
    return {run.status(), run.sentence(), true};
  });
}

/// The exit code of a launch is that of rank 0, the last to end.
int own_code(int code, bool speaks) { return speaks || kSimulated ? code : 0; }

/// Measures and writes the document; returns the exit code. The process then has to end, except on
/// a rank of a simulation, because the watchdog still refers to the objects in use.
int run_to_the_end(const Program& program, const CommandLine& line, CommonOptions& options,
                   int argc, char** argv) {
  auto* launch = program.launch;
  const bool speaks = launch == nullptr || launch->rank() == 0;
  Outcome outcome;
  std::unique_ptr<Document> document;
  const auto opened = outcome_of([&]() -> Outcome {
    document = std::make_unique<Document>(speaks ? options.output : "/dev/null",
                                          head(program, argc, argv, line, options));
    return {};
  });
  std::unique_ptr<Watchdog> watchdog;
  if (document != nullptr && (speaks || !kSimulated)) {
    watchdog = std::make_unique<Watchdog>(program.name, options.time_limit, *document, launch);
  }
  outcome = launch == nullptr ? opened : launch->agree(opened);
  if (outcome.status == Status::good) {
    StateKeeper state(launch, *document);
    outcome = measure(program, options, *document, state, speaks);
    outcome = launch == nullptr ? outcome : launch->agree(outcome);
    state.after();
    if (speaks) {
      program.table(document->content(), stderr);
    }
    if (kSimulated) {
      document->set("simulated_s", host_seconds());
    }
    const auto written = outcome_of([&]() -> Outcome {
      document->finish(status_word(outcome.status), static_cast<int>(outcome.status),
                       outcome.sentence, outcome.complete);
      return outcome;
    });
    outcome = launch == nullptr ? written : launch->agree(written);
  }
  if (speaks && !outcome.sentence.empty()) {
    say(program.name, outcome.sentence);
  }
  const int code = own_code(static_cast<int>(outcome.status), speaks);
  if (launch != nullptr) {
    if (watchdog != nullptr) {
      watchdog->begin_leaving(code);
    }
    launch->leave();
  }
  std::fflush(nullptr);
  if (launch == nullptr) {
    _exit(code);  // a device call may still hang: unwind nothing
  }
  if (!kSimulated) {
    std::exit(code);  // MPI has handlers at exit; without them launchers take a rank for dead
  }
  return code;
}

/// Reads the options. Returns an exit code where there is nothing to run.
std::optional<int> parse(const Program& program, CommandLine& line, const CommonOptions& options,
                         int argc, char** argv, bool speaks) {
  const auto ended = line.parse(
      argc, argv,
      "Exit codes: 0 good, 2 bad usage, 3 no such device or not supported, 4 another error,\n"
      "5 wrong data, 6 time limit, 7 too noisy to judge, 8 prevented by a setting of the node or\n"
      "the job, 9 an error of the runtime that names hardware, 11 one that names none,\n"
      "128 + n ended by signal n.\n"
      "Units: GB/s is 1e9 bytes per second, sizes are bytes. What the document means:\n"
      "docs/reference/result-document.md.",
      speaks);
  if (ended) {
    return *ended;
  }
  if (program.resolve) {
    program.resolve();
  }
  if (options.rules.max_samples < options.rules.min_samples) {
    if (speaks) {
      say(program.name, "--max-samples " + std::to_string(options.rules.max_samples) +
                            " is below --samples " + std::to_string(options.rules.min_samples));
    }
    return static_cast<int>(Status::usage);
  }
  return std::nullopt;
}

}  // namespace

std::vector<Fault> Run::faults(bool host_memory) const {
  return arm(parse_faults(options_.faults, host_memory));
}

void Run::begin(const std::string& what) {
  ++begun_;
  document_.begin(what);
  const auto now = wall_seconds();
  if (!speaks_ || now - started_ < kSilentSeconds || now - last_shown_ < kProgressSeconds) {
    return;
  }
  last_shown_ = now;
  say(name_, std::to_string(begun_) + " of " + std::to_string(planned_) + " after " +
                 std::to_string(static_cast<long>(now - started_)) + " s: " + what);
}

void Run::measure(const std::string& what, const std::function<void()>& body) {
  begin(what);
  try {
    body();
  } catch (const Failure& failure) {
    throw Failure(failure.status(), what + ": " + failure.what());
  }
}

void Run::note(const std::string& sentence) {
  if (document_.add_note(sentence) && speaks_) {
    say(name_, sentence);
  }
}

void Run::add(const Series& series) {
  auto document = series_json(series, options_.rules.noise_limit);
  const auto where = series.operation + " of " + format_size(series.bytes) + place_text(series);
  const auto& check = series.verification;
  if (check.errors > 0 && series.role != role::sum) {
    const auto& first = document["verification"]["first_mismatch"];
    const auto element = element_bytes(series.datatype);
    // Of one rank it was said already.
    const auto on_rank = check.first_mismatch->rank < 0 || series.ranks.size() == 1
                             ? ""
                             : " on rank " + std::to_string(check.first_mismatch->rank);
    worsen(Status::wrong_data, where + ": " + std::to_string(check.errors) + " of " +
                                   std::to_string((check.bytes_checked + element - 1) / element) +
                                   (series.datatype.empty() ? " words" : " elements") +
                                   " are wrong, the first" + on_rank + " at byte " +
                                   std::to_string(check.first_mismatch->offset_bytes) +
                                   ": expected " + first["expected"].get<std::string>() +
                                   ", found " + first["found"].get<std::string>());
  } else if (document["noisy"] && is_judged(series)) {
    worsen(Status::too_noisy,
           where + ": half the 95 % interval is " +
               std::to_string(100 * document["relative_half_width"].get<double>()).substr(0, 4) +
               " % of the median after " + std::to_string(series.seconds.size()) + " samples");
  }
  document_.add_series(std::move(document));
}

void Run::worsen(Status status, const std::string& sentence) {
  // Wrong data outweighs noise; the first sentence of a kind is kept.
  if (status_ == Status::good || (status == Status::wrong_data && status_ == Status::too_noisy)) {
    status_ = status;
    sentence_ = sentence;
  }
}

std::string version_text() {
  const auto architectures = kernels_for();
  return build_version() + " (" + build_commit() + ", runtime " + build_runtime() +
         (architectures.empty() ? "" : " for " + architectures) + ")";
}

json describe_program(const std::string& name) {
  return {{"name", name},
          {"version", build_version()},
          {"commit", build_commit()},
          {"runtime", build_runtime()},
          {"compiler", build_compiler()}};
}

int run_program(const Program& program, int argc, char** argv) {
  CommandLine line(program.name, program.description, version_text());
  CommonOptions options;
  options.rules = program.rules;
  program.define_options(line);
  auto* launch = program.launch;
  if (launch != nullptr) {
    launch->define_options(line);
  }
  add_common_options(line, options, program.energy);
  const bool speaks = launch == nullptr || launch->rank() == 0;
  if (const auto code = parse(program, line, options, argc, argv, speaks)) {
    if (launch != nullptr) {
      launch->leave();
    }
    return own_code(*code, speaks);
  }
  options.rules = simulated_rules(options.rules);

  // Signals go to the watchdog; a file size limit is an error of write(), not the end.
  hold_signals();
  (void)std::signal(SIGXFSZ, SIG_IGN);
  (void)std::signal(SIGPIPE, SIG_IGN);

  try {
    int code = 0;
    run_simulated([&] { code = run_to_the_end(program, line, options, argc, argv); });
    return code;
  } catch (const std::exception& error) {
    say(program.name, error.what());  // the simulation itself ended, and the program with it
  }
  _exit(static_cast<int>(Status::software));
}

}  // namespace fabricheck
