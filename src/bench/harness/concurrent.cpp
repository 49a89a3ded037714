#include "harness/concurrent.hpp"

#include <algorithm>
#include <utility>

namespace fabricheck {

SamplingRules ConcurrentBatch::bounded(SamplingRules rules) const {
  if (gate_ != nullptr) {
    rules.max_batch = std::min(rules.max_batch, StartGate::max_queued);
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
    for (int i = 0; i < batch; ++i) {
      task.queue();
    }
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

std::vector<Series> with_samples(std::vector<Series> parts,
                                 const std::vector<BatchTimes>& samples) {
  const bool together = parts.size() > 1;
  Series sum = parts.front();
  sum.role = "sum";
  sum.device = -1;
  sum.source = {sum.source.memory, -1, -1};
  sum.destination = {sum.destination.memory, -1, -1};
  sum.bytes_moved = 0;
  sum.verification = {};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto& part = parts[i];
    part.role = together ? "share" : "single";
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
  return parts;
}

}  // namespace fabricheck
