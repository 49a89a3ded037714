// What the sim runtime offers beside the HIP calls; programs use harness/simulation.hpp.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/copy_rules.hpp"

namespace fabricheck_sim {

/// One array that a kernel reads or writes in full.
struct Access {
  const void* array = nullptr;
  std::uint64_t bytes = 0;
  bool write = false;
};

/// Runs `body` as an actor of the simulated node, until it returns; a rank is one already. Without
/// a usable node it runs outside any simulation, where no device exists; problem() then says why.
/// Throws std::runtime_error when nothing in the simulation can go on before `body` has returned.
void run(const std::function<void()>& body);

/// Whether this process is a rank of a simulation that SMPI started, rather than one of its own.
/// All ranks of such a simulation are one process of the system, and take turns.
bool is_rank();

/// Where a rank was put: a device's or a NUMA domain's name, such as device3; empty for no rank.
std::string rank_place();

/// The node of a system that a rank was put on, such as node2; empty where there is one node only.
std::string rank_node();

/// A NIC of the rank's node.
struct RankNic {
  std::string name;
  std::string interface;
  std::string address;
  std::uint64_t sent_bytes = 0;  ///< of messages to other nodes, so far
};
/// The NICs of the rank's node; none where there is one node only.
std::vector<RankNic> rank_nics();
/// The provider of the rank's messages to other nodes; empty where there is one node only.
const std::string& rank_provider();

/// The device that a rank was put on, as this process numbers it; nothing on a NUMA domain, or for
/// a device that is not visible.
std::optional<int> rank_device();

/// Calls `told` when nothing in the simulation of ranks can go on, until the result is called.
std::function<void()> on_halt(const std::function<void()>& halt);

/// Why there is no simulated node, in one sentence; empty when there is one.
const std::string& problem();

/// Seconds of the simulated clock; 0 outside a simulation.
double now();

/// Seconds of a soak: those before this process, and of the simulated clock.
double soak_seconds();

/// What the drivers of devices have counted that an overlay has count, by device and counter.
std::map<int, std::map<std::string, double>> counters_now();

/// A bit that an overlay flips.
struct Flip {
  int device = 0;
  double at = 0;  ///< by the simulated clock; negative: before this process began
  std::uint64_t offset_bytes = 0;
  int bit = 0;
};
std::vector<Flip> flips();

/// Says what the next kernel on the stream reads and writes.
void declare(hipStream_t stream, std::vector<Access> accesses);

/// Says that the host uses [data, data + bytes): waits until pages of managed memory that lie on a
/// device have come back, where pages migrate.
void host_access(const void* data, std::uint64_t bytes);

/// How many of `bytes` are really moved: all, up to a slice.
std::uint64_t moved_bytes(std::uint64_t bytes);

/// Whether operations have seeded noise, so that samples differ.
bool noisy();

/// Name, digest and overlay of the node, as the result document has them; null without a node.
nlohmann::json node_identity();

/// The version of ROCm that the node behaves as.
const std::string& rocm();
/// The way between two devices of this process.
std::optional<fabricheck::PeerWay> peer_way(int from, int to);

struct Domain {
  int index = 0;
  std::vector<int> cores;
  std::uint64_t memory_bytes = 0;
};
/// The NUMA domains of the simulated host.
const std::vector<Domain>& domains();

/// The NUMA domain of a PCI address, if the node model knows that address.
std::optional<int> domain_of_pci(const std::string& address);
/// The NUMA domain that memory lies on or, of a device's memory, that the device is attached to.
std::optional<int> domain_of(const void* data);
/// Of [data, data + bytes) the bytes of managed memory whose pages lie on devices.
std::uint64_t bytes_on_devices(const void* data, std::uint64_t bytes);
/// Where hipHostMalloc with hipHostMallocNumaUser puts memory; empty: on the first domain.
void bind_host_memory(std::optional<int> domain);
/// Pageable memory, as malloc gives it, where bind_host_memory says; a null pointer when too little
/// is free there. Copies of it block the caller, and are slower than those of hipHostMalloc.
void* allocate_pageable(std::size_t bytes);
/// Gives memory of allocate_pageable back, when nothing is queued on any stream.
void release_pageable(void* data);
/// Bytes of the memory there that are not allocated.
std::uint64_t free_host_memory();

}  // namespace fabricheck_sim
