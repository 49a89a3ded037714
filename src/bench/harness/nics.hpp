// The NICs of this machine, or on a simulated node its NICs, and the bytes that left by each.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fabricheck {

/// A NIC that bypasses the kernel, or an interface of the kernel's network stack. A NIC that has
/// both is there twice: the counters of each tell which of them messages left by.
struct Nic {
  enum class Kind { cxi, infiniband, net } kind = Kind::net;
  std::string name;       ///< cxi0, mlx5_0; of an interface hsn0, lo
  std::string interface;  ///< of the kernel's stack on the same card; empty if unknown
  std::string address;    ///< of that interface; empty if unknown

  [[nodiscard]] bool bypasses_kernel() const { return kind != Kind::net; }
};

/// The roots of the system's files.
struct NicRoots {
  std::string sys = "/sys";
  std::string proc = "/proc";
};

/// The NICs by name, those that bypass the kernel first.
std::vector<Nic> nics(const NicRoots& roots = {});

/// Bytes that each has sent since the system started, by name; nothing of a NIC whose counter
/// cannot be read.
std::map<std::string, std::uint64_t> sent_bytes(const std::vector<Nic>& nics,
                                                const NicRoots& roots = {});

/// The error counters of each by name and counter, as far as they can be read.
std::map<std::string, std::map<std::string, std::uint64_t>> nic_errors(const std::vector<Nic>& nics,
                                                                       const NicRoots& roots = {});

/// The driver of NICs whose files this process keeps open: cxi or verbs; empty without one.
std::string open_provider(const NicRoots& roots = {});

}  // namespace fabricheck
