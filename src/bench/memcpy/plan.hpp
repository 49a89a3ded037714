// The measurements of memcpy: devices, NUMA domains, kinds of host memory, operations, and their
// order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/hip.hpp"
#include "harness/numa.hpp"

namespace fabricheck::copies {

enum class CopyOperation {
  h2d,       ///< hipMemcpyAsync from host memory to the device's
  d2h,       ///< and back
  both,      ///< both at the same time
  h2d_sync,  ///< hipMemcpy, each waited for
  d2h_sync,
  h2d_latency,  ///< a copy of 16 B, queued ahead
  d2h_latency,
};

/// The bytes of a copy whose latency is measured.
constexpr std::uint64_t kLatencyBytes = 16;

const char* operation_name(CopyOperation operation);
/// Whether the operation copies to the device, and whether it copies to the host.
bool goes_to_device(CopyOperation operation);
bool goes_to_host(CopyOperation operation);
/// Whether the program waits for each copy.
bool is_synchronous(CopyOperation operation);
/// Latencies have a size of their own, and are timed per copy.
bool is_latency(CopyOperation operation);

/// The memory word of the schema.
const char* memory_word(HostMemory memory);

/// Operations and kinds of memory of comma-separated lists. Throw Failure(usage) for an unknown or
/// repeated name.
std::vector<CopyOperation> parse_copy_operations(const std::string& text);
std::vector<HostMemory> parse_host_memory(const std::string& text);

/// Devices to measure alone, one after the other: "each", "all" (the same), or "0,2". Throws
/// Failure(usage), and Failure(unsupported) for a device that does not exist.
std::vector<int> parse_devices(const std::string& text, int count);

/// A device and the NUMA domain of the host memory at the other end of its copies; -1: any.
struct Position {
  int device = 0;
  int domain = -1;
};

struct Positions {
  std::vector<Position> positions;  ///< by domain, so that host memory is allocated once for each
  std::vector<std::string> notes;   ///< what was left out and why
};

/// The domains that an option names: "near" selects for each device the domain in `nearest` (by
/// device, -1 where unknown: the only usable one, else any), "each" all usable ones of `known`,
/// "0,3" these, "any" none, so that the runtime chooses. Throws Failure(unsupported) with the
/// obstacle of a domain that was named or is near, or if no domain is left, and Failure(usage).
Positions plan_positions(const std::string& domains, const std::vector<int>& devices,
                         const std::vector<int>& nearest, const std::vector<HostDomain>& known);

/// One measurement.
struct CopyJob {
  Position position;
  HostMemory memory = HostMemory::pinned;
  CopyOperation operation = CopyOperation::h2d;
  std::uint64_t bytes = 0;
  [[nodiscard]] std::string text() const;
  /// Whether it is queued behind a gate (gate.hpp), wherever it is measured.
  [[nodiscard]] bool needs_gate() const;
};

/// Every operation at every size, latencies at their own, for every position and kind of memory.
/// Jobs that share host memory are consecutive and, among these, jobs that share a device.
std::vector<CopyJob> plan_copies(const std::vector<Position>& positions,
                                 const std::vector<HostMemory>& memory,
                                 const std::vector<CopyOperation>& operations,
                                 const std::vector<std::uint64_t>& sizes);

}  // namespace fabricheck::copies
