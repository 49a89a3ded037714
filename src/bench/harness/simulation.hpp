// What programs tell a simulated node, and what it tells them. On real devices all of this is
// empty.
//
// A simulated node really moves and verifies a slice of a large transfer and simulates the whole:
// a program says what each operation reads and writes in full, and moves only `moved_bytes`.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/copy_rules.hpp"
#include "harness/sampling.hpp"

namespace fabricheck {

/// One array that a kernel reads or writes. Its place (device, NUMA domain) the runtime knows.
struct Traffic {
  const void* array;
  std::uint64_t bytes;
  bool write;
};

/// Runs work of the host at the same time, each by a thread, on a simulated node by an actor; they
/// start together. Returns the seconds from that start until each had ended, by the clock that
/// programs measure by. Throws what one of them threw, when all have ended.
std::vector<double> run_at_once(const std::vector<std::function<void()>>& works);

#ifdef FABRICHECK_SIMULATED

/// True when all times come from a simulation.
constexpr bool kSimulated = true;
/// Says what the next kernel on the stream reads and writes.
void declare_traffic(hipStream_t stream, std::initializer_list<Traffic> traffic);
/// Says that the next kernel on the stream is one thread that makes `loads` loads from `array`,
/// each dependent on the one before. Throws Failure(unsupported): no node model tells the latency
/// of a load yet.
void declare_loads(hipStream_t stream, const void* array, std::uint64_t loads);
/// Says that the host is about to use [array, array + bytes) of managed memory, in full: waits as
/// long as pages that lie on a device take to come.
void declare_host_access(const void* array, std::uint64_t bytes);
/// How many of `bytes` are really moved and verified: all, or a slice of a large transfer.
std::uint64_t moved_bytes(std::uint64_t bytes);

/// Runs a program as an actor of the simulated node, which is all that may call the runtime.
void run_simulated(const std::function<void()>& body);
/// Throws Failure(unsupported) when there is no simulated node, with the reason.
void require_node();
/// The rules of sampling on a simulated node: one operation is a sample, and one sample is a
/// series, unless there is noise; nothing has to warm up.
SamplingRules simulated_rules(SamplingRules rules);
/// The member `node` of the result document.
nlohmann::json describe_node();
/// The version of ROCm that the node behaves as.
std::string simulated_rocm();
/// The way between two devices, as the runtime numbers them.
std::optional<PeerWay> simulated_way(int from, int to);
/// Whether this is a rank of a simulation: all ranks are then one process, which none may end.
bool is_simulated_rank();
/// Where a simulated rank was put, device3 or domain1; empty where ranks are no simulation.
std::string simulated_place();
/// The device it was put on, as the runtime numbers it; nothing where that is none that it sees.
std::optional<int> simulated_device();
/// Calls `told` when nothing in a simulation of ranks can go on, until the result is called.
std::function<void()> on_simulated_halt(const std::function<void()>& told);

#else

constexpr bool kSimulated = false;
inline void declare_traffic(hipStream_t, std::initializer_list<Traffic>) {}
inline void declare_loads(hipStream_t, const void*, std::uint64_t) {}
inline void declare_host_access(const void*, std::uint64_t) {}
inline std::uint64_t moved_bytes(std::uint64_t bytes) { return bytes; }
inline void run_simulated(const std::function<void()>& body) { body(); }
inline void require_node() {}
inline SamplingRules simulated_rules(SamplingRules rules) { return rules; }
inline nlohmann::json describe_node() { return nullptr; }
inline std::string simulated_rocm() { return ""; }
inline std::optional<PeerWay> simulated_way(int, int) { return std::nullopt; }
inline bool is_simulated_rank() { return false; }
inline std::string simulated_place() { return ""; }
inline std::optional<int> simulated_device() { return std::nullopt; }
inline std::function<void()> on_simulated_halt(const std::function<void()>&) {
  return [] {};
}

#endif

}  // namespace fabricheck
