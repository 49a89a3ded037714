// The one interface between programs and a simulated node. The build `sim` implements it in
// simulated.cpp; that of all other builds, not_simulated.cpp, does nothing. A program is told which
// only when it is linked, so that both builds of a CPU have the same compiled code.
//
// The simulated node replaces the machine (its memory, NUMA domains, clock and drivers):
// simulated.cpp also has the functions of host.hpp, numa.hpp, huge_pages.hpp and kfd.hpp. It has no
// state of devices and host (state.hpp).
//
// A simulated node really moves and verifies a slice of a large transfer and simulates the whole:
// a program states what each operation reads and writes in full, and moves only `moved_bytes`.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "harness/sampling.hpp"

namespace fabricheck {

/// One array that a kernel reads or writes. The runtime knows its place (device, NUMA domain).
struct Traffic {
  const void* array;
  std::uint64_t bytes;
  bool write;
};

/// The place of a rank on the node.
struct SimulatedPlace {
  std::string name;  ///< device3 or domain1
  int device = -1;   ///< of device3 the number that the runtime gives it; -1: it does not see it
  int domain = -1;   ///< of domain1 its number; -1: the rank is on a device
};

/// A NIC of the simulated node that a rank is on.
struct SimulatedNic {
  std::string name;       ///< as its driver does: cxi0
  std::string interface;  ///< as the kernel does: hsn0
  std::string address;
  std::uint64_t sent_bytes = 0;  ///< of messages to other nodes, so far
};

/// A bit that an overlay flips in the memory of a device.
struct SimulatedFlip {
  int device = 0;
  double at = 0;  ///< by the clock of host_seconds()
  std::uint64_t offset_bytes = 0;
  int bit = 0;
};

/// True when all times come from a simulation. All ranks of a launch are then one process, which no
/// rank may end.
extern const bool kSimulated;
/// States what the next kernel on the stream reads and writes.
void declare_traffic(hipStream_t stream, std::initializer_list<Traffic> traffic);
/// States that the next kernel on the stream is one thread that makes `loads` loads from `array`,
/// each dependent on the one before. Throws Failure(unsupported): no node model has the latency of
/// a load yet.
void declare_loads(hipStream_t stream, const void* array, std::uint64_t loads);
/// States that the host is about to use all of [array, array + bytes) of managed memory. Waits for
/// the migration of pages that lie on a device.
void declare_host_access(const void* array, std::uint64_t bytes);
/// The number of the `bytes` that are really moved and verified: all, or a slice of a large
/// transfer.
std::uint64_t moved_bytes(std::uint64_t bytes);

/// Runs a program as an actor of the simulated node; only actors may call the runtime.
void run_simulated(const std::function<void()>& body);
/// Throws Failure(unsupported) when there is no simulated node, with the reason.
void require_node();
/// The rules of sampling on a simulated node: one operation is a sample, and one sample is a
/// series, unless there is noise; there is no warm-up.
SamplingRules simulated_rules(SamplingRules rules);
/// The member `node` of the result document.
nlohmann::json describe_node();
/// The place of this rank.
SimulatedPlace simulated_place();
/// The node of this rank in a simulated system, such as node2; empty where there is one node only.
std::string simulated_node();
/// The NICs of that node; none where there is one node only.
std::vector<SimulatedNic> simulated_nics();
/// The provider of messages to other nodes: cxi or, where they go through the kernel, tcp. Empty
/// where there is one node only.
std::string simulated_provider();
/// A snapshot for the document's state (state.hpp), of the counters that an overlay has count; null
/// where it has none.
nlohmann::json simulated_state();
/// The bits that an overlay flips while the process is at work.
std::vector<SimulatedFlip> simulated_flips();
/// Calls `told` when nothing in a simulation of ranks can proceed, until the result is called.
std::function<void()> on_simulated_halt(const std::function<void()>& halt);

}  // namespace fabricheck
