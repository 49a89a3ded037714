// A launch of several ranks, as the frame of programs (run.hpp) sees it; implemented in
// src/bench/ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/status.hpp"

namespace fabricheck {

class CommandLine;
class Document;

/// The outcome of a run, or of a rank's part of it.
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
  /// The options of every program of ranks.
  virtual void define_options(CommandLine& line) = 0;
  /// Sets this rank's place and device by the options, and writes ranks and devices into the
  /// document. Collective. Throws Failure, the same on all ranks.
  virtual void describe(Document& document, const std::vector<std::string>& faults) = 0;
  /// The processes of the ranks on this rank's machine, in the order of the ranks.
  [[nodiscard]] virtual std::vector<int> processes() const = 0;
  /// Waits until all ranks have called this. Collective.
  virtual void barrier() const = 0;
  /// The common outcome of all ranks: the failure of the lowest rank that failed, else that of rank
  /// 0. Collective.
  virtual Outcome agree(const Outcome& mine) = 0;

  /// The cause that ends the run while this rank still works or waits: another rank failed or died.
  /// Unless `now`, the ranks have some time to agree on it by themselves. Called by the watchdog's
  /// thread, which may not use MPI.
  virtual std::optional<Outcome> trouble(bool now) = 0;
  /// Whether rank 0 ended or died without leaving, so that no other rank can continue. Also called
  /// by the watchdog's thread.
  [[nodiscard]] virtual bool is_abandoned() const = 0;
  /// The ranks that the others wait for, as the end of a sentence; empty when they are unknown.
  [[nodiscard]] virtual std::string waited_for() const = 0;

  /// Leaves the launch; no message reaches other ranks afterwards. Rank 0 returns when the others
  /// have ended, because launchers kill the remaining ranks when a rank ends with an error.
  virtual void leave() = 0;
};

}  // namespace fabricheck
