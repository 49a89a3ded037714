// Ends a run at its time limit, on a signal, or when another rank cannot go on.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "harness/document.hpp"
#include "harness/launch.hpp"

namespace fabricheck {

/// Blocks the watchdog's signals for this thread and those it starts.
void hold_signals();

/// Prints a sentence on standard error, as a program does.
void say(const std::string& name, const std::string& sentence);

/// A thread that ends the process, with a document of the results so far: a hanging device call
/// cannot be interrupted otherwise. It must live as long as the objects that it refers to.
class Watchdog {
 public:
  /// `launch` may be null. Only the watchdog of rank 0 prints.
  Watchdog(std::string name, double seconds, Document& document, Launch* launch);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  /// Sets that only leaving the launch remains: if that takes longer than `seconds`, because
  /// another rank does not come, the process ends with `code`.
  void begin_leaving(int code, double seconds = 60);

 private:
  void watch();
  void end(const char* word, int code, const std::string& sentence);

  std::string name_;
  double seconds_;
  Document& document_;
  Launch* launch_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> leaving_code_{0};
  std::atomic<double> leaving_ends_{0};  // 0: not yet
  std::function<void()> forget_halt_;
  std::thread thread_;
};

}  // namespace fabricheck
