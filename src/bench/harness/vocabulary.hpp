// The words of the result document and the exit codes. Made of src/fabricheck/core/vocabulary.yaml
// by ci/vocabulary.py: edit that.
#pragma once

#include <array>

namespace fabricheck {

/// Exit codes of every program; docs/result-document.md lists them for users.
enum class Status {
  good = 0,
  usage = 2,
  unsupported = 3,
  software = 4,
  wrong_data = 5,
  time_limit = 6,
  too_noisy = 7,
  setting = 8,
  device_error = 9,
  tool = 10,
  refused = 11,
};

/// Where every time in this document comes from.
namespace clock {
/// a clock, while real hardware moved real data
inline constexpr const char* measured = "measured";
/// the clock of a simulated node
inline constexpr const char* simulated = "simulated";
}  // namespace clock

/// What the program was built for.
namespace runtime {
/// AMD's ROCm
inline constexpr const char* rocm = "rocm";
/// NVIDIA's CUDA
inline constexpr const char* cuda = "cuda";
/// virtual devices that share the memory of this machine
inline constexpr const char* host = "host";
/// a simulated node
inline constexpr const char* sim = "sim";
}  // namespace runtime

/// How the run ended.
namespace status {
/// good
inline constexpr const char* good = "good";
/// bad usage
inline constexpr const char* usage = "usage";
/// no such device, or not supported
inline constexpr const char* unsupported = "unsupported";
/// an error of the program, MPI, a file or the system
inline constexpr const char* software = "software";
/// wrong data
inline constexpr const char* wrong_data = "wrong-data";
/// the time limit
inline constexpr const char* time_limit = "time-limit";
/// too noisy to judge
inline constexpr const char* too_noisy = "too-noisy";
/// prevented by a setting of the node or the job
inline constexpr const char* setting = "setting";
/// an error of the runtime that names hardware
inline constexpr const char* device_error = "device-error";
/// another program that it ran failed
inline constexpr const char* tool = "tool";
/// a call of the runtime failed by an error that names no hardware
inline constexpr const char* refused = "refused";
/// ended by a signal
inline constexpr const char* interrupted = "interrupted";
/// still going on, or killed
inline constexpr const char* running = "running";
}  // namespace status

/// Of which experiment.
namespace experiment {
/// device-local STREAM
inline constexpr const char* E1 = "E1";
/// host-device copy by hipMemcpy
inline constexpr const char* E2 = "E2";
/// host-device managed memory
inline constexpr const char* E3 = "E3";
/// NUMA domain x device matrix
inline constexpr const char* E4 = "E4";
/// concurrent host-device STREAM copy
inline constexpr const char* E5 = "E5";
/// placement ping-pong
inline constexpr const char* E6 = "E6";
/// peer copy by copy engine
inline constexpr const char* E7 = "E7";
/// peer access by kernel
inline constexpr const char* E8 = "E8";
/// MPI point to point on device buffers
inline constexpr const char* E9 = "E9";
/// MPI collectives on device buffers
inline constexpr const char* E10 = "E10";
/// RCCL collectives
inline constexpr const char* E11 = "E11";
/// GPU-aware MPI gives right data
inline constexpr const char* E12 = "E12";
/// topology against the node model
inline constexpr const char* E13 = "E13";
/// best k devices
inline constexpr const char* E14 = "E14";
/// binding of ranks to cores and devices
inline constexpr const char* E15 = "E15";
/// NICs against the node model
inline constexpr const char* E16 = "E16";
/// messages between nodes
inline constexpr const char* E17 = "E17";
inline constexpr std::array judged_by_sum{E7, E8};
}  // namespace experiment

/// What is done with the data.
namespace operation {
inline constexpr const char* copy = "copy";
inline constexpr const char* scale = "scale";
inline constexpr const char* add = "add";
inline constexpr const char* triad = "triad";
inline constexpr const char* read_only = "read-only";
inline constexpr const char* write_only = "write-only";
inline constexpr const char* engine = "engine";
inline constexpr const char* read = "read";
inline constexpr const char* write = "write";
inline constexpr const char* latency = "latency";
inline constexpr const char* latency_host = "latency-host";
inline constexpr const char* chase = "chase";
inline constexpr const char* engine_both = "engine-both";
inline constexpr const char* read_both = "read-both";
inline constexpr const char* write_both = "write-both";
inline constexpr const char* h2d = "h2d";
inline constexpr const char* h2d_sync = "h2d-sync";
inline constexpr const char* d2h = "d2h";
inline constexpr const char* d2h_sync = "d2h-sync";
inline constexpr const char* both = "both";
inline constexpr const char* host_read = "host-read";
inline constexpr const char* host_write = "host-write";
inline constexpr const char* prefetch_h2d = "prefetch-h2d";
inline constexpr const char* prefetch_d2h = "prefetch-d2h";
inline constexpr const char* compute = "compute";
inline constexpr const char* bandwidth = "bandwidth";
inline constexpr const char* bandwidth_both = "bandwidth-both";
inline constexpr const char* exchange = "exchange";
inline constexpr const char* sendrecv = "sendrecv";
inline constexpr const char* reduce = "reduce";
inline constexpr const char* bcast = "bcast";
inline constexpr const char* allreduce = "allreduce";
inline constexpr const char* reduce_scatter = "reduce_scatter";
inline constexpr const char* allgather = "allgather";
}  // namespace operation

/// What the series is of.
namespace role {
/// one device, or one pair of devices, measured alone
inline constexpr const char* single = "single";
/// one device's part of a set measured at once
inline constexpr const char* share = "share";
/// the whole set
inline constexpr const char* sum = "sum";
/// what a device does while it does something else, a copy or a computation
inline constexpr const char* beside = "beside";
}  // namespace role

/// The kind of memory.
namespace memory {
/// memory of the device that executes
inline constexpr const char* device = "device";
/// memory of another device
inline constexpr const char* peer = "peer";
/// memory of the host that stays where it is, coherent
inline constexpr const char* host_pinned = "host-pinned";
/// the same, but not coherent (hipHostMallocNonCoherent of ROCm)
inline constexpr const char* host_noncoherent = "host-noncoherent";
/// memory of the host as malloc gives it
inline constexpr const char* host_pageable = "host-pageable";
/// memory of which pages may move between host and devices
inline constexpr const char* managed = "managed";
}  // namespace memory

/// What moves the data; a copy may be by a kernel of the runtime.
namespace engine {
/// code on a device
inline constexpr const char* kernel = "kernel";
/// a copy engine of a device
inline constexpr const char* copy_engine = "copy-engine";
/// code on the processor
inline constexpr const char* cpu = "cpu";
/// the MPI library
inline constexpr const char* mpi = "mpi";
/// RCCL or NCCL
inline constexpr const char* rccl = "rccl";
}  // namespace engine

/// How a kernel writes; null without a kernel.
namespace stores {
/// as the compiler has it
inline constexpr const char* plain = "plain";
/// the caches are asked not to keep the line
inline constexpr const char* streaming = "streaming";
}  // namespace stores

/// How a kernel reads; null without a kernel, and where it is always plain.
namespace loads {
/// as the compiler has it
inline constexpr const char* plain = "plain";
/// the caches are asked not to keep the line
inline constexpr const char* streaming = "streaming";
}  // namespace loads

/// How managed or mapped memory comes to who uses it; null or absent where that is no question.
namespace movement {
/// over the link with each access
inline constexpr const char* zero_copy = "zero-copy";
/// page by page on a fault
inline constexpr const char* page_migration = "page-migration";
/// asked for before
inline constexpr const char* prefetch = "prefetch";
}  // namespace movement

/// How far apart the NICs of two ranks are; null or absent within a node and where no place is
/// known.
namespace distance {
/// both on one switch
inline constexpr const char* same_switch = "same-switch";
/// on two switches of one group, which are joined directly or by a leaf's spine
inline constexpr const char* same_group = "same-group";
/// in two groups
inline constexpr const char* other_group = "other-group";
}  // namespace distance

/// How messages left the node, by the counters that moved; null where none can be read.
namespace transport {
/// the NIC, past the kernel: its own counters moved and those of its network interface did not
inline constexpr const char* nic = "nic";
/// the kernel's network stack, such as TCP: the counters of an interface moved
inline constexpr const char* kernel = "kernel";
/// no counter moved, so the messages did not leave the node
inline constexpr const char* within_node = "within-node";
}  // namespace transport

/// Counters of a NIC, by their file below its folder of its class in /sys.
namespace nic_counter {
/// bytes sent
inline constexpr const char* cxi_sent = "device/telemetry/hni_sts_tx_ok_octets";
/// code words with errors that were not corrected
inline constexpr const char* cxi_uncorrected = "device/telemetry/hni_pcs_uncorrected_cw";
/// corrected errors of PCIe
inline constexpr const char* cxi_pcie_corrected = "device/properties/pcie_corr_err";
/// uncorrected errors of PCIe
inline constexpr const char* cxi_pcie_uncorrected = "device/properties/pcie_uncorr_err";
/// when the link restarted last, in s since 1970; 0 if it did not
inline constexpr const char* cxi_restarts = "device/link_restarts";
/// connections whose answers did not come in time
inline constexpr const char* cxi_sct_timeouts = "rh:sct_timeouts";
/// packets whose answers did not come in time
inline constexpr const char* cxi_spt_timeouts = "rh:spt_timeouts";
/// packets that the other NIC refused
inline constexpr const char* cxi_nacks = "rh:nacks";
/// ordered packets that were given up
inline constexpr const char* cxi_cancelled_ordered = "rh:pkts_cancelled_o";
/// unordered packets that were given up
inline constexpr const char* cxi_cancelled_unordered = "rh:pkts_cancelled_u";
/// sent, in words of 4 bytes
inline constexpr const char* ib_sent = "counters/port_xmit_data";
/// errors of single symbols
inline constexpr const char* ib_symbols = "counters/symbol_error";
/// the link recovered from errors
inline constexpr const char* ib_recovered = "counters/link_error_recovery";
/// the link went down
inline constexpr const char* ib_downed = "counters/link_downed";
/// packets received with an error
inline constexpr const char* ib_receive = "counters/port_rcv_errors";
/// packets that were not sent
inline constexpr const char* ib_discard = "counters/port_xmit_discards";
/// bytes that the kernel's network stack sent
inline constexpr const char* net_sent = "statistics/tx_bytes";
/// errors of the kernel's network stack in sending
inline constexpr const char* net_send_errors = "statistics/tx_errors";
/// the same in receiving
inline constexpr const char* net_receive_errors = "statistics/rx_errors";
inline constexpr std::array cxi_errors{cxi_uncorrected, cxi_pcie_corrected, cxi_pcie_uncorrected};
inline constexpr std::array ib_errors{ib_symbols, ib_recovered, ib_downed, ib_receive, ib_discard};
inline constexpr std::array net_errors{net_send_errors, net_receive_errors};
}  // namespace nic_counter

/// Which way the data goes.
namespace direction {
/// within the memory of one device
inline constexpr const char* local = "local";
/// from one place to another
inline constexpr const char* one_way = "one-way";
/// there and back at the same time, or one after the other where the operation says so
inline constexpr const char* both_ways = "both-ways";
/// an operation of all of ranks together
inline constexpr const char* collective = "collective";
}  // namespace direction

/// Type of the elements of a message; null or absent without one.
namespace datatype {
/// one byte
inline constexpr const char* byte = "byte";
/// an integer of 32 bits
inline constexpr const char* int32 = "int32";
/// a floating-point number of 32 bits
inline constexpr const char* float32 = "float";
/// a floating-point number of 64 bits
inline constexpr const char* float64 = "double";
}  // namespace datatype

/// The convention by which bytes_moved counts.
namespace counted {
/// each byte of the message, as copy benchmarks and vendors' peaks of links count
inline constexpr const char* once = "once";
/// every byte that is read plus every byte that is written, as STREAM counts
inline constexpr const char* read_write = "read+write";
/// of a collective the bus bandwidth of nccl-tests, which compares with the peak of a link
inline constexpr const char* bus = "bus";
}  // namespace counted

/// Whether caches can hold the arrays.
namespace regime {
/// the arrays together are at least four times the last-level cache
inline constexpr const char* memory = "memory";
/// the arrays are smaller
inline constexpr const char* cache = "cache";
}  // namespace regime

/// Which values are the better ones.
namespace better {
/// of a bandwidth
inline constexpr const char* higher = "higher";
/// of a latency
inline constexpr const char* lower = "lower";
}  // namespace better

/// Of the samples.
namespace unit {
/// 1e9 bytes per second
inline constexpr const char* gb_per_s = "GB/s";
/// microseconds
inline constexpr const char* us = "us";
}  // namespace unit

/// What a setting changes.
namespace concern {
/// launches or copies wait for the device
inline constexpr const char* launches = "launches";
/// copies are made by kernels
inline constexpr const char* engines = "engines";
/// copies between devices are made by kernels
inline constexpr const char* peer_engines = "peer-engines";
/// the process may see fewer devices than the node has
inline constexpr const char* devices = "devices";
}  // namespace concern

/// Why a device runs below its clock.
namespace throttle {
/// its power cap, or that of its package
inline constexpr const char* power = "power";
/// the temperature of the device or its memory
inline constexpr const char* thermal = "thermal";
/// a limit of the board: a brake of its power supply, too much current, a hot regulator
inline constexpr const char* hardware = "hardware";
/// another reason that the driver gives
inline constexpr const char* other = "other";
}  // namespace throttle

/// What a line of a log says of a device.
namespace log_kind {
/// it names a fault of hardware
inline constexpr const char* hardware = "hardware";
/// an error that a program or a driver may cause as well, such as a page fault or a reset
inline constexpr const char* unclear = "unclear";
}  // namespace log_kind

/// Variables of the environment.
namespace env {
/// the folder for results
inline constexpr const char* results = "FABRICHECK_RESULTS";
/// the file of the node to simulate
inline constexpr const char* simulated_node = "FABRICHECK_SIMULATED_NODE";
/// the file to which a dry run writes metrics
inline constexpr const char* metrics = "FABRICHECK_METRICS_FILE";
/// 0 switches off all copy engines
inline constexpr const char* engines = "HSA_ENABLE_SDMA";
/// 0 switches off those between devices
inline constexpr const char* peer_engines = "HSA_ENABLE_PEER_SDMA";
/// 0 lets several engines share no copy, as they do from 6.0 on
inline constexpr const char* gang = "HSA_ENABLE_SDMA_GANG";
/// to so many KiB copies between devices are by kernel; 1024 from 6.2 on
inline constexpr const char* peer_size = "ROC_P2P_SDMA_SIZE";
/// to so many KiB any copy is by kernel; 16 from 7 on
inline constexpr const char* blit_size = "GPU_FORCE_BLIT_COPY_SIZE";
}  // namespace env

/// The word of the result document's schema for a status.
inline const char* status_word(Status status) {
  switch (status) {
    case Status::good:
      return status::good;
    case Status::usage:
      return status::usage;
    case Status::unsupported:
      return status::unsupported;
    case Status::software:
      return status::software;
    case Status::wrong_data:
      return status::wrong_data;
    case Status::time_limit:
      return status::time_limit;
    case Status::too_noisy:
      return status::too_noisy;
    case Status::setting:
      return status::setting;
    case Status::device_error:
      return status::device_error;
    case Status::tool:
      return status::tool;
    case Status::refused:
      return status::refused;
  }
  return status::software;
}

}  // namespace fabricheck
