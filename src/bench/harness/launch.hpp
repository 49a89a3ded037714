// A launch of several ranks, as the frame of programs (run.hpp) sees it; src/bench/ranks has it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/status.hpp"

namespace fabricheck {

class CommandLine;
class Document;

/// How a run, or a rank's part of it, ended.
struct Outcome {
  Status status = Status::good;
  std::string sentence;
  bool complete = true;  ///< all that was asked for was measured
};

class Launch {
 public:
  Launch() = default;
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  virtual ~Launch() = default;

  [[nodiscard]] virtual int rank() const = 0;
  /// Options that every program of ranks has.
  virtual void define_options(CommandLine& line) = 0;
  /// Takes this rank's place and device, as the options say, and writes ranks and devices into the
  /// document. Collective. Throws Failure, the same on all ranks.
  virtual void describe(Document& document, const std::vector<std::string>& faults) = 0;
  /// The processes of the ranks that are on this rank's machine, in order of the ranks.
  [[nodiscard]] virtual std::vector<int> processes() const = 0;
  /// Waits until all ranks have come here. Collective.
  virtual void barrier() const = 0;
  /// The outcome that all ranks end with: the failure of the lowest rank that failed, else that of
  /// rank 0. Collective.
  virtual Outcome agree(const Outcome& mine) = 0;

  /// What ends the run although this rank still works or waits: another one failed or died. Unless
  /// `now`, the ranks have some time to agree on it by themselves.
  /// Called by the watchdog's thread, which may not use MPI.
  virtual std::optional<Outcome> trouble(bool now) = 0;
  /// Whether rank 0 ended or died without leaving, so that no other rank can go on. Called by the
  /// watchdog's thread, too.
  [[nodiscard]] virtual bool is_abandoned() const = 0;
  /// Which ranks the others wait for, to follow a sentence; empty when that is not known.
  [[nodiscard]] virtual std::string waited_for() const = 0;

  /// Leaves the launch, after which nothing more is said to other ranks. Rank 0 comes back when the
  /// others have ended: launchers kill what is left when a rank ends with an error.
  virtual void leave() = 0;
};

}  // namespace fabricheck
