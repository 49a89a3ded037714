// A common start for several streams.
#pragma once

#include <set>

#include "harness/hip.hpp"

namespace fabricheck {

/// Holds streams back until all of them have their work queued, then starts them together, so that
/// the measurement covers simultaneous work and not the order of launches.
class StartGate {
 public:
  StartGate();
  StartGate(const StartGate&) = delete;
  StartGate& operator=(const StartGate&) = delete;
  /// Opens, and waits for the streams that still poll the gate.
  ~StartGate();

  /// Throws Failure(setting) naming the variable if launches or copies wait for the device: the
  /// gate would never open.
  void close();
  /// Queues the wait on the stream. Queue little after it: a full queue blocks the host.
  void wait_on(const TimedStream& stream);
  void open();
  /// Call this when the streams have finished. Throws Failure(software) when a device gave up
  /// waiting, because the start was then not common.
  void check() const;

  /// The most operations that may be queued behind a closed gate. ROCm with its engines switched
  /// off copies by kernels, through a queue that holds 32 copies and blocks when it is full.
  static int max_queued();

 private:
  Buffer memory_;
  std::set<int> devices_;  // those that were made to wait
  int* flags_ = nullptr;   // [0]: open, [1]: a device gave up; not to be read or written plainly
};

}  // namespace fabricheck
