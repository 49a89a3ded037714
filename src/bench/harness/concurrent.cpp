#include "harness/concurrent.hpp"

#include <algorithm>
#include <utility>

#include "harness/settings.hpp"
#include "harness/simulation.hpp"

namespace fabricheck {

bool queued_ahead(bool cpu, bool past_caches) {
  return !kSimulated && !cpu && past_caches && !blocking_setting();
}

SamplingRules ConcurrentBatch::bounded(SamplingRules rules) const {
  if (gate_ != nullptr) {
    rules.max_batch = std::min(rules.max_batch, StartGate::max_queued());
  }
  return rules;
}

void ConcurrentBatch::queue(int batch) const {
  for (const auto& task : tasks_) {
    task.stream->use();
    if (gate_ != nullptr) {
      gate_->wait_on(*task.stream);
    }
    task.stream->mark_start();
    task.queue(batch);
    FABRICHECK_HIP(hipGetLastError());
    task.stream->mark_stop();
  }
}

void ConcurrentBatch::synchronize() const {
  for (const auto& task : tasks_) {
    task.stream->synchronize();
  }
}

BatchTimes ConcurrentBatch::run(int batch) {
  if (gate_ != nullptr) {
    if (!primed_) {
      // A runtime may load code or map memory at first use, and wait for the device to do so:
      // behind a closed gate that would never end.
      gate_->open();
      queue(1);
      synchronize();
      primed_ = true;
    }
    gate_->close();
  }
  double start = host_seconds();
  queue(batch);
  if (gate_ != nullptr) {
    start = host_seconds();
    gate_->open();
  }
  synchronize();
  BatchTimes times;
  times.host = host_seconds() - start;
  if (gate_ != nullptr) {
    gate_->check();
  }
  for (const auto& task : tasks_) {
    times.device.push_back(task.stream->seconds());
  }
  return times;
}

BatchTimes run_by_host(const std::vector<Task>& tasks, int batch) {
  const auto repeat = [batch](const Task& task) {
    task.stream->use();
    task.queue(batch);
  };
  if (tasks.size() == 1) {
    const double start = host_seconds();
    repeat(tasks.front());
    // Of the device, for a blocking copy uses another stream, and may return while the last part of
    // pageable memory is still on its way.
    FABRICHECK_HIP(hipDeviceSynchronize());
    const double seconds = host_seconds() - start;
    return {{seconds}, seconds};
  }
  std::vector<std::function<void()>> works;
  for (const auto& task : tasks) {
    works.emplace_back([&task, &repeat] {
      repeat(task);
      task.stream->synchronize();
    });
  }
  BatchTimes times;
  times.device = run_at_once(works);
  times.host = *std::max_element(times.device.begin(), times.device.end());
  return times;
}

std::vector<Series> with_samples(std::vector<Series> parts, const std::vector<BatchTimes>& samples,
                                 std::shared_ptr<const EnergyHold> energy) {
  const bool together = parts.size() > 1;
  Series sum = parts.front();
  sum.role = role::sum;
  sum.device = -1;
  sum.source = {sum.source.memory, -1, -1};
  sum.destination = {sum.destination.memory, -1, -1};
  sum.bytes_moved = 0;
  sum.verification = {};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto& part = parts[i];
    if (part.engines != sum.engines) {
      sum.engines.reset();
    }
    part.role = together ? role::share : role::single;
    for (const auto& sample : samples) {
      part.seconds.push_back(sample.device[i]);
      if (!together) {
        part.host_seconds.push_back(sample.host);
      }
    }
    sum.bytes_moved += part.bytes_moved;
    sum.verification.bytes_checked += part.verification.bytes_checked;
    sum.verification.errors += part.verification.errors;
    if (!sum.verification.first_mismatch) {
      sum.verification.first_mismatch = part.verification.first_mismatch;
    }
  }
  if (together) {
    for (const auto& sample : samples) {
      sum.seconds.push_back(sample.together());
      sum.host_seconds.push_back(sample.host);
    }
    parts.push_back(std::move(sum));
  }
  parts.back().energy = std::move(energy);
  return parts;
}

}  // namespace fabricheck
