// The result document: what one run measured (schema: result-1, docs/reference/result-document.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/sampling.hpp"
#include "harness/status.hpp"

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

/// The text of a JSON value. Invalid UTF-8, as in an environment variable, is replaced by U+FFFD.
std::string dumped(const nlohmann::json& value, int indent = -1);

/// Writes `text` so that `path` never holds half a document: into `path`.new first, synced, then
/// renamed. A path that is not a regular file (a pipe, a device) is written directly; "-" is
/// standard output. Throws Failure(software) naming the file and the system's reason.
void write_whole(const std::string& path, const std::string& text);

/// The document of a run. All members may be called from the program and from the watchdog.
class Document {
 public:
  /// `path` is the final path ("-": standard output). Throws Failure(usage) when it cannot be
  /// written, before anything is measured.
  Document(std::string path, nlohmann::json head);

  void set(const std::string& key, nlohmann::json value);
  /// Changes a member in place: one that grows need not be copied each time.
  void change(const std::string& key, const std::function<void(nlohmann::json&)>& change);
  void add_series(nlohmann::json series);
  /// Returns whether the note is new.
  bool add_note(const std::string& sentence);

  /// Starts a measurement. The results so far are kept in `path`.partial, at most once a second, so
  /// that a killed run loses little.
  void begin(const std::string& measurement);
  /// The last measurement that started; empty before the first.
  [[nodiscard]] std::string last_begun() const;

  /// Sets the outcome and writes the document. `exit_code` as in `status`, or 128 + signal. If the
  /// path cannot be written, the document goes to standard output and Failure is thrown.
  void finish(const std::string& status, int exit_code, const std::string& message, bool complete);

  [[nodiscard]] nlohmann::json content() const;

 private:
  std::string path_;
  bool regular_ = false;
  bool finished_ = false;
  double started_ = 0;
  double last_partial_ = 0;
  std::string last_begun_;
  mutable std::mutex mutex_;
  nlohmann::json json_;
};

/// The present time as RFC 3339 with milliseconds, in UTC.
std::string timestamp();

}  // namespace fabricheck
