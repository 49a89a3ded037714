// Streams and events of the simulated node: a stream is an actor that works off its queue in order.
#include <cmath>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "machine.hpp"

namespace s4u = simgrid::s4u;
using fabricheck_sim::Access;
using fabricheck_sim::Cost;
using fabricheck_sim::current_device;
using fabricheck_sim::machine;
using fabricheck_sim::result;

namespace {

/// Everything that waits, waits for a change of any stream or event and then looks again. Actors
/// take turns, so only this needs a lock.
struct Progress {
  s4u::MutexPtr mutex = s4u::Mutex::create();
  s4u::ConditionVariablePtr changed = s4u::ConditionVariable::create();
};

Progress& progress() {
  static auto* made = new Progress;
  return *made;
}

void notify() { progress().changed->notify_all(); }

template <typename Condition>
void wait_until(const Condition& condition) {
  std::unique_lock lock(*progress().mutex);
  progress().changed->wait(lock, condition);
}

}  // namespace

struct fabricheck_event {
  /// What the event saw, shared with the operation that writes it.
  struct Mark {
    bool done = true;
    double time = 0;
  };

  std::shared_ptr<Mark> mark = std::make_shared<Mark>();
};

struct fabricheck_stream_queue {
  struct Operation {
    Cost cost;
    std::function<void()> effect;
  };

  /// Shared with the actor, which may end after the stream was destroyed.
  struct Queue {
    std::deque<Operation> operations;
    bool busy = false;
    bool stopping = false;

    [[nodiscard]] bool idle() const { return operations.empty() && !busy; }
  };

  int device = 0;
  std::shared_ptr<Queue> queue = std::make_shared<Queue>();
  std::vector<Access> declared;  ///< traffic of the next kernel
};

namespace {

using Mark = fabricheck_event::Mark;
using Queue = fabricheck_stream_queue::Queue;
using Operation = fabricheck_stream_queue::Operation;

void work_off(Queue& queue) {
  for (;;) {
    wait_until([&queue] { return queue.stopping || !queue.operations.empty(); });
    if (queue.operations.empty()) {
      return;
    }
    const auto operation = std::move(queue.operations.front());
    queue.operations.pop_front();
    queue.busy = true;
    fabricheck_sim::spend(operation.cost);
    operation.effect();
    queue.busy = false;
    notify();
  }
}

hipStream_t new_stream() {
  auto* stream = new fabricheck_stream_queue;
  stream->device = current_device();
  const auto name = "stream of device " + std::to_string(stream->device);
  s4u::Actor::create(name, fabricheck_sim::home(), [queue = stream->queue] {
    work_off(*queue);
  })->daemonize();
  machine().streams.insert(stream);
  return stream;
}

hipStream_t or_default(hipStream_t stream) {
  if (stream != nullptr) {
    return stream;
  }
  auto& made = machine().default_streams[current_device()];
  if (made == nullptr) {
    made = new_stream();
  }
  return made;
}

}  // namespace

namespace fabricheck_sim {

int device_of(hipStream_t stream) { return stream == nullptr ? current_device() : stream->device; }

void enqueue(hipStream_t stream, const Cost& cost, std::function<void()> effect) {
  or_default(stream)->queue->operations.push_back({cost, std::move(effect)});
  notify();
}

void declare(hipStream_t stream, std::vector<Access> accesses) {
  or_default(stream)->declared = std::move(accesses);
}

void finish_all_streams() {
  for (const auto stream : machine().streams) {
    wait_until([stream] { return stream->queue->idle(); });
  }
}

}  // namespace fabricheck_sim

void fabricheck_cpu::enqueue(hipStream_t stream, std::function<void(int)> work) {
  const auto accesses = std::exchange(or_default(stream)->declared, {});
  try {
    const auto cost = fabricheck_sim::kernel_cost(fabricheck_sim::device_of(stream), accesses);
    // A slice is small: one core moves it in less time than others take to wake up.
    fabricheck_sim::enqueue(stream, cost, [work = std::move(work)] { work(1); });
  } catch (const std::runtime_error&) {
    (void)result(hipErrorInvalidDevice);
  }
}

hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned) {
  *stream = new_stream();
  return hipSuccess;
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
  wait_until([queue = or_default(stream)->queue] { return queue->idle(); });
  return hipSuccess;
}

hipError_t hipStreamDestroy(hipStream_t stream) {
  (void)hipStreamSynchronize(stream);
  machine().streams.erase(stream);
  stream->queue->stopping = true;
  notify();
  delete stream;
  return hipSuccess;
}

hipError_t hipDeviceSynchronize() {
  for (const auto stream : machine().streams) {
    if (stream->device == current_device()) {
      wait_until([stream] { return stream->queue->idle(); });
    }
  }
  return hipSuccess;
}

hipError_t hipEventCreate(hipEvent_t* event) {
  *event = new fabricheck_event;
  return hipSuccess;
}

hipError_t hipEventDestroy(hipEvent_t event) {
  delete event;
  return hipSuccess;
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  const auto mark = event->mark;
  mark->done = false;
  fabricheck_sim::enqueue(stream, {}, [mark] {
    mark->time = fabricheck_sim::now();
    mark->done = true;
  });
  return hipSuccess;
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  wait_until([mark = event->mark] { return mark->done; });
  return hipSuccess;
}

hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  if (!start->mark->done || !stop->mark->done) {
    return result(hipErrorNotReady);
  }
  *milliseconds = static_cast<float>(1e3 * (stop->mark->time - start->mark->time));
  return hipSuccess;
}

/// A kernel that looks at the clock waits for its next tick. So kernels that wait for the same
/// thing look at the same moments, and other actors get on meanwhile.
long long clock64() {
  constexpr double ticks_per_second = 1e7;
  // The small part keeps a clock that stands a rounding error below a tick from waiting for it.
  const double tick = std::floor(fabricheck_sim::now() * ticks_per_second + 1e-3) + 1;
  s4u::this_actor::sleep_until(tick / ticks_per_second);
  return std::llround(tick * 1e9 / ticks_per_second);
}
