// A set of devices with the arrays of the STREAM kernels, measured at the same time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "harness/concurrent.hpp"
#include "harness/fault.hpp"
#include "harness/gate.hpp"
#include "harness/hip.hpp"
#include "harness/sampling.hpp"
#include "harness/series.hpp"
#include "stream/kernels.hpp"

namespace fabricheck::stream {

/// Where arrays are to be, as the option says: "device", "host" or "peer:N".
struct Placement {
  enum class Kind { device, host, peer } kind = Kind::device;
  int peer = -1;
};

/// Throws Failure(usage).
Placement parse_placement(const std::string& text);

/// One measurement: a kernel at a size and block size.
struct StreamCase {
  StreamOperation operation = StreamOperation::copy;
  std::uint64_t bytes = 0;  ///< of each array
  int block_size = 256;
  /// Unset: on a CPU with arrays past its caches what a short trial finds faster, else plain. One
  /// trial serves all sets of as many devices: they have the same CPU.
  std::optional<Stores> stores;
  Variant variant{};  ///< but for its stores
};

/// Devices, streams and arrays of one set; the arrays are as large as the largest case.
class DeviceSet {
 public:
  /// Allocates and fills; b only if some kernel has two sources. Devices of `before`, a set of the
  /// same places, sizes and kernels, keep their arrays: page-locked ones take longer to make than
  /// to measure. The others' are given back first.
  /// Throws Failure(unsupported) when memory or peer access is missing, and std::invalid_argument
  /// when `before` has other sizes or kernels.
  DeviceSet(std::vector<int> devices, Placement source, Placement destination, std::uint64_t bytes,
            bool two_sources = true, std::unique_ptr<DeviceSet> before = nullptr);

  /// Measures one case: a series per device, and their sum if there are several.
  /// `warm_up` is the time in seconds for which the devices work before the first sample.
  std::vector<Series> measure(const StreamCase& measured, const SamplingRules& rules,
                              double warm_up, const std::vector<Fault>& faults);

 private:
  struct Member {
    TimedStream stream;
    Buffer a, b, c;
    Place source, destination;
  };

  [[nodiscard]] bool past_caches(const StreamCase& measured) const;
  /// How many operations of a batch one launch makes.
  [[nodiscard]] int passes_of(const StreamCase& measured, int batch) const;
  /// One pass of the case by all members; `measured` must live as long.
  [[nodiscard]] ConcurrentBatch batch_of(const StreamCase& measured, Stores stores);
  /// What was asked for, else what is faster here.
  [[nodiscard]] Stores stores_for(const StreamCase& measured);
  [[nodiscard]] Stores faster_stores(const StreamCase& measured);
  [[nodiscard]] Series describe(const StreamCase& measured, Stores stores, int batch,
                                int device) const;

  std::vector<int> devices_;
  std::uint64_t bytes_;
  bool two_sources_;
  std::vector<std::unique_ptr<Member>> members_;
  StartGate gate_;
  bool cpu_ = false;
  /// What a trial chose, by operation, size, block, elements, loads, grid and number of devices.
  std::map<std::tuple<StreamOperation, std::uint64_t, int, int, bool, int, std::size_t>, Stores>
      tried_;
  std::uint64_t cache_bytes_ = 0;  // the largest cache the arrays could hide in
};

}  // namespace fabricheck::stream
