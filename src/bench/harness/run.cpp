#include "harness/run.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include "harness/devices.hpp"
#include "harness/host.hpp"
#include "harness/simulation.hpp"
#include "harness/sizes.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

constexpr double kSilentSeconds = 3;    // no progress lines in short runs
constexpr double kProgressSeconds = 2;  // between two progress lines

void say(const std::string& name, const std::string& sentence) {
  std::fprintf(stderr, "%s: %s\n", name.c_str(), sentence.c_str());
}

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&set, signal);
  }
  return set;
}

/// Ends the process at the time limit or on a signal, with a document of what was measured: a
/// device call that hangs cannot be interrupted otherwise.
void watch(const std::string& name, double seconds, Document& document) {
  const auto set = handled_signals();
  const auto deadline = wall_seconds() + seconds;
  int signal = -1;
  while (signal < 0) {
    const auto left = deadline - wall_seconds();
    if (left <= 0) {
      break;
    }
    timespec pause{};
    pause.tv_sec = static_cast<time_t>(left);
    pause.tv_nsec = static_cast<long>((left - static_cast<double>(pause.tv_sec)) * 1e9);
    signal = sigtimedwait(&set, nullptr, &pause);  // -1 again when a debugger interrupts it
  }
  const bool late = signal < 0;
  const auto sentence =
      late ? "not finished within the time limit of " + nlohmann::json(seconds).dump() + " s"
           : "interrupted by signal " + std::to_string(signal);
  const int code = late ? static_cast<int>(Status::time_limit) : 128 + signal;
  say(name, sentence);
  try {
    document.finish(late ? status_word(Status::time_limit) : "interrupted", code, sentence, false);
  } catch (const Failure& failure) {
    say(name, failure.what());
  }
  _exit(code);
}

void add_common_options(CommandLine& line, CommonOptions& options) {
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
            "exit with 7 when that part stays above this (arrays beyond the caches only)"},
           rules.noise_limit, 0, 10);
  line.add({"--batch-time", "seconds a sample should last, at least", "s"}, rules.batch_seconds,
           1e-6, 60);
  line.add({"--warm-up", "seconds before a device set's first series", "s"}, rules.warm_up_seconds,
           0, 600);
  line.add(
      {"--series-time", "seconds after which a series takes no more samples than --samples", "s"},
      rules.series_seconds, 0, 3600);
  line.heading("Testing");
  line.add({"--inject-fault",
            "make a fault on purpose, to see it found: flip-bit:OFFSET:BIT (byte offset into the "
            "destination) or unwritten; of memcpy also pages-on:DOMAIN",
            "", false},
           options.faults);
}

/// "host-pinned memory of NUMA domain 2"
std::string host_text(const Place& place) {
  return place.memory + " memory" +
         (place.numa_domain >= 0 ? " of NUMA domain " + std::to_string(place.numa_domain) : "");
}

/// " on device 1", and for what reaches other memory " from device 0 to device 1" too, or
/// " from host-pinned memory of NUMA domain 2".
std::string place_text(const Series& series) {
  if (series.device < 0) {
    return " on the whole set";
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
  return {{"program",
           {{"name", program.name},
            {"version", FABRICHECK_VERSION},
            {"commit", FABRICHECK_COMMIT},
            {"runtime", FABRICHECK_RUNTIME},
            {"compiler", FABRICHECK_COMPILER}}},
          {"clock", kSimulated ? "simulated" : "measured"},
          {"node", describe_node()},
          {"host", describe_host()},
          {"devices", json::array()},
          {"versions", {{"runtime", "unknown"}, {"driver", "unknown"}}},
          {"environment", describe_environment()},
          {"arguments", arguments},
          {"options", line.values()},
          {"faults_injected", options.faults}};
}

/// Measures, writes the document and ends the process.
[[noreturn]] void run_to_the_end(const Program& program, const CommandLine& line,
                                 const CommonOptions& options, int argc, char** argv) {
  auto status = Status::good;
  std::string sentence;
  bool complete = true;
  try {
    Document document(options.output, head(program, argc, argv, line, options));
    Run run(program.name, options, document);
    std::thread([&program, &options, &document] {
      watch(program.name, options.time_limit, document);
    }).detach();
    try {
      require_node();
      document.set("devices", describe_devices());
      document.set("versions", describe_versions());
      program.body(run);
      status = run.status();
      sentence = run.sentence();
    } catch (const Failure& failure) {
      status = failure.status();
      sentence = failure.what();
      complete = false;
    } catch (const std::invalid_argument& error) {
      status = Status::usage;  // a setting of a runtime of ours, in the environment
      sentence = error.what();
      complete = false;
    } catch (const std::exception& error) {
      status = Status::runtime_error;
      sentence = error.what();
      complete = false;
    }
    program.table(document.content(), stderr);
    document.finish(status_word(status), static_cast<int>(status), sentence, complete);
  } catch (const Failure& failure) {
    // The document has nowhere to go.
    status = failure.status();
    sentence = failure.what();
  }
  if (!sentence.empty()) {
    say(program.name, sentence);
  }
  std::fflush(nullptr);
  // The watchdog refers to objects of this frame: leave without unwinding it.
  _exit(static_cast<int>(status));
}

}  // namespace

