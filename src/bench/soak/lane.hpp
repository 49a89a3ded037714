// What one queue of a device does while all others work: one kind of transfer, or a computation.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/fault.hpp"
#include "harness/hip.hpp"
#include "harness/movers.hpp"
#include "harness/series.hpp"
#include "p2p/plan.hpp"

namespace fabricheck::soak {

/// A stream with its work, and the arrays that this leaves its data in.
class Lane {
 public:
  /// `holder` is the device that prepares and compares the destination.
  Lane(int device, int holder) : stream_(device), holder_(holder) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  virtual ~Lane() = default;

  [[nodiscard]] const TimedStream& stream() const { return stream_; }
  /// The stream that prepares and compares.
  [[nodiscard]] const TimedStream& holder() const { return holder_; }

  /// Poisons the destination of the next pass and waits until that is done. What lay there since
  /// an earlier pass is compared before: it is the first of two results of memory at rest.
  virtual Verification prepare() = 0;
  /// Queues operations on the stream.
  virtual void queue(int operations) const = 0;
  /// Where the destination of the pass begins in the lane's array of destinations, and its length.
  [[nodiscard]] virtual std::uint64_t destination_begin() const { return 0; }
  [[nodiscard]] virtual std::uint64_t destination_bytes() const { return 0; }
  /// Compares what a pass has left, with the faults in it; these are in the destination.
  virtual Verification verify(const std::vector<Fault>& faults) = 0;
  /// The series without samples and verification.
  [[nodiscard]] virtual Series describe() const = 0;

  bool is_memory = false;       ///< copies within a device's own memory
  int batch = 1;                ///< operations of a pass
  std::vector<double> seconds;  ///< of each pass
  Verification verification;    ///< of all passes

 private:
  TimedStream stream_, holder_;
};

/// The most operations of a lane that may be queued at once: a full queue blocks the host, and so
/// the other lanes.
constexpr int kMostQueued = 400;

/// Copies within a device's own memory. With `part` they walk through that part of the memory that
/// is free, from slot to slot with each pass; with 0 there are two arrays of `bytes`.
std::unique_ptr<Lane> memory_lane(int device, std::uint64_t bytes, double part);
/// Multiply-adds on half of what the compute units hold, so that other kernels run beside them.
/// A launch lasts at least `seconds`.
std::unique_ptr<Lane> compute_lane(int device, double seconds);
/// Copies by engine from a device to another.
std::unique_ptr<Lane> peer_lane(const p2p::Pair& pair, std::uint64_t bytes, const Movers& movers);
/// Copies by engine between a device and pinned host memory of a NUMA domain (-1: any).
std::unique_ptr<Lane> host_lane(int device, int domain, bool to_device, std::uint64_t bytes,
                                const Movers& movers);

}  // namespace fabricheck::soak
