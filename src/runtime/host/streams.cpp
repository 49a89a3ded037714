// Streams and events of the host runtime; see hip/hip_runtime.h.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "faults.hpp"
#include "machine.hpp"

namespace {

using fabricheck_host::current_device;
using fabricheck_host::Device;
using fabricheck_host::device_at;
using fabricheck_host::machine;
using fabricheck_host::result;
using Clock = std::chrono::steady_clock;
using Work = std::function<void(int)>;

}  // namespace

struct fabricheck_event {
  /// What the event saw, shared with the work that will write it, so that destroying the event is
  /// safe.
  struct Mark {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = true;
    Clock::time_point time;
  };

  std::shared_ptr<Mark> mark = std::make_shared<Mark>();
};

/// A queue with one thread that works it off in order, bound to the cores of its device.
struct fabricheck_stream_queue {
  explicit fabricheck_stream_queue(int device_index, const Device& device)
      : device(device_index), thread([this, &device] { work_off(device); }) {}

  void add(Work work) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return queue.size() < machine().queue_length; });
    queue.push_back(std::move(work));
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return queue.empty() && !busy; });
  }
  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
      changed.notify_all();
    }
    thread.join();
  }

  const int device;

 private:
  void work_off(const Device& device) {
    auto* cores = hwloc_bitmap_alloc();
    for (const int core : device.cores) {
      hwloc_bitmap_set(cores, static_cast<unsigned>(core));
    }
    // The OpenMP threads that this one starts inherit the binding.
    (void)hwloc_set_cpubind(machine().topology, cores, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(cores);
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return stopping || !queue.empty(); });
      if (queue.empty()) {
        return;
      }
      auto work = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      work(static_cast<int>(device.cores.size()));
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> queue;
  bool busy = false;
  bool stopping = false;
  std::thread thread;  // last: it uses the members above
};

namespace {

constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();
std::atomic<std::uint64_t> made = 0;
std::atomic<std::uint64_t> dropped = kNone;
std::atomic<std::uint64_t> delayed = kNone;

hipStream_t or_default(hipStream_t stream) {
  if (stream != nullptr) {
    return stream;
  }
  auto& all = machine();
  const std::lock_guard lock(all.mutex);
  auto& made = all.default_streams[current_device()];
  if (made == nullptr) {
    made = new fabricheck_stream_queue(current_device(), device_at(current_device()));
    all.streams.push_back(made);
  }
  return made;
}

}  // namespace

void fabricheck_host::add(hipStream_t stream, Work work) {
  or_default(stream)->add(std::move(work));
}

bool fabricheck_host::add_operation(hipStream_t stream, Work work) {
  const auto number = made++;
  if (number == dropped) {
    return false;
  }
  if (number != delayed) {
    add(stream, std::move(work));
    return false;
  }
  add(stream, [work = std::move(work)](int cores) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kDelaySeconds));
    work(cores);
  });
  return true;
}

std::uint64_t fabricheck_host::operations() { return made; }
void fabricheck_host::drop(std::uint64_t number) { dropped = number; }
void fabricheck_host::delay(std::uint64_t number) { delayed = number; }

bool fabricheck_host::awaits_fault() {
  return (dropped != kNone && made <= dropped) || (delayed != kNone && made <= delayed);
}

void fabricheck_cpu::enqueue(hipStream_t stream, Work work) {
  (void)fabricheck_host::add_operation(stream, std::move(work));
  if (machine().launches_block) {
    or_default(stream)->wait();
  }
}

hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned) {
  auto* fresh = new fabricheck_stream_queue(current_device(), device_at(current_device()));
  *stream = fresh;
  auto& all = machine();
  const std::lock_guard lock(all.mutex);
  all.streams.push_back(fresh);
  return hipSuccess;
}

hipError_t hipStreamDestroy(hipStream_t stream) {
  auto& all = machine();
  {
    const std::lock_guard lock(all.mutex);
    all.streams.erase(std::remove(all.streams.begin(), all.streams.end(), stream),
                      all.streams.end());
  }
  stream->stop();
  delete stream;
  return hipSuccess;
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
  or_default(stream)->wait();
  return hipSuccess;
}

hipError_t hipDeviceSynchronize() {
  std::vector<fabricheck_stream_queue*> mine;
  auto& all = machine();
  {
    const std::lock_guard lock(all.mutex);
    for (auto* stream : all.streams) {
      if (stream->device == current_device()) {
        mine.push_back(stream);
      }
    }
  }
  for (auto* stream : mine) {
    stream->wait();
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
  {
    const std::lock_guard lock(mark->mutex);
    mark->done = false;
  }
  fabricheck_host::add(stream, [mark](int) {
    const std::lock_guard lock(mark->mutex);
    mark->time = Clock::now();
    mark->done = true;
    mark->changed.notify_all();
  });
  return hipSuccess;
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  std::unique_lock lock(event->mark->mutex);
  event->mark->changed.wait(lock, [event] { return event->mark->done; });
  return hipSuccess;
}

hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  for (auto* event : {start, stop}) {
    const std::lock_guard lock(event->mark->mutex);
    if (!event->mark->done) {
      return result(hipErrorNotReady);
    }
  }
  *milliseconds =
      std::chrono::duration<float, std::milli>(stop->mark->time - start->mark->time).count();
  return hipSuccess;
}

long long clock64() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}
