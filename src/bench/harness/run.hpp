// The frame of every program: common options, the document, time limit, signals, exit code.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "harness/command_line.hpp"
#include "harness/document.hpp"
#include "harness/fault.hpp"
#include "harness/launch.hpp"
#include "harness/sampling.hpp"
#include "harness/series.hpp"
#include "harness/table.hpp"

namespace fabricheck {

/// Options that every program has.
struct CommonOptions {
  std::string output = "-";
  double time_limit = 600;  ///< seconds
  SamplingRules rules;
  std::vector<std::string> faults;
};

/// A run in progress, for the body of a program.
class Run {
 public:
  /// A run of a rank other than 0 prints nothing on standard error.
  Run(const std::string& name, const CommonOptions& options, Document& document, bool speaks = true)
      : name_(name),
        options_(options),
        document_(document),
        speaks_(speaks),
        started_(wall_seconds()) {}

  [[nodiscard]] const CommonOptions& options() const { return options_; }
  /// The injected faults of a program of one process. Throws Failure(usage).
  [[nodiscard]] std::vector<Fault> faults(bool host_memory = false) const;
  Document& document() { return document_; }

  /// The number of measurements, shown with the progress.
  void plan(std::size_t measurements) { planned_ = measurements; }
  /// Starts a measurement; `what` is shown on standard error once the run takes some seconds.
  void begin(const std::string& what);
  /// Begins a measurement and makes it; a failure in it names it.
  void measure(const std::string& what, const std::function<void()>& body);
  /// Adds a sentence to the document's notes and prints it on standard error, once.
  void note(const std::string& sentence);
  /// Adds a finished series; wrong data and noise become the outcome of the run.
  void add(const Series& series);

  /// The run ends at least as badly as this; of several such the first sentence is kept.
  void worsen(Status status, const std::string& sentence);

  /// The outcome so far, and its sentence.
  [[nodiscard]] Status status() const { return status_; }
  [[nodiscard]] const std::string& sentence() const { return sentence_; }

 private:
  std::string name_;
  const CommonOptions& options_;
  Document& document_;
  bool speaks_;
  double started_;
  double last_shown_ = 0;
  std::size_t planned_ = 0;
  std::size_t begun_ = 0;
  Status status_ = Status::good;
  std::string sentence_;
};

/// A program: its own options, and its work after they are parsed.
struct Program {
  std::string name;
  std::string description;
  std::function<void(CommandLine&)> define_options;
  std::function<void(Run&)> body;
  std::function<void()> resolve{};  ///< what options mean together, once they are parsed
  SamplingRules rules{};            ///< defaults of the common options
  bool energy = false;              ///< whether its series can be held for their energy
  /// Prints a finished document as tables.
  std::function<void(const nlohmann::json&, std::FILE*)> table = print_series;
  /// Of a program of several ranks, all of which run the body: only rank 0 writes the document and
  /// prints. Null: one process.
  Launch* launch = nullptr;
};

/// What `--version` of every program prints.
std::string version_text();

/// The member `program` of a document.
nlohmann::json describe_program(const std::string& name);

/// Runs a program and returns its exit code. The result document is written in any case after the
/// options were parsed: by the program, or by a watchdog at the time limit or on SIGINT, SIGTERM,
/// SIGHUP. Tables go to standard error. Returns only if the options end the program, and on a rank
/// of a simulation.
int run_program(const Program& program, int argc, char** argv);

}  // namespace fabricheck
