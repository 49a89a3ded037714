// A series of samples with all that the result document says of it. Without the JSON library, whose
// templates would take most of the time to compile a kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/sampling.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck {

/// The location of an array. `memory` is a word of the schema; -1 stands for null.
struct Place {
  std::string memory = memory::device;
  int device = -1;
  int numa_domain = -1;
  std::optional<std::uint64_t> huge_page_bytes = std::nullopt;  ///< of host memory, if known
};

/// The result of comparing a destination with its expected values, word by word.
struct Verification {
  struct Mismatch {
    int device = 0;  ///< -1: host memory
    std::uint64_t offset_bytes = 0;
    std::uint64_t expected = 0;
    std::uint64_t found = 0;
    int rank = -1;                              ///< of a launch of ranks
    std::string expected_text{}, found_text{};  ///< of data with a type, instead of the words
  };
  std::uint64_t bytes_checked = 0;
  std::uint64_t errors = 0;  ///< elements that differ: 64-bit words, or as `datatype` says
  std::optional<Mismatch> first_mismatch;
};

/// One series of the document, without the values computed from its samples.
struct Series {
  std::string experiment;
  std::string operation;
  std::string role = role::single;
  int device = -1;
  std::vector<int> device_set;
  Place source;
  Place destination;
  std::string engine = engine::kernel;
  std::optional<int> engines{};  ///< copy engines of one copy; empty: no copy engine, or not known
  std::string stores;            ///< of a kernel: plain or streaming; empty without one
  std::string loads;             ///< the same of what it reads; empty where it is always plain
  std::string movement;          ///< of managed and mapped memory; empty elsewhere
  std::string direction = direction::local;
  std::vector<int> ranks{};  ///< those that take part, in order; empty without MPI
  std::string datatype{};    ///< byte, int32, float, double; empty without MPI
  std::string placement{};   ///< of the ranks of E6; empty elsewhere
  std::string distance{};    ///< of the NICs of two ranks; empty within a node or if unknown
  std::optional<double> p99_seconds{};  ///< that 99 % of single messages do not exceed
  std::uint64_t bytes = 0;
  std::uint64_t bytes_moved = 0;
  bool read_and_write = true;  ///< bytes_counted: read+write, else once
  bool latency = false;        ///< samples are us per operation; else rates in GB/s
  bool in_memory = true;       ///< regime: memory, else cache
  int block_size = 0;          ///< 0: no kernel
  int elements = 0;            ///< of 16 bytes a thread of the kernel; 0: not told
  std::uint64_t grid = 0;      ///< blocks that loop over the arrays; 0: as many as cover them
  int batch = 1;
  int passes = 0;                    ///< operations in one launch of a kernel; 0: no kernel
  std::vector<double> seconds;       ///< per sample: device time of the whole batch
  std::vector<double> host_seconds;  ///< the same by the host's clock
  Verification verification;
  std::shared_ptr<const EnergyHold> energy{};  ///< null: not held
  int messages = 1;  ///< of one operation of the hold, each of bytes_moved
};

/// Whether noise of the series makes its run too noisy to judge. It does not if caches may hold the
/// arrays, if the series is a share whose sum is the result (experiment::judged_by_sum), or if it
/// works beside something else, because the device may start either first.
[[nodiscard]] bool is_judged(const Series& series);

/// A series in the form of the schema: rates in GB/s or latencies in us, statistics, clock
/// comparison. Throws std::invalid_argument for a series without samples.
nlohmann::json series_json(const Series& series, double noise_limit);

}  // namespace fabricheck