void Run::begin(const std::string& what) {
  ++begun_;
  document_.keep_partial();
  const auto now = wall_seconds();
  if (now - started_ < kSilentSeconds || now - last_shown_ < kProgressSeconds) {
    return;
  }
  last_shown_ = now;
  say(name_, std::to_string(begun_) + " of " + std::to_string(planned_) + " after " +
                 std::to_string(static_cast<long>(now - started_)) + " s: " + what);
}

void Run::note(const std::string& sentence) {
  document_.add_note(sentence);
  say(name_, sentence);
}

void Run::add(const Series& series) {
  auto document = series_json(series, options_.rules.noise_limit);
  const auto where = series.operation + " of " + format_size(series.bytes) + place_text(series);
  const auto& check = series.verification;
  if (check.errors > 0 && series.role != "sum") {
    const auto& first = document["verification"]["first_mismatch"];
    worsen(Status::wrong_data, where + ": " + std::to_string(check.errors) + " of " +
                                   std::to_string(check.bytes_checked / 8) +
                                   " words are wrong, the first at byte " +
                                   std::to_string(check.first_mismatch->offset_bytes) +
                                   ": expected " + first["expected"].get<std::string>() +
                                   ", found " + first["found"].get<std::string>());
  } else if (document["noisy"] && series.in_memory) {
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

int run_program(const Program& program, int argc, char** argv) {
  CommandLine line(program.name, program.description,
                   std::string(FABRICHECK_VERSION) + " (" + FABRICHECK_COMMIT +
                       ", runtime " FABRICHECK_RUNTIME ")");
  CommonOptions options;
  options.rules = program.rules;
  program.define_options(line);
  add_common_options(line, options);
  const auto ended = line.parse(
      argc, argv,
      "Exit codes: 0 good, 2 bad usage, 3 no such device or not supported, 4 runtime error,\n"
      "5 wrong data, 6 time limit, 7 too noisy to judge, 128 + n ended by signal n.\n"
      "Units: GB/s is 1e9 bytes per second, sizes are bytes. What the document means:\n"
      "docs/result-document.md.");
  if (ended) {
    return *ended;
  }
  if (program.resolve) {
    program.resolve();
  }

  if (options.rules.max_samples < options.rules.min_samples) {
    say(program.name, "--max-samples " + std::to_string(options.rules.max_samples) +
                          " is below --samples " + std::to_string(options.rules.min_samples));
    return static_cast<int>(Status::usage);
  }
  options.rules = simulated_rules(options.rules);

  // Signals go to the watchdog; a file size limit is an error of write(), not the end.
  const auto set = handled_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  (void)std::signal(SIGXFSZ, SIG_IGN);
  (void)std::signal(SIGPIPE, SIG_IGN);

  try {
    run_simulated([&] { run_to_the_end(program, line, options, argc, argv); });
  } catch (const std::exception& error) {
    say(program.name, error.what());  // the simulation itself ended, and the program with it
  }
  _exit(static_cast<int>(Status::runtime_error));
}

}  // namespace fabricheck
