// The simulated machine: the node, its SimGrid platform, its memory and its streams.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "node.hpp"
#include "pages.hpp"
#include "sim.hpp"

namespace fabricheck_sim {

/// One flow of an operation.
struct Flow {
  const Route* route = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t transfer = 0;  ///< bytes of the transfer that it is a part of, of its own if 0

  [[nodiscard]] std::uint64_t transfer_bytes() const { return transfer > 0 ? transfer : bytes; }
};

/// What an operation takes: a start, then flows at the same time.
struct Cost {
  double start = 0;  ///< seconds
  std::vector<Flow> flows;
};

struct Allocation {
  Place place;
  std::size_t bytes = 0;
  bool pageable = false;
};

struct Machine {
  NodeDescription node;
  std::string problem;
  std::vector<int> visible;    ///< the node's device behind each device of this process
  double clock = 0;            ///< seconds of a soak before this process
  double noise = 0;            ///< relative standard deviation of an operation's time
  double device_messages = 0;  ///< bytes per second that a message of device memory gets, at most
  std::mt19937_64 random;
  bool idle_prefetch = false;     ///< prefetches of managed memory move nothing, and say they did
  bool coherent_devices = false;  ///< the host uses pages on a device where they are
  std::optional<int> host_domain;
  std::map<std::uintptr_t, Allocation> allocations;  ///< by address
  std::map<Place, std::uint64_t> allocated;          ///< bytes
  std::map<std::uintptr_t, Pages> managed;           ///< those that hipMallocManaged made
  std::set<hipStream_t> streams;
  std::map<int, hipStream_t> default_streams;
  std::map<aid_t, int> devices;        ///< that each actor has set
  std::map<aid_t, hipError_t> errors;  ///< last one of each actor
};

/// The machine, described by the file that FABRICHECK_SIMULATED_NODE names; read at the first call
/// and never destroyed.
Machine& machine();

bool exists(int device);
int current_device();
void set_current_device(int device);
/// A device of this process as the node numbers it.
int physical(int device);
/// A variable of the environment; nothing when it is not set, or empty.
std::optional<std::string> variable(const char* name);
/// Remembers an error for hipGetLastError and hands it on.
hipError_t result(hipError_t error);
/// The last error of the calling actor, forgotten afterwards.
hipError_t take_error();

/// Where memory lies; memory that was not allocated through the runtime is pageable host memory on
/// the first domain.
Place place_of(const void* data);
bool is_pageable(const void* data);
Place place_of_device(int device);
/// Where hipHostMalloc with hipHostMallocNumaUser puts memory.
Place user_host_place();

/// Bytes of a place's memory, and those not allocated.
std::uint64_t memory_of(const Place& place);
std::uint64_t free_memory_of(const Place& place);

/// What a kernel on `device` (of this process) takes; pages of managed memory that it waits for
/// have moved afterwards. Throws std::runtime_error naming the device
/// and the memory when the node has no way between them.
Cost kernel_cost(int device, const std::vector<Access>& accesses);
/// What a copy on a stream of `device` takes: by engine between two places, or by several with a
/// part each, else by kernel. Copies of pageable memory have routes of their own, and larger ones
/// pin its pages first.
Cost copy_cost(int device, const void* to, const void* from, std::uint64_t bytes);

/// Whether HSA_XNACK=1 lets kernels wait for pages, so that those of managed memory follow who
/// touches them.
bool xnack();
/// Where the page of managed memory that holds `data` lies; nothing of other memory.
std::optional<Place> page_place(const void* data);
/// Flows of the pages of managed memory that a kernel of `device` waits for when it uses
/// [data, data + bytes); none of other memory. The pages count as moved at once: what is queued
/// later finds them there. Throws std::runtime_error for pages on another device.
std::vector<Flow> pages_to_device(int device, const void* data, std::uint64_t bytes);

/// Makes the calling actor wait for as long as an operation takes.
void spend(const Cost& cost);

/// Waits until nothing is queued on any stream: freed memory may be in use otherwise.
void finish_all_streams();

/// Adds an operation to a stream: it takes its cost, then has its effect.
void enqueue(hipStream_t stream, const Cost& cost, std::function<void()> effect);
/// The device of a stream; of the default stream, the one that is set.
int device_of(hipStream_t stream);

/// The SimGrid host that actors live on.
simgrid::s4u::Host* home();

/// What moves a copy of so many bytes between two places, of which one is a device at least, by the
/// version of ROCm that the node behaves as and the environment; of devices that are not AMD's one
/// engine.
fabricheck::Mover mover_of(const Place& source, const Place& destination, std::uint64_t bytes);

/// Whether a place is the memory of a device, not that of a NUMA domain.
bool is_device(const Place& place);

/// The way of messages between ranks on two places.
struct MessageWay {
  Route route;
  double bytes_per_second = 0;       ///< of a message that has the way for itself
  bool host_only = false;            ///< neither place is a device
  double latency = 0;                ///< seconds of a message between nodes before it flows
  std::optional<std::size_t> nic{};  ///< of the sender, by index, between nodes
};
/// Whether a message between two places goes by engine.
using ByEngine = std::function<bool(const Place&, const Place&)>;
std::map<std::pair<Place, Place>, MessageWay> message_ways(const NodeDescription& node,
                                                           const ByEngine& by_engine);
/// The ways of messages from the places of one node to those of another.
std::map<std::pair<Place, Place>, MessageWay> network_ways(const NodeDescription& from,
                                                           const NodeDescription& to,
                                                           const NetworkDescription& network);
/// The bytes of data of a message, of which SMPI moves `bytes`.
double data_of_message(double bytes);
/// Which part of its way's bandwidth a message gets, because each costs its receiver some time. A
/// part, and not a time before it flows: of messages under way together each costs that much.
/// Between nodes only faults of links cost that; the network's latency passes before a message
/// flows. `bytes` are those that SMPI moves, 16 more than the message has.
double message_factor(NodeDescription& node, const MessageWay& way, double bytes);

/// The seconds that faults of links delay flows that start together; each that hits one is counted.
/// A flow that hangs never returns: the process waits with it, as in a driver.
double delay_by_faults(NodeDescription& node, const std::vector<Flow>& flows);

/// The description of the calling rank's node, as the plug-in has read it; null for no rank.
const NodeDescription* description_for_rank();

/// Makes the platform of the node, or of the nodes of a system, in the engine that is there, with a
/// host for ranks on each device and NUMA domain.
void make_platform_for_ranks();

}  // namespace fabricheck_sim
