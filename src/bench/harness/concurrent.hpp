// Operations of one or several streams, timed together.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "harness/gate.hpp"
#include "harness/hip.hpp"
#include "harness/sampling.hpp"
#include "harness/series.hpp"

namespace fabricheck {

/// The work of one stream: the operation that a batch repeats.
struct Task {
  const TimedStream* stream = nullptr;
  std::function<void(int)> queue;  ///< queues so many operations on the stream
};

/// Returns a queue function for Task that queues operations one by one.
inline std::function<void(int)> one_by_one(std::function<void()> queue) {
  return [queue = std::move(queue)](int operations) {
    for (int i = 0; i < operations; ++i) {
      queue();
    }
  };
}

/// Whether a batch is queued behind a gate although nothing else works at the same time. On a GPU,
/// batches of 20 ms were 0.1 % slower without a gate, as if the first operation waited some 20 us
/// for the host to queue it. Not for small arrays, whose result includes the time of the host; a
/// CPU or a simulated node has no such delay. Not where launches block until the device is done, by
/// a variable of the runtime: a closed gate would never open.
bool queued_ahead(bool cpu, bool past_caches);

/// Runs the tasks at the same time, each between the two events of its stream.
class ConcurrentBatch {
 public:
  /// With a gate the streams start together, once all have their work queued. Several streams need
  /// it; for one it keeps the cost of queueing out of the time. The gate must live as long as this
  /// object; null: no gate.
  ConcurrentBatch(std::vector<Task> tasks, StartGate* gate)
      : tasks_(std::move(tasks)), gate_(gate) {}

  /// The rules, with a batch no larger than may be queued.
  [[nodiscard]] SamplingRules bounded(SamplingRules rules) const;

  /// Runs `batch` operations of every task and waits for them.
  BatchTimes run(int batch);

 private:
  void queue(int batch) const;
  void synchronize() const;

  std::vector<Task> tasks_;
  StartGate* gate_;
  bool primed_ = false;
};

/// Runs work of the host at the same time, each by a thread, on a simulated node by an actor; they
/// start together. Returns the seconds from that start to the end of each, by the clock that
/// programs measure by. Throws the exception of one of them after all have ended.
std::vector<double> run_at_once(const std::vector<std::function<void()>>& works);

/// Runs `batch` operations of every task by threads of the host that wait for them, timed by the
/// host's clock. Copies of pageable memory need this, because they block their caller. A single
/// task is run by the calling thread, several by one thread each, at the same time.
BatchTimes run_by_host(const std::vector<Task>& tasks, int batch);

/// The series of tasks that were measured together. `parts` describes each of them, in the order of
/// the tasks, verified and without samples. A single task gives a single series; several give
/// shares, followed by their sum, which has the energy of all.
std::vector<Series> with_samples(std::vector<Series> parts, const std::vector<BatchTimes>& samples,
                                 std::shared_ptr<const EnergyHold> energy = nullptr);

}  // namespace fabricheck
