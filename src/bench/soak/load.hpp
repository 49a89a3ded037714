// Everything at once for a stated time, in passes that are verified.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "harness/fault.hpp"
#include "harness/sampling.hpp"
#include "harness/series.hpp"
#include "soak/lane.hpp"

namespace fabricheck::soak {

/// The faults that are in the destination of a device's own copies after a pass.
using FaultsOf = std::function<std::vector<Fault>(long pass, const Lane& lane)>;

/// Data that a pass, or the time since the array was written, left wrong.
struct Wrong {
  double at = 0;  ///< seconds since the load began, at the end of the pass
  long pass = 0;
  std::size_t lane = 0;
  bool at_rest = false;  ///< it was right after an earlier pass
  Verification verification;
};

class Load {
 public:
  explicit Load(std::vector<std::unique_ptr<Lane>> lanes) : lanes_(std::move(lanes)) {}

  /// Chooses how often each lane repeats its operation, so that a pass takes all of them about
  /// `seconds`; less where a queue does not hold as many.
  void calibrate(double seconds);

  /// Runs passes until `seconds` have passed, and at least `least` of them; `begun` is called
  /// before each.
  void run(double seconds, long least, const FaultsOf& faults,
           const std::function<void(long pass)>& begun);

  /// The series of the lanes in order, of the passes so far; none before the first.
  [[nodiscard]] std::vector<Series> series() const;
  /// The member `soak` of the document.
  [[nodiscard]] nlohmann::json member() const;
  [[nodiscard]] const std::vector<Wrong>& wrong() const { return wrong_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Lane>>& lanes() const { return lanes_; }

 private:
  /// Calls `work` for each lane by a thread of each device that holds some.
  void for_each_lane(const std::function<void(std::size_t lane)>& work);
  void count(long pass, std::vector<Verification> verified, bool at_rest);
  std::vector<double> work();

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<double> begins_, ends_;  ///< of passes, since the load began
  std::vector<Wrong> wrong_;
  double began_ = 0, cpu_seconds_ = 0;
};

}  // namespace fabricheck::soak
