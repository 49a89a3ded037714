// A device that computes and copies, first each alone and then both at once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/concurrent.hpp"
#include "harness/fault.hpp"
#include "harness/gate.hpp"
#include "harness/hip.hpp"
#include "harness/movers.hpp"
#include "harness/sampling.hpp"
#include "harness/series.hpp"
#include "memcpy/copies.hpp"
#include "overlap/compute.hpp"

namespace fabricheck::overlap {

/// Copies from a device, by its engine or by a kernel of it.
struct Copy {
  int device = 0;
  int peer = -1;  ///< the device that they go to; -1: to host memory
  bool by_kernel = false;
  [[nodiscard]] std::string text() const;
};

/// The largest difference between the starts of simultaneous work, as a fraction of the time of the
/// shorter one.
constexpr double kMostSkew = 0.05;

/// The proof that both worked at the same time: the worst of all samples.
struct Proof {
  double skew = 0;   ///< between the starts, of the shorter one's time
  double alone = 0;  ///< the part of its time in which one was measured when the other had ended
};

/// "2.5 %" of 0.025.
std::string percent(double part);

/// Throws Failure(software) if both started too far apart.
void require_together(double skew, double most = kMostSkew);

class Overlap {
 public:
  /// Allocates and fills. `host` is the destination of copies to the host, and must live as long;
  /// null if the destination is a peer. Throws Failure(unsupported) when memory is missing.
  Overlap(const Copy& copy, std::uint64_t bytes, int block, const copies::HostSide* host);

  /// The series of the kernel alone, the copies alone, and of each beside the other. Each sample
  /// measures all four in turn, so that all of them have the same clocks. Throws
  /// Failure(software) if both start more than `most_skew` apart each time, and Failure(usage)
  /// if no queue takes the copies of a whole batch.
  std::vector<Series> measure(const SamplingRules& rules, const std::vector<Fault>& faults,
                              double most_skew = kMostSkew);

  [[nodiscard]] const Proof& proof() const { return proof_; }
  /// The rate of the kernel alone in TFLOP/s: the median.
  [[nodiscard]] double tflops() const { return tflops_; }

 private:
  enum Part { compute_alone, copy_alone, compute_beside, copy_beside };

  void queue_copies(int count) const;
  BatchTimes run(Part part, const std::vector<Fault>& faults);
  void prepare() const;
  void verify(Part part, const std::vector<Fault>& faults);
  void calibrate_both(const SamplingRules& rules);
  [[nodiscard]] Series describe(Part part) const;

  Copy copy_;
  std::uint64_t bytes_, words_;
  int block_;
  const copies::HostSide* host_;
  Movers movers_;
  TimedStream compute_stream_, copy_stream_;
  std::unique_ptr<TimedStream> peer_stream_;
  Compute compute_;
  Buffer source_, at_peer_;
  StartGate gate_;
  std::vector<ConcurrentBatch> batches_;  // by part
  int launches_ = 1, copies_ = 1;         // queued by the next run
  int batch_launches_ = 1, batch_copies_ = 1;
  std::uint64_t cache_bytes_ = 0;
  std::array<Verification, 4> verified_;
  Proof proof_;
  double most_skew_ = kMostSkew;
  double tflops_ = 0;
};

}  // namespace fabricheck::overlap
